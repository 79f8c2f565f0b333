"""A git repository, spoken to by git itself: plumbing only, no shell, nothing of ours in its way.

No name from outside reaches git unchecked: `branch_name` and `ref_name` say what may pass, and
paths always stand behind `--`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from ..errors import GitError, QuireError, UsageError

# What a caller's environment may say of another repository, or of how git is to talk.
_FOREIGN = re.compile(
    r"^GIT_(DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR"
    r"|NAMESPACE|PREFIX|QUARANTINE_PATH|INTERNAL_.*|REFLOG_ACTION|EDITOR|EXTERNAL_DIFF|PAGER"
    r"|LITERAL_PATHSPECS|GLOB_PATHSPECS|NOGLOB_PATHSPECS|ICASE_PATHSPECS|TRACE.*)$"
)
# What a person may have set for themselves and a program cannot do with.
_PLAIN = (
    "-c", "color.ui=false",
    "-c", "core.quotePath=false",
    "-c", "core.fsync=all",
    "-c", "core.fsyncMethod=fsync",
    "-c", "fastimport.unpackLimit=1",
    "-c", "log.showSignature=false",
    "-c", "advice.detachedHead=false",
    "-c", "gc.auto=0",
)  # fmt: skip
TIMEOUT = 120.0


@dataclass(frozen=True, slots=True)
class Said:
    """What one call of git came to."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "surrogateescape").rstrip("\n")


@dataclass(frozen=True)
class Repository:
    """`top` is the working tree, None in a bare repository; `common` is shared by all worktrees."""

    top: Path | None
    git_dir: Path
    common: Path
    env: Mapping[str, str] = field(repr=False)

    @classmethod
    def find(cls, folder: Path, env: Mapping[str, str] | None = None) -> Repository | None:
        """The repository a folder is in, or None. Looks for it as git does, without calling it."""
        world = environment(os.environ if env is None else env)
        folder = folder.resolve()
        for place in (folder, *folder.parents):
            git_dir = _git_dir(place / ".git")
            if git_dir is not None:
                return cls(place, git_dir, _common(git_dir), world)
            if _is_git_dir(place):
                # Bare, or the inside of a .git: either way there is no working tree here.
                return cls(None, place, _common(place), world)
        return None

    def refusal(self) -> GitError | None:
        """Why git will have nothing to do with this repository, where that is so."""
        question = ("rev-parse", "--git-dir")
        said = self.ask(*question)
        return refused(said, question) if said.code else None

    @property
    def here(self) -> Path:
        return self.top or self.git_dir

    def ask(
        self, *args: str, input: bytes | None = None, timeout: float = TIMEOUT, **env: str
    ) -> Said:
        """Call git and return what it came to, whatever that is."""
        return call(self.here, {**self.env, **env}, args, input, timeout)

    def git(
        self, *args: str, input: bytes | None = None, timeout: float = TIMEOUT, **env: str
    ) -> str:
        """Call git; its answer as text. Raises GitError when it refuses."""
        return (
            self.raw(*args, input=input, timeout=timeout, **env)
            .rstrip(b"\n")
            .decode("utf-8", "surrogateescape")
        )

    def raw(
        self, *args: str, input: bytes | None = None, timeout: float = TIMEOUT, **env: str
    ) -> bytes:
        said = self.ask(*args, input=input, timeout=timeout, **env)
        if said.code:
            raise refused(said, args)
        return said.out

    def start(self, *args: str, err: IO[bytes], buffer: int = -1) -> subprocess.Popen[bytes]:
        """A git to talk with, line by line. Ctrl-C on a terminal does not reach it."""
        try:
            return subprocess.Popen(
                ["git", *_PLAIN, *args],
                cwd=self.here,
                env=dict(self.env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                start_new_session=True,
                bufsize=buffer,
            )
        except FileNotFoundError as error:
            raise _not_started(self.here) from error

    def resolve(self, name: str) -> str | None:
        """The id of the commit that a full ref name, or an id, stands for."""
        said = self.ask(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
        return said.text if said.code == 0 else None

    def head(self) -> str | None:
        """The current commit; None before the first one."""
        return self.resolve("HEAD")

    def branch(self) -> str | None:
        """The current branch, also before its first commit; None when the head is detached."""
        said = self.ask("symbolic-ref", "--quiet", "--short", "HEAD")
        return said.text if said.code == 0 else None

    def config(self, key: str) -> str | None:
        said = self.ask("config", "--get", "--end-of-options", key)
        return said.text if said.code == 0 else None

    def blob(self, commit: str, path: str) -> bytes | None:
        """A file as it is in a commit."""
        said = self.ask("cat-file", "blob", f"{commit}:{path}")
        return said.out if said.code == 0 else None

    def checked_out(self, ref: str) -> str | None:
        """The working tree in which that branch is the current one."""
        place = ""
        for line in self.git("worktree", "list", "--porcelain").split("\n"):
            if line.startswith("worktree "):
                place = line[9:]
            elif line == f"branch {ref}":
                return place
        return None

    def is_ancestor(self, old: str, new: str) -> bool:
        return self.ask("merge-base", "--is-ancestor", old, new).code == 0

    def remotes(self) -> list[str]:
        return self.git("remote").split()

    def remote(self, wanted: str = "") -> str | None:
        """The one asked for, else the current branch's, else `origin`, else the only one."""
        known = self.remotes()
        if wanted:
            if wanted not in known:
                raise UsageError(
                    f"there is no remote {wanted!r}",
                    hint=f"git remote add {wanted} …; there are: {', '.join(known) or 'none'}",
                )
            return wanted
        branch = self.branch()
        mine = self.config(f"branch.{branch}.remote") if branch else None
        if mine in known:
            return mine
        if "origin" in known:
            return "origin"
        return known[0] if len(known) == 1 else None


def _git_dir(path: Path) -> Path | None:
    """What `.git` stands for: a folder, or a file that names one (worktrees, submodules)."""
    if _is_git_dir(path):
        return path
    try:
        text = path.read_text("utf-8", "surrogateescape")
    except OSError:
        return None
    if not text.startswith("gitdir: "):
        return None
    named = (path.parent / text[8:].rstrip("\n")).resolve()
    return named if _is_git_dir(named) else None


def _is_git_dir(path: Path) -> bool:
    return (path / "HEAD").is_file() and (
        (path / "commondir").is_file() or ((path / "objects").is_dir() and (path / "refs").is_dir())
    )


def _common(git_dir: Path) -> Path:
    """Where refs and objects are: elsewhere in a worktree."""
    try:
        return (git_dir / (git_dir / "commondir").read_text().strip()).resolve()
    except OSError:
        return git_dir


def environment(env: Mapping[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in env.items() if not _FOREIGN.match(key)}
    return kept | {
        "LC_ALL": "C.UTF-8",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
    }


def call(
    folder: Path,
    env: Mapping[str, str],
    args: Sequence[str],
    input: bytes | None = None,
    timeout: float = TIMEOUT,
) -> Said:
    command = ["git", *_PLAIN, *args]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=env,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            timeout=timeout,
            start_new_session=True,  # ssh finds no terminal to ask on
        )
    except FileNotFoundError as error:
        raise _not_started(folder) from error
    except PermissionError as error:
        raise UsageError(f"cannot enter {folder}", hint="check its permissions") from error
    except subprocess.TimeoutExpired as error:
        late = GitError(
            f"git {args[0]} did not answer within {timeout:g} s",
            hint="is a remote or a network disk hanging?",
        )
        late.retryable = True
        raise late from error
    return Said(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace").strip())


def _not_started(folder: Path) -> QuireError:
    if not folder.is_dir():
        return UsageError(f"there is no folder {folder}", hint="cd to one that exists")
    return GitError("git is not installed", hint="install git 2.38 or newer")


_DAMAGED = (
    r"is corrupt|object file .* is empty|inflate: |unable to unpack|packfile .* (cannot|does not)"
    r"|garbage at end|unable to read (tree|sha1|[0-9a-f]{40})|Could not read [0-9a-f]{40}"
    r"|could not parse (object|commit)|bad (tree|sha1|object HEAD)|missing (blob|tree|commit)"
    r"|not a tree object|Failed to traverse parents|index file corrupt|bad index file"
)
_HINTS = (
    (r"fetch first|non-fast-forward",
     "the remote has commits that are not here: git pull --rebase on that branch, then again"),
    (r"dubious ownership", "git config --global --add safe.directory <the repository>"),
    (r"No space left|Out of disk ?space|disk quota|file too large",
     "free some space and say it again"),
    (r"Read-only file system", "the repository cannot be written: use one that can"),
    (r"Permission denied|insufficient permission", "check who owns the repository's files"),
    (r"exists; cannot create", "a branch of that name stands in the way: choose another"),
    (r"could not lock config file",
     "another git is at work; if none is, remove config.lock beside that file"),
    (r"\.lock': File exists|cannot lock ref|unable to create .*lock",
     "another git is at work; if none is, remove the .lock file that is named"),
    (r"aborted by hook|hook declined",
     "a hook of this repository refused, such as reference-transaction: look into .git/hooks, or "
     "where git config core.hooksPath says"),
    (_DAMAGED, "the repository is damaged: git fsck says where; fetch it again, or clone anew"),
    (r"does not appear to be a git repository|repository .*not found",
     "no repository is there, or you may not see it: git remote -v, git remote set-url"),
    (r"not a valid (object|ref)|bad object|unknown revision", "check the name with git log"),
    (r"Could not resolve host|Connection refused|unable to access|Could not read from remote",
     "check the remote's address and the network: git remote -v"),
    (r"Authentication failed|could not read Username|403",
     "check the credentials git uses for that remote"),
)  # fmt: skip


_SOUND = "git status and git fsck say whether the repository is sound"
_NOISE = re.compile(r"^fast-import: dumping crash report|die\(\) called many times")


def refused(said: Said, args: Sequence[str]) -> GitError:
    """What git said, in one line, with the next step where we know it."""
    lines = [
        re.sub(r"^(fatal|error): ", "", line)
        for line in said.err.splitlines()
        if line and not _NOISE.search(line)
    ]
    what = "; ".join(lines[:3])[:600] or f"exit status {said.code}"
    hint = next((h for p, h in _HINTS if re.search(p, said.err, re.IGNORECASE)), "")
    named = re.search(r"safe\.directory (.+)", said.err)  # git says itself how it is called
    if named:
        hint = f"git config --global --add safe.directory {named[1]}"
    return GitError(f"git {args[0]}: {what}", hint=hint or _SOUND)


# Names that git itself writes to and reads from, such as FETCH_HEAD.
_GITS_OWN = re.compile(r"([A-Z]+_)*HEAD|AUTO_MERGE")
_BAD = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-./]|/\.|\.lock(/|$)|[./]$|^@$")


# Each part of the name is a file's, with `.lock` behind it while git writes it.
LONGEST_PART, LONGEST_NAME = 250, 1000


def branch_name(name: str) -> str:
    """The name, if it can be a branch; otherwise an error that says so."""
    raw = name.encode("utf-8", "replace")
    if len(raw) > LONGEST_NAME or max(map(len, raw.split(b"/"))) > LONGEST_PART:
        raise UsageError(
            f"{name[:40]!r}… cannot be the name of a branch: it has {len(name):,} characters",
            hint="a shorter one, such as add-health-report",
        )
    if not name or _BAD.search(name) or _GITS_OWN.fullmatch(name) or name.startswith("refs/"):
        raise UsageError(
            f"{name!r} cannot be the name of a branch",
            hint="letters, digits, '-', '_' and '/', such as add-health-report",
        )
    return name
