"""Answers what the cells of one run, or of one session, ask of the engine.

Each call is looked at by the workspace's policy, done, and told to the journal: what was allowed,
what was refused and what went wrong. Calls come on threads of the call server; cells open and close
the line on theirs.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from ..config import Tools
from ..errors import QuireError, Refused, UsageError
from ..executors.cell import Cancel
from ..kernel.calls import HungUp
from ..kernel.protocol import KernelSpec
from ..runs.asking import Asker, Declined, Question
from ..runs.calls import brief, digest, to_decide
from ..runs.events import Asked, Event, NoteAdded, ToolCalled
from ..runs.masking import Masker
from ..runs.secrets import secrets_of
from ..store import keys
from ..tools.places import Places
from ..tools.toolbox import NAMES, Toolbox
from ..workspace import Workspace
from .kernels import hidden

# Refusals that are written down one by one after the limit; those after them are counted.
TOLD_AFTER = 20
KINDS_COUNTED = 50
PATIENCE = 10.0  # seconds for a call that is called off to end
STILL = "still going on when the cell ended"
NOTE = 10_000  # characters
QUESTION = 4_000
CHOICES = 50
YES, ALWAYS, NO = "yes", "always", "no"

RunTask = Callable[[Mapping[str, Any], Cancel], dict[str, Any]]
_NOBODY = "nobody is there to be asked"


class _Off:
    """Whether the answer is not wanted any more: the cell is over, or the caller has gone."""

    def __init__(self, over: threading.Event, hung_up: HungUp, cancel: Cancel) -> None:
        self.over, self.hung_up, self.cancel = over, hung_up, cancel

    def is_set(self) -> bool:
        return self.over.is_set() or self.cancel.is_set() or self.hung_up.is_set()


class Answering:
    def __init__(
        self,
        workspace: Workspace,
        spec: KernelSpec,
        run_task: RunTask,
        cancel: Cancel | None = None,
        masker: Masker | None = None,
        told: tuple[str, ...] = (),  # variables whose values a person gave: for the kernel only
    ) -> None:
        self.settings: Tools = workspace.config.tools
        self.asker: Asker = workspace.asker
        self.run_task = run_task
        self.cancel: Cancel = cancel or threading.Event()
        self.masker = masker or Masker()
        self.toolbox = _toolbox(workspace, spec, told)
        self._lock = threading.Condition()
        self._over = threading.Event()
        self._over.set()
        self._cell = ""
        self._tell: Callable[[Event], object] | None = None
        self._late: list[Event] = []
        self._calls = self._told = 0
        self._under_way: dict[_Told, Mapping[str, Any]] = {}
        self._uncounted: Counter[tuple[str, str]] = Counter()
        self._always: set[str] = set()

    # The executor's side

    def open(self, cell: str, tell: Callable[[Event], object]) -> None:
        """A cell begins: from now on its calls are answered."""
        with self._lock:
            self._cell, self._tell, self._over = cell, tell, threading.Event()
            for event in self._late:
                tell(event)
            self._late = []

    def close(self) -> None:
        """The cell is over: calls under way are called off, and told of before this returns."""
        with self._lock:
            if self._over.is_set():
                return
            self._over.set()
            self._lock.wait_for(lambda: not self._under_way, PATIENCE)
            for told, given in self._under_way.items():
                # What it has done, or may still do, is in the record: nobody hears of it later.
                still = _Told(told.name, told.began)
                still.reason = STILL
                self._write(still, given)
                told.over = True
            for event in self._counted():
                assert self._tell is not None
                self._tell(event)
            self._tell = None

    def leftover(self) -> list[Event]:
        """What came after the last cell."""
        with self._lock:
            events, self._late = [*self._late, *self._counted()], []
            return events

    def renew(self, asker: Asker, cancel: Cancel) -> None:
        """Somebody has a session run something: they are asked, and the count begins anew."""
        with self._lock:
            self.asker, self.cancel = asker, cancel
            self._calls = self._told = 0

    def _counted(self) -> list[Event]:
        found: list[Event] = [
            ToolCalled(self._cell, tool, {}, False, 0.0, {}, reason, True, times)
            for (tool, reason), times in self._uncounted.items()
        ]
        self._uncounted.clear()
        return found

    # The call server's side

    def turned_away(self, why: str) -> None:
        """Something came over the line, or from our kernel, that was no call of the run."""
        self._say(ToolCalled(self._cell, "call", {}, False, 0.0, {}, why, True))

    def __call__(self, name: str, given: Mapping[str, Any], hung_up: HungUp) -> Any:
        told = _Told(name, time.monotonic())
        with self._lock:
            over = self._over
            self._under_way[told] = given
        try:
            try:
                return self._answer(told, given, over, hung_up)
            except QuireError as error:
                told.reason, told.refused = error.message, isinstance(error, Refused)
                raise
            except Exception as error:  # a fault of ours: written down like any answer, and raised
                told.reason = f"{type(error).__name__}: {error}"
                raise
            finally:
                self._write(told, given)
        finally:
            with self._lock:
                del self._under_way[told]
                self._lock.notify_all()

    def _answer(
        self, told: _Told, given: Mapping[str, Any], over: threading.Event, hung_up: HungUp
    ) -> Any:
        name = told.name
        if name not in (*NAMES, "run", "ask", "note"):
            told.name = "call"
            raise UsageError(
                f"there is no call {name[:50]!r}", hint="this runtime is newer or older"
            )
        if over.is_set():
            raise Refused(f"no cell is running: {name}() is answered while one is")
        with self._lock:
            self._calls += 1
            many = self._calls > self.settings.calls
        if many:
            raise Refused(
                f"there were more than {self.settings.calls:,} calls",
                hint="raise calls under [tools] if that is meant",
            )
        off = _Off(over, hung_up, self.cancel)
        self._permit(name, given, off)
        if name == "run":
            value = self.run_task(given, off)
            told.result = {key: value[key] for key in ("run_id", "outcome") if key in value}
            told.ok = value.get("outcome") == "ok"
            return value
        if name in ("ask", "note"):
            told.silent = True  # there is an event of its own
            return self._asked(given, off) if name == "ask" else self._noted(given)
        value = self.toolbox.use(name, given, off.is_set)
        told.ok = not value.get("error")
        told.reason = str(value.get("error") or "")
        told.result = digest(self.masker.mask_json(value))
        if "exit_code" in value:
            told.result["exit_code"] = value["exit_code"]
        return value

    def _permit(self, name: str, given: Mapping[str, Any], off: _Off) -> None:
        mode = getattr(self.settings, name)
        if mode == "allow" or name in self._always:
            return
        how = f'{name} = "allow", or "ask", under [tools] in quire.toml'
        if mode == "deny":
            raise Refused(f"{name}() is not allowed in this workspace", hint=how)
        what = to_decide(self.masker.mask_json(_shown(given)))
        question = Question(
            f"A cell wants to call {name}({what}). Let it?",
            name=name,
            kind="approval",
            choices=(YES, ALWAYS, NO),
            help="always: for the rest of this run",
        )
        answer = self._put(question, off)
        if answer is None:
            allowed = self.settings.unattended == "allow"
            self._say_asked(question, YES if allowed else NO, "policy")
            if not allowed:
                raise Refused(f"{name}() has to be allowed, and {_NOBODY}", hint=how)
        elif answer == ALWAYS:
            self._always.add(name)
        elif answer != YES:
            raise Refused(f"{name}() was not allowed")

    def _put(self, question: Question, off: _Off) -> str | None:
        """None where nobody can be asked."""
        until = time.monotonic() + self.settings.ask_seconds
        try:
            answers = self.asker.ask([question], lambda: off.is_set() or time.monotonic() > until)
        except Declined:
            self._say_asked(question, None, "person")
            raise Refused("the person who was asked did not answer") from None
        if off.is_set():
            raise Refused("called off")
        if answers is None:
            return None
        self._say_asked(question, answers.values[0], answers.by)
        return answers.values[0]

    def _asked(self, given: Mapping[str, Any], off: _Off) -> str:
        text, choices, default = (given.get(key) for key in ("question", "choices", "default"))
        if not isinstance(text, str) or not text.strip() or len(text) > QUESTION:
            raise UsageError(
                f"a question is a text of at most {QUESTION:,} characters", hint="ask('…?')"
            )
        known = tuple(choices) if isinstance(choices, list) else ()
        if len(known) > CHOICES or not all(isinstance(c, str) and 0 < len(c) <= 200 for c in known):
            raise UsageError(
                f"choices are up to {CHOICES} texts of at most 200 characters", hint="choices=[…]"
            )
        if default is not None and (
            not isinstance(default, str) or (known and default not in known)
        ):
            raise UsageError("the default is none of the choices", hint="give one of them")
        mask = self.masker.mask
        question = Question(
            mask(text), choices=tuple(map(mask, known)), default=default and mask(default)
        )
        answer = self._put(question, off)
        if answer is not None:
            # What was asked is masked; what is given back is what the cell knows.
            spoken: dict[str, str] = dict(zip(question.choices, known, strict=True))
            return spoken.get(answer, answer)
        declared: str | None = self.settings.ask_default
        fits = declared and (not known or declared in known)
        chosen = declared if fits else default
        self._say_asked(question, chosen, "policy")
        if chosen is None:
            raise Refused(
                f"{_NOBODY}, and no answer is declared",
                hint="give ask() a default, or set ask_default under [tools]",
            )
        return chosen

    def _noted(self, given: Mapping[str, Any]) -> None:
        text = given.get("text")
        if not isinstance(text, str):
            raise UsageError("a note is a text", hint="note('…')")
        masked = self.masker.mask(text)
        if len(masked) > NOTE:
            masked = f"{masked[:NOTE]} … {len(masked) - NOTE:,} more characters"
        self._say(NoteAdded(self._cell, masked, _now()))

    def _say_asked(self, question: Question, answer: str | None, by: str) -> None:
        mask = self.masker.mask
        text = mask(question.text)
        answer = None if answer is None else mask(answer)[:NOTE]
        self._say(
            Asked(self._cell, text, answer, mask(by), question.kind, question.choices, _now())
        )

    def _write(self, told: _Told, given: Mapping[str, Any]) -> None:
        if told.silent and not told.reason:
            return
        arguments = brief(self.masker.mask_json(_shown(given)))
        duration = round(time.monotonic() - told.began, 6)
        reason = self.masker.mask(told.reason)[:2_000]
        with self._lock:
            if told.over:
                return
            cell, name = self._cell, told.name
            self._say(
                ToolCalled(
                    cell, name, arguments, told.ok, duration, told.result, reason, told.refused
                )
            )

    def _say(self, event: Event) -> None:
        with self._lock:
            self._told += 1
            if isinstance(event, ToolCalled) and self._told > self.settings.calls + TOLD_AFTER:
                kind = (event.tool, event.reason)
                if kind not in self._uncounted and len(self._uncounted) >= KINDS_COUNTED:
                    kind = (event.tool, "others")
                self._uncounted[kind] += 1
            elif self._tell is not None:
                self._tell(event)
            else:
                self._late.append(event)


class _Told:
    """What the journal will hear of one call."""

    __slots__ = ("began", "name", "ok", "over", "reason", "refused", "result", "silent")

    def __init__(self, name: str, began: float) -> None:
        self.name, self.began = name, began
        self.ok = self.refused = self.silent = self.over = False
        self.reason = ""
        self.result: dict[str, Any] = {}


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _shown(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader wants to know of the arguments."""
    return {k: v for k, v in given.items() if k not in ("cwd", "env") and v is not None}


def _toolbox(workspace: Workspace, spec: KernelSpec, told: tuple[str, ...]) -> Toolbox:
    config, root = workspace.config.tools, workspace.root
    home = workspace.env.get("HOME", "")

    def named(paths: Iterable[str]) -> list[str]:
        return [
            os.path.join(root, home + path[1:] if path == "~" or path[:2] == "~/" else path)
            for path in paths
        ]

    roots = [(str(root), True)]
    roots += [(path, False) for path in named(config.read_roots)]
    roots += [(path, True) for path in named(config.write_roots)]
    closed = []
    with contextlib.suppress(QuireError):  # there may be no home to keep keys in
        closed.append(str(keys.folder(workspace.env)))
    given = spec.env if spec.commands is None else spec.commands
    secret = {one.name for one in secrets_of(given, (*hidden(workspace), *told))}
    env = {key: value for key, value in given.items() if key not in secret}
    umask = workspace.world.get("umask")
    places = Places(roots, config.protect, closed)
    return Toolbox(config, places, env, str(root), umask)
