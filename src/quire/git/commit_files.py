"""A commit of exactly the files that are named, whatever else is staged or changed.

The commit is made in an index of its own, so that neither the user's index nor the working tree
plays a part in it. Only when it is there are the branch, HEAD and the user's index moved, the
index for the committed paths alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import GitError, UsageError
from ..files import disk
from .repository import Repository, Said, refused

HOOK_TIMEOUT = 1800.0
_GONE = "000000"
# What git leaves while something is under way; the commit it waits for is another one.
_UNDER_WAY = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One file as it is to be. `path` counts from the top of the repository; no data: it goes."""

    path: str
    data: bytes | None
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A commit that no branch has yet."""

    commit: str
    parent: str
    entries: tuple[tuple[str, str, str], ...]  # mode, object and path of each file it changes

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for _, _, path in self.entries)


def under_way(repository: Repository) -> str | None:
    """The merge, rebase or the like that waits to be finished."""
    return next((w for name, w in _UNDER_WAY.items() if (repository.git_dir / name).exists()), None)


def identity(repository: Repository) -> None:
    """Raises where git does not know who commits; it would make up a name from the machine's."""
    for which in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        said = repository.ask("-c", "user.useConfigOnly=true", "var", which)
        if said.code:
            raise UsageError(
                "git does not know who you are: user.name and user.email are not both set",
                hint='git config user.name "…" and git config user.email "…"',
            )


def draft(
    repository: Repository, parent: str, changes: Sequence[Change], message: str, *, hooks: bool
) -> Draft | None:
    """Make the commit; None when it would change nothing. Moves nothing."""
    with _desk(repository) as desk:
        index = str(desk / "index")
        repository.git("read-tree", parent, GIT_INDEX_FILE=index)
        _put(repository, parent, changes, index)
        if not _entries(repository, parent, repository.git("write-tree", GIT_INDEX_FILE=index)):
            return None
        letter = desk / "COMMIT_EDITMSG"
        with disk(str(letter)):
            letter.write_bytes(repository.raw("stripspace", input=_encoded(message)))
        if hooks:
            _hook(repository, "pre-commit", index=index)
        _hook(repository, "prepare-commit-msg", str(letter), "message", index=index)
        if hooks:
            _hook(repository, "commit-msg", str(letter), index=index)
        # Hooks may have changed both, as they may for git itself.
        tree = repository.git("write-tree", GIT_INDEX_FILE=index)
        text = repository.raw("stripspace", input=letter.read_bytes())
        if not text.strip():
            raise UsageError("the message is empty", hint='say what changed, such as "Add x"')
        entries = _entries(repository, parent, tree)
        if not entries:
            return None
        sign = ["-S"] if _is_true(repository, "commit.gpgSign") else []
        commit = repository.git("commit-tree", *sign, "-p", parent, tree, input=text)
    return Draft(commit, parent, entries)


def edited(repository: Repository, tree: str, changes: Sequence[Change]) -> str:
    """Another tree, with these files as they are to be."""
    with _desk(repository) as desk:
        index = str(desk / "index")
        repository.git("read-tree", tree, GIT_INDEX_FILE=index)
        _put(repository, tree, changes, index)
        return repository.git("write-tree", GIT_INDEX_FILE=index)


def attribute(repository: Repository, tree: str, name: str, paths: Sequence[str]) -> dict[str, str]:
    """What the `.gitattributes` of a tree, not those of the working tree, say of some files."""
    if not paths:
        return {}
    with _desk(repository) as desk:
        index = str(desk / "index")
        repository.git("read-tree", tree, GIT_INDEX_FILE=index)
        asked = b"".join(os.fsencode(path) + b"\0" for path in paths)
        raw = repository.raw(
            "check-attr", "--cached", "-z", "--stdin", name, input=asked, GIT_INDEX_FILE=index
        )
    told = raw.split(b"\0")
    return {
        os.fsdecode(path): value.decode("utf-8", "replace")
        for path, value in zip(told[::3], told[2::3], strict=False)
    }


def land(repository: Repository, drawn: Draft, branch: str, *, new: bool) -> None:
    """Give the commit to the branch, be on that branch, and bring the user's index in step.

    Refused as a whole where the repository is no longer what it was when the commit was made.
    """
    ref, before = f"refs/heads/{branch}", repository.branch()
    with _locked_index(repository) as index:
        _next_index(repository, drawn, index)
        if repository.head() != drawn.parent or (not new and before != branch):
            raise GitError(
                "the current commit changed meanwhile: nothing was committed",
                hint="another git is at work here; say it again",
            )
        expected = "0" * len(drawn.commit) if new else drawn.parent
        subject = repository.git("log", "-1", "--format=%s", drawn.commit)
        repository.git("update-ref", "-m", f"commit: {subject}", ref, drawn.commit, expected)
        if new:
            _switch(repository, ref, drawn, f"moving from {before or drawn.parent} to {branch}")
        with disk(str(index)):
            os.replace(index, repository.git_dir / "index")
    question = ("hook", "run", "--ignore-missing", "post-commit")
    repository.ask(*question, timeout=HOOK_TIMEOUT, hooks=True)


def _switch(repository: Repository, ref: str, drawn: Draft, how: str) -> None:
    # In these words `git switch -` finds the way back.
    said = repository.ask("symbolic-ref", "-m", f"checkout: {how}", "HEAD", ref)
    if said.code:
        repository.ask("update-ref", "-d", ref, drawn.commit)
        raise refused(said, ["symbolic-ref"])


@contextlib.contextmanager
def _desk(repository: Repository) -> Iterator[Path]:
    """A folder for what a commit is made of; in the repository, where there surely is room."""
    with disk(str(repository.git_dir)):
        folder = Path(tempfile.mkdtemp(prefix="quire-commit-", dir=repository.git_dir))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _put(repository: Repository, tree: str, changes: Sequence[Change], index: str) -> None:
    lines = b"".join(_index_line(repository, tree, change, index) for change in changes)
    repository.git("update-index", "-z", "--index-info", input=lines, GIT_INDEX_FILE=index)


def _index_line(repository: Repository, parent: str, change: Change, index: str) -> bytes:
    path = os.fsencode(change.path)
    if change.data is None:
        return b"0 " + b"0" * len(parent) + b"\t" + path + b"\0"
    # With the path, so that the filters and line ends the repository asks for apply.
    blob = repository.git(
        "hash-object",
        "-w",
        "--stdin",
        f"--path={change.path}",
        input=change.data,
        GIT_INDEX_FILE=index,
    )
    mode = _mode(repository, parent, change)
    return f"{mode} {blob}\t".encode() + path + b"\0"


def _mode(repository: Repository, parent: str, change: Change) -> str:
    if repository.config("core.fileMode") != "false":
        return "100755" if change.executable else "100644"
    listed = repository.raw("ls-tree", "-z", parent, "--", f":(literal){change.path}")
    return "100755" if listed.startswith(b"100755") else "100644"


def _entries(repository: Repository, parent: str, tree: str) -> tuple[tuple[str, str, str], ...]:
    raw = repository.raw(
        "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", parent, tree
    )
    parts = raw.split(b"\0")[:-1]
    found = []
    for facts, path in zip(parts[::2], parts[1::2], strict=True):
        _, mode, _, blob, _ = facts.decode().split(" ")
        found.append((mode, blob, os.fsdecode(path)))
    return tuple(found)


def _hook(repository: Repository, name: str, *args: str, index: str) -> None:
    said = repository.ask(
        "hook",
        "run",
        "--ignore-missing",
        name,
        "--",
        *args,
        timeout=HOOK_TIMEOUT,
        hooks=True,
        GIT_INDEX_FILE=index,
        GIT_EDITOR=":",
    )
    if said.code:
        raise GitError(
            f"the {name} hook said no: {_last_lines(said)}",
            hint="mend what it names, or leave the hooks out with --no-verify",
        )


def _last_lines(said: Said) -> str:
    lines = [line for line in (said.err + "\n" + said.text).splitlines() if line.strip()]
    return "; ".join(lines[-5:])[-600:] or f"exit status {said.code}"


def _is_true(repository: Repository, key: str) -> bool:
    return repository.ask("config", "--type=bool", "--get", key).text == "true"


@contextlib.contextmanager
def _locked_index(repository: Repository) -> Iterator[Path]:
    """A copy of the user's index to change, while nobody else may change theirs."""
    index, lock = repository.git_dir / "index", repository.git_dir / "index.lock"
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666))
    except FileExistsError:
        raise GitError(
            f"another git is at work: {lock} exists", hint="wait for it; if none is, remove it"
        ) from None
    except OSError as error:
        raise GitError(
            f"cannot write {lock}: {error.strerror}", hint="check who owns the repository's files"
        ) from error
    try:
        with _desk(repository) as desk:
            copy = desk / "index"
            with contextlib.suppress(FileNotFoundError), disk(str(copy)):
                shutil.copy2(index, copy)
            yield copy
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()


def _next_index(repository: Repository, drawn: Draft, index: Path) -> None:
    """The user's index with the committed files as they were committed, the rest untouched."""
    lines = b"".join(
        (f"0 {blob}\t" if mode == _GONE else f"{mode} {blob}\t").encode()
        + os.fsencode(path)
        + b"\0"
        for mode, blob, path in drawn.entries
    )
    name = str(index)
    repository.git("update-index", "-z", "--index-info", input=lines, GIT_INDEX_FILE=name)
    # So that nobody has to read every file again; what differs is told by its exit status.
    repository.ask("update-index", "-q", "--refresh", GIT_INDEX_FILE=name)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
