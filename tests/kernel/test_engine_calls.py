from __future__ import annotations

import hmac
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.errors import UsageError
from quire.kernel.engine_calls import (
    FEW,
    HELD,
    HELD_OF_ONE,
    MOST_OF_ONE,
    REQUEST_LIMIT,
    CallServer,
    HungUp,
    Line,
)


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


def read_line(sock: socket.socket) -> bytes:
    found = b""
    while not found.endswith(b"\n"):
        data = sock.recv(1 << 16)
        if not data:
            break
        found += data
    return found


def request(line: Line, challenge: bytes, body: bytes, token: str | None = None) -> bytes:
    key = (token or line.token).encode("utf-8", "replace")
    proof = hmac.new(key, challenge + body, "sha256").hexdigest()
    return f"{line.name} {proof} {len(body)}\n".encode() + body


def exchange(line: Line, data: bytes) -> Any:
    """What comes back for these bytes, whatever they are."""
    with connect(line) as sock:
        read_line(sock)
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it may hang up before everything is sent
        answer = read_line(sock)
    return json.loads(answer) if answer else None


def body_of(name: str, **arguments: Any) -> bytes:
    return json.dumps({"call": name, "arguments": arguments}).encode()


def call(line: Line, name: str = "echo", token: str | None = None, **arguments: Any) -> Any:
    return say(line, body_of(name, **arguments), token)


def say(line: Line, body: bytes, token: str | None = None) -> Any:
    with connect(line) as sock:
        challenge = read_line(sock)[:-1]
        sock.sendall(request(line, challenge, body, token))
        answer = read_line(sock)
    return json.loads(answer) if answer else None


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


NONSENSE = {
    "nothing": b"",
    "a line": b"\n",
    "one word": b"x\n",
    "no size": b"a b c\n",
    "a negative size": b"a b -1\n",
    "a huge size": b"a b 99999999999999999999\n",
    "another protocol": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "no UTF-8": b"\xff\xfe \x00 3\nabc",
    "an endless header": b"x" * 100_000,
    "less than it says": b"a b 100\nabc",
    "more than it says": b"a b 1\nabc",
    "too much": b"a b 16777217\n" + b"x" * (1 << 20),
}


@pytest.mark.parametrize("data", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_refused_and_does_no_harm(server: CallServer, data: bytes) -> None:
    line = server.register(echo)
    assert exchange(line, data)["error"]["code"] == "refused"
    assert "value" in call(line)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b"{}", b"[" * 100_000, b'{"call": 3}']
)
def test_what_is_no_call_is_refused_and_told(server: CallServer, body: bytes) -> None:
    told: list[str] = []
    line = server.register(echo, turned_away=told.append)
    assert say(line, body)["error"]["message"] == "that is not a call"
    assert told == ["that is not a call"]
    assert "value" in call(line)


def test_what_was_sent_once_cannot_be_sent_again(server: CallServer) -> None:
    """Each connection has its own challenge: a recording proves nothing."""
    told: list[str] = []
    line = server.register(echo, turned_away=told.append)
    body = body_of("echo", x=1)
    with connect(line) as sock:
        recorded = request(line, read_line(sock)[:-1], body)
        sock.sendall(recorded)
        assert json.loads(read_line(sock))["value"] == {"call": "echo", "x": 1}
    assert exchange(line, recorded)["error"]["message"] == REFUSED
    assert told == [REFUSED]


def test_a_changed_call_is_refused(server: CallServer) -> None:
    line = server.register(echo)
    with connect(line) as sock:
        sent = request(line, read_line(sock)[:-1], body_of("echo", x=1))
        sock.sendall(sent.replace(b'"x": 1', b'"x": 2'))
        assert json.loads(read_line(sock))["error"]["message"] == REFUSED


CHILD = """
import sys; sys.path.insert(0, sys.argv[1])
from test_engine_calls import *
print(json.dumps(call(Line(*sys.argv[2:]))))
"""


def from_a_child(line: Line) -> Any:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            CHILD,
            os.path.dirname(__file__),
            line.socket,
            line.name,
            line.token,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_only_the_process_it_is_for_may_call(server: CallServer) -> None:
    """Though a child knows everything that its parent does."""
    told: list[str] = []
    mine = server.register(echo, pid=os.getpid, turned_away=told.append)
    assert "value" in call(mine)
    assert "child process" in from_a_child(mine)["error"]["message"]
    assert len(told) == 1
    nobody = server.register(echo, pid=lambda: 0)
    assert "error" in call(nobody)


def test_the_first_to_call_is_the_one_where_that_is_not_known(server: CallServer) -> None:
    line = server.register(echo)
    assert call(line, name="hello") == {"value": None}
    assert "child process" in from_a_child(line)["error"]["message"]
    server.expect(line)
    assert "value" in from_a_child(line)
    assert "error" in call(line)


def test_another_kernel_of_the_run_has_a_line_that_the_first_does_not_know(
    server: CallServer,
) -> None:
    first = server.register(echo, pid=os.getpid)
    second = server.another(first)
    assert (second.token, second.name != first.name) == (first.token, True)  # masked with the other
    assert "value" in from_a_child(second)
    assert "child process" in call(second)["error"]["message"]
    assert "value" in call(first)
    server.forget(first)
    assert from_a_child(second)["error"]["message"] == REFUSED


def test_a_stranger_is_told_to_the_run_it_came_from(server: CallServer) -> None:
    told: list[str] = []
    line = server.register(echo, pid=os.getpid, turned_away=told.append)
    gone = server.register(echo)
    server.forget(gone)
    assert call(gone)["error"]["message"] == REFUSED
    assert told == [REFUSED]
    server.forget(line)
    call(line)
    assert server.strangers == 1


def test_a_flood_of_connections_is_held_off(server: CallServer) -> None:
    line = server.register(echo)
    held: list[socket.socket] = []
    try:
        for _ in range(200):
            held.append(connect(line))
            if not read_line(held[-1]):
                break
        assert len(held) == MOST_OF_ONE + 1
    finally:
        for sock in held:
            sock.close()
    for _ in range(1_000):
        try:
            assert "value" in call(line)
            break
        except OSError:
            threading.Event().wait(0.005)
    else:
        raise AssertionError("it does not answer any more")


OUT_OF_DESCRIPTORS = """
import os, resource, socket, sys, time
from quire.kernel.engine_calls import CallServer
sys.path.insert(0, sys.argv[1])
import knock

server = CallServer(descriptors=-1)
line = server.register(lambda name, given, _: name)
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
told, tell = os.pipe()
many = os.fork()
if not many:
    held = []
    for _ in range(30):
        held.append(socket.socket(socket.AF_UNIX))
        held[-1].setblocking(False)
        held[-1].connect(line.socket.replace("@", "\\0", 1))
    os.write(tell, b"held")
    time.sleep(100)
more = os.fork()
if not more:
    os.read(told, 4)
    held = []
    for _ in range(30):
        held.append(socket.socket(socket.AF_UNIX))
        held[-1].setblocking(False)
        held[-1].connect(line.socket.replace("@", "\\0", 1))
    time.sleep(100)
while True:
    try:
        os.close(os.dup(0))
    except OSError:
        break
    time.sleep(0.005)
for child in (many, more):
    os.kill(child, 9)
    os.waitpid(child, 0)
print(knock.say(line.as_context(), "again"))
server.close()
print("closed")
"""


def test_it_goes_on_when_there_were_no_descriptors_left() -> None:
    folder = str(Path(__file__).parents[1] / "endtoend")
    done = subprocess.run(
        [sys.executable, "-c", OUT_OF_DESCRIPTORS, folder],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "{'value': 'again'}\nclosed\n", done.stderr


def test_its_calls_do_not_take_all_descriptors_of_the_process() -> None:
    server = CallServer(descriptors=64)
    line = server.register(echo)
    held: list[socket.socket] = []
    try:
        while len(held) < 100:
            held.append(connect(line))
            if not read_line(held[-1]):
                break
        assert len(held) == 64 // 4 + 1
    finally:
        for sock in held:
            sock.close()
        server.close()


HOLDS = """
import socket, sys, time
held = []
for _ in range(40):
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].connect(sys.argv[1].replace("@", "\\0", 1))
    held[-1].recv(1)
print(flush=True)
time.sleep(100)
"""


def test_what_a_kernel_started_is_counted_together(server: CallServer) -> None:
    """Also where each has a session of its own; and the kernel is answered all the same."""
    told: list[str] = []
    line = server.register(echo, pid=os.getpid, turned_away=told.append)
    children = [
        subprocess.Popen(
            [sys.executable, "-c", HOLDS, line.socket],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        for _ in range(2)
    ]
    try:
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        assert told == ["there were too many calls at a time"] * (80 - FEW)
        assert "value" in call(line)
    finally:
        for child in children:
            child.kill()
            child.wait()
            assert child.stdout is not None
            child.stdout.close()


def test_the_kernels_of_one_run_are_counted_together(server: CallServer) -> None:
    line = server.register(echo, pid=os.getpid)
    other = server.another(line)
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    ) as process:
        assert server._kernel_of(process.pid) == (os.getpid(), line.token)
        server._lines[other.name].first = process.pid
        assert server._kernel_of(process.pid) == (process.pid, line.token)
        assert server._kernel_of(1) == (0, "")
        process.kill()


def said(line: Line, body: bytes) -> Any:
    with connect(line) as sock:
        challenge = read_line(sock)[:-1]
        sock.sendall(request(line, challenge, body))
        return json.loads(read_line(sock))


def test_a_call_of_very_many_values_is_not_even_read(server: CallServer) -> None:
    """In memory they would take a hundred times what they take on the line."""
    line = server.register(lambda name, given, _: len(given["text"]))
    many = b'{"call": "x", "arguments": {"text": [' + b"[]," * 1_000_000 + b"[]]}}"
    assert "at most 200,000 values" in said(line, many)["error"]["message"]
    for unclosed in (b'"' + b'\\"' * 4_000_000, b'"' + b'\\"' * 4_000_000 + b"\\"):
        assert said(line, unclosed)["error"]["message"] == "that is not a call"
    wide = many.decode().encode("utf-16")
    assert "error" in said(line, wide)
    text = '[,{\\"' * 1_000_000
    body = json.dumps({"call": "x", "arguments": {"text": text}}).encode()
    assert said(line, body) == {"value": len(text)}


def test_large_calls_wait_for_each_other(
    server: CallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.kernel.engine_calls.HELD", 3 << 20)
    begun, go = threading.Event(), threading.Event()

    def wait(*_: Any) -> bool:
        begun.set()
        return go.wait(10)

    line, small = server.register(wait), server.register(echo)
    body = json.dumps({"call": "x", "arguments": {"text": "x" * (2 << 20)}}).encode()
    answers: list[Any] = []
    first = threading.Thread(target=lambda: answers.append(said(line, body)))
    first.start()
    assert begun.wait(10)
    assert "value" in call(small)
    monkeypatch.setattr("quire.kernel.engine_calls.PATIENCE", 0.2)
    assert "too many large calls" in said(line, body)["error"]["message"]
    monkeypatch.setattr("quire.kernel.engine_calls.PATIENCE", 10.0)
    second = threading.Thread(target=lambda: answers.append(said(line, body)))
    second.start()
    go.set()
    first.join(10)
    second.join(10)
    assert answers == [{"value": True}] * 2


@pytest.mark.parametrize("known", [False, True])
def test_nothing_is_held_for_a_large_call_of_a_stranger(server: CallServer, known: bool) -> None:
    """It is not even waited for."""
    line = server.register(echo, pid=lambda: 1)
    name = line.name if known else "a"
    assert exchange(line, f"{name} b {REQUEST_LIMIT}\n".encode())["error"]["message"] == REFUSED
    assert not server._held


def test_large_calls_of_one_run_do_not_take_the_room_of_others(server: CallServer) -> None:
    greedy, other = server.register(echo), server.register(echo)
    held: list[socket.socket] = []
    try:
        for _ in range(HELD // REQUEST_LIMIT):
            held.append(connect(greedy))
            read_line(held[-1])
            held[-1].sendall(f"{greedy.name} b {REQUEST_LIMIT}\n".encode())
        while server._held[greedy.token] < HELD_OF_ONE:
            threading.Event().wait(0.005)
        body = json.dumps({"call": "x", "arguments": {"text": "x" * (2 << 20)}}).encode()
        assert said(other, body)["value"]["text"] == "x" * (2 << 20)
        assert server._held[greedy.token] == HELD_OF_ONE
    finally:
        for sock in held:
            sock.close()


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
        challenge = read_line(sock)[:-1]
        sock.sendall(request(line, challenge, body_of("wait")))
        assert begun.wait(10)
        # What is sent after the call does not hide that the caller has gone.
        sock.sendall(b"more")
        assert not noticed.is_set()
    assert noticed.wait(10)


def test_it_closes_and_closes_again() -> None:
    server = CallServer()
    line = server.register(echo)
    server.close()
    server.close()
    with pytest.raises(OSError, match="refused"):
        connect(line)
