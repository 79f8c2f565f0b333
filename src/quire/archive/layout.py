"""Where the records of runs are kept for good: what every archive can do, and how it is laid out.

    runs/2026/11/16/2026-11-16-163516-sum-8121/
        record.json  notebook.ipynb  source.py  attestation.json

Each run is one step of a history that only grows. A step is sealed: a signature over the run's id,
the digests of its files and the step before it. So a run that was changed, removed or moved shows.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

from ..errors import AmbiguousRun, Hint, NextStep, RunNotFound, UsageError

RUNS = "runs"
READ = ("record.json", "notebook.ipynb")  # what a search looks into
DIGEST = "DIGEST.md"  # what many runs came to, on one page; made from them, and no proof of them
LARGEST = 256_000_000  # bytes of one file; what is larger is not read
_ID = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})-[0-9]{6}-[a-z0-9-]{1,150}")
_NAME = re.compile(r"record\.json|notebook\.ipynb|attestation\.json|source(\.[A-Za-z0-9]{1,10})?")
_SEAL = re.compile(r"[\x21-\x39\x3b-\x7e]+:[A-Za-z0-9+/=_-]+")

Sign = Callable[[bytes], str]


@dataclass(frozen=True, slots=True)
class Link:
    """A step of the history. Whether the seal is good is for whoever knows the keys to say."""

    run_id: str  # empty where the step adds no run
    place: str  # the commit, or the line
    sealed: bytes  # what the seal must be a signature of
    seal: str  # `key id:signature`; empty where there is none
    problems: tuple[str, ...] = ()  # what is wrong with it whatever the keys
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # as this step added them
    cut: bool = False  # what came before it, and what it adds itself, is not known here


@dataclass(frozen=True, slots=True)
class Place:
    """Where the files of a run are, in the order of READ; an empty one is not there."""

    run_id: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class News:
    """What an archive has at `state` that it did not have before, and the other way round."""

    state: str
    added: tuple[Place, ...] = ()
    removed: tuple[str, ...] = ()
    whole: bool = False  # what was there before is not known: `added` is all there is


class Archive(Protocol):
    """One contract, kept by a branch in git and by a folder."""

    kind: str  # git or folder
    where: str  # for people
    warning: str  # what the last `add` has found missing of what was there before; else empty

    def add(self, run_id: str, files: Mapping[str, bytes]) -> str:
        """Its place. On the disk when it returns. The same again changes nothing."""
        ...

    def path(self, run_id: str) -> str:
        """The place of a run, whether it is there or not."""
        ...

    def ids(self) -> list[str]:
        """Newest first."""
        ...

    def files(self, run_id: str) -> dict[str, bytes]: ...

    def each(self, ids: Iterable[str]) -> Iterator[tuple[str, dict[str, bytes]]]:
        """The files of many runs, without a process for each."""
        ...

    def news(self, state: str) -> News:
        """What came and what went since then; everything, where that is not known."""
        ...

    def read(self, places: Sequence[Place]) -> Iterator[tuple[str, dict[str, bytes]]]:
        """The record and the notebook of each, as far as they can be read."""
        ...

    def find(self, name: str) -> str:
        """The id of a run, from the id, a unique beginning of it, or `last`."""
        ...

    def history(self) -> Iterator[Link]:
        """Oldest first. Never raises for what somebody else has put there."""
        ...

    def write_digest(self, data: bytes) -> str:
        """Beside the runs; its place. The same again changes nothing."""
        ...

    def witness_problem(self) -> str | None:
        """What the archive has lost of what it once acknowledged here."""
        ...

    def now(self) -> Archive:
        """The archive as it is at this moment, for reading: what others add later is not seen."""
        ...

    def tidy(self) -> None:
        """Housekeeping, for when nobody waits."""
        ...


def run_folder(run_id: str) -> str:
    found = _ID.fullmatch(run_id)
    if found is None:
        raise UsageError(
            f"{run_id!r} is not the id of a run", hint="such as 2026-11-16-163516-sum-8121"
        )
    return "/".join((RUNS, *found.groups(), run_id))


def is_run_id(name: str) -> bool:
    return _ID.fullmatch(name) is not None


def is_run_file(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def checked_files(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    for name, data in files.items():
        if not is_run_file(name):
            raise UsageError(f"a run has no file {name!r}", hint="record.json, source.py, …")
        if len(data) > LARGEST:
            raise UsageError(
                f"{name} has {len(data):,} bytes, more than an archive takes ({LARGEST:,})",
                hint="lower archive.large, so that large outputs are kept outside it",
            )
    if not files:
        raise UsageError("a run without files cannot be archived", hint="give its record.json")
    return files


def sealed(run_id: str, after: str, files: Mapping[str, bytes]) -> bytes:
    """What a seal signs: the run, the step before it, and every byte of its files."""
    lines = ["quire seal 1", f"run {run_id}", f"after {after}"]
    lines += [
        f"sha256 {hashlib.sha256(data).hexdigest()} {name}" for name, data in sorted(files.items())
    ]
    return "\n".join(lines).encode("utf-8", "surrogateescape") + b"\n"


def sealed_digest(after: str, data: bytes) -> bytes:
    """What a seal of the digest signs: nothing that could be taken for a run."""
    digest = hashlib.sha256(data).hexdigest()
    return f"quire digest 1\nafter {after}\nsha256 {digest} {DIGEST}\n".encode()


def checked_seal(seal: str) -> str:
    if not is_seal(seal):
        raise UsageError("the signer gave no seal", hint="key id, colon, base64")
    return seal


def is_seal(seal: str) -> bool:
    return _SEAL.fullmatch(seal) is not None


def some(names: Sequence[str], most: int = 3) -> str:
    """The first few, and how many there are besides."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def differs(run_id: str, where: str) -> UsageError:
    return UsageError(
        f"{where} already has another run {run_id}",
        hint="an archived run is never changed; run the task again for a new id",
    )


def choose(archive: Archive, name: str) -> str:
    """`find` for every archive."""
    ids = archive.ids()
    if name == "last":
        return _last(archive, ids)
    hits = [name] if name in ids else [i for i in ids if name and i.startswith(name)]
    if len(hits) == 1:
        return hits[0]
    if hits:
        some = ", ".join(hits[:4])
        raise AmbiguousRun(f"{name!r} fits {len(hits)} runs: {some}", hint="give more of the id")
    raise RunNotFound(
        f"the archive has no run {name!r}", hint=Hint("`{}` lists them", NextStep("log"))
    )


def _last(archive: Archive, ids: list[str]) -> str:
    """The last one somebody asked for: what a task ran belongs to that task."""
    if not ids:
        raise RunNotFound(
            "the archive is empty",
            hint=Hint("run a task: {}", NextStep("run", {"path": "notebooks/x.py"})),
        )
    for _, same in groupby(ids, key=lambda run_id: run_id[:17]):
        asked = [
            (started, run_id)
            for run_id, files in archive.each(same)
            if (started := _asked(files)) is not None
        ]
        if asked:
            return max(asked)[1]
    return ids[0]


def _asked(files: Mapping[str, bytes]) -> str | None:
    """When a run began that no other run has started."""
    try:
        told = json.loads(files["record.json"])
        return None if told["parent"] else str(told["started"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None  # no record of ours; `verify` says more
