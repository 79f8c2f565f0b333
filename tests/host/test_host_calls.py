"""A structured call to the host, over a real socket pair."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.host import host_socket
from quire.host.host_calls import Call, Line, Lost, messages
from quire.host.host_server import Host, status, stop


def echo(call: Call) -> dict[str, Any]:
    if call.name == "ask":
        told = call.ask([{"text": "why?"}], bool)
        return {"heard": told and told["values"]}
    if call.name == "fault":
        raise RuntimeError("broken")
    if call.name == "until":
        call.say({"at": 1})
        assert call.cancelled.wait(30) or call.left.wait(30)
        return {"cancelled": call.cancelled.is_set()}
    return {"arguments": dict(call.arguments), "cwd": call.cwd, "x": call.env["X"]}


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    path = str(tmp_path / "host.sock")
    host = Host(path, lambda _: 0, answer=echo)
    assert host.listen()
    # Without serve(), which wants the main thread for its signals.
    accepting = threading.Thread(target=accept, args=(host,), daemon=True)
    accepting.start()
    sock = host_socket.connect(path)
    assert sock is not None
    made = Line(socket.socket(fileno=sock.detach()))
    yield made
    made.close()


def accept(host: Host) -> None:
    sock, _ = host._listener.accept()
    host._client(sock)


def answer(line: Line) -> Any:
    return [m["answer"] for m in line.follow() if "answer" in m][-1]


def test_what_is_asked_comes_over_whole(line: Line) -> None:
    big = "ä\n\0" * 200_000
    line.request("echo", {"big": big}, "/somewhere", {"X": "\udcff"})
    assert answer(line) == {"arguments": {"big": big}, "cwd": "/somewhere", "x": "\udcff"}


def test_the_host_asks_back(line: Line) -> None:
    line.request("ask", {}, "/", {})
    for message in line.follow():
        if "ask" in message:
            assert message["questions"] == [{"text": "why?"}]
            line.reply(message["ask"], ["because"], "me", declined=False)
        elif "answer" in message:
            assert message["answer"] == {"heard": ["because"]}


def test_a_fault_is_told(line: Line) -> None:
    line.request("fault", {}, "/", {})
    assert answer(line) == {"fault": "RuntimeError: broken"}


def test_calling_off_is_said_and_not_guessed(line: Line) -> None:
    line.request("until", {}, "/", {})
    for message in line.follow():
        if message.get("say") == {"at": 1}:
            line.send({"cancel": True})
        elif "answer" in message:
            assert message["answer"] == {"cancelled": True}


def test_a_host_that_goes_is_lost() -> None:
    ours, theirs = socket.socketpair()
    line = Line(ours)
    line.request("echo", {}, "/", {})
    theirs.close()
    with pytest.raises(Lost):
        list(line.follow())
    line.close()


def test_messages_are_put_together_however_they_are_cut() -> None:
    ours, theirs = socket.socketpair()
    text = b"".join(json.dumps({"n": n, "x": "y" * n}).encode() + b"\n" for n in range(50))
    with ours, theirs:
        for at in range(3, len(text), 61):
            theirs.send(text[at : at + 61])
        theirs.shutdown(socket.SHUT_WR)
        assert [m["n"] for m in messages(ours, text[:3])] == list(range(50))


def test_what_is_no_request_is_dropped(tmp_path: Path) -> None:
    path = str(tmp_path / "host.sock")
    host = Host(path, lambda _: 0, answer=echo)
    assert host.listen()
    for body in (b"call", b"call\xff\xff\xff\xff{}", b"call\0\0\0\2[]", b"call\0\0\0\4{}{}"):
        sock = host_socket.connect(path)
        assert sock is not None
        sock.sendall(body)
        sock.shutdown(socket.SHUT_WR)
        accept(host)
        assert sock.recv(10) == b""
        sock.close()
    os.unlink(path)
    assert status(path) is None
    assert not stop(path)
