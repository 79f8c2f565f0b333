from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from quire.errors import UsageError
from quire.kernel.calls import CallServer, HungUp, Line


@pytest.fixture
def server() -> Iterator[CallServer]:
    server = CallServer()
    yield server
    server.close()


def connect(line: Line) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(10)
    sock.connect(line.socket.replace("@", "\0", 1))
    return sock


def exchange(line: Line, data: bytes) -> Any:
    with connect(line) as sock:
        sock.sendall(data)
        answer = sock.makefile("rb").readline()
    return json.loads(answer) if answer else None


def call(line: Line, name: str = "echo", token: str | None = None, **arguments: Any) -> Any:
    request = {"token": token or line.token, "call": name, "arguments": arguments}
    return exchange(line, json.dumps(request).encode() + b"\n")


def echo(name: str, arguments: Any, hung_up: HungUp) -> Any:
    return {"call": name, **arguments}


def test_a_call_is_answered(server: CallServer) -> None:
    line = server.register(echo)
    assert call(line, x=[1, "é"]) == {"value": {"call": "echo", "x": [1, "é"]}}
    assert call(line, x=1) == {"value": {"call": "echo", "x": 1}}


def test_large_calls_and_answers(server: CallServer) -> None:
    line = server.register(echo)
    assert call(line, x="y" * 3_000_000)["value"]["x"] == "y" * 3_000_000


def test_each_run_has_its_own_line(server: CallServer) -> None:
    one = server.register(lambda *_: "one")
    two = server.register(lambda *_: "two")
    assert one.token != two.token
    assert (call(one), call(two)) == ({"value": "one"}, {"value": "two"})


REFUSED = "this run is over, or the call is not from its kernel"


def test_a_wrong_token_is_refused(server: CallServer) -> None:
    line = server.register(echo)
    for token in ("x", line.token[:-1], line.token + "x", "é", "\ud800"):
        assert call(line, token=token)["error"]["message"] == REFUSED


def test_after_the_end_of_a_run_it_is_refused(server: CallServer) -> None:
    line, other = server.register(echo), server.register(echo)
    server.forget(line)
    server.forget(line)
    assert call(line)["error"]["message"] == REFUSED
    assert "value" in call(other)


@pytest.mark.parametrize(
    "data", [b"\n", b"{\n", b"[]\n", b"null\n", b'"x"\n', b"\xff\n", b"{}\n", b"[" * 5000 + b"\n"]
)
def test_nonsense_is_refused_and_does_no_harm(server: CallServer, data: bytes) -> None:
    line = server.register(echo)
    assert "error" in exchange(line, data)
    assert "value" in call(line)


def test_too_large_a_call_is_refused(server: CallServer) -> None:
    line = server.register(echo)
    with connect(line) as sock:
        # The server may hang up before everything is sent.
        try:
            sock.sendall(b"x" * (9 << 20) + b"\n")
            answer = sock.makefile("rb").readline()
        except (BrokenPipeError, ConnectionResetError):
            answer = b""
    assert not answer or b"error" in answer
    assert "value" in call(line)


def test_what_goes_wrong_is_told(server: CallServer) -> None:
    def refuse(*_: Any) -> Any:
        raise UsageError("cannot", hint="try")

    def break_down(*_: Any) -> Any:
        raise ValueError("inside")

    told = call(server.register(refuse))["error"]
    assert (told["code"], told["message"], told["hint"]) == ("usage", "cannot", "try")
    told = call(server.register(break_down))["error"]
    assert (told["code"], told["message"]) == ("internal", "ValueError: inside")


def test_calls_do_not_wait_for_each_other(server: CallServer) -> None:
    go = threading.Event()
    slow = server.register(lambda *_: go.wait(10))
    quick = server.register(echo)
    answers: list[Any] = []
    waiting = threading.Thread(target=lambda: answers.append(call(slow)))
    waiting.start()
    assert "value" in call(quick)
    assert answers == []
    go.set()
    waiting.join(10)
    assert answers == [{"value": True}]


def test_a_caller_that_leaves_is_noticed(server: CallServer) -> None:
    begun, noticed = threading.Event(), threading.Event()

    def wait(_: str, __: Any, hung_up: HungUp) -> None:
        assert not hung_up.is_set()
        begun.set()
        for _ in range(1_000):
            if hung_up.is_set():
                noticed.set()
                return
            threading.Event().wait(0.005)

    line = server.register(wait)
    with connect(line) as sock:
        request = {"token": line.token, "call": "wait", "arguments": {}}
        sock.sendall(json.dumps(request).encode() + b"\n")
        assert begun.wait(10)
        assert not noticed.is_set()
    assert noticed.wait(10)


def test_it_closes_and_closes_again() -> None:
    server = CallServer()
    line = server.register(echo)
    server.close()
    server.close()
    with pytest.raises(OSError, match="refused"):
        connect(line)
