"""Questions to the index: by words, by values, by time, by failure. Reads only.

The words of a run are in two full texts: its own, and that of the source it shares with others. It
meets a group of a query by either.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from .pieces import Fact, Piece
from .query import Query, Term
from .schema import OWN, SHARED, STRONG, WEIGHTS, searched, unpacked
from .snippets import Matcher, Spot

LOOKED_AT = 40  # of the candidates, the best: their text is read
CANDIDATES = 400  # of one way to meet a query, the newest
SOURCES = 10  # that meet some of a query: their newest runs are looked at
FEW = 20_000  # runs that a filter may leave for their ids to be listed
TABLES = (("words", OWN), ("shared", SHARED))
Condition = tuple[str, list[Any]]  # on a run `r`, with its values
Group = tuple[Term, ...]


EVERY: Condition = ("1", [])


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

    @property
    def results(self) -> dict[str, Any]:
        return {fact.name: fact.value for fact in self.facts if fact.kind == "result"}

    @property
    def day(self) -> str:
        return f"{datetime.fromtimestamp(self.started, UTC):%Y-%m-%d}"

    @property
    def said(self) -> str:
        """What it failed with, as it was said."""
        return next(iter(self.texts("error")), "")

    def texts(self, name: str) -> list[str]:
        """Of one field."""
        return [piece.text for piece in self.pieces if piece.field == name]


def search(con: sqlite3.Connection, query: Query, narrowed: Condition, limit: int) -> list[Row]:
    """The best first: what has all of it in strong fields, what has all of it, what has some."""
    if not query.groups:
        return list(newest(con, narrowed, limit))
    groups = tuple(tuple(_beginning(con, term) for term in group) for group in query.groups)
    query = replace(query, groups=groups)
    asked = _Asking(con, query, narrowed)
    reader, matcher = Reader(con), Matcher(query)
    out: list[Row] = []
    seen: set[int] = set()
    for strict, way in ((True, asked.strong), (True, asked.all), (False, asked.some)):
        # What does not have all of it to the letter may still have some of it.
        told = seen if strict else {row.id for row in out}
        found = [(at, score) for at, score in way().items() if at not in told]
        seen.update(at for at, _ in found)
        out += _best(reader, matcher, found, limit - len(out), strict=strict)
        if len(out) >= limit:
            break
    return out


def _beginning(con: sqlite3.Connection, term: Term) -> Term:
    """A word that no run has is taken for the beginning of one: `9fceb02` of a commit."""
    # Where words have endings of another kind, such as in Korean, two letters say much.
    if term.exact or term.prefix or len(term.text) < (3 if term.text.isascii() else 2):
        return term
    return term if _count(con, (term,), 1) else replace(term, prefix=True)


def _best(
    reader: Reader,
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
        if at >= max(LOOKED_AT, 2 * limit) and (len(scored) >= limit or not strict):
            break
        row = reader.one(rowid)
        if row is None or not matcher.literal(row.pieces, strict=strict):
            continue
        weight = score / top + (1.0 if strict else 2.0) * matcher.covered(row.pieces)
        scored.append((weight, rowid, row))
    scored.sort(key=lambda one: one[:2], reverse=True)
    return [
        replace(
            row,
            spots=matcher.spots(row.pieces),
            missing=() if strict else matcher.missing(row.pieces),
        )
        for _, _, row in scored[: max(0, limit)]
    ]


class _Asking:
    """One query put to the full text."""

    def __init__(self, con: sqlite3.Connection, query: Query, condition: Condition) -> None:
        self.con = con
        self.groups = query.groups
        self.where, self.values = condition
        for term in query.excluded:
            for (table, names), column in zip(TABLES, ("r.id", "r.source"), strict=True):
                if expression := _expression((term,), names):
                    of = f"SELECT rowid FROM {table} WHERE {table} MATCH ?"
                    self.where += f" AND {column} NOT IN ({of})"
                    self.values.append(expression)
        self._listed: dict[Any, str | None] = {}

    def strong(self) -> dict[int, float]:
        """Runs that have all of it where it says most."""
        return self._all(*([name for name in names if name in STRONG] for _, names in TABLES))

    def all(self) -> dict[int, float]:
        return self._all(OWN, SHARED)

    def _all(self, own: Sequence[str], shared: Sequence[str]) -> dict[int, float]:
        asked = [_expression(group, own) for group in self.groups]
        found = self._runs(" AND ".join(asked), None) if all(asked) else {}
        patterns: dict[frozenset[int], dict[int, float]] = {}
        for source, (which, score) in self._covered(self.groups, shared).items():
            patterns.setdefault(frozenset(which), {})[source] = score
        for met, sources in patterns.items():
            rest = [text for at, text in enumerate(asked) if at not in met]
            if not all(rest):
                continue  # asks for a field that a run's own words do not have
            for at, score in self._runs(" AND ".join(rest), sources).items():
                found[at] = max(score, found.get(at, 0.0))
        return found

    def some(self) -> dict[int, float]:
        """Any of the words, where not all are met together; the rare ones tell runs apart."""
        must = [g for g in self.groups if any(term.quoted for term in g)]
        free = [g for g in self.groups if g not in must]
        if len(self.groups) < 2 or not free:
            return {}
        counted = [(n, group) for group in free if (n := _count(self.con, group, 5_000))]
        rare = min((count for count, _ in counted), default=0)
        kept = [group for count, group in counted if count <= max(8 * rare, CANDIDATES)]
        asked = [text for group in kept if (text := _expression(group, OWN))]
        needed = [_expression(group, OWN) for group in must]
        found: dict[int, float] = {}
        if asked and all(needed):
            found |= self._runs(" AND ".join([f"({' OR '.join(asked)})", *needed]), None)
        covered = {} if must else self._covered(kept, SHARED)
        best = sorted(covered, key=lambda at: (len(covered[at][0]), covered[at][1]), reverse=True)
        few = {source: covered[source][1] for source in best[:SOURCES]}
        for at, score in self._runs("", few).items() if few else ():
            found[at] = found.get(at, 0.0) + score
        return found

    def _covered(
        self, groups: Sequence[Group], names: Sequence[str]
    ) -> dict[int, tuple[list[int], float]]:
        """Sources by number: which groups each meets, and how well."""
        found: dict[int, tuple[list[int], float]] = {}
        sql = (
            f"SELECT rowid, -{_bm25('shared', SHARED)} FROM shared WHERE shared MATCH ? "
            f"ORDER BY rowid DESC LIMIT {FEW}"
        )
        for at, group in enumerate(groups):
            expression = _expression(group, names)
            for source, score in self.con.execute(sql, (expression,)) if expression else ():
                which, total = found.get(source, ([], 0.0))
                found[source] = ([*which, at], total + score)
        return found

    def _runs(self, expression: str, sources: Mapping[int, float] | None) -> dict[int, float]:
        """The newest that fit, each with how well: without a limit, a common word would be slow."""
        where, values, extra = self.where, list(self.values), sources or {}
        if sources is not None:
            # Of many sources most runs are: then the newest are soon found by looking at all.
            plus = "+" if len(sources) > SOURCES else ""
            where += f" AND {plus}r.source IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(list(sources)))
        if not expression:
            sql = f"SELECT r.id, r.source, 0.0 FROM runs r WHERE {where} ORDER BY r.id DESC LIMIT ?"
            found = self.con.execute(sql, (*values, CANDIDATES)).fetchall()
        else:
            narrowed, given = self._narrowed(where, values)
            # To weigh a word all that have it are counted: once for a query is enough.
            score = "0.0" if sources is not None else f"-{_bm25('words', OWN)}"
            sql = (
                f"SELECT rowid, (SELECT source FROM runs WHERE id = words.rowid), "
                f"{score} FROM words WHERE words MATCH ? {narrowed} ORDER BY rowid DESC LIMIT ?"
            )
            found = self.con.execute(sql, (expression, *given, CANDIDATES)).fetchall()
        return {at: score + extra.get(source, 0.0) for at, source, score in found}

    def _narrowed(self, where: str, values: list[Any]) -> Condition:
        """As a list of ids, where there are few. A query is put in several ways with the same
        filters: one look at those is enough."""
        if where == "1":
            return "", []
        key = where, *values
        if key not in self._listed:
            sql = f"SELECT r.id FROM runs r WHERE {where} LIMIT {FEW + 1}"
            found = [at for (at,) in self.con.execute(sql, values)]
            self._listed[key] = json.dumps(found) if len(found) <= FEW else None
        ids = self._listed[key]
        if ids is None:
            return f"AND EXISTS (SELECT 1 FROM runs r WHERE r.id = words.rowid AND {where})", values
        # The plus keeps SQLite from asking the full text once for each of them.
        return "AND +rowid IN (SELECT value FROM json_each(?))", [ids]


def _count(con: sqlite3.Connection, group: Group, most: int) -> int:
    """In how many runs and sources it is."""
    total = 0
    for table, names in TABLES:
        if expression := _expression(group, names):
            inner = f"SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT {most}"
            total += int(
                con.execute(f"SELECT count(*) FROM ({inner})", (expression,)).fetchone()[0]
            )
    return total


def _bm25(table: str, names: Sequence[str]) -> str:
    return f"bm25({table}, {', '.join(str(WEIGHTS[name]) for name in names)})"


def _expression(group: Group, names: Sequence[str]) -> str:
    """As FTS5 reads it; empty where none of the terms can be in these fields."""
    parts = []
    for term in group:
        fields = [name for name in names if not term.field or name == term.field]
        if fields:
            text = phrase(term.text) + ("*" if term.prefix else "")
            parts.append(f"({{{' '.join(fields)}}} : {text})")
    return f"({' OR '.join(parts)})" if len(parts) > 1 else "".join(parts)


def phrase(text: str) -> str:
    words = searched(text).replace('"', '""').replace("\0", " ")
    return f'"{words}"'


# Rows.

_RUN = """SELECT r.id, r.run_id, t.name, i.name, r.outcome, r.started, r.duration, b.name, r.local,
r.source, d.body
FROM runs r JOIN names t ON t.id = r.task JOIN names i ON i.id = r.title
JOIN names b ON b.id = r.by LEFT JOIN docs d ON d.id = r.id WHERE """


class Reader:
    """Runs of one source share what is read of it."""

    def __init__(self, con: sqlite3.Connection) -> None:
        self.con = con
        self._sources: dict[int, Any] = {}

    def one(self, at: int) -> Row | None:
        """None for a run that has been removed."""
        return next(self.rows("r.id = ?", at), None)

    def rows(self, where: str, *values: Any) -> Iterator[Row]:
        for *head, local, source, body in self.con.execute(_RUN + where, values):
            if body is None:
                raise sqlite3.DatabaseError("a row of docs is gone")
            summary, error, line, pieces, facts = unpacked(body)
            cells, more = self._source(source)
            own = (*(Piece(*one) for one in pieces), Piece("outcome", "", head[4]))
            told = (summary, error, line, (*own, *more))
            row: list[Any] = [*head, bool(local), *told, tuple(Fact(*one) for one in facts), cells]
            yield Row(*row)

    def _source(self, at: int) -> Any:
        if at not in self._sources:
            found = self.con.execute("SELECT body FROM sources WHERE id = ?", (at,)).fetchone()
            if found is None:
                raise sqlite3.DatabaseError("a row of sources is gone")
            cells, pieces = unpacked(found[0])
            made = tuple(map(tuple, cells)), tuple(Piece(*one) for one in pieces)
            self._sources[at] = made
        return self._sources[at]


def newest(con: sqlite3.Connection, narrowed: Condition, limit: int) -> Iterator[Row]:
    where, values = narrowed
    order = " ORDER BY r.started DESC, r.id DESC LIMIT ?"
    return Reader(con).rows(where + order, *values, limit)


def named(con: sqlite3.Connection, beginning: str) -> list[Row]:
    """Runs whose id is this, else those whose id begins with it; a few."""
    rows = Reader(con).rows
    exact = list(rows("r.run_id = ?", beginning))
    last = f"{beginning}\U0010ffff"
    return exact or list(rows("r.run_id >= ? AND r.run_id < ? LIMIT 5", beginning, last))


# Small questions.


def total(con: sqlite3.Connection) -> int:
    return int(con.execute("SELECT count(*) FROM runs").fetchone()[0])


def local(con: sqlite3.Connection) -> int:
    return int(con.execute("SELECT count(*) FROM runs WHERE local").fetchone()[0])


def count(con: sqlite3.Connection, narrowed: Condition) -> int:
    where, values = narrowed
    return int(con.execute(f"SELECT count(*) FROM runs r WHERE {where}", values).fetchone()[0])


def names(con: sqlite3.Connection, kind: str) -> dict[str, int]:
    """Of tasks, titles, people, params or results, each with its number."""
    return dict(con.execute("SELECT name, id FROM names WHERE kind = ?", (kind,)).fetchall())


def ids_from(con: sqlite3.Connection, first: str) -> set[str]:
    """Ids sort by time: those that are not older than this one."""
    return {at for (at,) in con.execute("SELECT run_id FROM runs WHERE run_id >= ?", (first,))}


def archived_ids(con: sqlite3.Connection) -> set[str]:
    found = con.execute("SELECT run_id FROM runs WHERE local = 0").fetchall()
    return {at for (at,) in found} | damaged(con).keys()


def damaged(con: sqlite3.Connection) -> dict[str, str]:
    return dict(con.execute("SELECT run_id, why FROM damaged ORDER BY run_id").fetchall())


def state(con: sqlite3.Connection, key: str) -> str:
    found = con.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(found[0]) if found else ""
