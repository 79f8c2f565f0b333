"""Find runs: by what they hold, by values, by time; and those that failed alike."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from ..document.textdiff import unified
from ..errors import QuireError, RunNotFound, StorageError, UsageError
from ..runs import query as queries
from ..runs.failure import failing_line, fingerprint, from_text
from ..runs.matching import Spot
from ..runs.query import Comparison, Query, Term
from ..store import searching
from ..store.index import BadIndex
from ..store.searching import Filters, Row
from ..workspace import Workspace
from . import summaries
from .index import Caught, Progress, catch_up, index_of, silent
from .runs import find as find_run
from .runs import find_archived

OUTCOMES = ("ok", "failed", "timed_out", "cancelled", "died", "paused")
LONGEST_DIFF = 20_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Hit:
    """A run that was found, with the places that say why."""

    run_id: str
    task: str
    title: str
    outcome: str
    started: str
    duration: float | None
    by: str
    summary: str
    archived: bool
    spots: tuple[Spot, ...]
    cells: Mapping[str, str]  # titles of those that are spoken of
    missing: tuple[str, ...] = ()  # words of the query that it does not have
    summary_by: str = ""  # the model that wrote the summary; empty: rules did

    @property
    def command(self) -> str:
        """What shows the place that says most."""
        cell = next((spot.cell for spot in self.spots if spot.cell), "")
        return f"quire show {self.run_id}" + (f" --cell {cell}" if cell else "")

    def as_dict(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "task": self.task,
            "title": self.title,
            "outcome": self.outcome,
            "started": self.started,
            "duration": self.duration,
            "by": self.by,
            "summary": self.summary,
            "summary_by": self.summary_by or None,
            "archived": self.archived,
            "missing": list(self.missing),
            "hits": [
                {
                    "field": spot.field,
                    "cell": spot.cell or None,
                    "title": self.cells.get(spot.cell) or None,
                    "snippet": spot.snippet,
                }
                for spot in self.spots
            ],
            "command": self.command,
        }


@dataclass(frozen=True, slots=True)
class Hits:
    hits: tuple[Hit, ...]
    searched: int  # runs in the index
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fix:
    """The next run of the same task that passed, and what had changed until then."""

    run_id: str
    started: str
    diff: str  # of the sources; empty where they are the same
    parameters: Mapping[str, tuple[Any, Any]]  # those that differ: before, after


@dataclass(frozen=True, slots=True)
class Alike:
    hit: Hit
    why: str  # the same error and line, the same error, the same line, or like it
    fix: Fix | None

    def as_dict(self) -> dict[str, Any]:
        fix = self.fix
        return self.hit.as_dict() | {
            "why": self.why,
            "fix": fix
            and {
                "run_id": fix.run_id,
                "started": fix.started,
                "diff": fix.diff,
                "changed": {n: {"old": o, "new": w} for n, (o, w) in fix.parameters.items()},
            },
        }


@dataclass(frozen=True, slots=True)
class Similar:
    error: str  # what was looked for, without what differs from run to run
    runs: tuple[Alike, ...]
    warnings: tuple[str, ...] = ()


def find(
    ws: Workspace,
    query: str = "",
    *,
    task: str = "",
    since: str = "",
    until: str = "",
    outcome: Sequence[str] = (),
    who: str = "",
    params: Sequence[str] = (),
    results: Sequence[str] = (),
    limit: int = 10,
    now: datetime | None = None,
    progress: Progress = silent,
) -> Hits:
    """The best first; without words the newest first."""
    asked = queries.parse(query)
    narrow = narrowing(task, since, until, outcome, who, params, results, now)
    caught, (rows, searched) = asked_of(
        ws,
        lambda con: (searching.search(con, asked, narrow(con), limit), searching.total(con)),
        progress,
    )

    def missing(text: str) -> bool:
        return all(text in row.missing for row in rows)

    said = (*warnings_of(caught), *queries.odd_fields(asked, missing))
    return Hits(tuple(_hit(ws, row) for row in rows), searched, said)


def similar(
    ws: Workspace,
    what: str,
    *,
    task: str = "",
    since: str = "",
    until: str = "",
    limit: int = 5,
    now: datetime | None = None,
    progress: Progress = silent,
) -> Similar:
    """Earlier runs that met the same failure: that of a run, or one whose text is given."""
    but, error, line = _failure(ws, what)
    narrow = narrowing(task, since, until, (), "", (), (), now)

    def ask(con: Any) -> list[tuple[Row, str, Row | None]]:
        filters = narrow(con)
        rows = searching.by_failure(con, error, line, filters, limit + 1)
        rows += _like(con, error, filters, limit + 1, rows)
        kept = [row for row in rows if row.run_id != but][:limit]
        return [(row, _why(row, error, line), searching.next_ok(con, row)) for row in kept]

    caught, found = asked_of(ws, ask, progress)
    alike = (
        Alike(_hit(ws, row), why, _fix(ws, row, passed) if passed is not None else None)
        for row, why, passed in found
    )
    return Similar(error, tuple(alike), warnings_of(caught))


def asked_of(ws: Workspace, question: Callable[[Any], T], progress: Progress) -> tuple[Caught, T]:
    caught = catch_up(ws, progress)
    index = index_of(ws)
    try:
        with index.reading() as con:
            return caught, question(con)
    except BadIndex as error:  # what its head did not show
        index.set_aside()
        caught = catch_up(ws, progress)
        caught.message = f"the index {error} and was made anew"
        try:
            with index.reading() as con:
                return caught, question(con)
        except BadIndex as again:
            raise StorageError(
                f"the index {again}, as soon as it was made", hint="look at the disk: dmesg, fsck"
            ) from again


def warnings_of(caught: Caught) -> tuple[str, ...]:
    found = [caught.message] if caught.message else []
    if caught.behind:
        found.append(
            f"another process is adding {caught.behind:,} runs to the index: "
            "they may be missing here"
        )
    if caught.damaged:
        names = list(caught.damaged)
        more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        found.append(
            f"not searched, because they cannot be read: {', '.join(names[:3])}{more}; "
            f"quire verify {names[0]} says what is wrong"
        )
    return tuple(found)


# What narrows.


def narrowing(
    task: str,
    since: str,
    until: str,
    outcome: Sequence[str],
    who: str,
    params: Sequence[str],
    results: Sequence[str],
    now: datetime | None,
) -> Callable[[Any], Filters]:
    """All that can be wrong with the words of it is said before the index is opened."""
    now = now or datetime.now(UTC)
    for one in outcome:
        if one not in OUTCOMES:
            raise UsageError(f"{one!r} is no outcome", hint=", ".join(OUTCOMES))
    start = queries.since(since, now) if since else None
    end = queries.until(until, now) if until else None
    if start is not None and end is not None and start >= end:
        raise UsageError(f"{since} is not before {until}", hint="--since 7d --until yesterday")
    compared = [queries.comparison("param", text) for text in params]
    compared += [queries.comparison("result", text) for text in results]

    def narrow(con: Any) -> Filters:
        return Filters(
            tasks=_tasks(con, task) if task else None,
            by=_people(con, who) if who else None,
            outcomes=tuple(outcome),
            since=start,
            until=end,
            values=tuple((_value_name(con, one), one) for one in compared),
        )

    return narrow


def _tasks(con: Any, task: str) -> tuple[int, ...]:
    """By path, by the end of one, or by name with or without its suffix."""
    known = searching.names(con, "task")
    wanted = task.removeprefix("./")
    found = [at for name, at in known.items() if name == wanted]
    found = found or [at for name, at in known.items() if _named(name, wanted)]
    if not found:
        stems = {name.rpartition("/")[2] for name in known}
        raise UsageError(f"no run has been of a task {task!r}", hint=_near(task, {*known, *stems}))
    return tuple(found)


def _named(path: str, wanted: str) -> bool:
    stem = path.rpartition(".")[0] or path
    return any(one == wanted or one.endswith(f"/{wanted}") for one in (path, stem))


def _people(con: Any, who: str) -> tuple[int, ...]:
    known = searching.names(con, "by")
    found = [at for name, at in known.items() if who.casefold() in name.casefold()]
    if not found:
        raise UsageError(f"nobody called {who!r} has run anything", hint=_near(who, known))
    return tuple(found)


def _value_name(con: Any, one: Comparison) -> int:
    known = searching.names(con, f"{one.kind}s")
    if one.name not in known:
        what = "parameter" if one.kind == "param" else "result"
        raise UsageError(f"no run has a {what} {one.name!r}", hint=_near(one.name, known))
    return known[one.name]


def _near(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, known, 3)
    if near:
        return f"did you mean {', '.join(near)}?"
    return f"there are: {', '.join(sorted(known)[:8])}" if known else "nothing has run yet"


def _hit(ws: Workspace, row: Row) -> Hit:
    better = summaries.of(ws, row.run_id)
    cells = {spot.cell for spot in row.spots}
    return Hit(
        row.run_id,
        row.task,
        row.title,
        row.outcome,
        datetime.fromtimestamp(row.started, UTC).isoformat(timespec="seconds"),
        row.duration,
        row.by,
        better.text if better else row.summary,
        not row.local,
        row.spots,
        {cell: title for cell, title in row.cells if cell in cells},
        row.missing,
        better.by if better else "",
    )


# Failures.


def _failure(ws: Workspace, what: str) -> tuple[str, str, str]:
    """The run it is of, if any; the failure without what differs; the line."""
    try:
        record = find_run(ws, what).record
    except RunNotFound:
        name, message = from_text(what)
        if not name and " " not in what:
            raise
        return "", fingerprint(name, message), ""
    if record.error is None:
        raise UsageError(
            f"{record.run_id} did not fail: it is {record.outcome}",
            hint="give a failed run, or the text of an error",
        )
    return (
        record.run_id,
        fingerprint(record.error.name, record.error.value),
        failing_line(record),
    )


def _like(con: Any, error: str, filters: Filters, limit: int, have: Sequence[Row]) -> list[Row]:
    """Where few failed the same way: those whose error has the rare words of it."""
    words = [w for w in Term(error).words if w not in ("value", "path", "number", "id", "error")]
    if len(have) >= limit or not words:
        return []
    asked = Query(tuple((Term(word, "error"),) for word in words[:12]))
    found = searching.search(con, asked, filters, limit)
    known = {row.run_id for row in have}
    name = error.partition(":")[0]
    return [r for r in found if r.run_id not in known and r.error.partition(":")[0] == name]


def _why(row: Row, error: str, line: str) -> str:
    same_error, same_line = row.error == error, bool(line) and row.line == line
    if same_error and same_line:
        return "the same error at the same line"
    if same_error:
        return "the same error"
    return "an error at the same line" if same_line else "an error like it"


def _fix(ws: Workspace, failed: Row, passed: Row) -> Fix:
    old, new = _parameters(failed), _parameters(passed)
    changed = {
        name: (old.get(name), new.get(name))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    }
    started = datetime.fromtimestamp(passed.started, UTC).isoformat(timespec="seconds")
    return Fix(passed.run_id, started, _diff(ws, failed, passed), changed)


def _diff(ws: Workspace, failed: Row, passed: Row) -> str:
    try:
        old, new = _source(ws, failed), _source(ws, passed)
    except (QuireError, StopIteration, KeyError):
        return ""  # `verify` says what became of it
    text = unified(old, new, failed.task.lstrip("/"))
    return text if len(text) <= LONGEST_DIFF else f"{text[:LONGEST_DIFF]}\n… cut here\n"


def _source(ws: Workspace, row: Row) -> list[str]:
    found = find_run(ws, row.run_id) if row.local else find_archived(ws, row.run_id)
    return found.source()[1].decode("utf-8", "replace").splitlines(keepends=True)


def _parameters(row: Row) -> dict[str, Any]:
    return {fact.name: fact.value for fact in row.facts if fact.kind == "param"}
