"""Sessions driven in this process, as a host drives them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quire.engine.run import NotebookExecutor, drained
from quire.record.events import CellFinished, CellSubmitted, Event, OutputAdded
from quire.record.record import Record
from quire.sessions import session
from quire.sessions.live_session import Session
from quire.workspace import Engine, Workspace


@dataclass
class Live:
    """A workspace of one test, on an engine that outlives calls and is shared by all tests."""

    root: Path
    env: dict[str, str]
    engine: Engine
    opened: list[str] = field(default_factory=list)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.root, cwd=self.root, env=self.env, engine=self.engine)

    def write(self, *cells: str, name: str = "t.py") -> Path:
        path = self.root / name
        path.write_text("".join(f"# %%\n{cell}\n" for cell in cells))
        return path

    def open(self, *cells: str, task: str = "t.py", **options: Any) -> str:
        if cells:
            self.write(*cells, name=task)
        # Names are those of the engine, which other tests use as well.
        options.setdefault("name", f"{self.root.name}-{len(self.opened)}"[-60:].lstrip("-_."))
        name = session.open_session(self.workspace, task, **options).name
        self.opened.append(name)
        return name

    def exec(self, name: str, what: str | None = None, **options: Any) -> list[Event]:
        cancel = options.pop("cancel", None) or threading.Event()
        return list(session.execute(self.workspace, name, what, cancel, **options))

    def ran(self, name: str, *whats: str) -> None:
        """Run cells that have to end well."""
        for what in whats:
            events = self.exec(name, what)
            assert set(statuses(events)) == {"ok"}, shown(events)

    def said(self, name: str, code: str) -> str:
        """What loose code prints, without its last newline."""
        events = self.exec(name, code=code)
        assert statuses(events) == ["ok"], shown(events)
        return shown(events).rstrip("\n")

    def rewind(self, name: str, target: str) -> int:
        return session.rewind(self.workspace, name, target)[0].order

    def variables(self, name: str) -> Mapping[str, str]:
        return {v["name"]: v["value"] for v in session.variables(self.workspace, name)}

    def inner(self, name: str) -> Session:
        return self.engine.sessions[name].session

    def run(self, task: str = "t.py", parameters: Any = None, **options: Any) -> Record:
        return drained(NotebookExecutor(task, parameters, workspace=self.workspace, **options))

    def close(self) -> None:
        for name in self.opened:
            if name in self.engine.sessions:
                session.close(self.workspace, name)
        for run in [r for r, kept in self.engine.kept.items() if kept.path.parent == self.root]:
            self.engine.kept.pop(run).drop()


def shown(events: list[Event]) -> str:
    """All text of the outputs."""
    parts = []
    for event in events:
        if isinstance(event, OutputAdded):
            output = event.output
            parts.append(
                output.get("text")
                or "\n".join(output.get("traceback", ()))
                or output.get("data", {}).get("text/plain", "")
            )
    return "".join(parts)


def statuses(events: list[Event]) -> list[str]:
    return [event.status for event in events if isinstance(event, CellFinished)]


def submitted(events: list[Event]) -> list[int | None]:
    return [event.index for event in events if isinstance(event, CellSubmitted)]
