"""Find runs: by what they hold, by values, by time. Those that failed alike: `similar.py`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from ..errors import StorageError, UsageError
from ..workspace import Workspace
from . import index_queries, model_summaries
from . import query as queries
from .fill import Caught, Progress, catch_up, index_of, silent
from .index_file import BadIndex
from .index_queries import Filters, Row
from .query import Comparison
from .snippets import Spot

OUTCOMES = ("ok", "failed", "timed_out", "cancelled", "died", "paused")
NEWEST = 200  # runs of this folder that are looked at where the index does not know a task
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
    more: int | None = 0  # that were not asked for; None: some, and nobody has counted them


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
    narrow = narrowing(ws, task, since, until, outcome, who, params, results, now)

    def ask(con: Any) -> tuple[list[Row], int, int | None]:
        filters = narrow(con)
        rows = index_queries.search(con, asked, filters, limit + 1)
        more: int | None = max(0, len(rows) - limit)
        if more:  # what has some of the words is only counted by reading it
            more = None if asked.groups else index_queries.count(con, filters) - limit
        return rows[:limit], index_queries.total(con), more

    caught, (rows, searched, more) = asked_of(ws, ask, progress)

    def missing(text: str) -> bool:
        return all(text in row.missing for row in rows)

    said = (*warnings_of(caught), *queries.odd_fields(asked, missing))
    return Hits(tuple(hit_of(ws, row) for row in rows), searched, said, more)


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
    ws: Workspace,
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
            tasks=_tasks(ws, con, task) if task else None,
            by=_people(con, who) if who else None,
            outcomes=tuple(outcome),
            since=start,
            until=end,
            values=tuple((_value_name(con, one), one) for one in compared),
        )

    return narrow


def _tasks(ws: Workspace, con: Any, task: str) -> tuple[int, ...]:
    """By path, by the end of one, or by name with or without its suffix. Empty where it has run,
    and the index has nothing of it yet: its first run goes on, or has just ended."""
    known = index_queries.names(con, "task")
    wanted = task.removeprefix("./")
    found = [at for name, at in known.items() if name == wanted]
    found = found or [at for name, at in known.items() if _named(name, wanted)]
    if not found:
        names = {*known, *(ws.runs.summary(one)["task"] for one in ws.runs.ids()[:NEWEST])}
        if not any(_named(name, wanted) for name in names):
            stems = {name.rpartition("/")[2] for name in names}
            hint = _near(task, {*names, *stems}) or "nothing has run yet"
            raise UsageError(f"no run has been of a task {task!r}", hint=hint)
    return tuple(found)


def _named(path: str, wanted: str) -> bool:
    stem = path.rpartition(".")[0] or path
    return any(one == wanted or one.endswith(f"/{wanted}") for one in (path, stem))


def _people(con: Any, who: str) -> tuple[int, ...]:
    known = index_queries.names(con, "by")
    found = [at for name, at in known.items() if who.casefold() in name.casefold()]
    if not found:
        nobody = "no run says who asked for it"
        hint = _near(who, known) or _none(con, nobody)
        raise UsageError(f"nobody called {who!r} has run anything", hint=hint)
    return tuple(found)


def _value_name(con: Any, one: Comparison) -> int:
    known = index_queries.names(con, f"{one.kind}s")
    if one.name not in known:
        what = "parameter" if one.kind == "param" else "result"
        inside = sorted(name for name in known if name.startswith(f"{one.name}."))
        if inside:
            hint = f"compare what is in it: {', '.join(inside[:8])}"
            raise UsageError(f"the {what} {one.name!r} is a mapping", hint=hint)
        if index_queries.is_told(con, one.kind, one.name):
            raise UsageError(
                f"the {what} {one.name!r} is no single value, so it cannot be compared",
                hint=f"search its text: {one.kind}:{one.name}, or words of it",
            )
        hint = _near(one.name, known) or _none(con, f"no run has a {what} that can be compared")
        raise UsageError(f"no run has a {what} {one.name!r}", hint=hint)
    return known[one.name]


def _near(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, known, 3)
    if near:
        return f"did you mean {', '.join(near)}?"
    return f"there are: {', '.join(sorted(known)[:8])}" if known else ""


def _none(con: Any, none: str) -> str:
    """Why there is not one name to choose from."""
    return none if index_queries.total(con) else "nothing has run yet"


def hit_of(ws: Workspace, row: Row) -> Hit:
    better = model_summaries.of(ws, row.run_id)
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
