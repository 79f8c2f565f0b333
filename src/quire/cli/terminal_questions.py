"""Questions on the caller's terminal. In a host that is the terminal of its client."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..record.questions import Answers, Declined, Question
from ..text import plain, visible
from .terminal import Terminal

TICK = 100  # milliseconds between two looks at whether the answer is still wanted
LONGEST = 10_000  # bytes of an answer, or of one line of it
MOST = 2_000  # lines of an answer
END = "."  # on a line of its own: the last one


class _CalledOff(Exception):
    pass


@dataclass(slots=True)
class TerminalAsker:
    """One call asks at a time."""

    terminal: Terminal
    by: str = "person"
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(
        self, questions: Sequence[Question], called_off: Callable[[], bool] = bool
    ) -> Answers | None:
        if not self.terminal.is_attended:
            return None
        while not self._lock.acquire(timeout=TICK / 1000):
            if called_off():
                return None
        try:
            _discard(self.terminal.stdin)
            with self.terminal.held():
                return Answers(tuple(self._one(one, called_off) for one in questions), self.by)
        except _CalledOff:
            self.terminal.err("(called off)")
            return None
        finally:
            self._lock.release()

    def _one(self, question: Question, called_off: Callable[[], bool]) -> str:
        term = self.terminal
        term.err(term.paint(_under(question.text), "bold", on_err=True))
        if question.help:
            term.err(term.paint(_under(question.help), "dim", on_err=True))
        for number, choice in enumerate(question.choices, 1):
            term.err(f"  {number}) {_line(choice)}")
        if question.lines:
            return self._text(question, called_off)
        while True:
            term.err(_prompt(question), end="")
            answer = self._typed(question, called_off)
            found = _understood(question, answer)
            if found is not None:
                return found
            if question.choices:
                term.err(f"one of 1 to {len(question.choices)}, or the words themselves")
            else:
                term.err("type an answer; Ctrl-D declines")

    def _text(self, question: Question, called_off: Callable[[], bool]) -> str:
        """Several lines; what is there already stays where the first is empty."""
        kept = question.default is not None
        stays = "an empty line at first leaves it as it is; " if kept else ""
        self.terminal.err(f"{stays}end with a line that is only {END}")
        rows: list[str] = []
        while len(rows) < MOST:
            self.terminal.err("> ", end="")
            line = self._line(called_off)
            if line is None and not rows:
                self.terminal.err()
                raise Declined("the question was not answered", hint="answer it")
            row = END if line is None else line.decode("utf-8", "replace").rstrip("\r\n")
            if not rows and not row and question.default is not None:
                return question.default
            if row == END:
                break
            rows.append(row)
        return "\n".join(rows)

    def _typed(self, question: Question, called_off: Callable[[], bool]) -> str:
        with _silent(self.terminal.stdin) if question.secret else contextlib.nullcontext():
            line = self._line(called_off)
        if question.secret:
            self.terminal.err()
        if line is None:
            self.terminal.err()
            raise Declined("the question was not answered", hint="answer it, or give it a default")
        return line.decode("utf-8", "replace").rstrip("\r\n")

    def _line(self, called_off: Callable[[], bool]) -> bytes | None:
        """What is typed up to Enter. None at the end of the input."""
        waiting = select.poll()
        waiting.register(self.terminal.stdin, select.POLLIN)
        data = b""
        while not data.endswith(b"\n"):
            if called_off():
                raise _CalledOff
            if not waiting.poll(TICK):
                continue
            try:
                more = os.read(self.terminal.stdin, LONGEST)
            except OSError:
                return None  # the terminal has gone
            if not more:
                return data or None
            data = (data + more)[:LONGEST]
            if len(data) == LONGEST:
                break
        return data


def _under(text: str) -> str:
    """A text whose further lines cannot be taken for choices, or for another question. It may hold
    the code that a person is to allow: nothing in it is left out."""
    first, *rest = visible(text).strip().split("\n")
    return "\n".join([first, *(f"    {line}".rstrip() for line in rest)])


def _line(text: str) -> str:
    return " ".join(plain(text).split())


def _prompt(question: Question) -> str:
    default = "" if question.default is None else f" [{_line(question.default)}]"
    name = f"{_line(question.name)}" if question.kind in ("parameter", "variable") else ""
    return f"{name}{default}> ".lstrip()


def _understood(question: Question, answer: str) -> str | None:
    """None where it is no answer to this question."""
    bare = answer.strip()
    if not bare and question.default is not None:
        return question.default
    if not question.choices:
        return answer if bare else None
    if answer in question.choices:
        return answer
    if bare.isascii() and bare.isdigit() and 1 <= int(bare[:6]) <= len(question.choices):
        return question.choices[int(bare[:6]) - 1]
    begin = [c for c in question.choices if bare and c.lower().startswith(bare.lower())]
    same = [c for c in begin if c.lower() == bare.lower()]
    return (same or begin)[0] if len(same or begin) == 1 else None


def _discard(fd: int) -> None:
    """What was typed before there was a question answers nothing."""
    import termios

    with contextlib.suppress(termios.error, OSError):
        termios.tcflush(fd, termios.TCIFLUSH)


@contextlib.contextmanager
def _silent(fd: int) -> Iterator[None]:
    """What is typed is not shown."""
    import termios

    try:
        before = termios.tcgetattr(fd)
    except termios.error:
        yield
        return
    quiet = [*before]
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error, OSError):
            termios.tcsetattr(fd, termios.TCSADRAIN, before)
