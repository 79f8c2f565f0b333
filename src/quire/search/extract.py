"""What the index keeps of archived runs: many are read by processes of their own, side by side.

Each process is told its part of the runs, reads them from the archive and answers in batches. What
one of them leaves unanswered is read here.
"""

from __future__ import annotations

import contextlib
import fcntl
import marshal
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Container, Generator, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

from ..archive.layout import Place
from ..record.record_files import read_record
from ..workspace import Workspace
from .indexed_texts import indexed
from .schema import Ready, ready

BATCH = 250  # runs that are handed on together, and become visible together
MANY = 2_000  # for fewer, the start of other processes takes longer than they save
PROCESSES = 4  # at most: the one that writes keeps up with no more
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError)
AHEAD = 1 << 20  # bytes of answers that may wait
_LENGTH = 8  # bytes that say how long an answer is

T = TypeVar("T")
Read = tuple[str, Ready | None, str]  # the run, what is kept of it, else why nothing is


def extracted(
    ws: Workspace, places: Sequence[Place], known: Container[bytes]
) -> Generator[list[Read], None, None]:
    """In their order. `known` are the versions of tasks whose source need not be told again."""
    count = min(PROCESSES, len(os.sched_getaffinity(0)))
    if len(places) < MANY or count < 2:
        # The database works while the next runs are read: it needs no turn of Python's for that.
        yield from ahead(batches(read_all(ws, places, known)))
    else:
        yield from _side_by_side(ws, places, known, count)


def read_all(ws: Workspace, places: Sequence[Place], known: Container[bytes]) -> Iterator[Read]:
    for run_id, files in ws.archive.read(places):
        yield read_one(run_id, files, known)


def read_one(run_id: str, files: dict[str, bytes], known: Container[bytes]) -> Read:
    try:
        record = read_record(files)
        if record.run_id != run_id:
            return run_id, None, f"its record says that it is {record.run_id!r}"
        return run_id, ready(indexed(record, known)), ""
    except KeyError as error:
        return run_id, None, f"{error} is missing"
    except UNREADABLE as error:
        return run_id, None, f"{type(error).__name__}: {error}"


def batches(items: Iterable[Read]) -> Generator[list[Read], None, None]:
    batch: list[Read] = []
    for item in items:
        batch.append(item)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def ahead(items: Generator[T, None, None]) -> Iterator[T]:
    """The same, made in a thread of its own while the one before is used."""
    found: queue.Queue[tuple[bool, Any]] = queue.Queue(4)
    enough = threading.Event()

    def give(done: bool, item: Any) -> None:
        while not enough.is_set():
            with contextlib.suppress(queue.Full):
                return found.put((done, item), timeout=0.1)

    def make() -> None:
        try:
            with contextlib.closing(items):
                for item in items:
                    give(False, item)
                    if enough.is_set():
                        return
            give(True, None)
        except BaseException as error:  # noqa: BLE001 - raised where it is used
            give(True, error)

    making = threading.Thread(target=make, name="quire-index", daemon=True)
    making.start()
    try:
        while True:
            done, item = found.get()
            if done and item is not None:
                raise item
            if done:
                return
            yield item
    finally:
        enough.set()
        making.join()


# Processes of their own.


def _side_by_side(
    ws: Workspace, places: Sequence[Place], known: Container[bytes], count: int
) -> Iterator[list[Read]]:
    parts = [places[at : at + BATCH] for at in range(0, len(places), BATCH)]
    with contextlib.ExitStack() as ending:
        # In turns, so that the answers come in order while all are at work.
        extractors = [ending.enter_context(Extractor(ws, parts[at::count])) for at in range(count)]
        for at, part in enumerate(parts):
            answer = extractors[at % count].answer()
            yield list(read_all(ws, part, known)) if answer is None else answer


class Extractor:
    """Use it in a `with`: whatever happens, the process is gone afterwards."""

    def __init__(self, ws: Workspace, parts: Sequence[Sequence[Place]]) -> None:
        self._told = marshal.dumps([[(p.run_id, p.files) for p in part] for part in parts])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "quire.search.extract", str(ws.root)],
            cwd=ws.root,
            env=ws.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # what it cannot do is tried here, and told from here
            bufsize=AHEAD,
        )
        assert self._process.stdout is not None
        self._answers = self._process.stdout
        with contextlib.suppress(OSError):  # the system may have less to give
            fcntl.fcntl(self._answers, fcntl.F_SETPIPE_SZ, AHEAD)
        self._telling = threading.Thread(target=self._tell, name="quire-index", daemon=True)
        self._telling.start()

    def _tell(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError), self._process.stdin as line:
            line.write(self._told)

    def answer(self) -> list[Read] | None:
        """The next part; None where the process has ended before its time."""
        length = self._answers.read(_LENGTH)
        size = int.from_bytes(length, "big")
        data = self._answers.read(size)
        if len(length) < _LENGTH or len(data) < size:
            return None
        return [(run_id, row and Ready(*row), why) for run_id, row, why in marshal.loads(data)]

    def __enter__(self) -> Extractor:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._telling.join()
        self._answers.close()


def answer(
    ws: Workspace, told: Sequence[Sequence[tuple[str, tuple[str, ...]]]], out: IO[bytes]
) -> None:
    """Each part as it was told: whoever asked counts on it."""
    known = set[bytes]()
    found = read_all(ws, [Place(*one) for part in told for one in part], known)
    for part in told:
        batch = list(islice(found, len(part)))
        known.update(row.version for _, row, _ in batch if row is not None)
        data = marshal.dumps([(run_id, row and tuple(row), why) for run_id, row, why in batch])
        out.write(len(data).to_bytes(_LENGTH, "big") + data)
        out.flush()


def main() -> None:
    root = Path(sys.argv[1])
    told = marshal.loads(sys.stdin.buffer.read())
    # Whoever asked may have had enough, and killed the one that listens.
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        answer(Workspace(root, cwd=root), told, sys.stdout.buffer)


if __name__ == "__main__":
    main()
