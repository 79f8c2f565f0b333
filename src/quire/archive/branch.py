"""The archive as a branch: a commit for each run, made beside the working tree."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..errors import GitError, Hint, NextStep, RunNotFound
from ..git.housekeeping import tidy
from ..git.objects import Commit, Entry, Objects, entries, tree
from ..git.ref_log import CheckedOut, GitLog, Look, Step
from ..git.repository import Repository, branch_name
from .bulk_files import between, is_commit, listed, read
from .exchange import TIMEOUT, Exchanged, Rules, exchange
from .history import (
    MARKER,
    ROOT,
    digest_message,
    is_digest,
    links,
    marker_problem,
    run_message,
    seal_of,
)
from .last_seen_tip import Seen, Witness
from .layout import (
    DIGEST,
    LARGEST,
    RUNS,
    Link,
    News,
    Place,
    Sign,
    checked_files,
    choose,
    differs,
    is_run_file,
    is_run_id,
    run_folder,
    sealed,
)

Objection = Callable[[bytes, str], str]
OTHER_NAME = 'choose another name: archive.branch = "run-reports" in quire.toml'


class GitArchive:
    kind = "git"

    def __init__(
        self,
        repository: Repository,
        branch: str,
        sign: Sign | None,
        remote: str = "",
        objection: Objection | None = None,
    ) -> None:
        """`remote` is the one a fresh clone takes the archive from. `objection` says what is wrong
        with a seal before a run is sealed anew; empty: nothing."""
        self.branch = branch_name(branch)
        self.where = f"git branch {branch}"
        self.repository = repository
        self.log = GitLog(repository, f"refs/heads/{branch}", start=self._cloned)
        self._sign = sign
        self._remote = remote
        self._objection = objection
        self._witness = Witness(repository, branch)
        self._seen: Seen | None = None  # by the archive as it was at one moment
        self.warning = ""

    def _cloned(self) -> str | None:
        """Where a clone has what it was cloned with, as long as it has no branch of its own."""
        remote = self.repository.remote(self._remote)
        return f"refs/remotes/{remote}/{self.branch}" if remote else None

    # Adding.

    def add(self, run_id: str, files: Mapping[str, bytes]) -> str:
        folder = run_folder(run_id)
        checked_files(files)
        parent: str | None = None
        missing: tuple[str, ...] = ()
        self.warning = ""

        def make(look: Look) -> list[Step]:
            nonlocal parent, missing
            parent = look.tip
            self._must_be_ours(look)
            missing = self._witness.missing(look.tip)
            if look.tip is not None and look.found[folder] is not None:
                if self._files(look.tip, run_id) != dict(files):
                    raise differs(run_id, f"the branch {self.branch}")
                return []
            paths = {f"{folder}/{name}": data for name, data in files.items()}
            step = Step(paths, run_message(run_id, files, self._sign))
            return [step] if look.tip else [ROOT, step]

        try:
            commit = self.log.change(make, (MARKER, folder))
        except CheckedOut as error:
            # Whose branch it is comes first: to leave it would not help where it is no archive.
            look = self.log.look(MARKER)
            self._must_be_ours(look)
            if look.tip is None:
                raise GitError(error.message, hint=OTHER_NAME) from error
            raise
        assert commit is not None
        if commit != parent:
            self._witness.write((commit,), missing)
        if missing:
            told = self._witness.what(commit, missing[-1])
            self.warning = f"{told}; quire verify --all says what to do"
        return folder

    def _must_be_ours(self, look: Look) -> None:
        if look.tip is None:
            return
        problem = marker_problem(look.found[MARKER])
        if problem:
            raise GitError(f"the branch {self.branch} {problem}", hint=OTHER_NAME)

    def write_digest(self, data: bytes) -> str:
        """Sealed, and only onto the tip that was looked at, as runs are."""
        missing: tuple[str, ...] = ()
        parent: str | None = None

        def make(look: Look) -> list[Step]:
            nonlocal parent, missing
            parent = look.tip
            self._must_be_ours(look)
            if look.tip is None:
                raise RunNotFound("the archive is empty", hint="run a task first")
            missing = self._witness.missing(look.tip)
            same = look.found[DIGEST] == data
            return [] if same else [Step({DIGEST: data}, digest_message(data, self._sign))]

        commit = self.log.change(make, (MARKER, DIGEST))
        if commit is not None and commit != parent:
            self._witness.write((commit,), missing)
        return f"{self.branch}:{DIGEST}"

    # Reading.

    def path(self, run_id: str) -> str:
        return run_folder(run_id)

    def ids(self) -> list[str]:
        tip = self._tip()
        if tip is None:
            return []
        folders = entries(self.repository, tip, f"{RUNS}/", folders=True)
        names = [(entry.path, entry.path.rpartition("/")[2]) for entry in folders]
        return sorted(
            (name for path, name in names if is_run_id(name) and run_folder(name) == path),
            reverse=True,
        )

    def _tip(self) -> str | None:
        look = self.log.look(MARKER)
        self._must_be_ours(look)
        return look.tip

    def files(self, run_id: str) -> dict[str, bytes]:
        tip = self._tip()
        found = self._files(tip, run_id) if tip else None
        if found is None:
            raise RunNotFound(
                f"the archive has no run {run_id!r}", hint=Hint("`{}` lists them", NextStep("log"))
            )
        return found

    def _files(self, tip: str, run_id: str) -> dict[str, bytes] | None:
        with Objects(self.repository) as objects:
            listed = _listed(objects, tip, run_id)
            if listed is None:
                return None
            odd = next((e.path for e in listed if not _is_plain(e)), None)
            if odd is not None:
                raise GitError(
                    f"{run_folder(run_id)} holds {odd!a}, which is no file of a run",
                    hint=f"quire verify {run_id} says more",
                )
            return _contents(objects, listed)

    def each(self, ids: Iterable[str]) -> Iterator[tuple[str, dict[str, bytes]]]:
        tip = self._tip()
        with Objects(self.repository) as objects:
            for run_id in ids if tip else ():
                assert tip is not None
                yield run_id, _contents(objects, _listed(objects, tip, run_id) or [])

    def news(self, state: str) -> News:
        tip = self.log.loose() or self._tip()
        if tip == state:
            return News(state)
        if tip is None:
            return News("", whole=True)
        found = between(self.repository, state, tip) if is_commit(state) else None
        if found is not None:
            return found
        self._tip()  # raises where it is no archive
        return listed(self.repository, tip)

    def read(self, places: Sequence[Place]) -> Iterator[tuple[str, dict[str, bytes]]]:
        return read(self.repository, places) if places else iter(())

    def find(self, name: str) -> str:
        return choose(self, name)

    def history(self) -> Iterator[Link]:
        tip = self.log.tip()
        return links(self.repository, tip) if tip else iter(())

    # What this repository has acknowledged, told apart from what the branch says.

    def now(self) -> GitArchive:
        there = copy.copy(self)
        there._seen = self._witness.read()  # before the tip: see Witness.missing
        there.log = self.log.now()
        return there

    def witness_problem(self) -> str | None:
        seen = self._seen or self._witness.read()
        tip = self.log.tip()
        missing = self._witness.missing(tip, seen)
        return self._witness.told(tip, missing) if missing else None

    # Other repositories.

    def push(self, remote: str, timeout: float = TIMEOUT) -> Exchanged:
        """Send what only we have, take what only they have."""
        rules = Rules(self._check, _adds_no_run, self._remake, self._moving)
        return exchange(self.log, remote, rules, timeout)

    def _check(self, ours: str | None, theirs: str | None) -> None:
        """Neither take nor send what is no archive, or one in which runs were changed."""
        for tip, others, whose in ((theirs, ours, "the remote's"), (ours, theirs, "this")):
            if tip is None:
                continue
            self._check_marker(tip, whose)
            base = self.repository.ask("merge-base", tip, others).text if others else ""
            for link in links(self.repository, tip, base or None):
                if link.problems:
                    raise GitError(
                        f"{whose} branch {self.branch} has a commit {link.place[:12]} "
                        f"that {link.problems[0]}",
                        hint=f"nothing was changed; look at it: git show {link.place}",
                    )

    def _check_marker(self, tip: str, whose: str) -> None:
        with Objects(self.repository) as objects:
            problem = marker_problem(objects.read(f"{tip}:{MARKER}", 1000))
        if problem:
            raise GitError(f"{whose} branch {self.branch} {problem}", hint=OTHER_NAME)

    def _remake(self, commit: Commit, step: Step) -> Step:
        """The same run after another one: sealed anew, by whoever pushes."""
        if len(step.files) != len(commit.changes):
            raise GitError(
                f"{next(iter(step.files))} is missing in the other archive",
                hint=f"look at it: git show {commit.id}",
            )
        paths = {path: data for path, data in step.files.items() if data is not None}
        run_id = next(iter(paths)).split("/")[4]
        files = {path.rpartition("/")[2]: data for path, data in paths.items()}
        seal, _ = seal_of(commit.message, run_id)
        data = sealed(run_id, commit.parents[0], files)
        if self._objection is not None and (why := self._objection(data, seal)):
            raise GitError(
                f"the run {run_id} would have to be sealed anew, but its seal is not good: {why}",
                hint="quire verify --all says more; if you know the key: quire key trust",
            )
        return Step(step.files, run_message(run_id, files, self._sign), author=step.author)

    @contextlib.contextmanager
    def _moving(self, old: str | None, new: str) -> Iterator[None]:
        """A replay leaves the old tip behind. Until it is done, either may be found."""
        missing = self._witness.missing(old)
        if old is not None:
            self._witness.write((new, old), missing)
        yield
        if self.repository.resolve(self.log.ref) == new:
            self._witness.write((new,), self._witness.still_missing(new, missing))

    def tidy(self) -> None:
        tidy(self.repository)


def _adds_no_run(commit: Commit) -> bool:
    """Every archive begins for itself, and a digest is made anew where there are more runs."""
    return not commit.parents or is_digest(commit)


def _listed(objects: Objects, tip: str, run_id: str) -> list[Entry] | None:
    data = objects.read(f"{tip}:{run_folder(run_id)}")
    try:
        return None if data is None else list(tree(data, len(tip)))
    except ValueError:
        return []  # a file where the folder should be


def _is_plain(entry: Entry) -> bool:
    return entry.mode == "100644" and is_run_file(entry.path)


def _contents(objects: Objects, listed: Iterable[Entry]) -> dict[str, bytes]:
    found = {e.path: objects.read(e.id, LARGEST) for e in listed if _is_plain(e)}
    return {name: data for name, data in found.items() if data is not None}
