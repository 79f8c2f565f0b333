"""Keep `.py` notebooks and their `.ipynb` twins in step.

Which of the two a person edited is not asked of the clock. The `.ipynb` carries, in its metadata
under `quire`, a digest of the `.py` it belongs to and one of its own cells as they were then. What
still fits its digest has not been edited. Outputs are no edit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..document import formats, marker, percent
from ..errors import DocumentError, UsageError
from ..store.files import write_atomic
from ..workspace import Workspace
from . import twin
from .twin import Twin

# "stale": would be written, were it not for `check`.
Action = Literal["written", "stale", "unchanged", "conflict"]

SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_MAYBE = re.compile(
    rb"(?:^|\r|\A\xef\xbb\xbf)[ \t\f\v]*#[ \t\f\v]*(?:%%|<codecell>|In\[)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Synced:
    source: Path
    target: Path
    action: Action
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done about one pair, and the files that does it, in this order."""

    result: Synced
    files: tuple[tuple[Path, str], ...] = ()


def sync(workspace: Workspace, paths: Sequence[str | Path], *, check: bool = False) -> list[Synced]:
    """Write each `.ipynb` from its `.py`, or back. Reads everything before it writes anything."""
    steps = plan(workspace, paths)
    if check:
        return [_stale(step.result) for step in steps]
    take(steps)
    return [step.result for step in steps]


def plan(workspace: Workspace, paths: Sequence[str | Path]) -> list[Step]:
    """What would bring the pairs into step. Writes nothing."""
    pairs = dict.fromkeys(stem for path in paths for stem in _stems(workspace, path))
    return [_step(workspace, stem) for stem in pairs]


def take(steps: Sequence[Step]) -> None:
    for step in steps:
        for path, text in step.files:
            _write(path, text)


def _stale(result: Synced) -> Synced:
    if result.action != "written":
        return result
    return Synced(result.source, result.target, "stale", result.hint)


def _stems(workspace: Workspace, path: str | Path) -> Iterator[Path]:
    """The pairs a path names, each as its `.py` path."""
    full = workspace.cwd / path
    if full.is_dir():
        yield from _walked(full)
    elif full.suffix not in formats.SUFFIXES:
        raise UsageError(
            f"{path} is neither a .py nor an .ipynb notebook", hint="name one, or a folder"
        )
    elif not full.is_file():
        raise DocumentError(f"there is no file {path}", hint="check the path")
    else:
        yield full.with_suffix(".py")


def _walked(root: Path) -> Iterator[Path]:
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(
            name
            for name in subfolders
            if not name.startswith(".")
            and name not in SKIPPED
            and not Path(folder, name, "pyvenv.cfg").exists()
        )
        stems = {
            Path(folder, name).with_suffix(".py")
            for name in names
            if name.endswith((".py", ".ipynb")) and not name.startswith(".")
        }
        yield from sorted(stem for stem in stems if is_task(stem))


def is_task(py: Path) -> bool:
    """An ordinary module beside a notebook of the same name is left alone, and so is that one."""
    nb = py.with_suffix(".ipynb")
    if not py.is_file():
        return nb.is_file() and not is_of_a_run(nb)
    data = _read(py)
    if _MAYBE.search(data):
        text = formats.decode(data, py.name)
        try:
            # A marker inside a string is no marker: modules that write tasks have those.
            lines = percent.split_lines(text)
            return any(marker.MARKER.match(lines[start]) for start, _ in percent.spans(text))
        except DocumentError:
            return True  # reading it as a task says what is wrong
    return nb.is_file() and b'"source_sha256"' in _read(nb)


def is_of_a_run(nb: Path) -> bool:
    """Whether the notebook is what a run left, such as an export: a record, not a task."""
    data = _read(nb)
    if b'"run_id"' not in data:
        return False
    there = twin.loads(formats.decode(data, nb.name), ".ipynb")
    return there.stamp is None and twin.run_id(there) is not None


def _step(workspace: Workspace, py: Path) -> Step:
    nb = py.with_suffix(".ipynb")
    here = _twin(workspace, py)
    there = _twin(workspace, nb)
    if there is None:
        assert here is not None
        return _to_notebook(py, nb, here, None)
    if here is None:
        return _to_text(py, nb, None, there)
    stamp = there.stamp
    if stamp is None:
        if here.digest == there.digest:
            return Step(Synced(py, nb, "unchanged"))
        return _conflict(workspace, py, nb, "differ, and nothing says which was edited")
    text_edited = stamp.source != here.text_digest
    notebook_edited = stamp.cells != there.digest
    if not text_edited and not notebook_edited:
        return Step(Synced(py, nb, "unchanged"))
    if not notebook_edited:
        return _to_notebook(py, nb, here, there)
    if not text_edited:
        return _to_text(py, nb, here, there)
    if here.digest == there.digest:
        # The same edit on both sides, or a sync that was cut short.
        restamped = twin.stamped(there, source=here.text)
        return Step(Synced(py, nb, "written"), ((nb, restamped),))
    return _conflict(workspace, py, nb, "were both edited")


def _to_notebook(py: Path, nb: Path, here: Twin, there: Twin | None) -> Step:
    return Step(Synced(py, nb, "written"), ((nb, twin.notebook_text(here, there)),))


def _to_text(py: Path, nb: Path, here: Twin | None, there: Twin) -> Step:
    text = twin.python_text(here, there)
    # The text first: if only that gets written, the next sync finds both sides equal.
    files = ((py, text), (nb, twin.stamped(there, source=text)))
    return Step(Synced(nb, py, "written"), files)


def _conflict(workspace: Workspace, py: Path, nb: Path, why: str) -> Step:
    one, other = workspace.named(py), workspace.named(nb)
    hint = (
        f"{one} and {nb.name} {why}: move away the one you do not want "
        f"({one} or {other}) and sync again"
    )
    return Step(Synced(py, nb, "conflict", hint))


def _twin(workspace: Workspace, path: Path) -> Twin | None:
    if not path.is_file():
        return None
    name = workspace.named(path)
    text = formats.decode(_read(path), name)
    try:
        return twin.loads(text, path.suffix)
    except DocumentError as error:
        raise DocumentError(f"{name}: {error.message}", hint=error.hint) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DocumentError(
            f"cannot read {path}: {error.strerror}", hint="check its permissions"
        ) from error


def _write(path: Path, text: str) -> None:
    path = path.resolve()
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    write_atomic(path, text.encode("utf-8"), mode=mode)
