"""The file that an executed notebook goes to besides its run's folder."""

from __future__ import annotations

from pathlib import Path

from .. import __version__
from ..errors import QuireError, UsageError
from ..files import write_atomic
from ..record.executed_notebook import dumps, notebook
from ..record.listener import Finisher, Scene
from ..record.record import Record


class _Copy(Finisher):
    def released(self, record: Record) -> None:
        path = self.scene.output
        assert path is not None
        write_atomic(path, dumps(notebook(record, output_path=str(path), version=__version__)))


def listen(scene: Scene) -> _Copy | None:
    return _Copy(scene) if scene.output is not None else None


def checked(path: Path, source: Path) -> Path:
    """The path, where it may be written to. Never over the task itself, by whatever name."""
    if path.suffix != ".ipynb":
        raise UsageError(
            f"{path.name} is no name for a notebook", hint="give -o a file that ends in .ipynb"
        )
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}", hint="make it, or choose another")
    if path.exists() and path.samefile(source):
        raise UsageError(
            f"{path.name} is the task itself; the source is never changed",
            hint="give -o another name",
        )
    if path.exists() and _is_twin(path, source):
        raise UsageError(
            f"{path.name} is a notebook that quire sync keeps in step with its .py",
            hint=f"give -o another name, such as {path.stem}-executed.ipynb",
        )
    return path


def _is_twin(path: Path, source: Path) -> bool:
    """The other half of a task. What an earlier run wrote there is none until it is synced."""
    from ..task import notebook_twin  # only where there is something to look at

    beside = path.resolve().with_suffix("") == source.resolve().with_suffix("")
    try:
        there = notebook_twin.loads(path.read_text("utf-8"), ".ipynb")
    except (OSError, ValueError, QuireError):
        return beside
    return there.stamp is not None or (beside and notebook_twin.run_id(there) is None)
