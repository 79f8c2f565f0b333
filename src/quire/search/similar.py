"""Runs that failed alike, and what mended them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ..errors import AmbiguousRun, Hint, NextStep, QuireError, RunNotFound, UsageError
from ..record.record_files import source_name
from ..task.text_diff import unified
from ..text import plain
from ..workspace import Workspace
from . import ask
from .ask import Condition, Row
from .fill import Progress, silent
from .find import Hit, Narrow, asked_of, hit_of, warnings_of
from .pieces import PLACES, fingerprint
from .query import COMMON, Query, Term
from .schema import mark

LONGEST_DIFF = 20_000
OF_A_PHRASE = 300  # characters
LATER = 40  # runs that passed, of which one is told
_NAME = re.compile(r"([A-Za-z_][\w.]*)\s*(?::\s*(.*))?", re.DOTALL)
_ERROR = re.compile(
    r"[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit|StopIteration|Group)\s*(?::|$)"
)
_MARGIN = re.compile(r"^(?:E   +|[\s|]+)|\s+$")  # of pytest, and of groups of exceptions


@dataclass(frozen=True, slots=True)
class Fix:
    """The next run of the same task that passed, and what had changed until then."""

    run_id: str
    started: str
    diff: str  # of the sources; empty where they are the same
    parameters: Mapping[str, tuple[Any, Any]]  # those that differ: before, after

    def as_dict(self) -> dict[str, Any]:
        changed = {n: {"old": old, "new": new} for n, (old, new) in self.parameters.items()}
        told = {"run_id": self.run_id, "started": self.started, "diff": self.diff}
        return told | {"changed": changed}


@dataclass(frozen=True, slots=True)
class Alike:
    hit: Hit
    why: str  # the same error and line, the same error, the same line, or like it
    fix: Fix | None

    def as_dict(self) -> dict[str, Any]:
        fix = self.fix and self.fix.as_dict()
        return self.hit.as_dict() | {"why": self.why, "fix": fix}


@dataclass(frozen=True, slots=True)
class Similar:
    error: str  # what was looked for, without what differs from run to run
    runs: tuple[Alike, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Failure:
    name: str
    message: str
    mark: str  # without what differs from run to run
    line: str = ""
    run_id: str = ""

    @property
    def said(self) -> str:
        """As much of it as is worth looking for to the word."""
        text = " ".join(f"{self.name}: {self.message}".split())
        return text if len(text) <= OF_A_PHRASE else text[:OF_A_PHRASE].rpartition(" ")[0]


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
    narrow = Narrow(task, since, until).condition(ws, now)

    def question(con: sqlite3.Connection) -> tuple[str, list[tuple[Row, str, Row | None]]]:
        narrowed, rows = narrow(con), list[Row]()
        for one in _failures(ws, con, what):
            rows = _same(con, one, narrowed, limit + 1)
            if rows:
                break
        rows += _like(con, one, narrowed, limit + 1, rows)
        kept = [row for row in rows if row.run_id != one.run_id][:limit]
        return one.mark, [(row, _why(row, one), _next_ok(con, row)) for row in kept]

    caught, (error, found) = asked_of(ws, question, progress)
    alike = (
        Alike(hit_of(row), why, _fix(ws, row, passed) if passed is not None else None)
        for row, why, passed in found
    )
    return Similar(error.strip(": "), tuple(alike), warnings_of(caught))


def _failures(ws: Workspace, con: sqlite3.Connection, what: str) -> list[_Failure]:
    """What failed, as it may be told: by a run, or in a text."""
    try:
        run_id = ws.runs.find(what).run_id
    except AmbiguousRun:
        raise
    except RunNotFound:
        run_id = what
    rows = ask.named(con, run_id) if run_id else []
    if len(rows) > 1:
        some = ", ".join(row.run_id for row in rows[:4])
        raise AmbiguousRun(f"{what!r} fits {len(rows)} runs: {some}", hint="give more of the id")
    if not rows:
        name, message = from_text(what)
        if not name and " " not in what:
            raise RunNotFound(
                f"no run {what!r} is over", hint=Hint("`{}` lists them", NextStep("runs"))
            )
        # What was pasted may go on behind the error, with what others said.
        first = message.partition("\n")[0]
        texts = dict.fromkeys((message, first))
        return [_Failure(name, text, fingerprint(name, text)) for text in texts]
    row = rows[0]
    if not row.error:
        raise UsageError(
            f"{row.run_id} did not fail: it is {row.outcome}",
            hint="give a failed run, or the text of an error",
        )
    name, _, message = row.said.partition(": ")
    return [_Failure(name, message, row.error, row.line, row.run_id)]


def from_text(text: str) -> tuple[str, str]:
    """Name and message, from what a person pasted: of a traceback the last error counts, with what
    stands behind it. As runs keep it, a name has no module before it."""
    lines = [_MARGIN.sub("", line) for line in plain(text).split("\n")]
    lines = [line for line in lines if line.strip()]
    errors = [at for at, line in enumerate(lines) if _ERROR.match(line)]
    at = errors[-1] if errors else len(lines) - 1
    found = _NAME.fullmatch("\n".join(lines[at:])) if lines else None
    if found is None:
        return "", " ".join(lines)
    return found[1].rpartition(".")[2], (found[2] or "").strip()


def _same(con: sqlite3.Connection, failure: _Failure, narrowed: Condition, limit: int) -> list[Row]:
    """Runs that failed with the same words, or at the same line; both first, then the newest. One
    that said the same to the word comes before one that said it of another value."""
    where, values = narrowed
    said = ask.phrase(failure.said) if any(map(str.isalnum, failure.said)) else '""'
    marks = [mark(failure.mark), mark(failure.line)]
    sql = (
        f"SELECT r.id FROM runs r WHERE (r.error = ? OR r.line = ?) AND {where} "
        "ORDER BY ifnull(r.error = ?, 0) + ifnull(r.line = ?, 0) "
        "+ (r.id IN (SELECT rowid FROM words WHERE words MATCH ?)) DESC, r.started DESC, r.id DESC "
        "LIMIT ?"
    )
    found = con.execute(sql, (*marks, *values, *marks, f"{{error}} : {said}", limit)).fetchall()
    reader = ask.Reader(con)
    return [row for (at,) in found if (row := reader.one(at)) is not None]


def _next_ok(con: sqlite3.Connection, row: Row) -> Row | None:
    """The next run of the same task that passed; one that had the same source and other
    parameters, which mended nothing, only where no other did more."""
    found = con.execute(
        "SELECT r.id, r.source = f.source FROM runs r JOIN runs f ON f.id = ? AND r.task = f.task "
        "WHERE r.outcome = 'ok' AND (r.started, r.id) > (?, ?) ORDER BY r.started, r.id LIMIT ?",
        (row.id, row.started, row.id, LATER),
    ).fetchall()
    reader = ask.Reader(con)
    first: Row | None = None
    for at, same_source in found:
        later = reader.one(at)
        if later is None:
            continue
        if not same_source or later.parameters == row.parameters:
            return later
        first = first or later
    return first


def _like(
    con: sqlite3.Connection, failure: _Failure, narrowed: Condition, limit: int, have: Sequence[Row]
) -> list[Row]:
    """Where few failed the same way: those whose error has most of the words that tell it from
    others. A name alone says little, and another name with all of them says much."""
    name, _, rest = failure.mark.partition(": ")
    words = [w for w in dict.fromkeys(Term(rest).words) if w not in {*COMMON, *PLACES, "s"}][:12]
    asked = [*Term(name).words[:1], *words]
    if len(have) >= limit or not asked:
        return []
    query = Query(tuple((Term(word, "error"),) for word in asked))
    known = {row.run_id for row in have}
    out = []
    for row in ask.search(con, query, narrowed, 4 * limit):
        met = sum(word not in row.missing for word in words) / len(words) if words else 1.0
        named = row.error.partition(":")[0] == name
        if row.run_id not in known and (met >= 0.5 if named else bool(words) and met >= 0.75):
            out.append(row)
    return out[:limit]


def _why(row: Row, failure: _Failure) -> str:
    same_error = row.error == failure.mark
    same_line = bool(failure.line) and row.line == failure.line
    if same_error:
        return "the same error at the same line" if same_line else "the same error"
    return "an error at the same line" if same_line else "an error like it"


def _fix(ws: Workspace, failed: Row, passed: Row) -> Fix:
    old, new = failed.parameters, passed.parameters
    changed = {
        name: (old.get(name), new.get(name))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    }
    try:
        sources = _source(ws, failed), _source(ws, passed)
        diff = unified(*sources, failed.task.lstrip("/"))
    except (QuireError, StopIteration, KeyError):
        diff = ""  # `verify` says what became of it
    if len(diff) > LONGEST_DIFF:
        diff = f"{diff[:LONGEST_DIFF]}\n… cut here\n"
    started = datetime.fromtimestamp(passed.started, UTC).isoformat(timespec="seconds")
    return Fix(passed.run_id, started, diff, changed)


def _source(ws: Workspace, row: Row) -> list[str]:
    if row.local:
        data = ws.runs.find(row.run_id).source()[1]
    else:
        files = ws.archive.files(row.run_id)
        data = files[source_name(files)]
    return data.decode("utf-8", "replace").splitlines(keepends=True)
