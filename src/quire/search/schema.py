"""The tables of the index, the fields and words in them, and how a run gets into them.

runs    one row for each run: what filters look at
words   the full text of what is a run's own, a column for each field; holds no copy of it
shared  the full text of the source, once for all runs of one version of a task
docs    the pieces of text that are a run's own, for snippets; compressed
sources the pieces of the source; compressed
facts   parameters and results, by name and value
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..record.record import Record
from .breadcrumbs import summary
from .pieces import Piece, asked_by, facts, failing_line, fingerprint, own, shared, version_of

# Of each field, what a match in it is worth against one in an output.
WEIGHTS = {
    "title": 10.0,
    "note": 9.0,  # what cells left with note()
    "task": 8.0,  # its path
    "result": 8.0,
    "request": 7.0,  # what was asked for, and by whom
    "outcome": 6.0,
    "error": 6.0,
    "param": 6.0,
    "heading": 5.0,  # and titles of cells
    "prose": 3.0,
    "tool": 2.0,  # tasks and tools that cells called
    "code": 1.5,
    "output": 1.0,
}
STRONG = tuple(name for name, weight in WEIGHTS.items() if weight >= WEIGHTS["heading"])
SHARED = ("heading", "prose", "code")  # the same for all runs of one version of a task
OWN = tuple(name for name in WEIGHTS if name not in SHARED)

VERSION = 5
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
_LEVEL = 3  # of compression

# Words.

# Thai to Khmer, kana, Han: no spaces tell words apart there.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
_VOICED = "\u3099\u309a"  # make another sound of a kana: no accents


def is_unspaced(text: str) -> bool:
    return not text.isascii() and _UNSPACED.search(text) is not None


def folded(text: str) -> str:
    """Without accents, of which FTS5 knows the Latin ones only, and without their case."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFD", text.casefold())
    kept = (one for one in apart if one in _VOICED or not unicodedata.combining(one))
    return unicodedata.normalize("NFC", "".join(kept))


def searched(text: str) -> str:
    """A text as FTS5 gets it: each letter of a script without spaces is a word, so that a phrase of
    them is found inside others."""
    text = folded(text)
    return text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text)


# Rows.


class Indexed(NamedTuple):
    """A run as the tables take it: plain values, which another process can send."""

    run_id: str
    task: str
    title: str
    outcome: str
    started: float
    duration: float | None
    by: str
    version: bytes
    source: tuple[bytes, tuple[str, ...]] | None  # for `sources` and `shared`
    error: int | None
    line: int | None
    words: tuple[str, ...]
    doc: bytes
    facts: tuple[tuple[str, str, str | int | float | bytes], ...]


def indexed(record: Record, version: bytes = b"", *, source: bool = True) -> Indexed:
    """`version` is that of the task, where it is known already; `source` is put in with it."""
    by, error = asked_by(record), record.error
    pieces, values = list(own(record, by)), list(facts(record))
    failure = fingerprint(error.name, error.value) if error else ""
    line = failing_line(record)
    listed = [list(value) for value in values]
    return Indexed(
        record.run_id,
        _clean(record.task),
        _clean(record.title),
        record.outcome,
        moment(record.started),
        record.duration,
        _clean(by),
        version or version_of(record),
        _source(record) if source else None,
        mark(failure),
        mark(line),
        _columns([*pieces, Piece("outcome", "", record.outcome)], OWN),
        _packed([summary(record), failure, line, pieces, listed]),
        tuple((f"{fact.kind}s", _clean(fact.name), stored(fact.value)) for fact in values),
    )


def _source(record: Record) -> tuple[bytes, tuple[str, ...]]:
    pieces = list(shared(record))
    cells = [(cell.id, cell.title[:120]) for cell in record.cells]
    return _packed([cells, pieces]), _columns(pieces, SHARED)


def _columns(pieces: Iterable[Piece], names: Sequence[str]) -> tuple[str, ...]:
    found: dict[str, list[str]] = {name: [] for name in names}
    for piece in pieces:
        found[piece.field].append(piece.text)
    return tuple(_clean(searched("\n".join(texts))) for texts in found.values())


def stored(value: str | int | float | bool | None) -> str | int | float | bytes:
    """SQLite has no true, false and null, and no integers beyond 64 bits."""
    if value is None or isinstance(value, bool):
        return json.dumps(value).encode()
    if isinstance(value, int) and abs(value) >= 2**63:
        return float(value) if abs(value) < 2**1023 else str(value)[:500]
    return _clean(value) if isinstance(value, str) else value


def mark(text: str) -> int | None:
    """A number that stands for a failure."""
    if not text:
        return None
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def moment(text: str) -> float:
    """Seconds since 1970; 0 where the text is no time."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _packed(value: Any) -> bytes:
    return zlib.compress(json.dumps(value).encode(), _LEVEL)


def unpacked(body: bytes) -> Any:
    try:
        return json.loads(zlib.decompress(body))
    except (zlib.error, ValueError, TypeError, RecursionError) as error:
        raise sqlite3.DatabaseError(f"a text in it cannot be read: {error}") from error


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


class Writer:
    """Adds and removes runs within the transaction its caller has begun."""

    def __init__(self, con: sqlite3.Connection) -> None:
        self.con = con
        self._names: dict[tuple[str, str], int] = {}
        self.versions: dict[bytes, int] = {}  # of tasks, whose source is here
        (last,) = con.execute("SELECT coalesce(max(id), 0) FROM docs").fetchone()
        self._next = int(last) + 1

    def add(self, entries: Iterable[Indexed], *, local: bool = False) -> int:
        """Runs that are there already stay as they are. Returns how many were given."""
        rows, words, docs, values = [], [], [], list[tuple[Any, ...]]()
        count = 0
        for one in entries:
            count += 1
            if self._has(one.run_id):
                if not local:
                    self.con.execute("UPDATE runs SET local = 0 WHERE run_id = ?", (one.run_id,))
                continue
            at, self._next = self._next, self._next + 1
            task, title = self._name("task", one.task), self._name("title", one.title)
            rows.append((
                at, one.run_id, task, title, one.outcome, one.started, one.duration,
                self._name("by", one.by), int(local), self._source_of(one), one.error, one.line,
            ))  # fmt: skip
            words.append((at, *one.words))
            docs.append((at, one.doc))
            values += [(self._name(kind, name), value, at) for kind, name, value in one.facts]
        self.con.executemany(_ADD_RUN, rows)
        self.con.executemany("INSERT INTO docs VALUES(?,?)", docs)
        self.con.executemany("INSERT OR IGNORE INTO facts VALUES(?,?,?)", values)
        self.con.executemany(_ADD_WORDS, words)
        return count

    def _has(self, run_id: str) -> bool:
        found = self.con.execute("SELECT 1 FROM runs WHERE run_id = ?", (run_id,))
        return found.fetchone() is not None

    def _name(self, kind: str, name: str) -> int:
        key = kind, name
        found = self._names.get(key)
        if found is None:
            self.con.execute("INSERT OR IGNORE INTO names(kind, name) VALUES(?,?)", key)
            sql = "SELECT id FROM names WHERE kind = ? AND name = ?"
            (found,) = self.con.execute(sql, key).fetchone()
            if len(self._names) > 50_000:
                self._names.clear()
            self._names[key] = found
        return found

    def _source_of(self, one: Indexed) -> int:
        found = self.versions.get(one.version)
        if found is None:
            sql = "SELECT id FROM sources WHERE digest = ?"
            row = self.con.execute(sql, (one.version,)).fetchone()
            found = int(row[0]) if row is not None else self._add_source(one)
            self.versions[one.version] = found
        return found

    def _add_source(self, one: Indexed) -> int:
        body, words = one.source or (_packed([[], []]), ("",) * len(SHARED))
        row = (one.version, body)
        at = self.con.execute("INSERT INTO sources(digest, body) VALUES(?,?)", row).lastrowid
        assert at is not None
        self.con.execute(_ADD_SHARED, (at, *words))
        return at

    def remove(self, run_ids: Iterable[str]) -> int:
        """Their words stay, and lead nowhere: without its text FTS5 cannot take them out."""
        count = 0
        for run_id in run_ids:
            count += self.con.execute("DELETE FROM runs WHERE run_id = ?", (run_id,)).rowcount
            self.con.execute("DELETE FROM damaged WHERE run_id = ?", (run_id,))
        return count

    def damage(self, run_id: str, why: str) -> None:
        self.con.execute("INSERT OR REPLACE INTO damaged VALUES(?,?)", (run_id, _clean(why[:300])))

    def set(self, key: str, value: str | int) -> None:
        self.con.execute("INSERT OR REPLACE INTO meta VALUES(?,?)", (key, value))
