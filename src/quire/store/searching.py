"""Questions to the index: by words, by values, by time, by failure. Reads only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..runs.fields import NAMES, STRONG, WEIGHTS
from ..runs.indexed import Fact, Piece
from ..runs.matching import Matcher, Spot
from ..runs.query import Comparison, Query, Term
from . import indexwriter
from .indexwriter import mark, stored, unpacked

CANDIDATES = 400  # of one way to meet a query, the newest
LOOKED_AT = 60  # of those, the best: their text is read
FEW = 20_000  # runs that a filter may leave for their ids to be listed
_BM25 = f"bm25(words, {', '.join(map(str, WEIGHTS))})"


@dataclass(frozen=True, slots=True)
class Filters:
    """Each narrows; an empty one does not."""

    tasks: tuple[int, ...] | None = None
    by: tuple[int, ...] | None = None
    outcomes: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    values: tuple[tuple[int, Comparison], ...] = ()  # the name's number, and what it must be

    def __bool__(self) -> bool:
        return self != Filters()


@dataclass(frozen=True, slots=True)
class Row:
    """A run as the index has it."""

    id: int
    run_id: str
    task: str
    title: str
    outcome: str
    started: float
    duration: float | None
    by: str
    local: bool  # in this folder only, not in the archive
    summary: str = ""
    parent: str = ""
    error: str = ""  # the failure without what differs from run to run
    line: str = ""
    pieces: tuple[Piece, ...] = field(default=(), repr=False)
    facts: tuple[Fact, ...] = field(default=(), repr=False)
    cells: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    spots: tuple[Spot, ...] = ()


def search(con: sqlite3.Connection, query: Query, filters: Filters, limit: int) -> list[Row]:
    if not query.groups:
        return newest(con, filters, limit)
    matcher = Matcher(query)
    out: list[Row] = []
    seen: set[int] = set()
    for expression in _ways(query):
        found = [one for one in _candidates(con, expression, filters) if one[0] not in seen]
        seen.update(at for at, _ in found)
        out += _best(con, matcher, found, limit - len(out), strict=True)
        if len(out) >= limit:
            return out
    some = _some(con, query)
    if some:
        found = [one for one in _candidates(con, some, filters) if one[0] not in seen]
        out += _best(con, matcher, found, limit - len(out), strict=False)
    return out


def _best(
    con: sqlite3.Connection,
    matcher: Matcher,
    found: list[tuple[int, float]],
    limit: int,
    *,
    strict: bool,
) -> list[Row]:
    """In order of how well they meet the query; `strict`: all of it."""
    found.sort(key=lambda one: (-one[1], -one[0]))
    top = max((score for _, score in found), default=1.0) or 1.0
    scored: list[tuple[float, int, Row]] = []
    # What counts to the letter may stand in none of the first: then more are read.
    for at, (rowid, score) in enumerate(found):
        if at >= max(LOOKED_AT, 2 * limit) and len(scored) >= limit:
            break
        row = read(con, rowid)
        if row is None or not matcher.literal(row.pieces):
            continue
        weight = score / top + matcher.weight(row.pieces)
        if not strict:
            weight += 2.0 * matcher.covered(row.pieces)
        scored.append((weight, rowid, row))
    scored.sort(key=lambda one: one[:2], reverse=True)
    return [_with_spots(row, matcher) for _, _, row in scored[: max(0, limit)]]


def _with_spots(row: Row, matcher: Matcher) -> Row:
    values = {name: getattr(row, name) for name in Row.__slots__}
    return Row(**{**values, "spots": matcher.spots(row.pieces)})


def _candidates(
    con: sqlite3.Connection, expression: str, filters: Filters
) -> list[tuple[int, float]]:
    """The newest that fit, each with how well: without a limit, a common word would be slow."""
    where, values = "", []
    if filters:
        where, values = _narrowed(con, filters)
    sql = (
        f"SELECT rowid, -{_BM25} FROM words WHERE words MATCH ? {where} "
        f"ORDER BY rowid DESC LIMIT {CANDIDATES}"
    )
    return con.execute(sql, (expression, *values)).fetchall()


def _narrowed(con: sqlite3.Connection, filters: Filters) -> tuple[str, list[Any]]:
    conditions, values = _conditions(filters)
    inner = f"SELECT r.id FROM runs r WHERE {conditions}"
    (count,) = con.execute(f"SELECT count(*) FROM ({inner} LIMIT {FEW + 1})", values).fetchone()
    if count <= FEW:
        # The plus keeps SQLite from asking the full text once for each of them.
        return f"AND +rowid IN ({inner})", values
    return f"AND EXISTS ({inner} AND r.id = words.rowid)", values


def _conditions(filters: Filters) -> tuple[str, list[Any]]:
    parts, values = ["1"], list[Any]()
    for column, ids in (("task", filters.tasks), ("by", filters.by)):
        if ids is not None:
            parts.append(f"r.{column} IN ({','.join('?' * len(ids))})")
            values += ids
    if filters.outcomes:
        parts.append(f"r.outcome IN ({','.join('?' * len(filters.outcomes))})")
        values += filters.outcomes
    if filters.since is not None:
        parts.append("r.started >= ?")
        values.append(filters.since)
    if filters.until is not None:
        parts.append("r.started < ?")
        values.append(filters.until)
    for name, comparison in filters.values:
        condition, given = _compared(comparison)
        parts.append(f"r.id IN (SELECT run FROM facts WHERE name = ? AND {condition})")
        values += [name, *given]
    return " AND ".join(parts), values


def _compared(comparison: Comparison) -> tuple[str, list[Any]]:
    value, sign = stored(comparison.value), comparison.sign
    same = [value, comparison.text] if comparison.text else [value]
    if sign == "=":
        return f"value IN ({','.join('?' * len(same))})", same
    if sign == "!=":
        return f"value NOT IN ({','.join('?' * len(same))})", same
    kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
    return f"value {sign} ? AND typeof(value) IN {kinds}", [value]


# Ways to meet a query, the best first.


def _ways(query: Query) -> Iterator[str]:
    everything = " AND ".join(_group(group) for group in query.groups)
    without = "".join(f" NOT {_term(term)}" for term in query.excluded)
    yield f"({{{' '.join(STRONG)}}} : ({everything})){without}"
    yield f"({everything}){without}"


def _some(con: sqlite3.Connection, query: Query) -> str:
    """Any of the words, where not all are met together; the rare ones, which tell runs apart."""
    groups = [g for g in query.groups if not any(term.exact and term.quoted for term in g)]
    if len(query.groups) < 2 or not groups:
        return ""
    counted = sorted((_count(con, group), at) for at, group in enumerate(groups))
    there = [(count, at) for count, at in counted if count]
    kept = [at for count, at in there if count <= max(8 * there[0][0], CANDIDATES)]
    if not kept:
        return ""
    must = [g for g in query.groups if g not in groups]
    parts = [f"({' OR '.join(_group(groups[at]) for at in kept)})", *map(_group, must)]
    return " AND ".join(parts) + "".join(f" NOT {_term(term)}" for term in query.excluded)


def _count(con: sqlite3.Connection, group: Sequence[Term]) -> int:
    sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT 5000)"
    (count,) = con.execute(sql, (_group(group),)).fetchone()
    return int(count)


def _group(group: Sequence[Term]) -> str:
    return "(" + " OR ".join(map(_term, group)) + ")" if len(group) > 1 else _term(group[0])


def _term(term: Term) -> str:
    text = '"' + term.text.replace('"', '""') + '"' + ("*" if term.prefix else "")
    return f"({{{term.field}}} : {text})" if term.field in NAMES else text


# Rows.

_RUN = """SELECT r.id, r.run_id, t.name, i.name, r.outcome, r.started, r.duration, b.name, r.local
FROM runs r JOIN names t ON t.id = r.task JOIN names i ON i.id = r.title
JOIN names b ON b.id = r.by """


def read(con: sqlite3.Connection, rowid: int) -> Row | None:
    """None for one that has been removed."""
    found = con.execute(
        "SELECT d.body, s.body FROM runs r JOIN docs d ON d.id = r.id "
        "JOIN sources s ON s.id = r.source WHERE r.id = ?",
        (rowid,),
    ).fetchone()
    if found is None:
        return None
    head = con.execute(_RUN + "WHERE r.id = ?", (rowid,)).fetchone()
    summary, parent, error, line, pieces, facts = unpacked(found[0])
    cells, source = unpacked(found[1])
    return Row(
        *head[:8],
        local=bool(head[8]),
        summary=summary,
        parent=parent,
        error=error,
        line=line,
        pieces=(*indexwriter.pieces(pieces), *indexwriter.pieces(source)),
        facts=tuple(indexwriter.facts(facts)),
        cells=tuple((cell, title) for cell, title in cells),
    )


def newest(con: sqlite3.Connection, filters: Filters, limit: int) -> list[Row]:
    conditions, values = _conditions(filters)
    sql = f"SELECT r.id FROM runs r WHERE {conditions} ORDER BY r.started DESC, r.id DESC LIMIT ?"
    return _rows(con, (at for (at,) in con.execute(sql, (*values, limit)).fetchall()))


def by_failure(
    con: sqlite3.Connection, error: str, line: str, filters: Filters, limit: int
) -> list[Row]:
    """Runs that failed with the same words, or at the same line; both first, then the newest."""
    conditions, values = _conditions(filters)
    same = [("error", mark(error)), ("line", mark(line))]
    parts = [f"(r.{column} = ?)" for column, number in same if number is not None]
    if not parts:
        return []
    numbers = [number for _, number in same if number is not None]
    found: dict[int, tuple[int, float]] = {}
    for part, number in zip(parts, numbers, strict=True):
        sql = f"SELECT r.id, r.started FROM runs r WHERE {part} AND {conditions} ORDER BY r.started DESC LIMIT ?"  # noqa: E501 - ours
        for at, started in con.execute(sql, (number, *values, 4 * limit)):
            found[at] = (found.get(at, (0, 0.0))[0] + 1, started)
    best = sorted(found, key=lambda at: (found[at], at), reverse=True)
    return _rows(con, best[:limit])


def next_ok(con: sqlite3.Connection, row: Row) -> Row | None:
    """The next run of the same task that passed."""
    found = con.execute(
        "SELECT r.id FROM runs r WHERE r.task = (SELECT task FROM runs WHERE id = ?) "
        "AND r.outcome = 'ok' AND (r.started, r.id) > (?, ?) ORDER BY r.started, r.id LIMIT 1",
        (row.id, row.started, row.id),
    ).fetchone()
    return read(con, found[0]) if found else None


def before(con: sqlite3.Connection, row: Row) -> Row | None:
    """The run of the same task that passed before this one."""
    found = con.execute(
        "SELECT r.id FROM runs r WHERE r.task = (SELECT task FROM runs WHERE id = ?) "
        "AND r.outcome = 'ok' AND (r.started, r.id) < (?, ?) "
        "ORDER BY r.started DESC, r.id DESC LIMIT 1",
        (row.id, row.started, row.id),
    ).fetchone()
    return read(con, found[0]) if found else None


def by_id(con: sqlite3.Connection, run_id: str) -> Row | None:
    found = con.execute("SELECT id FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    return read(con, found[0]) if found else None


def _rows(con: sqlite3.Connection, ids: Iterable[int]) -> list[Row]:
    return [row for at in ids if (row := read(con, at)) is not None]


def names(con: sqlite3.Connection, kind: str) -> dict[str, int]:
    found = con.execute("SELECT name, id FROM names WHERE kind = ?", (kind,)).fetchall()
    return {name: int(at) for name, at in found}


def counts(con: sqlite3.Connection) -> tuple[int, int]:
    """Runs there are, and those only in this folder."""
    found = con.execute("SELECT count(*), coalesce(sum(local), 0) FROM runs").fetchone()
    return int(found[0]), int(found[1])


def damaged(con: sqlite3.Connection) -> dict[str, str]:
    return dict(con.execute("SELECT run_id, why FROM damaged ORDER BY run_id").fetchall())


def state(con: sqlite3.Connection, key: str) -> str:
    found = con.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(found[0]) if found else ""
