"""Answers the calls that the cells of one run, or of one session, make to the engine.

Each call is looked at by the workspace's policy, done, and told to the journal: what was allowed,
what was refused and what went wrong. Calls come on threads of the call server; cells open and close
the line on theirs.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from ..config import Tools
from ..engine.run_cell import Cancel
from ..errors import QuireError, Refused, UsageError
from ..kernel.engine_calls import HungUp
from ..kernel.protocol import KernelSpec
from ..masking.masker import Masker
from ..record.cell_calls import brief, digest, to_decide, too_long
from ..record.events import Asked, Event, NoteAdded, ToolCalled
from ..record.questions import Asker, Declined, Question
from ..text import visible
from ..workspace import Workspace
from .open_toolbox import toolbox
from .toolbox import ARGUMENTS, others

# Of what is not looked at any further, past the limit above all, so many are written down one by
# one, and so many of what strangers sent; those after them are counted.
TOLD_AFTER = 20
KINDS_COUNTED = 50
PATIENCE = 10.0  # seconds for a call that is called off to end
STILL = "still going on when the cell ended"
NOTE = 10_000  # characters
QUESTION = 4_000
REASON = 2_000
HINT = 1_000
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
        self.toolbox = toolbox(workspace, spec, told)
        self._lock = threading.Condition()
        self._over = threading.Event()
        self._over.set()
        self._cell = ""
        self._tell: Callable[[Event], object] | None = None
        self._late: list[Event] = []
        self._calls = 0
        self._under_way: dict[_Told, Mapping[str, Any]] = {}
        self._turned_away: Counter[bool] = Counter()  # calls, and what strangers sent
        self._folded: Counter[tuple[str, str, bool]] = Counter()
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
                still.reason, still.looked_at = STILL, True
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
            self._calls = 0
            self._turned_away.clear()

    def _counted(self) -> list[Event]:
        found: list[Event] = [
            ToolCalled(self._cell, tool, {}, False, 0.0, {}, reason, refused, times)
            for (tool, reason, refused), times in self._folded.items()
        ]
        self._folded.clear()
        return found

    # The call server's side

    def turned_away(self, why: str) -> None:
        """Something came over the line, or from our kernel, that was no call of the run."""
        if not self._fold("call", why, refused=True, stranger=True):
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
                # Also for the cell: it would print half of a secret that was cut, and nobody knows
                # that for one.
                error.message = self._fitted(error.message, REASON)
                error.hint = self._fitted(error.hint, HINT)
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
        if name not in ARGUMENTS:
            told.name = "call"
            said = self.masker.safe(name)[:50]
            raise UsageError(f"there is no call {said!r}", hint="this runtime is newer or older")
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
        told.looked_at = True
        if others(name, given):
            raise Refused(
                f"{name}() was given what it does not take",
                hint=f"it takes {', '.join(ARGUMENTS[name])}",
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
        if name == "web_extract":
            self._tell_pages(told, value["results"])
        else:
            told.ok = not value.get("error")
            told.reason = str(value.get("error") or "")
        told.result |= digest(self.masker.mask_json(value))
        if "exit_code" in value:
            told.result["exit_code"] = value["exit_code"]
        return value

    def _tell_pages(self, told: _Told, pages: list[dict[str, Any]]) -> None:
        """Of several pages some may be refused while others are read."""
        for page in pages:
            page["error"] = page["error"] and self._fitted(page["error"], REASON)
        failed = [page for page in pages if page["error"]]
        refused = sum(page["refused"] for page in failed)
        told.ok = len(failed) < len(pages)
        told.refused = not told.ok and refused == len(failed)
        if failed:
            told.result = {"failed": len(failed), "refused": refused}
            why = "; ".join(dict.fromkeys(page["error"] for page in failed))
            count = f"{len(failed)} of {len(pages)} pages failed, {refused} of them refused"
            told.reason = f"{count}: {why}"

    def _permit(self, name: str, given: Mapping[str, Any], off: _Off) -> None:
        mode = getattr(self.settings, name)
        if mode == "allow" or name in self._always:
            return
        how = f'{name} = "allow", or "ask", under [tools] in quire.toml'
        if mode == "deny":
            raise Refused(f"{name}() is not allowed in this workspace", hint=how)
        arguments = self._shown(name, given)
        if key := too_long(arguments):
            raise Refused(
                f"{name}() has to be allowed, and its {key} is too long for a person to read",
                hint="write a long command to a file, and run that",
            )
        place = self.toolbox.leads_to(name, given)
        leads = f" The path leads to {self.masker.safe(visible(place))}." if place else ""
        question = Question(
            f"A cell wants to call {name}({to_decide(arguments)}).{leads} Let it?",
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
        if self.toolbox.leads_to(name, given) != place:
            raise Refused(f"{name}(): its path leads to another place than when it was allowed")

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
        mask = self.masker.safe
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
        masked = self.masker.safe(text)
        if len(masked) > NOTE:
            masked = f"{masked[:NOTE]} … {len(masked) - NOTE:,} more characters"
        self._say(NoteAdded(self._cell, masked, _now()))

    def _say_asked(self, question: Question, answer: str | None, by: str) -> None:
        mask = self.masker.safe
        text = mask(question.text)
        answer = None if answer is None else mask(answer)[:NOTE]
        self._say(
            Asked(self._cell, text, answer, mask(by), question.kind, question.choices, _now())
        )

    def _write(self, told: _Told, given: Mapping[str, Any]) -> None:
        if told.silent and not told.reason:
            return
        reason = self._fitted(told.reason, REASON)
        if not told.looked_at and self._fold(told.name, reason, refused=told.refused):
            return
        arguments = brief(self._shown(told.name, given))
        duration = round(time.monotonic() - told.began, 6)
        with self._lock:
            if told.over:
                return
            cell, name = self._cell, told.name
            self._say(
                ToolCalled(
                    cell, name, arguments, told.ok, duration, told.result, reason, told.refused
                )
            )

    def _shown(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.masker.mask_json(self.toolbox.shown(name, given))
        return found

    def _fitted(self, text: str, most: int) -> str:
        """Masked as a whole, and cut only then."""
        text = self.masker.safe(text)
        if len(text) <= most:
            return text
        half = (most - 3) // 2
        return f"{text[:half]} … {text[-half:]}"

    def _fold(self, tool: str, reason: str, *, refused: bool, stranger: bool = False) -> bool:
        """Whether it is one of too many to be written down one by one. Only what was not looked at
        may be: there is no more of the rest than the limit allows."""
        with self._lock:
            self._turned_away[stranger] += 1
            if self._turned_away[stranger] <= TOLD_AFTER:
                return False
            kind = (tool, reason, refused)
            if kind not in self._folded and len(self._folded) >= KINDS_COUNTED:
                kind = (tool, "others", refused)
            self._folded[kind] += 1
            return True

    def _say(self, event: Event) -> None:
        with self._lock:
            if self._tell is not None:
                self._tell(event)
            else:
                self._late.append(event)


class _Told:
    """What the journal will hear of one call."""

    def __init__(self, name: str, began: float) -> None:
        self.name, self.began = name, began
        self.looked_at = self.ok = self.refused = self.silent = self.over = False
        self.reason = ""
        self.result: dict[str, Any] = {}


def _now() -> str:
    return datetime.now(UTC).isoformat()
