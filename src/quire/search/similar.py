"""Runs that failed alike, and what mended them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..archive.read import find as find_run
from ..archive.read import find_archived
from ..errors import QuireError, RunNotFound, UsageError
from ..task.text_diff import unified
from ..workspace import Workspace
from . import index_queries
from .failure_signature import PLACES, failing_line, fingerprint, from_text
from .fill import Progress, silent
from .find import Hit, asked_of, hit_of, narrowing, warnings_of
from .index_queries import Filters, Row
from .query import COMMON, Query, Term

LONGEST_DIFF = 20_000
OF_A_PHRASE = 300  # characters


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
    but, failures, line = _failure(ws, what)
    narrow = narrowing(ws, task, since, until, (), "", (), (), now)

    def ask(con: Any) -> tuple[str, list[tuple[Row, str, Row | None]]]:
        filters = narrow(con)
        for one in failures:
            rows = index_queries.by_failure(con, one.mark, line, one.said, filters, limit + 1)
            if rows:
                break
        rows += _like(con, one, filters, limit + 1, rows)
        kept = [row for row in rows if row.run_id != but][:limit]
        told = [(row, _why(row, one.mark, line), index_queries.next_ok(con, row)) for row in kept]
        return one.mark, told

    caught, (error, found) = asked_of(ws, ask, progress)
    alike = (
        Alike(hit_of(ws, row), why, _fix(ws, row, passed) if passed is not None else None)
        for row, why, passed in found
    )
    return Similar(error.strip(": "), tuple(alike), warnings_of(caught))


@dataclass(frozen=True, slots=True)
class _Failure:
    name: str
    message: str

    @property
    def mark(self) -> str:
        """Without what differs from run to run."""
        return fingerprint(self.name, self.message)

    @property
    def said(self) -> str:
        """As much of it as is worth looking for to the word."""
        text = " ".join(f"{self.name}: {self.message}".split())
        return text if len(text) <= OF_A_PHRASE else text[:OF_A_PHRASE].rpartition(" ")[0]


def _failure(ws: Workspace, what: str) -> tuple[str, list[_Failure], str]:
    """The run it is of, if any; what failed, as it may be told; the line."""
    try:
        record = find_run(ws, what).record
    except RunNotFound:
        name, message = from_text(what)
        if not name and " " not in what:
            raise
        # What was pasted may go on behind the error, with what others said.
        first = message.partition("\n")[0]
        told = [_Failure(name, text) for text in dict.fromkeys((message, first))]
        return "", told, ""
    if record.error is None:
        raise UsageError(
            f"{record.run_id} did not fail: it is {record.outcome}",
            hint="give a failed run, or the text of an error",
        )
    failure = _Failure(record.error.name, record.error.value)
    return record.run_id, [failure], failing_line(record)


def _like(
    con: Any, failure: _Failure, filters: Filters, limit: int, have: Sequence[Row]
) -> list[Row]:
    """Where few failed the same way: those whose error has most of the words that tell it from
    others. A name alone says little, and another name with all of them says much."""
    name, _, mark = failure.mark.partition(": ")
    words = [w for w in dict.fromkeys(Term(mark).words) if w not in {*COMMON, *PLACES, "s"}][:12]
    asked = [*Term(name).words[:1], *words]
    if len(have) >= limit or not asked:
        return []
    query = Query(tuple((Term(word, "error"),) for word in asked))
    known = {row.run_id for row in have}
    out = []
    for row in index_queries.search(con, query, filters, 4 * limit):
        met = sum(word not in row.missing for word in words) / len(words) if words else 1.0
        named = row.error.partition(":")[0] == name
        if row.run_id not in known and (met >= 0.5 if named else bool(words) and met >= 0.75):
            out.append(row)
    return out[:limit]


def _why(row: Row, error: str, line: str) -> str:
    same_error, same_line = row.error == error, bool(line) and row.line == line
    if same_error and same_line:
        return "the same error at the same line"
    if same_error:
        return "the same error"
    return "an error at the same line" if same_line else "an error like it"


def _fix(ws: Workspace, failed: Row, passed: Row) -> Fix:
    old, new = failed.parameters, passed.parameters
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
