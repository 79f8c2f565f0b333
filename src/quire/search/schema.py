"""The tables of the index, and how a run gets into them.

runs    one row for each run: what filters look at; they find all they ask for in `runs_started`
words   the full text that is a run's own, one column for each field; holds no copy of it
shared  the full text of the source, once for all runs of one version of a task
docs    the pieces of text that are a run's own, for snippets; compressed
sources the pieces of the source; compressed
facts   parameters and results, by name and value
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .indexed_texts import Fact, Indexed, Piece, Source, moment
from .normalise import searched
from .search_fields import OWN, SHARED

VERSION = 4
APPLICATION = 0x71726478
TOKENIZER = "tokenize='porter unicode61 remove_diacritics 2'"
_TOKENS = f"content='', {TOKENIZER}"
SCHEMA = f"""
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE names(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL,
                   UNIQUE(kind, name));
CREATE TABLE runs(id INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, task INTEGER NOT NULL,
                  title INTEGER NOT NULL, outcome TEXT NOT NULL, started REAL NOT NULL,
                  duration REAL, by INTEGER NOT NULL, local INTEGER NOT NULL,
                  source INTEGER NOT NULL, error INTEGER, line INTEGER);
CREATE INDEX runs_started ON runs(started, outcome, by, task, source);
CREATE INDEX runs_task ON runs(task, started);
CREATE INDEX runs_source ON runs(source);
CREATE INDEX runs_error ON runs(error) WHERE error IS NOT NULL;
CREATE INDEX runs_line ON runs(line) WHERE line IS NOT NULL;
CREATE TABLE docs(id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE sources(id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
CREATE TABLE facts(name INTEGER NOT NULL, value NOT NULL, run INTEGER NOT NULL,
                   PRIMARY KEY(name, value, run)) WITHOUT ROWID;
CREATE TABLE damaged(run_id TEXT PRIMARY KEY, why TEXT NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5({", ".join(OWN)}, {_TOKENS});
CREATE VIRTUAL TABLE shared USING fts5({", ".join(SHARED)}, {_TOKENS});
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
"""
_ADD_RUN = "INSERT INTO runs VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"
_ADD_WORDS = f"INSERT INTO words(rowid, {', '.join(OWN)}) VALUES(?{',?' * len(OWN)})"
_ADD_SHARED = f"INSERT INTO shared(rowid, {', '.join(SHARED)}) VALUES(?{',?' * len(SHARED)})"
_LEVEL = 3
# JSON has these apart from numbers and texts; SQLite does not.
_CONSTANTS: dict[Any, bytes] = {True: b"true", False: b"false", None: b"null"}


def stored(value: str | int | float | bool | None) -> str | int | float | bytes:
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value


def mark(text: str) -> int | None:
    """A number that stands for a failure."""
    if not text:
        return None
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class Ready(NamedTuple):
    """A run as the tables take it: of plain values, so that another process can make it."""

    run_id: str
    task: str
    title: str
    outcome: str
    started: float
    duration: float | None
    by: str
    version: bytes
    source: tuple[bytes, tuple[str, ...]] | None  # for `sources` and for `shared`
    error: int | None
    line: int | None
    words: tuple[str, ...]
    doc: bytes
    facts: tuple[tuple[str, str, str | int | float | bytes], ...]


def ready(one: Indexed) -> Ready:
    return Ready(
        one.run_id,
        _clean(one.task),
        _clean(one.title),
        one.outcome,
        moment(one.started),
        one.duration,
        _clean(one.by),
        one.version,
        None if one.source is None else _source(one.source),
        mark(one.error),
        mark(one.line),
        _columns(one.pieces, OWN),
        _packed(_doc(one)),
        tuple((f"{fact.kind}s", fact.name, stored(fact.value)) for fact in one.facts),
    )


def _source(source: Source) -> tuple[bytes, tuple[str, ...]]:
    return _packed([source.cells, _listed(source.pieces)]), _columns(source.pieces, SHARED)


class Writer:
    """Adds and removes runs within whatever transaction its caller has begun."""

    def __init__(self, con: sqlite3.Connection) -> None:
        self.con = con
        self._names: dict[tuple[str, str], int] = {}
        self.versions: dict[bytes, int] = {}  # of tasks, whose source is here
        (last,) = con.execute("SELECT coalesce(max(id), 0) FROM docs").fetchone()
        self._next = int(last) + 1

    def has(self, run_id: str) -> bool:
        return (
            self.con.execute("SELECT 1 FROM runs WHERE run_id = ?", (run_id,)).fetchone()
            is not None
        )

    def add(self, runs: Iterable[Indexed], *, local: bool = False) -> int:
        return self.put(map(ready, runs), local=local)

    def put(self, runs: Iterable[Ready], *, local: bool = False) -> int:
        """Those that are there already stay as they are; how many there were."""
        rows, words, docs, facts = [], [], [], list[tuple[Any, ...]]()
        count = 0
        for one in runs:
            count += 1
            if self.has(one.run_id):
                if not local:
                    self.con.execute("UPDATE runs SET local = 0 WHERE run_id = ?", (one.run_id,))
                continue
            at, self._next = self._next, self._next + 1
            rows.append(self._row(at, one, local))
            words.append((at, *one.words))
            docs.append((at, one.doc))
            facts += [(self.name(kind, name), value, at) for kind, name, value in one.facts]
        self.con.executemany(_ADD_RUN, rows)
        self.con.executemany("INSERT INTO docs VALUES(?,?)", docs)
        self.con.executemany("INSERT OR IGNORE INTO facts VALUES(?,?,?)", facts)
        self.con.executemany(_ADD_WORDS, words)
        return count

    def _row(self, at: int, one: Ready, local: bool) -> tuple[Any, ...]:
        return (
            at,
            one.run_id,
            self.name("task", one.task),
            self.name("title", one.title),
            one.outcome,
            one.started,
            one.duration,
            self.name("by", one.by),
            int(local),
            self._source(one),
            one.error,
            one.line,
        )

    def name(self, kind: str, name: str) -> int:
        key = kind, name
        found = self._names.get(key)
        if found is None:
            self.con.execute("INSERT OR IGNORE INTO names(kind, name) VALUES(?,?)", key)
            (found,) = self.con.execute(
                "SELECT id FROM names WHERE kind = ? AND name = ?", key
            ).fetchone()
            if len(self._names) > 50_000:
                self._names.clear()
            self._names[key] = found
        return found

    def _source(self, one: Ready) -> int:
        found = self.versions.get(one.version)
        if found is None:
            sql = "SELECT id FROM sources WHERE digest = ?"
            row = self.con.execute(sql, (one.version,)).fetchone()
            found = int(row[0]) if row is not None else self._add_source(one)
            self.versions[one.version] = found
        return found

    def _add_source(self, one: Ready) -> int:
        body, words = one.source or _source(Source((), ()))
        row = (one.version, body)
        at = self.con.execute("INSERT INTO sources(digest, body) VALUES(?,?)", row).lastrowid
        assert at is not None
        self.con.execute(_ADD_SHARED, (at, *words))
        return at

    def remove(self, run_ids: Iterable[str]) -> int:
        """Its words stay behind, and lead nowhere: without their text they cannot be taken out."""
        count = 0
        for run_id in run_ids:
            count += self.con.execute("DELETE FROM runs WHERE run_id = ?", (run_id,)).rowcount
            self.con.execute("DELETE FROM damaged WHERE run_id = ?", (run_id,))
        return count

    def damage(self, run_id: str, why: str) -> None:
        self.con.execute("INSERT OR REPLACE INTO damaged VALUES(?,?)", (run_id, _clean(why[:300])))

    def gather(self, size: int) -> None:
        self.con.execute("INSERT INTO words(words, rank) VALUES('hashsize', ?)", (size,))

    def set(self, key: str, value: str | int) -> None:
        self.con.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (key, value))


def _columns(pieces: Iterable[Piece], names: Sequence[str]) -> tuple[str, ...]:
    found: dict[str, list[str]] = {name: [] for name in names}
    for piece in pieces:
        found[piece.field].append(piece.text)
    return tuple(_clean(searched("\n".join(texts))) for texts in found.values())


def _listed(pieces: Sequence[Piece]) -> list[tuple[str, str, str]]:
    return [(piece.field, piece.cell, piece.text) for piece in pieces]


def _doc(one: Indexed) -> list[Any]:
    facts = [(f.kind, f.name, f.value) for f in one.facts]
    return [one.summary, one.parent, one.error, one.line, _listed(one.pieces), facts]


def _packed(value: Any) -> bytes:
    return zlib.compress(json.dumps(value).encode(), _LEVEL)


def unpacked(body: bytes) -> Any:
    try:
        return json.loads(zlib.decompress(body))
    except (zlib.error, ValueError, TypeError, RecursionError) as error:
        raise sqlite3.DatabaseError(f"a text in it cannot be read: {error}") from error


def pieces(told: Iterable[Sequence[str]]) -> list[Piece]:
    return [Piece(*one) for one in told]


def facts(told: Iterable[Sequence[Any]]) -> list[Fact]:
    return [Fact(*one) for one in told]


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
