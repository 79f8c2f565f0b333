"""`quire verify` and `quire key`: proof, and whom to believe."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from ..record.summary import one_line
from .main import App, emit_json

if TYPE_CHECKING:
    from ..proof.keys import Shown
    from ..proof.trust import Trusted
    from ..proof.verify import Summary, Verdict
    from ..record.finding import Finding

FINDINGS = 30  # that are shown without --json


def _which_list(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--keys", metavar="FILE", help="Trust the keys in this list."),
        click.option(
            "--keys-from", metavar="REV", help="Trust the list as it is in a branch or commit."
        ),
    ):
        command = option(command)
    return command


@click.command(
    epilog="Examples: quire verify last · quire verify --all · "
    "quire verify report.ipynb · quire verify last --keys-from main"
)
@click.argument("run", required=False)
@click.option("--all", "everything", is_flag=True, help="Every archived run, and their history.")
@_which_list
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def verify(
    app: App,
    run: str | None,
    everything: bool,
    keys: str | None,
    keys_from: str | None,
    as_json: bool,
) -> int:
    """Check that archived runs are what was run.

    RUN is an id, a unique beginning of one, or `last`; or an executed notebook (.ipynb), which is
    compared with the archived runs. Exit status: 0 it verifies, 1 it does not, 2 there is nothing
    to verify.
    """
    from ..errors import UsageError
    from ..proof.keys import trust_of
    from ..proof.verify import verify_all, verify_notebook, verify_run

    app.json_asked = as_json
    if everything and run is not None:
        raise UsageError("a run and --all are named", hint=f"quire verify {run}")
    ws = app.workspace()
    named = keys is not None or keys_from is not None
    trust = trust_of(ws, file=keys, revision=keys_from) if named else None
    if everything:
        summary = verify_all(ws, trust=trust)
        _show_summary(app, summary, as_json)
        return 0 if summary.ok else 1
    name = run if run is not None else "last"
    check = verify_notebook if name.endswith(".ipynb") else verify_run
    verdict = check(ws, name, trust=trust)
    _show_verdict(app, verdict, as_json)
    return 0 if verdict.ok else 1


def _show_verdict(app: App, verdict: Verdict, as_json: bool) -> None:
    if as_json:
        emit_json(app, verdict.as_dict())
        return
    _line(app, verdict.line, verdict.ok)
    _show_findings(app, verdict.findings)
    for note in verdict.notes:
        app.terminal.out(f"  not checked: {one_line(note)}")
    app.terminal.out(f"trusted: {one_line(verdict.trust)}")


def _show_summary(app: App, summary: Summary, as_json: bool) -> None:
    from ..archive.layout import some
    from ..proof.verify import count

    if as_json:
        emit_json(app, summary.as_dict())
        return
    _line(app, summary.line, summary.ok)
    _show_findings(app, summary.history)
    for verdict in [one for one in summary.runs if not one.ok][:FINDINGS]:
        _line(app, verdict.line, False)
        _show_findings(app, verdict.findings)
    if summary.noted:
        parts = sum(len(one.notes) for one in summary.noted)
        runs = [one.run_id for one in summary.noted]
        told = f"{count(parts, 'part')} of {some(runs)}: quire verify {runs[0]} says which"
        app.terminal.out(one_line(f"not checked: {told}"))
    app.terminal.out(f"trusted: {one_line(summary.trust)}")


def _line(app: App, text: str, good: bool) -> None:
    term = app.terminal
    word, _, rest = one_line(text).partition("verified")
    term.out(term.paint(f"{word}verified", "green" if good else "red") + rest)


def _show_findings(app: App, findings: Iterable[Finding]) -> None:
    found = list(findings)
    for one in found[:FINDINGS]:
        app.terminal.out(f"  {one_line(str(one))}")
    if len(found) > FINDINGS:
        app.terminal.out(f"  … {len(found) - FINDINGS} more (--json has them all)")


@click.group(epilog="Examples: quire key show · quire key trust --name ada · quire key list")
def key() -> None:
    """Look at, renew or trust the keys that sign records."""


@key.command(epilog="Examples: quire key show · quire key show --json")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def show(app: App, as_json: bool) -> None:
    """Show this machine's public key. The first use makes it."""
    from ..proof.keys import shown

    app.json_asked = as_json
    _show_key(app, shown(app.workspace()), as_json)


def _show_key(app: App, found: Shown, as_json: bool, **more: str) -> None:
    if as_json:
        emit_json(app, {**found.as_dict(), **more})
        return
    name = f", as {one_line(found.name)}" if found.name else ""
    trusted = f"yes{name}" if found.trusted else "no: quire key trust adds it to the list"
    app.terminal.out(f"public key: {found.public}")
    app.terminal.out(f"id:         {found.id}")
    app.terminal.out(f"kept in:    {one_line(str(found.path))}")
    app.terminal.out(f"trusted:    {trusted} ({one_line(found.where)})")


@key.command(epilog="Example: quire key rotate")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def rotate(app: App, as_json: bool) -> None:
    """Make a new key. The old one signs no more; what it signed still verifies."""
    from ..proof.keys import rotated

    app.json_asked = as_json
    found, old = rotated(app.workspace())
    if not as_json and old:
        app.terminal.out(f"ended:      {old}")
    _show_key(app, found, as_json, ended=old)


@key.command(
    epilog="Examples: quire key trust · quire key trust bob.pub --name bob --until 2027-12-31"
)
@click.argument("public", metavar="[PUBLICKEY|FILE]", required=False)
@click.option("--name", help="Whose key it is; one's own has the name that git knows.")
@click.option("--until", metavar="TIME", help="What it signs after this time does not count.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on stdout.")
@click.pass_obj
def trust(app: App, public: str | None, name: str | None, until: str | None, as_json: bool) -> None:
    """Add a key to .quire-keys, the list of whom this repository trusts.

    Without a key: this machine's own. Commit the list: that is what makes it count for others.
    """
    from ..proof.keys import trusted

    app.json_asked = as_json
    added = trusted(app.workspace(), public, name=name, until=until)
    if as_json:
        emit_json(app, [_listed(one) for one in added])
        return
    for one in added:
        app.terminal.out(f"trusted: {one.line()}")
    app.terminal.err("hint: commit .quire-keys, so that it counts for others too")


@key.command("list", epilog="Examples: quire key list · quire key list --keys-from main")
@_which_list
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.pass_obj
def list_(app: App, keys: str | None, keys_from: str | None, as_json: bool) -> None:
    """List the keys whose signatures count here."""
    from ..proof.keys import trust_of
    from ..proof.verify import said

    app.json_asked = as_json
    found = trust_of(app.workspace(), file=keys, revision=keys_from)
    if as_json:
        listed = [_listed(one) for one in found.keys.values()]
        emit_json(app, {"trust": said(found), "keys": listed})
        return
    for one in found.keys.values():
        bounds = "".join(f"  {w} {t}" for w, t in (("since", one.since), ("until", one.until)) if t)
        app.terminal.out(f"{one.id[:16]}  {one_line(one.name)}{bounds}")
    app.terminal.out(f"trusted: {one_line(said(found))}")


def _listed(key: Trusted) -> dict[str, str]:
    return {
        "id": key.id,
        "public": key.public,
        "name": key.name,
        "since": key.since,
        "until": key.until,
    }
