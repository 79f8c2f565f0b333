"""A real HTTP server on loopback that answers as it is told, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Reply:
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    claim: int | None = None  # the length it says it has
    hang: bool = False  # says nothing until the server goes


@dataclass
class Asked:
    method: str
    path: str
    authorization: str
    body: bytes


class BadServer:
    def __init__(self, reply: Callable[[Asked], Reply]) -> None:
        self.asked: list[Asked] = []
        self.over = threading.Event()
        bad = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("content-length", 0))
                token = self.headers.get("authorization", "")
                asked = Asked(self.command, self.path, token, self.rfile.read(length))
                bad.asked.append(asked)
                made = reply(asked)
                if made.hang:
                    bad.over.wait(30)
                    return
                self.send_response(made.status)
                for name, value in made.headers.items():
                    self.send_header(name, value)
                size = len(made.body) if made.claim is None else made.claim
                self.send_header("content-length", str(size))
                self.end_headers()
                self.wfile.write(made.body)

            do_GET = do_POST = do_PATCH = do_PUT = answer

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextlib.contextmanager
def bad_server(reply: Callable[[Asked], Reply]) -> Iterator[BadServer]:
    made = BadServer(reply)
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.over.set()
        made.server.shutdown()
        thread.join()
        made.server.server_close()
