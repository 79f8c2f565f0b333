"""The index over all runs: brought up to date, made anew, looked at."""

from __future__ import annotations

import contextlib
import heapq
import marshal
import os
import sqlite3
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..errors import QuireError, StorageError
from ..record import journal
from ..record.record_files import read_record
from ..workspace import STATE, Workspace
from . import ask
from .index_file import BadIndex, Index
from .pieces import version_of
from .schema import Indexed, Writer, indexed

LOCAL = 1_000  # of the newest runs in this folder, those that no archive has are searched too
# A host adds each run as it ends: a search right after a run waits for it.
FEW, PATIENCE = 100, 2.0  # runs, seconds
PART = 2_500  # runs that are read at a time; another process starts in less time than it saves
PROCESSES = 2  # the one that writes keeps up with no more
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError)

Progress = Callable[[int, int], None]
Read = tuple[str, Indexed | None, str]  # the run, what is kept of it, else why nothing is


def silent(done: int, total: int) -> None:
    pass


@dataclass(slots=True)
class Caught:
    """What catching up came to."""

    added: int = 0
    behind: int = 0  # runs that another process is adding at this moment
    damaged: dict[str, str] = field(default_factory=dict)
    message: str = ""  # why everything was made anew


def index_of(ws: Workspace) -> Index:
    return Index(ws.root / STATE)


def catch_up(ws: Workspace, progress: Progress = silent) -> Caught:
    """Add what the archive has and the index has not. One that is of no use is made anew."""
    index = index_of(ws)
    try:
        with index.reading() as con:
            where, state = ask.state(con, "where"), ask.state(con, "state")
            complete = not any(True for _ in _unknown(ws, con))
            damaged = ask.damaged(con)
        if where != ws.archive.where:
            raise BadIndex(f"was of {where or 'nothing'}")
        news = _news(ws, state)
        if complete and news.state == state and not news.whole:
            return Caught(damaged=damaged)
        try:
            return _catch_up(ws, index, len(news.added), progress)
        except StorageError as error:  # what was found before can be found still
            count = len(news.added)
            lacking = f"{count:,} runs may be missing here" if count else "it may lag"
            return Caught(damaged=damaged, message=f"{error.message}; {lacking}: {error.hint}")
    except BadIndex as error:
        message = ""
        if index.path.exists():
            aside = index.set_aside()
            message = f"the index {error} and was made anew"
            message += f"; the old one is {STATE}/{aside}" if aside else ""
        done = rebuild(ws, progress)
        done.message = message
        return done


def _catch_up(ws: Workspace, index: Index, behind: int, progress: Progress) -> Caught:
    done = Caught()
    with index.writing(within=PATIENCE if behind <= FEW else 0.0) as writer:
        if writer is None:
            done.behind = behind
        else:  # another process may have done it since
            _apply(ws, writer, _news(ws, ask.state(writer.con, "state")), done, progress)
    done.damaged = _damaged(index)
    return done


def _news(ws: Workspace, state: str) -> Any:
    """What came and went in the archive since then, as `Archive.news` has it."""
    off = not ws.config.archive.enabled and not state
    nothing = SimpleNamespace(state="", added=(), removed=(), whole=False)
    return nothing if off else ws.archive.news(state)


def _apply(ws: Workspace, writer: Writer, news: Any, done: Caught, progress: Progress) -> None:
    places, gone = news.added, list(news.removed)
    if news.whole:
        here = ask.archived_ids(writer.con)
        gone = sorted(here - {place.run_id for place in places})
        places = [place for place in places if place.run_id not in here]
    for part in _read(ws, places, writer.versions, progress):
        with _transaction(writer):
            done.added += _put(writer, part)
    with _transaction(writer):
        writer.remove(gone)
        done.added += writer.add(_local_runs(ws, writer.con), local=True)
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
        for part in _read(ws, news.added, writer.versions, progress):
            done.added += _put(writer, part)
        done.added += writer.add(_local_runs(ws, writer.con), local=True)
        writer.set("state", news.state)
    done.damaged = _damaged(index)
    return done


def _put(writer: Writer, part: list[Read]) -> int:
    for run_id, found, why in part:
        if found is None:
            writer.damage(run_id, why)
    return writer.add(found for _, found, _ in part if found is not None)


# Reading the archive: where there is much of it, in other processes side by side.


def _read(
    ws: Workspace, places: Sequence[Any], known: Container[bytes], progress: Progress
) -> Iterator[list[Read]]:
    """In their order. `known` are the versions of tasks whose source the index has."""
    parts = [places[at : at + PART] for at in range(0, len(places), PART)]
    here = (read_here(ws, part, known) for part in parts)
    found = _side_by_side(ws, parts) if len(parts) > 1 else here
    for at, one in enumerate(found):
        yield one
        progress(min(len(places), (at + 1) * PART), len(places))


def _side_by_side(ws: Workspace, parts: Sequence[Sequence[Any]]) -> Iterator[list[Read]]:
    from concurrent.futures import Future, ThreadPoolExecutor  # slow to load; few searches need it

    with ThreadPoolExecutor(PROCESSES) as pool:
        pending: deque[Future[list[Read]]] = deque()
        try:
            for part in parts:
                pending.append(pool.submit(_read_elsewhere, ws, part))
                if len(pending) > 2 * PROCESSES:  # the one that writes may be slower
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _read_elsewhere(ws: Workspace, part: Sequence[Any]) -> list[Read]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "quire.search.fill", str(ws.root)],
        input=marshal.dumps([(place.run_id, place.files) for place in part]),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # what it cannot do is tried here, and told from here
        cwd=ws.root,
        env=ws.env,
        check=False,
    )
    if done.returncode:
        return read_here(ws, part, ())
    return [(run_id, row and Indexed(*row), why) for run_id, row, why in marshal.loads(done.stdout)]


def read_here(ws: Workspace, part: Sequence[Any], known: Container[bytes]) -> list[Read]:
    told: set[bytes] = set()
    found = []
    for run_id, files in ws.archive.read(part):
        row, why = _read_one(run_id, files, known, told)
        told.update([row.version] if row else ())
        found.append((run_id, row, why))
    return found


def _read_one(
    run_id: str, files: dict[str, bytes], known: Container[bytes], told: Container[bytes]
) -> tuple[Indexed | None, str]:
    try:
        record = read_record(files)
        if record.run_id != run_id:
            return None, f"its record says that it is {record.run_id!r}"
        version = version_of(record)
        return indexed(record, version, source=version not in known and version not in told), ""
    except KeyError as error:
        return None, f"{error} is missing"
    except UNREADABLE as error:
        return None, f"{type(error).__name__}: {error}"


def main() -> None:
    ws = Workspace(Path(sys.argv[1]), cwd=Path(sys.argv[1]))
    part = [SimpleNamespace(run_id=r, files=f) for r, f in marshal.loads(sys.stdin.buffer.read())]
    rows = [(run_id, row and tuple(row), why) for run_id, row, why in read_here(ws, part, ())]
    sys.stdout.buffer.write(marshal.dumps(rows))


# Runs that are only in this folder: archiving is off, or they are still owed.


def _unknown(ws: Workspace, con: sqlite3.Connection) -> Iterator[str]:
    try:
        # Names only: there may be a hundred thousand, and every search asks.
        names = heapq.nlargest(LOCAL, os.listdir(ws.runs.root))
    except OSError:
        return
    known = ask.ids_from(con, names[-1]) if names else set()
    yield from (name for name in names if name not in known and _is_over(ws, name))


def _is_over(ws: Workspace, run_id: str) -> bool:
    folder = ws.runs.root / run_id
    return (
        (folder / "events.jsonl").exists()
        and not (folder / "archived.json").exists()
        and not journal.is_live(folder / "events.jsonl")
    )


def _local_runs(ws: Workspace, con: sqlite3.Connection) -> list[Indexed]:
    found: list[Indexed] = []
    for run_id in _unknown(ws, con):
        with contextlib.suppress(QuireError, OSError, *UNREADABLE):
            record = ws.runs.read(ws.runs.find(run_id))
            if record.run_id == run_id:
                found.append(indexed(record))
    return found


def _damaged(index: Index) -> dict[str, str]:
    with index.reading() as con:
        return ask.damaged(con)


def status(ws: Workspace) -> dict[str, Any]:
    """What the index has, what it lacks and what it cannot read. Changes nothing."""
    index = index_of(ws)
    state = problem = ""
    runs = local = 0
    damaged: dict[str, str] = {}
    try:
        with index.reading() as con:
            runs, local = ask.total(con), ask.local(con)
            damaged, state = ask.damaged(con), ask.state(con, "state")
    except BadIndex as error:
        problem = str(error)
    return {
        "path": ws.named(index.path),
        "archive": ws.archive.where,
        "problem": problem,
        "runs": runs,
        "local": local,
        "behind": len(_news(ws, state).added),
        "size": index.size(),
        "damaged": damaged,
    }


if __name__ == "__main__":
    main()
