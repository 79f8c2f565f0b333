"""run_find: runs by what they hold, earlier failures of the same kind, and what many came to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ..archive.read import runs
from ..errors import UsageError
from ..next_steps import called
from ..record.summary import one_line, took
from ..render.agent_run import Told
from ..search.digest import digest as page_of
from ..search.find import Hit, find
from ..search.query import since as from_words
from ..search.similar import Alike, similar
from ..text import EXPLAINED, inline, mentioned, quoted
from ..workspace import Workspace
from . import tool_texts
from .caller import Caller
from .notebook_tools import inside

SNIPPET = 300  # characters
RUNNING = 200  # of the newest runs are looked at
MOST = 100  # runs that one call may ask for
NARROW = "narrow it: say more words, a path or since"


def search(
    ws: Workspace,
    caller: Caller,
    *,
    query: str = "",
    path: str | None = None,
    outcome: str | None = None,
    since: str = "",
    results: Sequence[str] = (),
    params: Sequence[str] = (),
    like: str = "",
    digest: bool = False,
    limit: int = 10,
) -> Told:
    task = ws.named((ws.cwd / inside(ws, path)).resolve()) if path is not None else ""
    if sum((bool(query), bool(like), digest)) > 1:
        raise UsageError("query, like and digest are three ways to ask", hint="give one of them")
    if (results or params) and (like or digest or outcome == "running"):
        raise UsageError(
            "results and params narrow what a query finds, of runs that are over",
            hint="run_find without like, digest and outcome running",
        )
    if digest:
        told = page_of(ws, since=since, task=task)
        return _told([quoted(told.text)] if told.runs else [], told.warnings)
    given = {
        "query": query, "path": path, "outcome": outcome, "since": since,
        "results": results, "params": params, "like": like,
    }  # fmt: skip
    again = {name: value for name, value in given.items() if value}
    if like:
        failures = similar(ws, like, task=task, since=since, limit=limit + 1)
        alike = [_alike(one) for one in failures.runs]
        more = None if len(alike) > limit else 0
        return _told(alike[:limit], failures.warnings, _rest(again, limit, more))
    # Before the index is asked: what ends meanwhile is in there then.
    newest = outcome is None and not (query or results or params)
    going = _running(ws, task, query, since) if newest or outcome == "running" else {}
    if outcome == "running":
        shown = [*going.values()][:limit]
        return _told(shown, (), _rest(again, limit, len(going) - len(shown)))
    hits = find(
        ws,
        query,
        task=task,
        since=since,
        outcome=(outcome,) if outcome else (),
        results=results,
        params=params,
        limit=limit,
    )
    found = [*(going | {hit.run_id: _hit(hit) for hit in hits.hits}).values()]
    more = None if hits.more is None else hits.more + max(0, len(found) - limit)
    return _told(found[:limit], hits.warnings, _rest(again, limit, more))


def _told(found: list[str], warnings: tuple[str, ...], rest: str = "") -> Told:
    lines = [f"warning: {inline(warning, 400)}" for warning in warnings]
    if not found:
        return Told("\n".join([*lines, "no such run"]))
    if any(line.startswith("|") for one in found for line in one.split("\n")):
        lines.append(EXPLAINED)
    text = tool_texts.bounded([*lines, *found], NARROW, tool_texts.ROOM - len(rest))
    return Told(f"{text}\n{rest}" if rest else text)


def _rest(given: dict[str, Any], limit: int, more: int | None) -> str:
    """How many are not told, as far as that is known, and the call that tells more."""
    if more == 0:
        return ""
    many = "… there are more" if more is None else f"… {more:,} more"
    wider = min(MOST, 2 * limit if more is None else limit + more)
    if wider <= limit:
        return f"{many}; {NARROW}"
    return f"{many}: {called('run_find', {**given, 'limit': wider})}"


def _hit(hit: Hit) -> str:
    by = f"  by {mentioned(hit.by)}" if hit.by else ""
    head = f"{hit.run_id}  {hit.outcome}  {took(hit.duration)}  {mentioned(hit.task)}{by}"
    rows = [head, f"  {inline(hit.summary, SNIPPET)}"] if hit.summary else [head]
    for spot in hit.spots:
        cell = f" of cell {one_line(spot.cell)}" if spot.cell else ""
        rows.append(f"  {spot.field}{cell}: {inline(spot.snippet, SNIPPET)}")
    if hit.missing:
        rows.append(f"  without: {inline(' '.join(hit.missing))}")
    return "\n".join(rows)


def _alike(one: Alike) -> str:
    rows = [_hit(one.hit), f"  {one.why}"]
    fix = one.fix
    if fix is None:
        return "\n".join([*rows, "  no later run of it has passed"])
    rows.append(f"  what passed next: run_show(run={fix.run_id!r})")
    rows += [
        f"  parameter {mentioned(name)}: {inline(repr(old))} became {inline(repr(new))}"
        for name, (old, new) in fix.parameters.items()
    ]
    return "\n".join([*rows, quoted(fix.diff)] if fix.diff else rows)


def _running(ws: Workspace, task: str, query: str, since: str) -> dict[str, str]:
    """What is under way is in no index yet. By the id of the run, the newest first."""
    start = from_words(since, datetime.now(UTC)) if since else 0.0
    out = {}
    for found in runs(ws, RUNNING):
        if found["outcome"] != "running" or task not in ("", found["task"]):
            continue
        known = " ".join(str(found[key] or "") for key in ("run_id", "task", "title"))
        wanted = all(word in known.casefold() for word in query.casefold().split())
        if wanted and _began(found["started"]) >= start:
            name = str(found["run_id"])
            out[name] = f"{name}  running  {mentioned(found['task'] or '')}"
    return out


def _began(at: str) -> float:
    try:
        return datetime.fromisoformat(at).timestamp()
    except (ValueError, OverflowError):  # a damaged journal; it goes on all the same
        return math.inf
