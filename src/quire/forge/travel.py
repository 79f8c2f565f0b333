"""Proposals of the repository itself, brought together with those of another clone's remote.

A proposal is known by its id; its number is only the name of its ref. What both sides added is the
union. A number that two clones gave to different proposals belongs to the one that is on the
remote: the other moves to the next free one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import ForgeError, GitError
from ..store.git import Repository, refused
from ..store.gitlog import Import, Step, is_race
from ..store.gitread import Objects, entries
from .local import REFS, LocalForge

TRIES = 8
_FETCH = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
          "--no-auto-maintenance", "--prune")  # fmt: skip
_PUSH = ("--quiet", "--atomic", "--no-verify", "--no-follow-tags", "--recurse-submodules=no")


@dataclass(frozen=True, slots=True)
class Travelled:
    new: tuple[int, ...] = ()  # proposals that were not known here
    changed: tuple[int, ...] = ()  # known ones to which something was added
    renumbered: Mapping[int, int] = field(default_factory=dict)  # from here, old number to new


@dataclass(frozen=True, slots=True)
class Held:
    number: int
    tip: str
    id: str  # the tip itself where it cannot be read


def fetch(forge: LocalForge, remote: str) -> Travelled:
    """Take in what the remote has. All refs move in one step, or none does."""
    there = f"refs/quire/remotes/{remote}/proposals/"
    spec = f"+{REFS}*:{there}*"
    forge.repository.git("fetch", *_FETCH, "--", remote, spec)
    for _ in range(TRIES):
        ours, theirs = _held(forge, REFS), _held(forge, there)
        wanted, result = together(forge.repository, ours, theirs)
        if _moved(forge.repository, {held.number: held.tip for held in ours}, wanted):
            return result
    raise GitError("proposals changed again and again while others came in", hint="say it again")


def push(forge: LocalForge, remote: str) -> Travelled:
    """Take in what is there and send what is here; never by force."""
    told = Travelled()
    for _ in range(TRIES):
        told = _joined(told, fetch(forge, remote))
        if not forge.refs():
            return told
        said = forge.repository.ask("push", *_PUSH, "--", remote, f"{REFS}*:{REFS}*")
        if said.code == 0:
            return told
        quicker = "fetch first" in said.err or "non-fast-forward" in said.err or is_race(said)
        if not quicker and "failed to lock" not in said.err and "atomic" not in said.err:
            raise refused(said, ["push"])
    raise ForgeError(
        f"the proposals of {remote} changed {TRIES} times while ours waited", hint="say it again"
    )


def together(
    repository: Repository, ours: list[Held], theirs: list[Held]
) -> tuple[dict[int, str], Travelled]:
    """Where each number points afterwards, and what is new in that."""
    mine = {held.id: held for held in ours}
    wanted = {held.number: held.tip for held in theirs}
    new, changed, renumbered = [], [], {}
    for held in theirs:
        own = mine.pop(held.id, None)
        if own is None:
            new.append(held.number)
            continue
        wanted[held.number] = union(repository, own.tip, held.tip)
        if own.number != held.number:
            renumbered[own.number] = held.number
        elif wanted[held.number] != own.tip:
            changed.append(held.number)
    free = max([*wanted, *(held.number for held in ours)], default=0)
    for own in sorted(mine.values(), key=lambda held: held.number):
        number = own.number
        if number in wanted:
            free = number = free + 1
            renumbered[own.number] = number
        wanted[number] = own.tip
    return wanted, Travelled(tuple(sorted(new)), tuple(sorted(changed)), renumbered)


def union(repository: Repository, ours: str, theirs: str) -> str:
    """A commit with the files of both, on top of theirs."""
    if ours == theirs or repository.is_ancestor(ours, theirs):
        return theirs
    if repository.is_ancestor(theirs, ours):
        return ours
    known = {entry.path for entry in entries(repository, theirs)}
    missing: dict[str, bytes | None] = {}
    with Objects(repository) as objects:
        for entry in entries(repository, ours):
            if entry.path not in known and entry.mode == "100644":
                missing[entry.path] = objects.read(entry.id)
    if not missing:
        return theirs
    # A ref of its own for the moment: nothing of ours moves before all is ready.
    private = f"refs/quire/replay/proposals/{ours}"
    with Import(repository, private, theirs, force=True) as stream:
        commit = stream.commit(Step(missing, "Bring together what two clones said"))
        stream.finish()
    repository.ask("update-ref", "-d", private)
    return commit


def _held(forge: LocalForge, under: str) -> list[Held]:
    found = []
    for number, tip in sorted(forge.refs(under).items()):
        kept = forge.read(tip)
        found.append(Held(number, tip, kept.id if kept else tip))
    return found


def _moved(repository: Repository, old: Mapping[int, str], wanted: Mapping[int, str]) -> bool:
    lines = []
    for number in sorted(set(old) | set(wanted)):
        was, now = old.get(number), wanted.get(number)
        if was == now:
            continue
        nothing = "0" * len(was or now or "")
        lines.append(f"update {REFS}{number} {now or nothing} {was or nothing}\n")
    if not lines:
        return True
    said = repository.ask("update-ref", "--stdin", input="".join(lines).encode())
    if said.code and not is_race(said):
        raise refused(said, ["update-ref"])
    return said.code == 0


def _joined(one: Travelled, two: Travelled) -> Travelled:
    moved = {old: two.renumbered.get(new, new) for old, new in one.renumbered.items()}
    moved |= {old: new for old, new in two.renumbered.items() if old not in one.renumbered.values()}
    return Travelled(
        tuple(sorted({*one.new, *two.new})), tuple(sorted({*one.changed, *two.changed})), moved
    )
