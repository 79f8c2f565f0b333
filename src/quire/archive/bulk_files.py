"""Many files of an archive's branch in one go, by two gits that are asked ahead of their answers.

What a stranger may have pushed is listed with the rest; whoever reads it decides.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence

from ..errors import GitError
from ..git.git_process import Talk
from ..git.repository import Repository
from .layout import READ, RUNS, News, Place, is_run_id, run_folder

LARGEST = 64_000_000  # bytes of one file; a larger one is no record that can be searched
_CHUNK = 1 << 20
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def is_commit(state: str) -> bool:
    return _COMMIT.fullmatch(state) is not None


def listed(repository: Repository, tip: str) -> News:
    said = repository.raw("ls-tree", "-r", "-z", "--full-tree", tip, f"{RUNS}/")
    found: dict[str, dict[str, str]] = {}
    for line in said.split(b"\0")[:-1]:
        head, _, path = line.partition(b"\t")
        mode, _, id_ = head.split(b" ")
        _put(found, path, mode, id_)
    return News(tip, _places(found), whole=True)


def between(repository: Repository, old: str, new: str) -> News | None:
    """None where the old commit is not known any more."""
    options = ("-r", "-z", "--no-renames", "--no-abbrev", "--raw")
    said = repository.ask("diff-tree", *options, old, new, "--", f"{RUNS}/")
    if said.code:
        return None
    parts = said.out.split(b"\0")[:-1]
    found: dict[str, dict[str, str]] = {}
    touched: set[str] = set()
    gone: set[str] = set()
    for head, path in zip(parts[::2], parts[1::2], strict=True):
        _, mode, _, id_, kind = head.split(b" ")
        run_id = _run(path)
        if kind == b"D":
            gone.add(run_id)
        elif kind != b"A":
            touched.add(run_id)
        if kind != b"D":
            _put(found, path, mode, id_)
    if touched or gone & found.keys():
        return None  # a run was changed: nothing of ours does that, so everything is looked at
    return News(new, _places(found), tuple(sorted(gone - {""})))


def _run(path: bytes) -> str:
    folder, _, _ = path.decode("utf-8", "surrogateescape").rpartition("/")
    run_id = folder.rpartition("/")[2]
    return run_id if is_run_id(run_id) and run_folder(run_id) == folder else ""


def _put(found: dict[str, dict[str, str]], path: bytes, mode: bytes, id_: bytes) -> None:
    run_id = _run(path)
    if not run_id:
        return
    files = found.setdefault(run_id, {})
    name = path.rpartition(b"/")[2].decode("utf-8", "surrogateescape")
    if name in READ and mode == b"100644":
        files[name] = id_.decode("ascii")


def _places(found: dict[str, dict[str, str]]) -> tuple[Place, ...]:
    return tuple(
        Place(run_id, tuple(files.get(name, "") for name in READ))
        for run_id, files in sorted(found.items())
    )


def read(repository: Repository, places: Sequence[Place]) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Each run's files. One that is missing, damaged or too large is not among them."""
    with Talk(repository, "cat-file", "--batch", "--buffer", buffer=_CHUNK) as talk:
        asking = threading.Thread(target=_ask, args=(talk, places), daemon=True)
        asking.start()
        try:
            for place in places:
                files: dict[str, bytes] = {}
                for name, id_ in zip(READ, place.files, strict=True):
                    data = _answer(talk) if id_ else None
                    if data is not None:
                        files[name] = data
                yield place.run_id, files
        except BaseException:  # whoever reads may have had enough
            talk.abandon()
            raise
        finally:
            asking.join()


def _ask(talk: Talk, places: Sequence[Place]) -> None:
    try:
        for at in range(0, len(places), 200):
            asked = [id_ for place in places[at : at + 200] for id_ in place.files if id_]
            talk.say("".join(f"{id_}\n" for id_ in asked).encode())
        talk.hush()
    except (GitError, ValueError, OSError):
        pass  # whoever reads the answers finds that they end


def _answer(talk: Talk) -> bytes | None:
    words = talk.line().split(b" ")
    if len(words) != 3 or not words[2].isdigit():
        return None
    size = int(words[2])
    if size <= LARGEST and words[1] == b"blob":
        return talk.read(size + 1)[:-1]
    left = size + 1
    while left:
        left -= len(talk.read(min(left, _CHUNK)))
    return None
