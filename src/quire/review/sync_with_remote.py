"""Proposals of the repository itself, brought together with those of another clone's remote.

A proposal is known by its id; its number is only the name of its ref. What both sides added is the
union. A number that two clones gave to different proposals belongs to the one that is on the
remote: the other moves to the next free one.

A proposal is nothing without its commits: the branches of open ones, and their bases, come along
into the remote-tracking refs; and what was proposed from a branch here goes to the remote first.

Verbs do not call this: `verbs.push.exchange(ws)` at the end of what changed a proposal does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..errors import ForgeError, GitError
from ..git.objects import Objects, entries
from ..git.ref_log import Import, Step, is_race
from ..git.repository import Repository, refused
from .branch_merge import TIMEOUT
from .local_forge import REFS, LocalForge
from .proposal_events import fold
from .protocol import Proposal

TRIES = 8
_FETCH = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
          "--no-auto-maintenance")  # fmt: skip
_PUSH = ("--quiet", "--atomic", "--no-verify", "--no-follow-tags", "--recurse-submodules=no")


@dataclass(frozen=True, slots=True)
class Travelled:
    new: tuple[int, ...] = ()  # proposals that were not known here
    changed: tuple[int, ...] = ()  # known ones to which something was added
    renumbered: Mapping[int, int] = field(default_factory=dict)  # from here, old number to new
    sent: tuple[int, ...] = ()  # proposals that the remote did not know
    added: tuple[int, ...] = ()  # known ones to which we added something there
    branches: tuple[str, ...] = ()  # of proposals, that went to the remote
    problems: tuple[str, ...] = ()  # branches that did not come or go, and why


@dataclass(frozen=True, slots=True)
class Held:
    number: int
    tip: str
    id: str  # the tip itself where it cannot be read


def fetch(forge: LocalForge, remote: str, timeout: float = TIMEOUT) -> Travelled:
    """Take in what the remote has. All refs of proposals move in one step, or none does."""
    told = _proposals(forge, remote, timeout)
    heads = _heads(forge, remote, timeout)
    return replace(told, problems=_fetched(forge, remote, heads, timeout))


def push(forge: LocalForge, remote: str, timeout: float = TIMEOUT) -> Travelled:
    """Take in what is there and send what is here; never by force."""
    told = Travelled()
    for _ in range(TRIES):
        told = _joined(told, _proposals(forge, remote, timeout))
        heads = _heads(forge, remote, timeout)
        problems = _fetched(forge, remote, heads, timeout)
        # The commits first: nobody is to see a proposal that they cannot look at.
        went, stayed = _branches(forge, remote, heads, timeout)
        told = replace(
            told,
            branches=tuple(sorted({*told.branches, *went})),
            problems=(*problems, *stayed),
        )
        ours, theirs = forge.refs(), forge.refs(_there(remote))
        if ours == theirs:
            return told
        command = ("push", *_PUSH, "--", remote, f"{REFS}*:{REFS}*")
        said = forge.repository.ask(*command, timeout=timeout)
        if said.code == 0:
            sent = sorted(set(ours) - set(theirs))
            added = sorted(n for n in set(ours) & set(theirs) if ours[n] != theirs[n])
            return replace(told, sent=tuple(sent), added=tuple(added))
        quicker = "fetch first" in said.err or "non-fast-forward" in said.err or is_race(said)
        if not quicker and "failed to lock" not in said.err and "atomic" not in said.err:
            raise refused(said, ["push"])
    raise ForgeError(
        f"the proposals of {remote} changed {TRIES} times while ours waited", hint="say it again"
    )


def _there(remote: str) -> str:
    return f"refs/quire/remotes/{remote}/proposals/"


def _proposals(forge: LocalForge, remote: str, timeout: float) -> Travelled:
    there = _there(remote)
    spec = f"+{REFS}*:{there}*"
    forge.repository.git("fetch", *_FETCH, "--prune", "--", remote, spec, timeout=timeout)
    for _ in range(TRIES):
        ours, theirs = _held(forge, REFS), _held(forge, there)
        wanted, result = together(forge.repository, ours, theirs)
        if _moved(forge.repository, {held.number: held.tip for held in ours}, wanted):
            return result
    raise GitError("proposals changed again and again while others came in", hint="say it again")


def _open(forge: LocalForge) -> list[Proposal]:
    """With what was proposed last as their heads, wherever the branches are here."""
    found = []
    for number, tip in forge.refs().items():
        kept = forge.read(tip)
        proposal = fold(number, kept) if kept else None
        if proposal is not None and proposal.state == "open":
            found.append(proposal)
    return found


def _heads(forge: LocalForge, remote: str, timeout: float) -> dict[str, str]:
    """Where the remote has the branches of open proposals, and their bases."""
    wanted = {name for proposal in _open(forge) for name in (proposal.branch, proposal.base)}
    if not wanted:
        return {}
    listed = forge.repository.git("ls-remote", "--heads", "--", remote, timeout=timeout)
    found = {}
    for line in filter(None, listed.split("\n")):
        tip, _, ref = line.partition("\t")
        name = ref.removeprefix("refs/heads/")
        if name in wanted:
            found[name] = tip
    return found


def _fetched(
    forge: LocalForge, remote: str, heads: Mapping[str, str], timeout: float
) -> tuple[str, ...]:
    """As a fetch does: what is there counts, also where it was rewritten."""
    refs = {name: f"refs/remotes/{remote}/{name}" for name in heads}
    missing = [name for name, tip in heads.items() if forge.repository.resolve(refs[name]) != tip]
    if not missing:
        return ()
    specs = "".join(f"+refs/heads/{name}:{refs[name]}\n" for name in sorted(missing))
    command = ("fetch", *_FETCH, "--stdin", "--", remote)
    said = forge.repository.ask(*command, input=specs.encode(), timeout=timeout)
    if said.code == 0:
        return ()
    behind = [name for name in missing if forge.repository.resolve(refs[name]) != heads[name]]
    error = refused(said, ["fetch"])
    return (f"{', '.join(sorted(behind))} of {remote} did not come: {error.message}",)


def _branches(
    forge: LocalForge, remote: str, heads: Mapping[str, str], timeout: float
) -> tuple[list[str], list[str]]:
    """Send what was proposed from a branch here, and no commit more; which went, and which not."""
    repository = forge.repository
    went, stayed = [], []
    for proposal in _open(forge):
        name, head = proposal.branch, proposal.head
        here, there = repository.resolve(f"refs/heads/{name}"), heads.get(name)
        if here is None or not repository.is_ancestor(head, here):
            continue  # somebody else's, or rewritten and not proposed again
        if there is not None and repository.is_ancestor(head, there):
            continue
        said = repository.ask(
            "push", "--quiet", "--", remote, f"{head}:refs/heads/{name}", timeout=timeout
        )
        if said.code == 0:
            went.append(name)
        else:
            error = refused(said, ["push"])
            stayed.append(f"{name} did not go to {remote}: {error.message}; {error.hint}")
    return went, stayed


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
    return replace(
        one,
        new=tuple(sorted({*one.new, *two.new})),
        changed=tuple(sorted({*one.changed, *two.changed})),
        renumbered=moved,
    )
