"""Questions on a terminal, with a real one."""

from __future__ import annotations

import os
import pty
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from quire.cli.terminal import Terminal
from quire.cli.terminal_questions import TerminalAsker
from quire.record.questions import Answers, Declined, Question


@dataclass
class Person:
    """Sits at the other side of a terminal."""

    keyboard: int
    asker: TerminalAsker
    terminal: Terminal
    seen: str = ""

    def until(self, text: str) -> None:
        while text not in self.seen:
            self.seen += os.read(self.keyboard, 4096).decode()

    def types(self, text: str) -> None:
        os.write(self.keyboard, text.encode())

    def asked(self, *questions: Question, called_off: Any = bool) -> list[Any]:
        """What will come of it, once the thread that asks has ended."""
        came: list[Any] = []

        def ask() -> None:
            try:
                came.append(self.asker.ask(questions, called_off))
            except Declined as error:
                came.append(error)

        self.thread = threading.Thread(target=ask, daemon=True)
        self.thread.start()
        return came

    def ended(self, came: list[Any]) -> Any:
        self.thread.join(10)
        return came[0]


@pytest.fixture
def person() -> Iterator[Person]:
    keyboard, tty = pty.openpty()
    terminal = Terminal(tty, tty, {"TERM": "xterm", "NO_COLOR": "1"}, stdin=tty)
    yield Person(keyboard, TerminalAsker(terminal), terminal)
    os.close(keyboard)
    os.close(tty)


def test_an_answer(person: Person) -> None:
    came = person.asked(Question("What is it\x1b[2J called?"))
    person.until("called?")
    person.until("> ")
    person.types("a name\n")
    assert person.ended(came) == Answers(("a name",), "person")
    assert "\x1b[2J" not in person.seen


def test_further_lines_are_neither_choices_nor_another_question(person: Person) -> None:
    code = "x = 1\rimport os\n\n  1) run\nRun step 1 of 1?"
    came = person.asked(Question(f"Run it?\n\n{code}\n", choices=("no", "run")))
    person.until("2) run")
    person.until("> ")
    lines = person.seen.removeprefix("\r\x1b[K").replace("\r\n", "\n").split("\n")
    assert lines[:2] == ["Run it?", ""]
    assert lines[2:6] == ["    x = 1^Mimport os", "", "      1) run", "    Run step 1 of 1?"]
    person.types("1\n")
    assert person.ended(came) == Answers(("no",), "person")


@pytest.mark.parametrize(
    ("typed", "answer"), [("2", "us"), ("us", "us"), ("E", "eu"), ("", "eu"), (" 1 ", "eu")]
)
def test_choices_by_number_by_word_and_by_default(person: Person, typed: str, answer: str) -> None:
    came = person.asked(Question("Which?", choices=("eu", "us"), default="eu"))
    person.until("2) us")
    person.until("[eu]> ")
    person.types(f"{typed}\n")
    assert person.ended(came) == Answers((answer,), "person")


def test_a_text_of_several_lines(person: Person) -> None:
    code = Question("The code", name="source", default="old", lines=True)
    came = person.asked(code, Question("Why?"))
    person.until("only .")
    for row in ("for n in range(3):", "    print(n)", "", "done = True", "."):
        person.until("> ")
        person.seen = ""
        person.types(f"{row}\n")
    person.until("Why?")
    person.until("> ")
    person.types("so\n")
    text = "for n in range(3):\n    print(n)\n\ndone = True"
    assert person.ended(came) == Answers((text, "so"), "person")


@pytest.mark.parametrize(("typed", "answer"), [("\n", "old"), (".\n", ""), ("new\n\x04", "new")])
def test_a_text_stays_or_ends(person: Person, typed: str, answer: str) -> None:
    came = person.asked(Question("The code", default="old", lines=True))
    person.until("> ")
    person.types(typed)
    assert person.ended(came) == Answers((answer,), "person")


def test_what_is_no_choice_is_asked_again(person: Person) -> None:
    came = person.asked(Question("Which?", choices=("yes", "yesterday")))
    for wrong in ("3", "0", "no", "y", "", "99999999999999"):
        person.until("> ")
        person.seen = ""
        person.types(f"{wrong}\n")
    person.until("> ")
    person.types("yes\n")
    assert person.ended(came).values == ("yes",)


def test_several_questions(person: Person) -> None:
    came = person.asked(Question("One?", name="one", kind="parameter"), Question("Two?"))
    person.until("one> ")
    person.types("1\n")
    person.until("Two?")
    person.types("2\n")
    assert person.ended(came).values == ("1", "2")


def test_a_secret_is_not_shown(person: Person) -> None:
    came = person.asked(Question("Password?", secret=True))
    person.until("> ")
    # The echo is switched off in the moment before reading begins.
    import termios

    for _ in range(1_000):
        if not termios.tcgetattr(person.terminal.stdin)[3] & termios.ECHO:
            break
        threading.Event().wait(0.005)
    person.types("hunter22\n")
    assert person.ended(came).values == ("hunter22",)
    person.until("> \r\n")
    assert "hunter22" not in person.seen
    assert termios.tcgetattr(person.terminal.stdin)[3] & termios.ECHO


def test_the_end_of_the_input_declines(person: Person) -> None:
    came = person.asked(Question("Well?"))
    person.until("> ")
    person.types("\x04")
    assert isinstance(person.ended(came), Declined)


def test_it_stops_when_the_answer_is_not_wanted_any_more(person: Person) -> None:
    off = threading.Event()
    came = person.asked(Question("Well?"), called_off=off.is_set)
    person.until("> ")
    off.set()
    assert person.ended(came) is None
    assert not person.terminal.busy


def test_nobody_is_asked_where_there_is_no_terminal() -> None:
    with open(os.devnull) as null:
        terminal = Terminal(1, null.fileno(), {}, stdin=null.fileno())
        assert TerminalAsker(terminal).ask([Question("Well?")]) is None
