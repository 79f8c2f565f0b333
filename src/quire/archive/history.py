"""The archive's branch read as a history of runs, with everything that does not belong there.

Trusts nothing: anybody who may push can have written any path, mode, size or message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

from ..errors import GitError
from ..git.objects import Change, Commit, Objects, commits
from ..git.ref_log import Step
from ..git.repository import Repository
from .layout import (
    DIGEST,
    LARGEST,
    Link,
    Sign,
    checked_seal,
    is_run_file,
    is_run_id,
    is_seal,
    run_folder,
    sealed,
    sealed_digest,
)

MARKER = ".quire-archive"
FORMAT = 1
README = """# An archive of runs

This branch is written by Quire. It shares nothing with the source: each commit adds one run of a
task, in `runs/YYYY/MM/DD/<run id>/`, and none is ever changed.

- `record.json`: what ran, when, with which parameters, and how it ended
- `notebook.ipynb`: the executed notebook
- `source.*`: the task as it was run
- `attestation.json`: the signature over all of it

`quire log` lists the runs and `quire verify --all` checks them. Do not check this branch out to
change it, and do not merge it.
"""
# The same commit wherever an archive begins, so that those of several clones have one root.
ROOT = Step(
    {MARKER: b'{"format": %d}\n' % FORMAT, "README.md": README.encode()},
    "Begin an archive of runs\n",
    "Quire <quire@localhost> 0 +0000",
)
SHALLOW = "is where this shallow clone ends; to have what came before: git fetch --unshallow"
_SHOWN = 10  # problems of one commit
_MODES = {"120000": "a symbolic link", "160000": "a submodule", "100755": "an executable file"}


def run_message(
    run_id: str, files: Mapping[str, bytes], sign: Sign | None
) -> Callable[[str | None], str]:
    """The message of a run's commit: the seal depends on the commit before it."""

    def message(parent: str | None) -> str:
        if sign is None:
            return _written(run_id)
        return _written(run_id, checked_seal(sign(sealed(run_id, parent or "", files))))

    return message


def _written(run_id: str, seal: str = "") -> str:
    lines = [f"Run {run_id}", "", f"Quire-Run: {run_id}"]
    lines += [f"Quire-Seal: {seal}"] if seal else []
    return "\n".join(lines) + "\n"


def digest_message(data: bytes, sign: Sign | None) -> Callable[[str | None], str]:
    def message(parent: str | None) -> str:
        if sign is None:
            return _digest_written()
        return _digest_written(checked_seal(sign(sealed_digest(parent or "", data))))

    return message


def _digest_written(seal: str = "") -> str:
    lines = ["Digest", "", f"Quire-Digest: {DIGEST}"]
    lines += [f"Quire-Seal: {seal}"] if seal else []
    return "\n".join(lines) + "\n"


def is_digest(commit: Commit) -> bool:
    """Whether the step writes the digest and does nothing else."""
    if len(commit.changes) != 1 or len(commit.parents) != 1:
        return False
    change = commit.changes[0]
    plain = change.mode == "100644" and change.old_mode in ("000000", "100644")
    return change.path == DIGEST and change.kind in "AM" and plain


def marker_problem(marker: bytes | None) -> str | None:
    """Why this is no archive we can add to."""
    if marker is None:
        return "is there already and is no archive of Quire's"
    try:
        told = json.loads(marker)
        number = told["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"has a {MARKER} that cannot be read"
    return None if number == FORMAT else f"has the archive format {number!r}; this reads {FORMAT}"


def links(repository: Repository, tip: str, base: str | None = None) -> Iterator[Link]:
    """The steps that lead to a commit, from the beginning or after `base`, oldest first."""
    seen: set[str] = set()
    last = base
    cut = _cut_at(repository)
    walk = commits(repository, tip, *([f"^{base}"] if base else []))
    with Objects(repository) as objects:
        try:
            for commit in walk:
                if last is None and commit.id in cut:
                    last = commit.id
                    yield Link("", commit.id, b"", "", (SHALLOW,), cut=True)
                    continue
                link = _link(objects, commit, last, seen, first=last is None)
                last = commit.id
                if link is not None:
                    yield link
        except GitError as error:
            yield Link("", tip, b"", "", (f"the history cannot be read: {error.message}",))


def _link(
    objects: Objects, commit: Commit, last: str | None, seen: set[str], *, first: bool
) -> Link | None:
    if first and not commit.parents and _is_root(objects, commit):
        return None
    problems = list(_place_problems(commit, last, first))
    if is_digest(commit):
        return _digest_link(objects, commit, problems)
    problems += [what for change in commit.changes if (what := _change_problem(change))]
    added = dict.fromkeys(_run_of(c.path) for c in commit.changes if c.kind == "A")
    ids = [run_id for run_id in added if run_id]
    if len(ids) > 1:
        problems.append("adds more than one run")
    if not commit.changes:
        problems.append("changes nothing")
    problems += [f"adds to the run {i}, which was archived before" for i in ids if i in seen]
    run_id = ids[0] if ids else ""
    seal, lacking = seal_of(commit.message, run_id)
    problems += lacking or _form_problems(objects, commit, _written(run_id, seal))
    files = _files(objects, commit, run_id, problems)
    seen.update(ids)
    parent = commit.parents[0] if commit.parents else ""
    data = sealed(run_id, parent, files) if run_id else b""
    if len(problems) > _SHOWN:
        problems[_SHOWN:] = [f"and {len(problems) - _SHOWN} more"]
    return Link(run_id, commit.id, data, seal, tuple(problems), files)


def _digest_link(objects: Objects, commit: Commit, problems: list[str]) -> Link:
    """It adds no run, and what it says proves nothing; but somebody we know must have said it."""
    seals = re.findall(r"^Quire-Seal: (.*)$", commit.message, re.MULTILINE)
    seal = seals[0] if len(seals) == 1 and is_seal(seals[0]) else ""
    if not seal:
        problems.append("has no seal")
    problems += _form_problems(objects, commit, _digest_written(seal))
    try:
        data = objects.read(commit.changes[0].id, LARGEST)
    except GitError as error:
        data = None
        problems.append(f"{DIGEST} cannot be read: {error.message}")
    else:
        problems += [] if data is not None else [f"{DIGEST} is missing from the repository"]
    signed = sealed_digest(commit.parents[0], data) if data is not None else b""
    return Link("", commit.id, signed, seal, tuple(problems))


def _is_root(objects: Objects, commit: Commit) -> bool:
    found = {change.path: change for change in commit.changes}
    if found.keys() != ROOT.files.keys() or any(c.mode != "100644" for c in found.values()):
        return False
    return marker_problem(objects.read(found[MARKER].id, 1000)) is None


def _place_problems(commit: Commit, last: str | None, first: bool) -> Iterator[str]:
    if len(commit.parents) > 1:
        yield "is a merge"
    elif first:
        yield "is not how an archive begins"
    elif commit.parents != (last,):
        yield "does not stand on the step before it"


def _run_of(path: str) -> str:
    """The run a path belongs to, by where it is."""
    parts = path.split("/")
    return parts[4] if len(parts) == 6 and is_run_id(parts[4]) else ""


def _change_problem(change: Change) -> str | None:
    path = change.path if change.path.isprintable() else ascii(change.path)
    if change.kind == "D":
        return f"removes {path}"
    if change.kind != "A":
        return f"changes {path}"
    run_id = _run_of(change.path)
    folder, _, name = change.path.rpartition("/")
    if not run_id or not is_run_file(name):
        return f"adds {path}, which is no part of a run"
    if run_folder(run_id) != folder:
        return f"adds {path}: the folder does not fit the date of the run"
    if change.mode != "100644":
        return f"adds {path} as {_MODES.get(change.mode, 'something else than a file')}"
    return None


def seal_of(message: str, run_id: str) -> tuple[str, list[str]]:
    """The seal in a commit's message, and what the message lacks."""
    runs = re.findall(r"^Quire-Run: (.*)$", message, re.MULTILINE)
    seals = re.findall(r"^Quire-Seal: (.*)$", message, re.MULTILINE)
    problems = []
    if runs != [run_id]:
        problems.append("does not name the run it adds" if run_id else "is not a step of Quire's")
    if len(seals) > 1:
        problems.append("has more than one seal")
    good = list(dict.fromkeys(filter(is_seal, seals)))
    if not good:
        problems.append("has no seal")
    return good[0] if len(good) == 1 else "", problems


def _form_problems(objects: Objects, commit: Commit, message: str) -> Iterator[str]:
    """Nothing stands on the last commit, so its seal alone cannot tell what was written into it."""
    head, _, text = (objects.read(commit.id, LARGEST) or b"").partition(b"\n\n")
    if text != message.encode():
        yield "has another message than Quire has written"
    names = [line.partition(b" ")[0].decode("ascii", "replace") for line in head.split(b"\n")]
    wanted = ["tree", *["parent"] * len(commit.parents), "author", "committer"]
    if names != wanted:
        odd = ", ".join(ascii(name)[1:-1] for name in dict.fromkeys(names) if name not in wanted)
        yield f"has more in its head than Quire has written: {odd[:100] or 'something twice'}"


def _cut_at(repository: Repository) -> frozenset[str]:
    """The commits at which a shallow clone ends. git keeps them in a file."""
    try:
        return frozenset((repository.common / "shallow").read_text("ascii").split())
    except (OSError, ValueError):
        return frozenset()


def _files(objects: Objects, commit: Commit, run_id: str, problems: list[str]) -> dict[str, bytes]:
    """What the commit adds to the run; what cannot be read is a problem."""
    files: dict[str, bytes] = {}
    for change in commit.changes:
        if not run_id or _run_of(change.path) != run_id or not change.mode.startswith("100"):
            continue
        name = change.path.rpartition("/")[2]
        try:
            data = objects.read(change.id, LARGEST)
        except GitError as error:
            problems.append(f"{name} cannot be read: {error.message}")
            continue
        if data is None:
            problems.append(f"{name} is missing from the repository, or damaged")
        else:
            files[name] = data
    return files
