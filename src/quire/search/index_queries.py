"""Questions to the index: by words, by values, by time, by failure. Reads only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from . import schema
from .digest_page import Told
from .full_text import Asking, begun
from .indexed_texts import Fact, Piece
from .normalise import searched
from .query import Comparison, Query, Term
from .schema import mark, stored, unpacked
from .snippets import Matcher, Spot
from .stemming import stemmer

LOOKED_AT = 40  # of the candidates, the best: their text is read


@dataclass(frozen=True, slots=True)
class Filters:
    """Each narrows; an empty one does not."""

    tasks: tuple[int, ...] | None = None
    by: tuple[int, ...] | None = None
    outcomes: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    archived: bool = False  # not those that are in this folder only
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
    missing: tuple[str, ...] = ()  # words of the query that it does not have

    @property
    def parameters(self) -> dict[str, Any]:
        return {fact.name: fact.value for fact in self.facts if fact.kind == "param"}


def search(con: sqlite3.Connection, query: Query, filters: Filters, limit: int) -> list[Row]:
    """The best first: what has all of it in strong fields, what has all of it, what has some."""
    if not query.groups:
        return newest(con, filters, limit)
    query = begun(con, query)
    matcher = Matcher(query, stemmer())
    conditions = _conditions(filters) if filters else ("", [])
    ask = Asking(con, query, *conditions)
    out: list[Row] = []
    seen: set[int] = set()
    sources: dict[int, Any] = {}
    for strict, way in ((True, ask.strong), (True, ask.all), (False, ask.some)):
        # What does not have all of it to the letter may still have some of it.
        told = seen if strict else {row.id for row in out}
        found = [(at, score) for at, score in way().items() if at not in told]
        seen.update(at for at, _ in found)
        out += _best(con, matcher, found, sources, limit - len(out), strict=strict)
        if len(out) >= limit:
            break
    return out


def _best(
    con: sqlite3.Connection,
    matcher: Matcher,
    found: list[tuple[int, float]],
    sources: dict[int, Any],
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
        if at >= max(LOOKED_AT, 2 * limit) and (len(scored) >= limit or not strict):
            break
        row = read(con, rowid, sources)
        if row is None or not matcher.literal(row.pieces, strict=strict):
            continue
        weight = score / top + matcher.weight(row.pieces)
        weight += (1.0 if strict else 2.0) * matcher.covered(row.pieces)
        scored.append((weight, rowid, row))
    scored.sort(key=lambda one: one[:2], reverse=True)
    best = [row for _, _, row in scored[: max(0, limit)]]
    return [
        replace(
            row,
            spots=matcher.spots(row.pieces),
            missing=() if strict else matcher.missing(row.pieces),
        )
        for row in best
    ]


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
    if filters.archived:
        parts.append("r.local = 0")
    for name, comparison in filters.values:
        asked = [
            (f"SELECT run FROM facts WHERE name = ? AND {condition}", [name, *given])
            for condition, given in _compared(comparison)
        ]
        parts.append(f"r.id IN ({' UNION ALL '.join(sql for sql, _ in asked)})")
        values += [value for _, given in asked for value in given]
    return " AND ".join(parts), values


# A number beyond 64 bits, which is kept as a text.
_HUGE = "typeof(value) = 'text' AND length(value) > 18 AND ltrim(value, '-') NOT GLOB '*[^0-9]*'"


def _compared(comparison: Comparison) -> Iterator[tuple[str, list[Any]]]:
    """Conditions, of which one must be met."""
    value, sign = stored(comparison.value), comparison.sign
    same = [value, comparison.text] if comparison.text else [value]
    if sign == "=":
        yield f"value IN ({','.join('?' * len(same))})", same
    elif sign == "!=":
        yield f"value NOT IN ({','.join('?' * len(same))})", same
    elif isinstance(value, str):
        yield f"value {sign} ? AND typeof(value) = 'text'", [value]
    else:
        yield f"value {sign} ? AND typeof(value) IN ('integer', 'real')", [value]
        yield f"value >= '' AND {_HUGE} AND CAST(value AS REAL) {sign} ?", [value]


# Rows.

_RUN = """SELECT r.id, r.run_id, t.name, i.name, r.outcome, r.started, r.duration, b.name, r.local,
r.source
FROM runs r JOIN names t ON t.id = r.task JOIN names i ON i.id = r.title
JOIN names b ON b.id = r.by """


def read(con: sqlite3.Connection, rowid: int, sources: dict[int, Any] | None = None) -> Row | None:
    """None for one that has been removed. `sources` are those that were read before."""
    head = con.execute(_RUN + "WHERE r.id = ?", (rowid,)).fetchone()
    if head is None:
        return None
    body = _body(con, "docs", rowid)
    summary, parent, error, line, pieces, facts = unpacked(body)
    cells, source = _read_source(con, head[9], {} if sources is None else sources)
    return Row(
        id=head[0],
        run_id=head[1],
        task=head[2],
        title=head[3],
        outcome=head[4],
        started=head[5],
        duration=head[6],
        by=head[7],
        local=bool(head[8]),
        summary=summary,
        parent=parent,
        error=error,
        line=line,
        pieces=(*schema.pieces(pieces), *source),
        facts=tuple(schema.facts(facts)),
        cells=cells,
    )


def _read_source(con: sqlite3.Connection, at: int, known: dict[int, Any]) -> Any:
    if at not in known:
        cells, source = unpacked(_body(con, "sources", at))
        known[at] = tuple((cell, title) for cell, title in cells), schema.pieces(source)
    return known[at]


def _body(con: sqlite3.Connection, table: str, at: int) -> Any:
    found = con.execute(f"SELECT body FROM {table} WHERE id = ?", (at,)).fetchone()
    if found is None:
        raise sqlite3.DatabaseError(f"a row of {table} is gone")
    return found[0]


def newest(con: sqlite3.Connection, filters: Filters, limit: int) -> list[Row]:
    conditions, values = _conditions(filters)
    sql = f"SELECT r.id FROM runs r WHERE {conditions} ORDER BY r.started DESC, r.id DESC LIMIT ?"
    return _rows(con, (at for (at,) in con.execute(sql, (*values, limit)).fetchall()))


def by_failure(
    con: sqlite3.Connection, error: str, line: str, said: str, filters: Filters, limit: int
) -> list[Row]:
    """Runs that failed with the same words, or at the same line; both first, then the newest.
    `said` is all that it said: who said the same to the word comes before who said it of
    another value."""
    where, values = _conditions(filters)
    same = [("error", mark(error)), ("line", mark(line))]
    parts = {f"r.{column} = ?": number for column, number in same if number is not None}
    if not parts:
        return []
    marks = list(parts.values())
    asked: list[tuple[int, str, list[Any]]] = [(1, part, [n]) for part, n in parts.items()]
    if len(parts) > 1:
        asked.append((2, " AND ".join(parts), marks))
    if any(letter.isalnum() for letter in said):
        phrase = searched(said).replace('"', '""')
        literal = "r.id IN (SELECT rowid FROM words WHERE words MATCH ?)"
        for score, joined in ((2, " OR "), (3, " AND ")):
            given = [f'{{error}} : "{phrase}"', *marks]
            asked.append((score, f"{literal} AND ({joined.join(parts)})", given))
    found: dict[int, tuple[int, float]] = {}
    for score, condition, given in asked:
        sql = f"SELECT r.id, r.started FROM runs r WHERE {condition} AND {where} ORDER BY r.started DESC LIMIT ?"  # noqa: E501 - ours
        for at, started in con.execute(sql, (*given, *values, 4 * limit)):
            found[at] = max(found.get(at, (0, 0.0)), (score, started))
    best = sorted(found, key=lambda at: (found[at], at), reverse=True)
    return _rows(con, best[:limit])


LATER = 40  # runs that passed, of which one is told


def next_ok(con: sqlite3.Connection, row: Row) -> Row | None:
    """The next run of the same task that passed; not one that had the same source and other
    parameters, which mended nothing, where another did more."""
    found = con.execute(
        "SELECT r.id, r.source = f.source FROM runs r JOIN runs f ON f.id = ? AND r.task = f.task "
        "WHERE r.outcome = 'ok' AND (r.started, r.id) > (?, ?) ORDER BY r.started, r.id LIMIT ?",
        (row.id, row.started, row.id, LATER),
    ).fetchall()
    first: Row | None = None
    for at, same_source in found:
        later = read(con, at)
        if later is None:
            continue
        if not same_source or later.parameters == row.parameters:
            return later
        first = first or later
    return first


def before(con: sqlite3.Connection, row: Row) -> Row | None:
    """The run of the same task that passed before this one."""
    found = con.execute(
        "SELECT r.id FROM runs r WHERE r.task = (SELECT task FROM runs WHERE id = ?) "
        "AND r.outcome = 'ok' AND (r.started, r.id) < (?, ?) "
        "ORDER BY r.started DESC, r.id DESC LIMIT 1",
        (row.id, row.started, row.id),
    ).fetchone()
    return read(con, found[0]) if found else None


def ids_from(con: sqlite3.Connection, first: str) -> set[str]:
    """Ids sort by time: those that are not older than this one."""
    return {at for (at,) in con.execute("SELECT run_id FROM runs WHERE run_id >= ?", (first,))}


def by_id(con: sqlite3.Connection, run_id: str) -> Row | None:
    found = con.execute("SELECT id FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    return read(con, found[0]) if found else None


def _rows(con: sqlite3.Connection, ids: Iterable[int]) -> list[Row]:
    return [row for at in ids if (row := read(con, at)) is not None]


def told(con: sqlite3.Connection, filters: Filters, limit: int) -> list[Told]:
    """The newest that fit, for a digest; oldest first."""
    conditions, values = _conditions(filters)
    sql = (
        f"SELECT r.run_id, t.name, i.name, r.outcome, r.started, r.local, d.body FROM runs r "
        f"JOIN names t ON t.id = r.task JOIN names i ON i.id = r.title "
        f"JOIN docs d ON d.id = r.id WHERE {conditions} ORDER BY r.started DESC, r.id DESC LIMIT ?"
    )
    found = [_told(*row) for row in con.execute(sql, (*values, limit))]
    return found[::-1]


def _told(
    run_id: str, task: str, title: str, outcome: str, started: float, local: int, body: bytes
) -> Told:
    _, _, failure, _, pieces, facts = unpacked(body)
    errors = [text for field, _, text in pieces if field == "error"]
    notes = tuple(text for field, _, text in pieces if field == "note")
    results = tuple((name, value) for kind, name, value in facts if kind == "result")
    said = errors[0] if errors else ""
    given = tuple((name, value) for kind, name, value in facts if kind == "param")
    return Told(
        run_id, task, title, outcome, started, said, failure, notes, results, given, bool(local)
    )


def names(con: sqlite3.Connection, kind: str) -> dict[str, int]:
    found = con.execute("SELECT name, id FROM names WHERE kind = ?", (kind,)).fetchall()
    return {name: int(at) for name, at in found}


def is_told(con: sqlite3.Connection, kind: str, name: str) -> bool:
    """Whether a run has a parameter or result of this name, of whatever kind its value is."""
    asked = Query(((Term(name, kind, exact=True, quoted=True),),))
    found = search(con, asked, Filters(), LOOKED_AT)
    begin = f"{name} = "
    return any(p.field == kind and p.text.startswith(begin) for row in found for p in row.pieces)


def total(con: sqlite3.Connection) -> int:
    """Runs there are. Quick: no row is looked at."""
    return int(con.execute("SELECT count(*) FROM runs").fetchone()[0])


def count(con: sqlite3.Connection, filters: Filters) -> int:
    """Those that are left by what narrows."""
    conditions, values = _conditions(filters)
    return int(con.execute(f"SELECT count(*) FROM runs r WHERE {conditions}", values).fetchone()[0])


def local(con: sqlite3.Connection) -> int:
    """Those that are only in this folder."""
    return int(con.execute("SELECT count(*) FROM runs WHERE local").fetchone()[0])


def damaged(con: sqlite3.Connection) -> dict[str, str]:
    return dict(con.execute("SELECT run_id, why FROM damaged ORDER BY run_id").fetchall())


def state(con: sqlite3.Connection, key: str) -> str:
    found = con.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(found[0]) if found else ""
