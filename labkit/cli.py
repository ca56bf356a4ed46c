"""The labkit command: `run` executes notebooks, `exec` a script; `progress`, `bench` and `doctor` tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labkit.errors import LabkitError

if TYPE_CHECKING:
    from labkit.batch.runner import Outcome

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__.replace("`", ""))


@app.command()
def run(
    notebooks: Annotated[
        list[Path] | None, typer.Argument(help="Notebooks or folders of them.", show_default="notebooks")
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder for the results, emptied first.")] = Path("build/run"),
    cell_seconds: Annotated[int, typer.Option(min=1, help="The longest that one cell may run.")] = 600,
) -> None:
    """Execute notebooks by papermill and report. Exit status 0 only if every one passed."""
    from labkit.batch import report, runner

    try:
        found = runner.find_notebooks(notebooks or [Path("notebooks")])
        runner.prepare_folder(output)
    except LabkitError as problem:
        typer.echo(f"labkit: {problem}", err=True)
        raise typer.Exit(2) from None
    outcomes = list(runner.run_notebooks(found, output, cell_seconds))
    _render_all(outcomes, output)
    report.write_summary(outcomes, output)
    report.write_index(outcomes, output)
    report.print_table(outcomes, output)
    raise typer.Exit(any(outcome.result != "passed" for outcome in outcomes))


def _render_all(outcomes: list[Outcome], output: Path) -> None:
    from labkit.batch.render import render

    for outcome in outcomes:
        if (output / outcome.notebook).exists():
            render(output / outcome.notebook)


@app.command()
def doctor() -> None:
    """Look at this machine. Exit status 0 only if the notebooks can run on it."""
    from labkit.doctor import examine, print_findings

    findings = examine()
    print_findings(findings)
    raise typer.Exit(any(finding.state == "fail" for finding in findings))


@app.command()
def progress(
    folder: Annotated[
        Path | None, typer.Argument(help="Where the notebooks run.", show_default="here, else notebooks")
    ] = None,
) -> None:
    """Show which exercises are solved."""
    from labkit.checks import progress_table
    from labkit.checks.progress import FILE

    here = Path() if Path(FILE).exists() else Path("notebooks")
    typer.echo(progress_table(folder=folder or here).to_string(index=False))


@app.command()
def bench(
    what: Annotated[
        str,
        typer.Argument(help="emulator: beside Triton's interpreter, in ratios; model: the model of caches."),
    ],
) -> None:
    """Measure how fast labkit itself is on this machine."""
    if what == "emulator":
        from labkit.bench.emulator import bench_emulator

        bench_emulator()
    elif what == "model":
        from labkit.bench.model import bench_model

        bench_model()
    else:
        typer.echo(f"labkit: there is no benchmark {what!r}; choose emulator or model", err=True)
        raise typer.Exit(2)


@app.command("exec", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def execute_script(
    context: typer.Context,
    script: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A Triton script.")],
    counters: Annotated[
        Path | None, typer.Option(help="Write what each launch executed to this CSV file.")
    ] = None,
    faults: Annotated[
        str, typer.Option(help="At a fault: raise an error, report it at the end, or off: look for none.")
    ] = "raise",
) -> None:
    """Run an unmodified Triton script on the emulated MI300X; other arguments are its own."""
    import runpy
    import sys

    import labkit
    from labkit.emulator.report import write_counters

    sys.argv = [str(script), *context.args]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        labkit.start("MI300X", faults=faults)
        if counters is not None:
            counters.open("a").close()  # a path that cannot be written is told before the script runs
    except (LabkitError, OSError) as problem:
        typer.echo(f"labkit: {problem}", err=True)
        raise typer.Exit(2) from None
    with labkit.record() as launches:
        try:
            runpy.run_path(str(script), run_name="__main__")
        finally:
            for launch in launches:
                for finding in launch.faults:
                    typer.echo(f"labkit: {finding.word}: {finding}", err=True)
            if counters is not None:
                write_counters(launches, counters)
                if not launches:
                    typer.echo("labkit: the script ran no kernel on the emulated chip.", err=True)
