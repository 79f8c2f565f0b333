"""One query put to the full text: to that of the runs, and to that of the sources they share.

A run meets a group of the query by its own words or by those of its source.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .normalise import searched
from .query import Query, Term
from .search_fields import OWN, SHARED, STRONG, WEIGHTS

CANDIDATES = 400  # of one way to meet a query, the newest
SOURCES = 10  # that meet some of a query: their newest runs are looked at
FEW = 20_000  # runs that a filter may leave for their ids to be listed
Group = tuple[Term, ...]


def begun(con: sqlite3.Connection, query: Query) -> Query:
    """A word that no run has is taken for the beginning of one: `9fceb02` of a commit."""
    groups = tuple(tuple(_begun(con, term) for term in group) for group in query.groups)
    return query if groups == query.groups else replace(query, groups=groups)


def _begun(con: sqlite3.Connection, term: Term) -> Term:
    # Where words have endings of another kind, such as in Korean, two letters say much.
    if term.exact or term.prefix or len(term.text) < (3 if term.text.isascii() else 2):
        return term
    for table, names in (("words", OWN), ("shared", SHARED)):
        if asked := _group((term,), names):
            sql = f"SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT 1"
            if con.execute(sql, (asked,)).fetchone():
                return term
    return replace(term, prefix=True)


class Asking:
    def __init__(
        self, con: sqlite3.Connection, query: Query, where: str, values: Sequence[Any]
    ) -> None:
        """`where` is what else must be true of a run `r`; empty: nothing."""
        self.con = con
        self.groups = query.groups
        self.where, self.values = where or "1", list(values)
        self._listed: dict[tuple[str, tuple[Any, ...]], str | None] = {}
        for term in query.excluded:
            for table, names, column in (("words", OWN, "r.id"), ("shared", SHARED, "r.source")):
                if expression := _group((term,), names):
                    self.where += (
                        f" AND {column} NOT IN (SELECT rowid FROM {table} WHERE {table} MATCH ?)"
                    )
                    self.values.append(expression)

    def strong(self) -> dict[int, float]:
        """Runs that have all of it where it says most."""
        own = [name for name in OWN if name in STRONG]
        return self._all(own, [name for name in SHARED if name in STRONG])

    def all(self) -> dict[int, float]:
        return self._all(OWN, SHARED)

    def _all(self, own: Sequence[str], shared: Sequence[str]) -> dict[int, float]:
        asked = [_group(group, own) for group in self.groups]
        found: dict[int, float] = {}
        if all(asked):
            found |= self._runs(" AND ".join(asked), None)
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
        counted = [(count, group) for group in free if (count := self._count(group))]
        rare = min((count for count, _ in counted), default=0)
        kept = [group for count, group in counted if count <= max(8 * rare, CANDIDATES)]
        asked = [text for group in kept if (text := _group(group, OWN))]
        needed = [_group(group, OWN) for group in must]
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
            expression = _group(group, names)
            for source, score in self.con.execute(sql, (expression,)) if expression else ():
                which, total = found.get(source, ([], 0.0))
                found[source] = ([*which, at], total + score)
        return found

    def _runs(self, expression: str, sources: Mapping[int, float] | None) -> dict[int, float]:
        """The newest that fit, each with how well: without a limit, a common word would be slow."""
        where, values = self.where, list(self.values)
        if sources is not None:
            # Of many sources most runs are: then the newest are soon found by looking at all.
            plus = "+" if len(sources) > SOURCES else ""
            where += f" AND {plus}r.source IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(list(sources)))
        if expression:
            narrowed, given = self._narrowed(where, values)
            # To weigh a word all that have it are counted: once for a query is enough.
            score = "0.0" if sources is not None else f"-{_bm25('words', OWN)}"
            sql = (
                f"SELECT rowid, (SELECT source FROM runs WHERE id = words.rowid), "
                f"{score} FROM words WHERE words MATCH ? {narrowed} "
                f"ORDER BY rowid DESC LIMIT {CANDIDATES}"
            )
            found = self.con.execute(sql, (expression, *given)).fetchall()
        else:
            sql = (
                f"SELECT r.id, r.source, 0.0 FROM runs r WHERE {where} "
                f"ORDER BY r.id DESC LIMIT {CANDIDATES}"
            )
            found = self.con.execute(sql, values).fetchall()
        extra = sources or {}
        return {at: score + extra.get(source, 0.0) for at, source, score in found}

    def _narrowed(self, where: str, values: list[Any]) -> tuple[str, list[Any]]:
        """A query is put in several ways, with the same filters each time: one look is enough."""
        if where == "1":
            return "", []
        key = where, tuple(values)
        if key not in self._listed:
            self._listed[key] = self._ids(where, values)
        ids = self._listed[key]
        if ids is None:
            return f"AND EXISTS (SELECT 1 FROM runs r WHERE r.id = words.rowid AND {where})", values
        # The plus keeps SQLite from asking the full text once for each of them.
        return "AND +rowid IN (SELECT value FROM json_each(?))", [ids]

    def _ids(self, where: str, values: list[Any]) -> str | None:
        """Runs that a filter leaves, as JSON; None where they are too many to be listed."""
        sql = f"SELECT r.id FROM runs r WHERE {where} LIMIT {FEW + 1}"
        found = [at for (at,) in self.con.execute(sql, values)]
        return json.dumps(found) if len(found) <= FEW else None

    def _count(self, group: Group) -> int:
        total = 0
        for table, names in (("words", OWN), ("shared", SHARED)):
            if expression := _group(group, names):
                inner = f"SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT 5000"
                sql = f"SELECT count(*) FROM ({inner})"
                total += int(self.con.execute(sql, (expression,)).fetchone()[0])
        return total


def _bm25(table: str, names: Sequence[str]) -> str:
    return f"bm25({table}, {', '.join(str(WEIGHTS[name]) for name in names)})"


def _group(group: Sequence[Term], names: Sequence[str]) -> str:
    """Empty where none of its terms can be in these fields."""
    parts = []
    for term in group:
        fields = [name for name in names if not term.field or name == term.field]
        if fields:
            words = searched(term.text).replace('"', '""').replace("\0", " ")
            text = f'"{words}"' + ("*" if term.prefix else "")
            parts.append(f"({{{' '.join(fields)}}} : {text})")
    return f"({' OR '.join(parts)})" if len(parts) > 1 else "".join(parts)
