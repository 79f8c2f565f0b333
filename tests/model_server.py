"""A stand-in for an OpenAI-compatible server on loopback. It checks what it is asked.

It is no language model: it says what a test has laid ready, in order.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Said:
    """One answer: a text in a proper envelope, or a status and raw bytes."""

    text: str = ""
    status: int = 200
    raw: bytes | None = None
    finish: str = "stop"
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        if self.raw is not None:
            return self.raw
        message = {"role": "assistant", "content": self.text}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return json.dumps({"object": "chat.completion", "choices": [choice]}).encode()


@dataclass
class StandIn:
    url: str
    answers: list[Said]
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def violations(handler: BaseHTTPRequestHandler, body: bytes) -> Iterator[str]:
    """Where a request is not what the protocol has."""
    if handler.path != "/v1/chat/completions":
        yield f"path {handler.path}"
    if handler.headers.get("Content-Type") != "application/json":
        yield "content type"
    asked = json.loads(body)
    if set(asked) != {"model", "messages", "stream"} or asked["stream"] is not False:
        yield f"keys {sorted(asked)}"
    if [message["role"] for message in asked["messages"]] != ["system", "user"]:
        yield "roles"
    if not all(isinstance(message["content"], str) for message in asked["messages"]):
        yield "content"


@contextlib.contextmanager
def standing_in(*answers: Said) -> Iterator[StandIn]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            stand_in.wrong += violations(self, body)
            stand_in.asked.append(json.loads(body))
            stand_in.keys.append(self.headers.get("Authorization"))
            said = stand_in.answers.pop(0)
            data = said.body()
            self.send_response(said.status)
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stand_in = StandIn(f"http://127.0.0.1:{server.server_port}/v1", list(answers))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
