"""The index over all runs: brought up to date, made anew, looked at."""

from __future__ import annotations

import contextlib
import heapq
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..archive.layout import News, Place
from ..errors import QuireError, StorageError
from ..record import journal
from ..workspace import STATE, Workspace
from . import index_queries
from .extract import BATCH, UNREADABLE, Read, extracted
from .index_file import BadIndex, Index
from .indexed_texts import Indexed, indexed
from .schema import Writer

LOCAL = 1_000  # of the newest runs in this folder, those that no archive has are searched too
# A host adds each run as it ends: whoever asks in that moment, such as right after a run, waits.
FEW, PATIENCE = 100, 2.0  # runs, seconds

Progress = Callable[[int, int], None]


def silent(done: int, total: int) -> None:
    pass


@dataclass(slots=True)
class Caught:
    """What catching up came to."""

    added: int = 0
    removed: int = 0
    behind: int = 0  # runs that somebody else is adding at this moment
    damaged: dict[str, str] = field(default_factory=dict)
    message: str = ""  # why everything was made anew


def index_of(ws: Workspace) -> Index:
    return Index(ws.root / STATE)


def catch_up(ws: Workspace, progress: Progress = silent) -> Caught:
    """Add what the archive has and the index has not. One that is of no use is made anew."""
    index = index_of(ws)
    try:
        with index.reading() as con:
            where = index_queries.state(con, "where")
            state = index_queries.state(con, "state")
            complete = not any(True for _ in _unknown(ws, con))
            damaged = index_queries.damaged(con)
        if where != ws.archive.where:
            raise BadIndex(f"was of {where or 'nothing'}")
        news = _news(ws, state)
        if complete and news.state == state and not news.whole:
            return Caught(damaged=damaged)
        try:
            return _catch_up(ws, index, news, progress)
        except StorageError as error:
            # What was found before can be found still.
            lacking = (
                f"{len(news.added):,} runs may be missing here" if news.added else "it may lag"
            )
            return Caught(damaged=damaged, message=f"{error.message}; {lacking}: {error.hint}")
    except BadIndex as error:
        return _anew(ws, index, error, progress)


def _anew(ws: Workspace, index: Index, why: BadIndex, progress: Progress) -> Caught:
    message = ""
    if index.path.exists():
        aside = index.set_aside()
        message = f"the index {why} and was made anew"
        message += f"; the old one is {STATE}/{aside}" if aside else ""
    done = rebuild(ws, progress)
    done.message = message
    return done


def _catch_up(ws: Workspace, index: Index, news: News, progress: Progress) -> Caught:
    done = Caught()
    within = PATIENCE if len(news.added) <= FEW else 0.0
    with index.writing(within=within) as writer:
        if writer is None:
            done.behind = len(news.added)
        else:
            # Somebody else may have done it since.
            news = _news(ws, index_queries.state(writer.con, "state"))
            _apply(ws, writer, news, done, progress)
    done.damaged = _damaged(index)
    return done


def _news(ws: Workspace, state: str) -> News:
    if not ws.config.archive.enabled and not state:
        return News("")
    return ws.archive.news(state)


def _apply(ws: Workspace, writer: Writer, news: News, done: Caught, progress: Progress) -> None:
    con = writer.con
    places: Sequence[Place] = news.added
    gone = list(news.removed)
    if news.whole:
        here = {run_id for (run_id,) in con.execute("SELECT run_id FROM runs WHERE local = 0")}
        here |= index_queries.damaged(con).keys()
        gone = sorted(here - {place.run_id for place in places})
        places = [place for place in places if place.run_id not in here]
    with contextlib.closing(extracted(ws, places, writer.versions)) as batches:
        for at, batch in enumerate(batches):
            with _transaction(writer):
                done.added += _put(writer, batch)
            progress(min(len(places), (at + 1) * BATCH), len(places))
    with _transaction(writer):
        done.removed += writer.remove(gone)
        done.added += writer.add(_local_runs(ws, writer), local=True)
        writer.set("state", news.state)


@contextlib.contextmanager
def _transaction(writer: Writer) -> Iterator[None]:
    writer.con.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        writer.con.execute("ROLLBACK")
        raise
    writer.con.execute("COMMIT")


def rebuild(ws: Workspace, progress: Progress = silent) -> Caught:
    """From the archive alone. Until it is done the old one is there."""
    done = Caught()
    index = index_of(ws)
    with index.rebuilding() as writer:
        writer.set("where", ws.archive.where)
        news = _news(ws, "")
        places = news.added
        with contextlib.closing(extracted(ws, places, writer.versions)) as batches:
            for at, batch in enumerate(batches):
                done.added += _put(writer, batch)
                progress(min(len(places), (at + 1) * BATCH), len(places))
        done.added += writer.add(_local_runs(ws, writer), local=True)
        writer.set("state", news.state)
    done.damaged = _damaged(index)
    return done


def _put(writer: Writer, batch: list[Read]) -> int:
    for run_id, found, why in batch:
        if found is None:
            writer.damage(run_id, why)
    return writer.put(found for _, found, _ in batch if found is not None)


# Runs that are only in this folder: archiving is off, or they are still owed.


def _unknown(ws: Workspace, con: sqlite3.Connection) -> Iterator[str]:
    names = _newest_local(ws)
    known = index_queries.ids_from(con, names[-1]) if names else set()
    for run_id in names:
        if run_id not in known and _is_over(ws, run_id):
            yield run_id


def _newest_local(ws: Workspace) -> list[str]:
    try:
        # Names only: there may be a hundred thousand, and every search asks.
        return heapq.nlargest(LOCAL, os.listdir(ws.runs.root))
    except OSError:
        return []


def _is_over(ws: Workspace, run_id: str) -> bool:
    folder = ws.runs.root / run_id
    return (
        (folder / "events.jsonl").exists()
        and not (folder / "archived.json").exists()
        and not journal.is_live(folder / "events.jsonl")
    )


def _local_runs(ws: Workspace, writer: Writer) -> list[Indexed]:
    found: list[Indexed] = []
    for run_id in _unknown(ws, writer.con):
        with contextlib.suppress(QuireError, OSError, *UNREADABLE):
            record = ws.runs.read(ws.runs.find(run_id))
            if record.run_id == run_id:
                found.append(indexed(record))
    return found


def _damaged(index: Index) -> dict[str, str]:
    with index.reading() as con:
        return index_queries.damaged(con)


def status(ws: Workspace) -> dict[str, Any]:
    """What the index has, what it lacks and what it cannot read. Changes nothing."""
    index = index_of(ws)
    told: dict[str, Any] = {
        "path": ws.named(index.path),
        "archive": ws.archive.where,
        "problem": "",
        "runs": 0,
        "local": 0,
        "behind": 0,
        "size": index.size(),
        "damaged": {},
    }
    state = ""
    try:
        with index.reading() as con:
            told["runs"], told["local"] = index_queries.total(con), index_queries.local(con)
            told["damaged"] = index_queries.damaged(con)
            state = index_queries.state(con, "state")
    except BadIndex as error:
        told["problem"] = str(error)
    told["behind"] = len(_news(ws, state).added)
    return told
