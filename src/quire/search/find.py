"""Find runs: by what they hold, by values, by time. Those that failed alike: `similar.py`."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from ..errors import StorageError, UsageError
from ..workspace import Workspace
from . import ask
from . import query as queries
from .ask import Condition, Row
from .fill import Caught, Progress, catch_up, index_of, silent
from .index_file import BadIndex
from .schema import stored
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
    missing: tuple[str, ...]  # words of the query that it does not have
    spots: tuple[Spot, ...]
    cells: Mapping[str, str]  # titles of those that are spoken of

    @property
    def command(self) -> str:
        """What shows the place that says most."""
        cell = next((spot.cell for spot in self.spots if spot.cell), "")
        return f"quire show {self.run_id}" + (f" --cell {cell}" if cell else "")

    def as_dict(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in self.__slots__[:-3]}
        hits = [
            {
                "field": spot.field,
                "cell": spot.cell or None,
                "title": self.cells.get(spot.cell) or None,
                "snippet": spot.snippet,
            }
            for spot in self.spots
        ]
        return told | {"missing": list(self.missing), "hits": hits, "command": self.command}


@dataclass(frozen=True, slots=True)
class Hits:
    hits: tuple[Hit, ...]
    searched: int  # runs in the index
    warnings: tuple[str, ...] = ()
    more: int | None = 0  # that were not asked for; None: some, not counted


@dataclass(frozen=True, slots=True)
class Narrow:
    """What narrows a search, as people write it."""

    task: str = ""
    since: str = ""
    until: str = ""
    outcome: Sequence[str] = ()
    who: str = ""
    params: Sequence[str] = ()
    results: Sequence[str] = ()

    def condition(
        self, ws: Workspace, now: datetime | None
    ) -> Callable[[sqlite3.Connection], Condition]:
        """What can be wrong with the words of it is said before the index is opened."""
        now = now or datetime.now(UTC)
        for one in self.outcome:
            if one not in OUTCOMES:
                raise UsageError(f"{one!r} is no outcome", hint=", ".join(OUTCOMES))
        start = queries.since(self.since, now) if self.since else None
        end = queries.until(self.until, now) if self.until else None
        if start is not None and end is not None and start >= end:
            raise UsageError(
                f"{self.since} is not before {self.until}", hint="--since 7d --until yesterday"
            )
        compared = [queries.comparison("param", text) for text in self.params]
        compared += [queries.comparison("result", text) for text in self.results]

        def narrowed(con: sqlite3.Connection) -> Condition:
            listed = {
                "task": _tasks(ws, con, self.task) if self.task else None,
                "by": _people(con, self.who) if self.who else None,
                "outcome": self.outcome or None,
            }
            found = {
                f"r.{column} IN ({','.join('?' * len(wanted))})": list(wanted)
                for column, wanted in listed.items()
                if wanted is not None
            }
            found |= {"r.started >= ?": [start]} if start is not None else {}
            found |= {"r.started < ?": [end]} if end is not None else {}
            parts, values = ["1", *found], [value for given in found.values() for value in given]
            for one in compared:
                condition, given = _compared(one)
                parts.append(f"r.id IN (SELECT run FROM facts WHERE name = ? AND {condition})")
                values += [_value_name(con, one), *given]
            return " AND ".join(parts), values

        return narrowed


def _compared(one: queries.Comparison) -> Condition:
    value = stored(one.value)
    if one.sign in ("=", "!="):
        same = [value, one.text] if one.text else [value]
        return f"value {'NOT ' * (one.sign == '!=')}IN ({','.join('?' * len(same))})", same
    types = "'text'" if isinstance(value, str) else "'integer', 'real'"
    return f"value {one.sign} ? AND typeof(value) IN ({types})", [value]


def find(
    ws: Workspace,
    query: str = "",
    *,
    limit: int = 10,
    progress: Progress = silent,
    task: str = "",
    since: str = "",
    until: str = "",
    outcome: Sequence[str] = (),
    who: str = "",
    params: Sequence[str] = (),
    results: Sequence[str] = (),
    now: datetime | None = None,
) -> Hits:
    """The best first; without words the newest first."""
    asked = queries.parse(query)
    narrow = Narrow(task, since, until, outcome, who, params, results).condition(ws, now)

    def question(con: sqlite3.Connection) -> tuple[list[Row], int, int | None]:
        narrowed = narrow(con)
        rows = ask.search(con, asked, narrowed, limit + 1)
        more: int | None = max(0, len(rows) - limit)
        if more:  # what has some of the words is only counted by reading it
            more = None if asked.groups else ask.count(con, narrowed) - limit
        return rows[:limit], ask.total(con), more

    caught, (rows, searched, more) = asked_of(ws, question, progress)
    odd = queries.odd_fields(asked, lambda text: all(text in row.missing for row in rows))
    return Hits(tuple(map(hit_of, rows)), searched, (*warnings_of(caught), *odd), more)


def asked_of(
    ws: Workspace, question: Callable[[sqlite3.Connection], T], progress: Progress
) -> tuple[Caught, T]:
    """The answer of an index that lacks nothing; one that is damaged is made anew, once."""
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


def hit_of(row: Row) -> Hit:
    started = datetime.fromtimestamp(row.started, UTC).isoformat(timespec="seconds")
    return Hit(
        row.run_id, row.task, row.title, row.outcome, started, row.duration, row.by, row.summary,
        not row.local, row.missing, row.spots, dict(row.cells),
    )  # fmt: skip


# Names that people give, as the index has them.


def _tasks(ws: Workspace, con: sqlite3.Connection, task: str) -> tuple[int, ...]:
    """By path, by the end of one, or by name with or without its suffix. Empty where it has run,
    and the index has nothing of it yet: its first run goes on, or has just ended."""
    known = ask.names(con, "task")
    wanted = task.removeprefix("./")
    found = [at for name, at in known.items() if name == wanted]
    found = found or [at for name, at in known.items() if _ends(name, wanted)]
    if not found:
        names = {*known, *(ws.runs.summary(one)["task"] for one in ws.runs.ids()[:NEWEST])}
        if not any(_ends(name, wanted) for name in names):
            stems = {name.rpartition("/")[2] for name in names}
            hint = _near(task, {*names, *stems}) or "nothing has run yet"
            raise UsageError(f"no run has been of a task {task!r}", hint=hint)
    return tuple(found)


def _ends(path: str, wanted: str) -> bool:
    stem = path.rpartition(".")[0] or path
    return any(one == wanted or one.endswith(f"/{wanted}") for one in (path, stem))


def _people(con: sqlite3.Connection, who: str) -> tuple[int, ...]:
    known = ask.names(con, "by")
    found = [at for name, at in known.items() if who.casefold() in name.casefold()]
    if not found:
        hint = _near(who, known) or _none(con, "no run says who asked for it")
        raise UsageError(f"no run was asked for by {who!r}", hint=hint)
    return tuple(found)


def _value_name(con: sqlite3.Connection, one: queries.Comparison) -> int:
    known = ask.names(con, f"{one.kind}s")
    if one.name not in known:
        what = "parameter" if one.kind == "param" else "result"
        inside = [name for name in known if name.startswith(f"{one.name}.")]
        near = _near(one.name, inside or known)
        raise UsageError(
            f"no run has a {what} {one.name!r} that can be compared",
            hint=near or _none(con, f"no run has a {what} that can be compared"),
        )
    return known[one.name]


def _near(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, 3)
    if near:
        return f"did you mean {', '.join(near)}?"
    return f"there are: {', '.join(sorted(known)[:8])}" if known else ""


def _none(con: sqlite3.Connection, none: str) -> str:
    """Why there is not one name to choose from."""
    return none if ask.total(con) else "nothing has run yet"
