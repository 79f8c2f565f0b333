"""The caller's end of an agent's call: over the line to the host, and back.

For whatever an agent talks to: the MCP server, `quire tools call`. Loads nothing of the engine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import __version__
from ..errors import HostError, QuireError
from ..host.host_calls import Line, Lost, dial
from .tool_definitions import BY_NAME

Questions = Sequence[Mapping[str, Any]]
PATIENCE = 15.0  # seconds in which a host can be had
AGAIN = 0.02  # seconds between two attempts


@dataclass(frozen=True, slots=True)
class Reply:
    """To questions: the values, or None where nobody could be asked."""

    values: Sequence[str] | None = None
    by: str = ""
    declined: bool = False
    missing: tuple[str, ...] = ()  # where the form was sent, and an answer is not in it


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    images: tuple[tuple[str, str], ...] = ()  # MIME type and base64
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Promoting:
    """A session that is being made a task, and how its file was when we heard of it."""

    again: Mapping[str, Any]  # the arguments to ask for it again
    path: str
    had: tuple[int, ...]

    def cut_off(self) -> tuple[str, bool]:
        """What became of it, as far as the file says; and whether it was not written."""
        from ..next_steps import NextStep, as_tool
        from ..text import mentioned

        name = mentioned(str(self.again["to"]))
        now = _look(self.path)
        written = bool(now) and now != self.had
        if written:
            said = f"{name} was written meanwhile, as it is where the clean run agreed"
        else:
            what = "is as it was: nothing was written" if now else "was not written"
            said = f"{name} {what}\nask again: {as_tool(NextStep('promote', self.again))}"
        first = f"The host went away while it promoted session {self.again['session']}"
        return f"{first}: {said}\n", not written


def _look(path: str) -> tuple[int, ...]:
    """What tells a file from a later one at its place; empty where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size


def _nobody(_: Questions) -> Reply:
    return Reply()


@dataclass(slots=True)
class ToolCall:
    """One call. `run` blocks; `cancel` may come from another thread."""

    root: str
    name: str
    arguments: Mapping[str, Any]
    env: Mapping[str, str]
    caller: str = ""
    progress: Callable[[int, int, str], None] = lambda done, total, what: None
    ask: Callable[[Questions], Reply] = _nobody
    _line: Line | None = None
    _begun: bool = False
    _run: str = ""
    _promoting: Promoting | None = None
    _cancelled: bool = field(default=False)

    def run(self) -> Answer:
        try:
            return self._once(self.name, self.arguments)
        except Lost:
            return self._after_the_host_left()
        except QuireError as error:
            return failure(error)

    def cancel(self) -> None:
        """Say that the answer is not wanted any more, and why: somebody cancelled."""
        self._cancelled = True
        line = self._line
        if line is not None:
            try:
                line.send({"cancel": True})
            except Lost:
                return

    def leave(self) -> None:
        """Stop listening; what goes on goes on."""
        if self._line is not None:
            self._line.close()

    def _once(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Lost once the host had begun. Before that another host can do it just as well: one that
        is being ended takes calls for a moment that it never looks at."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self._begun = False
            try:
                return self._ask_host(name, arguments)
            except Lost:
                if self._begun or self._cancelled or time.monotonic() > deadline:
                    raise
            time.sleep(AGAIN)

    def _ask_host(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        try:
            line = dial(self.root, __version__)
        except OSError as error:
            raise _no_host(f": {error.strerror}") from error
        if line is None:
            raise _no_host("")
        self._line = line
        try:
            given = {"arguments": dict(arguments), "caller": self.caller}
            line.request(name, given, self.root, self.env)
            for message in line.follow():
                if "answer" in message:
                    return _answer(message["answer"])
                self._hear(line, message)
        finally:
            line.close()
        raise Lost("the host said nothing")

    def _hear(self, line: Line, message: Mapping[str, Any]) -> None:
        if "ask" in message:
            reply = self.ask(message["questions"])
            line.reply(
                int(message["ask"]),
                reply.values,
                reply.by,
                declined=reply.declined,
                missing=reply.missing,
            )
            return
        said = message.get("say") or {}
        if "begun" in said:
            self._begun = True
        elif "run" in said:
            self._run = str(said["run"])
        elif "promotes" in said:
            path = os.path.join(self.root, str(said["promotes"]["to"]))
            self._promoting = Promoting(said["promotes"], path, _look(path))
        elif "done" in said:
            self.progress(int(said["done"]), int(said["of"]), str(said["what"]))

    def _after_the_host_left(self) -> Answer:
        """What the next host can say of it. Nothing is done a second time."""
        tool = BY_NAME.get(self.name)
        again, arguments = self.name, self.arguments
        first, undone = "", False
        if self._run:
            # It is over, or about to be; and it failed where the run itself did.
            again, arguments = "run_wait", {"run": self._run, "timeout": PATIENCE}
            first = f"The host that ran {self._run} went away; this is what its record holds:\n"
            if self._promoting is not None:
                became, undone = self._promoting.cut_off()
                first = f"{became}{first}"
        elif tool is None or not tool.read_only or self._cancelled:
            return failure(
                HostError(
                    f"the host went away in the middle of {self.name}; what it had done stays done",
                    hint="look before you repeat it: notebook_read, run_find, or notebook_session "
                    'with action="list"',
                )
            )
        try:
            answer = self._once(again, arguments)
        except Lost:
            return failure(_no_host(": it went away twice"))
        except QuireError as error:
            return failure(error)
        return Answer(first + answer.text, answer.images, answer.failed or undone)


def _answer(told: Mapping[str, Any]) -> Answer:
    if "fault" in told:
        return failure(
            HostError(
                f"a fault in Quire: {told['fault']}", hint="the host's log, .quire/host.log, has it"
            )
        )
    images = tuple((str(one["mime"]), str(one["data"])) for one in told["images"])
    return Answer(str(told["text"]), images, bool(told["failed"]))


def _no_host(why: str) -> HostError:
    return HostError(
        f"no host could be started for this workspace{why}",
        hint="check that its folder can be written to; .quire/host.log may say more",
    )


def failure(error: QuireError) -> Answer:
    from ..render.agent_page import error_text

    return Answer(error_text(error), (), True)
