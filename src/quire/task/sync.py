"""Keep `.py` notebooks and their `.ipynb` twins in step.

The `.py` is the source. An `.ipynb` that nobody edited is made again from it. One that says
something else is a conflict: nothing of it gets into the `.py` until somebody says so.

Whether it was edited is not asked of the clock. The `.ipynb` carries, in its metadata under
`quire`, a digest of the `.py` it belongs to and one of its own cells as they were then. A stranger
may have written those, so they only ever let the `.py` win. Outputs are no edit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Literal

from ..errors import DocumentError, UsageError
from ..files import write_atomic
from ..workspace import Workspace
from . import formats, notebook_twin, percent, percent_marker
from .notebook_twin import Twin

# "stale": would be written, were it not for `check`.
Action = Literal["written", "stale", "unchanged", "conflict"]
Take = Literal["py", "ipynb"]

STAMP = b'"source_sha256"'  # stands in every notebook that was made from a `.py`
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


def sync(
    workspace: Workspace,
    paths: Sequence[str | Path],
    *,
    check: bool = False,
    side: Take | None = None,
) -> list[Synced]:
    """Write each `.ipynb` from its `.py`. Reads everything before it writes anything, and writes
    nothing where there is a conflict. `side` is the one that wins in these pairs."""
    if side is not None:
        for path in paths:
            if (workspace.cwd / path).is_dir():
                raise UsageError(
                    f"{path} is a folder; --take {side} decides about single notebooks",
                    hint=f"quire sync {quote(str(path))} --check lists them",
                )
    steps = plan(workspace, paths, side)
    if check or any(step.result.action == "conflict" for step in steps):
        return [_stale(step.result) for step in steps]
    take(steps)
    return [step.result for step in steps]


def plan(workspace: Workspace, paths: Sequence[str | Path], side: Take | None = None) -> list[Step]:
    """What would bring the pairs into step. Writes nothing."""
    pairs = dict.fromkeys(stem for path in paths for stem in _stems(workspace, path))
    return [_step(workspace, stem, side) for stem in pairs]


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
    return has_cells(_read(py), py.name) or (nb.is_file() and STAMP in _read(nb))


def has_cells(data: bytes, name: str) -> bool:
    """Whether a `.py` is a task by itself; one that cannot be read is: reading it says why."""
    if not _MAYBE.search(data):
        return False
    text = formats.decode(data, name)
    try:
        # A marker inside a string is no marker: modules that write tasks have those.
        lines = percent.split_lines(text)
        return any(percent_marker.MARKER.match(lines[start]) for start, _ in percent.spans(text))
    except DocumentError:
        return True


def is_of_a_run(nb: Path) -> bool:
    """Whether the notebook is what a run left, such as an export: a record, not a task."""
    data = _read(nb)
    if b'"run_id"' not in data:
        return False
    there = notebook_twin.loads(formats.decode(data, nb.name), ".ipynb")
    return there.stamp is None and notebook_twin.run_id(there) is not None


def _step(workspace: Workspace, py: Path, side: Take | None) -> Step:
    nb = py.with_suffix(".ipynb")
    here = _twin(workspace, py)
    there = _twin(workspace, nb)
    if here is None or there is None:
        return _alone(workspace, py, nb, here, there, side)
    same = here.digest == there.digest
    if side is not None and not same:
        return _to_notebook(py, nb, here, there) if side == "py" else _to_text(py, nb, here, there)
    stamp = there.stamp
    fits = stamp is not None and stamp.source == here.text_digest
    as_made = stamp is not None and stamp.cells == there.digest
    if same or (here.says == there.says and (fits or not as_made)):
        if stamp is None or (fits and as_made):
            return Step(Synced(py, nb, "unchanged"))
        return Step(
            Synced(py, nb, "written"), ((nb, notebook_twin.stamped(there, source=here.text)),)
        )
    if as_made and not fits:
        return _to_notebook(py, nb, here, there)
    return _conflict(workspace, py, nb, _why(stamp is not None, fits, as_made))


def _alone(
    workspace: Workspace,
    py: Path,
    nb: Path,
    here: Twin | None,
    there: Twin | None,
    side: Take | None,
) -> Step:
    """Of a pair of which only one is there."""
    if here is not None and side != "ipynb":
        return _to_notebook(py, nb, here, None)
    if there is None or side == "py":
        missing = py if there is not None else nb
        raise DocumentError(
            f"there is no file {workspace.named(missing)} to take",
            hint=f"leave out --take {side}",
        )
    known = _committed(workspace, py)
    if side is None and known is not None and known.says != there.says:
        return _conflict(workspace, py, nb, f"differ: {py.name} is gone, and the commit has it")
    return _to_text(py, nb, None, there)


def _committed(workspace: Workspace, py: Path) -> Twin | None:
    """The text as the current commit has it, if it can be read."""
    repository = workspace.repository
    if repository is None or repository.top is None:
        return None
    full, top = py.parent.resolve() / py.name, repository.top.resolve()
    if not full.is_relative_to(top):
        return None
    data = repository.blob("HEAD", full.relative_to(top).as_posix())
    try:
        return None if data is None else notebook_twin.loads(formats.decode(data, py.name), ".py")
    except DocumentError:
        return None


def _why(stamped: bool, fits: bool, as_made: bool) -> str:
    if not stamped:
        return "differ, and nothing says which was edited"
    if as_made:
        return "differ, although the notebook says that it was made from that text"
    return "differ: the notebook was edited" if fits else "were both edited"


def _to_notebook(py: Path, nb: Path, here: Twin, there: Twin | None) -> Step:
    return Step(Synced(py, nb, "written"), ((nb, notebook_twin.notebook_text(here, there)),))


def _to_text(py: Path, nb: Path, here: Twin | None, there: Twin) -> Step:
    text = notebook_twin.python_text(here, there)
    # The text first: if only that gets written, the next sync finds both sides equal.
    files = ((py, text), (nb, notebook_twin.stamped(there, source=text)))
    return Step(Synced(nb, py, "written"), files)


def _conflict(workspace: Workspace, py: Path, nb: Path, why: str) -> Step:
    hint = f"{workspace.named(py)} and {nb.name} {why}; {taking(workspace.named(nb))}"
    return Step(Synced(py, nb, "conflict", hint))


def taking(nb: str) -> str:
    """How a person says which half of a pair counts."""
    name = quote(nb)
    return (
        f"quire sync --take ipynb {name} keeps what the notebook says, --take py what the .py says"
    )


def _twin(workspace: Workspace, path: Path) -> Twin | None:
    if not path.is_file():
        return None
    name = workspace.named(path)
    text = formats.decode(_read(path), name)
    try:
        return notebook_twin.loads(text, path.suffix)
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
