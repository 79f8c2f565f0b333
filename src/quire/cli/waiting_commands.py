"""`quire wait` and `quire cancel`: runs that go on by themselves."""

from __future__ import annotations

import click

from ..errors import UsageError
from ..record.summary import one_line
from .main import App, calling_off, emit_json
from .run_commands import EXIT

STILL_RUNNING = 124  # as timeout(1) says it


@click.command(epilog="Examples: quire wait last · quire wait 2026-11-16-15 --timeout 60 --json")
@click.argument("run")
@click.option("--timeout", type=float, metavar="SECONDS", help="Wait no longer than this.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def wait(app: App, run: str, timeout: float | None, as_json: bool) -> int:
    """Wait for a run to end, and say how it did.

    RUN is an id, a unique beginning of one, or `last`. Leaving off waiting leaves the run alone.
    Exit code: that of `quire run`; 124 if it still runs when the time is over.
    """
    from ..archive.read import find
    from ..engine.background_runs import wait as wait_for
    from ..engine.run_underway import Progress

    app.json_asked = as_json
    if timeout is not None and not timeout >= 0:
        raise UsageError("--timeout must not be below 0", hint="give seconds")
    workspace = app.workspace()
    app.announce(find(workspace, run).record.run_id)

    def told(progress: Progress) -> None:
        if not as_json and progress.cell:
            app.terminal.err(one_line(str(progress)))

    with calling_off(app.cancelled):
        waited = wait_for(workspace, run, timeout, told=told, called_off=app.cancelled.is_set)
    record = waited.found.record
    _say(app, waited, as_json=as_json)
    if waited.over:
        return EXIT.get(record.outcome, 1)
    return 130 if app.cancelled.is_set() else STILL_RUNNING


@click.command(epilog="Example: quire cancel 2026-11-16-163516-report-8121")
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def cancel(app: App, run: str, as_json: bool) -> int:
    """Call off a run that the host runs, and wait for its record.

    Exit code: 0 if it ended cancelled, 1 if it ended otherwise.
    """
    from ..engine.background_runs import cancel as call_off

    app.json_asked = as_json
    waited = call_off(app.workspace(), run)
    _say(app, waited, as_json=as_json)
    return 0 if waited.found.record.outcome == "cancelled" else 1


def _say(app: App, waited: object, *, as_json: bool) -> None:
    from ..engine.background_runs import Waited
    from ..record.report import report
    from .record_commands import show_end

    assert isinstance(waited, Waited)
    found = waited.found
    if as_json:
        emit_json(app, report(found.record, found.notebook, found.archived))
    elif waited.over and found.folder is not None:
        show_end(app, found.record, found.folder, None)
    elif waited.over:
        app.terminal.out(found.record.outcome)
    else:
        app.terminal.out(f"still running: {one_line(str(waited.progress))}")
        app.terminal.out(f"go on waiting: quire wait {found.record.run_id}")
