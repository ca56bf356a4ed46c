"""A slider on top of a picture where somebody is there to move it, and the picture alone in a batch run."""

import nbformat
import pytest
from nbclient import NotebookClient

from labkit.figures import control, hierarchy

CELL = """
from labkit.figures.control import with_slider
from labkit.figures.hierarchy import lines_against_stride

def draw(stride):
    return lines_against_stride([1, stride], [2.0, 4.0], [2.0, 2.0], title=f"to {stride}")

with_slider(draw, "stride", [2, 4, 8], 4)
"""


def draw(stride):
    return hierarchy.lines_against_stride([1, stride], [2.0, 4.0], [2.0, 2.0], title=f"to {stride}")


def run(allow_stdin, tmp_path):
    """The outputs of the cell above, in a kernel whose front end takes input or doesn't."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    with client.setup_kernel():
        client.kc.allow_stdin = allow_stdin
        client.execute_cell(notebook.cells[0], 0)
    return notebook.cells[0].outputs


def test_a_batch_run_has_the_picture_and_nothing_else(tmp_path, monkeypatch, request):
    monkeypatch.setenv("PYTHONPATH", str(request.config.rootpath))
    (output,) = run(False, tmp_path)
    assert output.output_type == "execute_result"
    assert "image/png" in output.data and 'alt="Line chart' in output.data["text/html"]


def test_with_somebody_there_the_picture_stands_below_a_slider(tmp_path, monkeypatch, request):
    monkeypatch.setenv("PYTHONPATH", str(request.config.rootpath))
    slider, picture = run(True, tmp_path)
    assert "application/vnd.jupyter.widget-view+json" in slider.data
    assert "image/png" in picture.data and 'alt="Line chart' in picture.data["text/html"]


def test_without_a_notebook_it_is_the_picture():
    assert "4: 4" in control.with_slider(draw, "stride", [2, 4, 8], 4).alt


def test_a_start_that_is_no_choice_is_refused():
    with pytest.raises(ValueError, match="stride is 3, not one of the 3 choices"):
        control.with_slider(draw, "stride", [2, 4, 8], 3)
