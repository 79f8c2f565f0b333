"""Questions that go to an agent's client."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from quire.agent.call_server import FarAsker
from quire.host.host_calls import Call
from quire.record.questions import Declined, Question


class Client(Call):
    """Answers at once, one after the other."""

    answers: list[str]

    def ask(
        self, questions: Sequence[Mapping[str, Any]], called_off: Callable[[], bool]
    ) -> Mapping[str, Any] | None:
        return {"values": [self.answers.pop(0)], "by": "ada"}


def asker(*answers: str) -> FarAsker:
    client = Client("", {}, "", {}, {}, socket.socket())
    client.sock.close()
    client.answers = list(answers)
    return FarAsker(client)


REGION = Question("Which region?", choices=("eu", "us"))


def test_an_answer_that_is_no_choice_is_asked_for_again() -> None:
    found = asker("x", "us").ask([REGION])
    assert found is not None
    assert found.values == ("us",)


def test_somebody_who_never_chooses_has_declined() -> None:
    with pytest.raises(Declined, match="none of the choices") as error:
        asker("x", "y", "z").ask([REGION])
    assert error.value.hint == "the choices: eu, us"


def test_the_choices_of_a_parameter_are_judged_by_its_type() -> None:
    found = asker("2").ask([Question("size?", "size", "parameter", ("2.0", "3.0"))])
    assert found is not None
    assert found.values == ("2",)
