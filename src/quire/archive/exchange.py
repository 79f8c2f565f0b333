"""A log in step with the same log in another repository: nothing lost, nothing forced.

What only they have is taken; what only we have is put on top of it and pushed. If somebody else is
quicker, once more.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from ..errors import GitError
from ..git.objects import Commit, Objects, commits
from ..git.ref_log import GitLog, Import, Step, is_race, waiting
from ..git.repository import Repository, Said, refused

TRIES = 8  # while nothing moves on the other side
PATIENCE = 300.0  # seconds, while others are quicker again and again
TIMEOUT = 60.0  # seconds for one call of a remote
_FETCH = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
          "--no-auto-maintenance", "--no-prune")  # fmt: skip
# Hooks before a push look at source; an archive has none.
_PUSH = ("--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no")
_QUICKER = re.compile(
    r"fetch first|non-fast-forward|stale info|cannot lock ref|failed to (update|lock) ref"
    r"|incorrect old value|reference already exists|Unable to create .*lock"
)
_WHO = re.compile(r"[^<>\n\0]* <[^<>\n\0]*> [0-9]{1,12} [+-][0-9]{4}")


@dataclass(frozen=True, slots=True)
class Exchanged:
    """How many commits went which way. The one a log begins with is not counted."""

    sent: int = 0
    taken: int = 0
    replayed: int = 0  # of those sent: put on top of what others had pushed


def _as_it_was(commit: Commit, step: Step) -> Step:
    return step


def _nothing_skipped(commit: Commit) -> bool:
    return False


def _nothing_to_check(ours: str | None, theirs: str | None) -> None:
    pass


def _nothing_around(old: str | None, new: str) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Rules:
    """What a kind of log has to say in an exchange."""

    # Raises where one side holds what the other must not get.
    check: Callable[[str | None, str | None], None] = _nothing_to_check
    # Commits of ours that theirs have no need of, whatever they hold.
    skip: Callable[[Commit], bool] = _nothing_skipped
    # A commit of ours as it is to stand on theirs. Its step has only what is new there.
    remake: Callable[[Commit, Step], Step] = _as_it_was
    # Around the moment in which our ref moves.
    moving: Callable[[str | None, str], AbstractContextManager[None]] = _nothing_around


def exchange(
    log: GitLog, remote: str, rules: Rules | None = None, timeout: float = TIMEOUT
) -> Exchanged:
    """Bring both to the same commit, which has everything of both."""
    rules = rules or Rules()
    said, taken, stuck, last = "", 0, 0, ""
    end = time.monotonic() + PATIENCE
    while stuck < TRIES and time.monotonic() < end:
        theirs = fetch(log, remote, timeout)
        met = _meet(log, theirs, rules)
        if met is None:
            continue  # ours moved meanwhile
        new, done = met
        taken += done.taken
        done = replace(done, taken=taken)
        if new is None or new == theirs:
            return done
        said = _push(log, remote, new, timeout)
        if not said:
            return done
        # As long as they move, somebody gets through: soon it is our turn.
        stuck = stuck + 1 if theirs == last else 0
        last = theirs or ""
        time.sleep(random.uniform(0, 0.05 * 2 ** min(stuck, 5)))
    raise GitError(
        f"{remote} would not take {log.ref}: {said or 'it kept moving'}",
        hint="nothing is lost here; try again in a while",
    )


def fetch(log: GitLog, remote: str, timeout: float = TIMEOUT) -> str | None:
    """Their tip, with all that leads to it; None where they have no such ref."""
    private = f"refs/quire/remotes/{remote}/{log.ref.removeprefix('refs/')}"
    repository = log.repository
    for attempt in range(TRIES):
        said = repository.ask(
            "fetch", *_FETCH, "--", remote, f"+{log.ref}:{private}", timeout=timeout
        )
        if said.code == 0:
            return repository.resolve(private)
        if "couldn't find remote ref" in said.err:
            repository.ask("update-ref", "-d", private)
            return None
        if not (is_race(said) or "cannot lock ref" in said.err):
            break
        time.sleep(random.uniform(0, 0.02 * 2 ** min(attempt, 6)))  # another fetch of ours
    raise _unreachable(f"cannot fetch from {remote}", refused(said, ["fetch"]))


def _meet(log: GitLog, theirs: str | None, rules: Rules) -> tuple[str | None, Exchanged] | None:
    """Our ref moved to a commit that holds both sides; None where somebody else moved it first."""
    repository = log.repository
    with log.turn():
        # Not where we would start: what a clone has brought along is theirs.
        ours = repository.resolve(log.ref)
        if ours == theirs:
            return ours, Exchanged()
        rules.check(ours, theirs)
        replayed = 0
        if theirs is None or (ours and repository.is_ancestor(theirs, ours)):
            assert ours is not None
            new = ours
        elif ours is None or repository.is_ancestor(ours, theirs):
            new = theirs
        else:
            new, replayed = _replay(log, ours, theirs, rules)
        done = Exchanged(
            sent=_count(repository, new, theirs), taken=_count(repository, new, ours) - replayed,
            replayed=replayed,
        )  # fmt: skip
        if new != ours:
            log.must_be_free()
            with rules.moving(ours, new):
                if not _move(log, new, ours):
                    return None
    return new, done


def _count(repository: Repository, tip: str, without: str | None) -> int:
    others = [f"^{without}"] if without else []
    return int(repository.git("rev-list", "--count", "--min-parents=1", tip, *others, "--"))


def _move(log: GitLog, new: str, old: str | None) -> bool:
    said = log.repository.ask(
        *waiting(), "update-ref", "-m", "quire: exchange", log.ref, new, old or "0" * len(new),
    )  # fmt: skip
    if said.code and not is_race(said):
        raise refused(said, ["update-ref"])
    log.settle()
    return said.code == 0


def _replay(log: GitLog, ours: str, theirs: str, rules: Rules) -> tuple[str, int]:
    """Our commits that they do not have, put on top of theirs; the new tip, and how many."""
    private = f"refs/quire/replay/{log.ref.removeprefix('refs/')}"
    count = 0
    with Import(log.repository, private, theirs, force=True) as stream:
        for step in _steps(log.repository, ours, theirs, rules):
            stream.commit(step)
            count += 1
        if count:
            stream.finish()
    if count:
        # It has kept the commits from being swept away until the log itself holds them.
        log.repository.ask("update-ref", "-d", private)
    assert stream.tip is not None
    return stream.tip, count


def _steps(repository: Repository, ours: str, theirs: str, rules: Rules) -> Iterator[Step]:
    there: dict[str, str | None] = {}  # ids as they are once the steps so far are taken
    with Objects(repository) as objects:
        for commit in commits(repository, ours, f"^{theirs}"):
            if rules.skip(commit):
                continue
            if len(commit.parents) > 1:
                raise GitError(
                    f"{commit.id} is a merge: it cannot be put on top of another history",
                    hint=f"look at it: git show {commit.id}",
                )
            files: dict[str, bytes | None] = {}
            for change in commit.changes:
                path, wanted = change.path, None if change.kind == "D" else change.id
                if path not in there:
                    found = objects.info(f"{theirs}:{path}")
                    there[path] = found.id if found else None
                if there[path] == wanted:
                    continue
                if there[path] != (None if change.kind == "A" else change.old):
                    raise GitError(
                        f"{path} is not the same here and there",
                        hint=f"compare: git show {commit.id} · git show {theirs}:{path}",
                    )
                files[path] = objects.read(change.id) if wanted else None
                there[path] = wanted
            author = commit.who if _WHO.fullmatch(commit.who) else ""
            if files:
                yield rules.remake(commit, Step(files, commit.message, author=author))


def _push(log: GitLog, remote: str, commit: str, timeout: float) -> str:
    """Empty when it is there, else why they were quicker. Raises where they do not want it."""
    said = log.repository.ask("push", *_PUSH, "--", remote, f"{commit}:{log.ref}", timeout=timeout)
    if said.code == 0:
        return ""
    reason = _reason(said)
    if _QUICKER.search(reason):
        return reason
    if not reason:
        raise _unreachable(f"cannot push to {remote}", refused(said, ["push"]))
    told = "; ".join(re.findall(r"^remote: *(\S.*?) *$", said.err, re.MULTILINE)[:3])
    raise GitError(
        f"{remote} refused {log.ref}: {reason}" + (f": {told}" if told else ""),
        hint="nothing is lost here; ask whoever runs it to let you push there",
    )


def _unreachable(what: str, error: GitError) -> GitError:
    told = GitError(f"{what}: {error.message}", hint=error.hint)
    told.retryable = True  # the network, the server, the credentials: another day it may work
    return told


def _reason(said: Said) -> str:
    """Of the one ref that was pushed: `!<tab>from:to<tab>[rejected] (fetch first)`."""
    for line in said.text.split("\n"):
        if line.startswith("!\t"):
            return line.split("\t")[-1]
    return ""
