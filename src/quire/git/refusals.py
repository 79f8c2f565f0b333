"""What git says when it refuses, in one line, with the next step where we know it."""

from __future__ import annotations

import re

from ..errors import GitError

_DAMAGED = (
    r"is corrupt|object file .* is empty|inflate: |unable to unpack|packfile .* (cannot|does not)"
    r"|garbage at end|unable to read (tree|sha1|[0-9a-f]{40})|Could not read [0-9a-f]{40}"
    r"|could not parse (object|commit)|bad (tree|sha1|object HEAD)|missing (blob|tree|commit)"
    r"|not a tree object|Failed to traverse parents|index file corrupt|bad index file"
)
_HINTS = (
    (r"needs a filter that only|clean filter .* failed",
     "Quire calls no filter that only .git/config names: use git itself for this one, or put the "
     "filter into your own configuration (git config --global)"),
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
     "a hook refused: of this repository (.git/hooks, or where git config core.hooksPath says), or "
     "of the remote"),
    (_DAMAGED, "the repository is damaged: git fsck says where; fetch it again, or clone anew"),
    (r"does not appear to be a git repository|repository .*not found",
     "no repository is there, or you may not see it: git remote -v, git remote set-url"),
    (r"not a valid (object|ref)|bad object|unknown revision", "check the name with git log"),
    (r"Could not resolve host|Connection refused|unable to access|Could not read from remote",
     "check the remote's address and the network: git remote -v"),
    (r"Authentication failed|could not read Username|403",
     "check the credentials git uses for that remote; credential.helper and core.sshCommand count "
     "from your own configuration (git config --global), not from .git/config"),
)  # fmt: skip


_SOUND = "git status and git fsck say whether the repository is sound"
_NOISE = re.compile(r"^fast-import: dumping crash report|die\(\) called many times")


def explained(err: str, code: int, name: str) -> GitError:
    """Of a command of git that wrote this and ended so."""
    lines = [
        re.sub(r"^(fatal|error): ", "", line)
        for line in err.splitlines()
        if line and not _NOISE.search(line)
    ]
    what = "; ".join(lines[:3])[:600] or f"exit status {code}"
    hint = next((h for p, h in _HINTS if re.search(p, err, re.IGNORECASE)), "")
    named = re.search(r"safe\.directory (.+)", err)  # git says itself how it is called
    if named:
        hint = f"git config --global --add safe.directory {named[1]}"
    return GitError(f"git {name}: {what}", hint=hint or _SOUND)
