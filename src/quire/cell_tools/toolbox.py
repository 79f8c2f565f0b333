"""The tools that a cell can call, by name, within what a workspace opens to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import Tools
from ..errors import ToolError
from .allowed_paths import Places, opened

# The arguments of each, in the order in which people see them. Others are refused: they would be
# shown in the record, and to the person who is asked.
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "read_file": ("path", "offset", "limit"),
    "search_files": ("pattern", "path", "target", "glob", "limit", "offset", "context"),
    "write_file": ("path", "content"),
    "patch": ("path", "old", "new", "replace_all"),
    "terminal": ("command", "folder", "timeout"),
    "web_search": ("query", "limit"),
    "web_extract": ("urls", "char_limit"),
    # These are answered elsewhere.
    "run": ("path", "parameters"),
    "ask": ("question", "choices", "default"),
    "note": ("text",),
}
# What every call may have. It is shown where it is another folder than the cells began in.
_ALONG = {"cwd"}
_PLACED = ("read_file", "search_files", "write_file", "patch", "terminal", "run")


def others(name: str, given: Mapping[str, Any]) -> bool:
    """Whether a call has arguments that the tool does not take."""
    return bool(given.keys() - {*ARGUMENTS[name], *_ALONG, *(("env",) if name == "run" else ())})


@dataclass(frozen=True, slots=True)
class Toolbox:
    settings: Tools
    places: Places
    env: Mapping[str, str]  # of commands: without what is secret
    folder: str  # of commands that the workspace itself names
    umask: int | None = None  # the caller's; None: that of this process
    start: str = ""  # the folder that the cells begin in

    def shown(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call as people are told of them."""
        known = ARGUMENTS.get(name, ())
        found = {key: given[key] for key in known if given.get(key) is not None}
        cwd = given.get("cwd")
        if name in _PLACED and cwd not in (None, self.start, os.path.realpath(self.start)):
            found["cwd"] = cwd
        return found

    def leads_to(self, name: str, given: Mapping[str, Any]) -> str:
        """The real path of a call, if links make it another one than it says; empty if not."""
        path = given.get("folder" if name == "terminal" else "path")
        cwd = given.get("cwd")
        if name not in _PLACED or not isinstance(path, str) or not isinstance(cwd, str):
            return ""
        said = os.path.join(cwd, path)
        try:
            real = os.path.realpath(said)
        except (OSError, ValueError):  # the tool itself says what is wrong with it
            return ""
        return real if real != os.path.normpath(said) else ""

    def use(
        self, name: str, given: Mapping[str, Any], called_off: Callable[[], bool]
    ) -> dict[str, Any]:
        """What the tool gives; raises Refused or ToolError."""
        settings = self.settings
        # Each loads what it needs when it is first used: most tasks use none.
        if name in ("web_search", "web_extract"):
            from .web import Web

            web = Web(settings, self.folder, self.env, called_off)
            return web.search(given) if name == "web_search" else web.extract(given)
        if name == "terminal":
            return self._terminal(given, called_off)
        if name == "search_files":
            from .file_search import search_files

            return search_files(self.places, given, settings.seconds, called_off)
        from . import file_tools

        if name == "read_file":
            most, seconds = settings.read_limit, settings.seconds
            return file_tools.read_file(self.places, given, most, seconds, called_off)
        if name == "write_file":
            return file_tools.write_file(self.places, given, settings.write_limit, self._umask())
        return file_tools.patch(self.places, given, settings.write_limit, self._umask())

    def _umask(self) -> int:
        if self.umask is not None:
            return self.umask
        # Setting it is the only call that tells it, and would do so for every thread.
        for line in Path("/proc/self/status").read_text("ascii", "replace").splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
        return 0o077

    def _terminal(self, given: Mapping[str, Any], called_off: Callable[[], bool]) -> dict[str, Any]:
        from .shell_command import run_command, words_of

        settings = self.settings
        words = words_of(given.get("command"), settings.commands, settings.refuse_commands)
        seconds = given.get("timeout")
        if seconds is None:
            seconds = settings.seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
            raise ToolError("timeout must be a number of seconds above 0", hint="timeout=10")
        with self.places.at(given.get("folder") or ".", given.get("cwd")) as spot:
            if not spot.is_folder:
                raise ToolError(f"there is no folder {spot.path}", hint="give a folder as cwd")
            folder = opened(spot)
        try:
            # By its descriptor: by its name it could be another one by now.
            return run_command(
                words,
                f"/proc/self/fd/{folder}",
                self.env,
                min(seconds, settings.seconds),  # compared first: no float is as large as some
                settings.output_limit,
                called_off,
            )
        finally:
            os.close(folder)
