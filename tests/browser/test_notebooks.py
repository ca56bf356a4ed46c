"""Each learner's notebook in JupyterLab, as a learner meets it."""

from __future__ import annotations

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser.contrast import TEXT_RATIO, contrasts
from tests.browser.lab import ROOT, THEMES

HOLE = "# Your code here"
# For a notebook the answer's part to change, what to, and words of the feedback that name the mistake.
WRONG = {
    "01_gpu_hierarchy.ipynb": (", mask=mask", "", "give both loads mask=offsets < n"),
    "02_triton_pipeline.ipynb": (
        "tl.multiple_of(tl.load(lengths_ptr + row), 16)",
        "tl.load(lengths_ptr + row)",
        "tell it that length is a multiple of 16",
    ),
    "03_fused_kernels.ipynb": (", propagate_nan=tl.PropagateNan.ALL", "", "the clamp swallowed NaN"),
}


def answers(name):
    """(number of an exercise's cell, a wrong answer, a right one, words that the wrong one must cause)."""
    learner = nbformat.read(ROOT / "notebooks" / name, as_version=4)
    solved = nbformat.read(ROOT / "notebooks" / "solutions" / name, as_version=4)
    part, instead, words = WRONG[name]
    for number, cell in enumerate(learner.cells):
        right = solved.cells[number].source
        if HOLE in cell.source and part in right:
            return number, right.replace(part, instead), right, words
    raise AssertionError(f"no answer in {name} has {part!r}: say in WRONG what to change")


def panel(notebook, number):
    """The feedback below the check that follows the answer in cell `number`."""
    return notebook.cell(number + 1).locator("[role=status]")


def test_each_notebook_has_a_wrong_answer_to_try(notebook):
    assert notebook.name in WRONG


def test_it_runs_to_the_end_without_an_error(notebook):
    assert notebook.errors == []
    assert notebook.pictures.count() > 0
    assert notebook.page.locator("[role=status]").count() > 0


def test_each_picture_has_alt_text_that_says_something(notebook):
    missing = [image for image in notebook.pictures.all() if len(image.get_attribute("alt") or "") < 40]
    assert missing == []


def test_each_picture_is_opaque_and_fits_the_page(notebook):
    """An opaque ground keeps a picture's dark text readable on a dark page."""
    facts = notebook.pictures.evaluate_all(_LOOK_AT_PICTURES)
    assert [fact for fact in facts if not (fact["opaque"] and fact["fits"])] == []


@pytest.mark.parametrize("theme", THEMES)
def test_text_of_outputs_can_be_read(notebook, theme, screenshots):
    notebook.use_theme(theme)
    notebook.photograph(screenshots / f"{notebook.path.stem}-{theme}")
    texts = contrasts(notebook.page.locator(".jp-OutputArea-output"))
    assert len(texts) > 20
    assert [(round(ratio, 2), text) for ratio, text in texts if ratio < TEXT_RATIO] == []


def test_an_exercise_tells_a_wrong_answer_from_a_right_one(notebook, screenshots, note):
    number, wrong, right, words = answers(notebook.name)
    untouched = panel(notebook, number).inner_text()
    assert "○" in untouched and "not solved yet" in untouched

    seconds = notebook.type_and_run(number, wrong)
    said = panel(notebook, number)
    assert words in said.inner_text()
    assert "solved" not in said.inner_text() and ("✗" in said.inner_text() or "◐" in said.inner_text())
    said.get_by_text("Hint 1 of 3").click()
    assert said.locator("details[open]").count() == 1
    for theme in THEMES:
        notebook.use_theme(theme)
        said.screenshot(path=screenshots / f"{notebook.path.stem}-feedback-{theme}.png")
        texts = contrasts(said)
        assert len(texts) > 5
        assert [(round(ratio, 2), text) for ratio, text in texts if ratio < TEXT_RATIO] == []

    seconds = max(seconds, notebook.type_and_run(number, right))
    assert "✓" in panel(notebook, number).inner_text() and "solved" in panel(notebook, number).inner_text()
    note(f"{notebook.name}: a check answered within {seconds:.1f} s")


# A notebook's sliders, from the top: label, and what its first step to the right changes in the alt text
# of the picture below it.
SLIDERS = {
    "01_gpu_hierarchy.ipynb": [("lane", "v0 = 20 (integer), v1 = 505", "v0 = 24 (integer), v1 = 606")],
    "02_triton_pipeline.ipynb": [],
    "03_fused_kernels.ipynb": [("second scale", "scale 2: at most", "scale 4: at most")],
}


def test_each_slider_draws_its_picture_anew(notebook):
    sliders = notebook.page.locator(".jp-OutputArea .widget-slider")
    assert sliders.count() == len(SLIDERS[notebook.name])
    for number, (label, before, after) in enumerate(SLIDERS[notebook.name]):
        slider = sliders.nth(number).filter(has_text=label).get_by_role("slider")
        drawn = ".jp-OutputArea:has(.widget-slider) img[alt*='{}']"
        picture = notebook.page.locator(drawn.format(before))
        expect(picture).to_be_visible()
        slider.focus()
        slider.press("ArrowRight")
        expect(notebook.page.locator(drawn.format(after))).to_be_visible()
        expect(picture).to_have_count(0)


def test_it_works_again_after_a_restart(notebook, note):
    seconds = notebook.restart_and_run_all()
    note(f"{notebook.name}: first picture {seconds:.1f} s after restart and Run All")
    assert notebook.errors == []
    # The answer that was typed is still in its cell.
    assert "✓" in panel(notebook, answers(notebook.name)[0]).inner_text()


def test_progress_outlives_the_kernel_and_the_answer(notebook):
    number = answers(notebook.name)[0]
    learner = nbformat.read(ROOT / "notebooks" / notebook.name, as_version=4)
    notebook.type_and_run(number, learner.cells[number].source)
    notebook.restart_and_run_all()
    panel(notebook, number).scroll_into_view_if_needed()
    assert "not solved yet" in panel(notebook, number).inner_text()
    title = panel(notebook, number).locator("strong").inner_text().removeprefix("○ ").split(":")[0]
    row = notebook.page.locator(".jp-OutputArea table tr").filter(
        has=notebook.page.get_by_text(title, exact=True)
    )
    assert "not solved" not in row.last.inner_text() and "solved" in row.last.inner_text()


def test_nothing_was_fetched_from_elsewhere(notebook):
    assert notebook.asked_elsewhere == []


_LOOK_AT_PICTURES = """images => images.map(image => {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const values = context.getImageData(0, 0, canvas.width, canvas.height).data;
    let opaque = canvas.width > 0;
    for (let k = 3; k < values.length; k += 4) opaque &&= values[k] === 255;
    const area = image.closest('.jp-OutputArea').getBoundingClientRect();
    return {alt: image.alt.slice(0, 60), opaque, fits: image.getBoundingClientRect().right <= area.right + 1};
})"""
