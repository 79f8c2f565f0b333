"""The sessions of a workspace: `.quire/sessions/<name>/`, one folder each.

events.jsonl   what was opened, submitted, shown, rewound
spill/         what was too much to keep
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import Hint, NextStep, UsageError
from ..files import disk
from ..record import journal
from ..record.events import Event, SessionOpened
from ..record.journal import Journal
from ..record.run_folders import RunFolder
from .session_journal import GIVEN_OUT, SessionState, fold_session

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class SessionStore:
    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, name: str) -> RunFolder:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} cannot be the name of a session",
                hint="use letters, digits, dots, dashes and underscores",
            )
        return RunFolder(self.root / name)

    def reserve(self, wanted: str, *, exactly: bool) -> str:
        """Make the folder of a new session; its name is `wanted`, or with -2, -3, … where that is
        taken and need not be it exactly."""
        stem = wanted
        if not exactly:
            stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", wanted).strip("-._")[:50] or "session"
        with disk(str(self.root)):
            self.root.mkdir(parents=True, exist_ok=True)
            ignore = self.root.parent / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            for n in itertools.count(1):
                name = stem if n == 1 else f"{stem}-{n}"
                with contextlib.suppress(FileExistsError):
                    self.folder(name).path.mkdir(mode=0o700)
                    break
                if exactly:
                    raise UsageError(
                        f"there is already a session {name}",
                        hint="choose another name, or close that one",
                    )
        return name

    def create(self, name: str) -> Journal:
        return Journal(self.folder(name).events)

    def reopen(self, name: str) -> Journal:
        folder = self.folder(name)
        journal.mend(folder.events)
        return Journal(folder.events, reopen=True)

    def names(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.root) if _NAME.fullmatch(name))
        except FileNotFoundError:
            return []

    def read(self, name: str) -> SessionState:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return fold_session(journal.read(self.folder(name).events, without=GIVEN_OUT))
        raise UsageError(
            f"there is no session {name!r}", hint=Hint("`{}` lists them", NextStep("list"))
        )

    def states(self, names: Iterable[str] | None = None) -> Iterator[SessionState]:
        for name in self.names() if names is None else names:
            with contextlib.suppress(UsageError):
                yield self.read(name)

    def on(self, task: Path) -> list[str]:
        """The names of those on this task. Only the first event of each is read: it says so."""

        def first(name: str) -> Event | None:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                return next(journal.read(self.folder(name).events), None)
            return None

        opened = ((name, first(name)) for name in self.names())
        return [
            name
            for name, event in opened
            if isinstance(event, SessionOpened) and event.task == str(task)
        ]

    def remove(self, name: str) -> None:
        shutil.rmtree(self.folder(name).path, ignore_errors=True)
