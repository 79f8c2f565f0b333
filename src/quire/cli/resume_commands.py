"""`quire resume`."""

from __future__ import annotations

import click

from ..errors import UsageError
from ..record.summary import one_line
from .main import App
from .run_commands import follow


@click.command(epilog="Examples: quire resume last --approve · quire resume 2026-11-18-10 --skip")
@click.argument("run", default="last")
@click.option("--approve", is_flag=True, help="Run the step that waits.")
@click.option("--skip", is_flag=True, help="Leave out the step that waits.")
@click.option("--step", is_flag=True, help="Ask before each step from there on.")
@click.option("--again", is_flag=True, help="Also if it was taken up before: steps run twice.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Limit for the whole run.")
@click.option("--no-archive", is_flag=True, help="Keep the record here only.")
@click.option("--no-host", is_flag=True, help="Run in this process; keep nothing warm.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.pass_obj
def resume(
    app: App,
    run: str,
    approve: bool,
    skip: bool,
    step: bool,
    again: bool,
    timeout: float | None,
    no_archive: bool,
    no_host: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Take up a run that waits for a person. It is taken up once, unless --again says otherwise.

    From the state it left if that is still there, otherwise by running again what ran before. With
    neither --approve nor --skip you are asked. Exit code: that of `quire run`.
    """
    from ..engine.resume import prepare

    app.json_asked = as_json
    if approve and skip:
        raise UsageError("--approve and --skip were both given", hint="give one of them")
    if timeout is not None and not timeout > 0:
        raise UsageError("--timeout must be above 0", hint="give seconds")
    if app.engine is None:
        from ..kernel import processes

        processes.alone()
    execution, notes = prepare(
        app.workspace(),
        run,
        decision="run" if approve else "skip" if skip else "",
        step=step,
        once_more=again,
        timeout=timeout,
        archives=False if no_archive else None,
        cancel=app.cancelled,
    )
    for note in notes:
        app.terminal.err(f"note: {one_line(note)}")
    return follow(app, execution, as_json=as_json, quiet=quiet)
