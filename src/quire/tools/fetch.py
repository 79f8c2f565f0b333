"""One page over HTTP, for a cell: bounded in bytes, time and redirects, and every hop is judged."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import string
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urljoin

from ..errors import Refused, ToolError
from . import charsets
from .addresses import Lookup, Target, resolve, target

REDIRECTS = 5
TICK = 0.1
LONGEST_WAIT = 86_400.0  # seconds for one step of it
_MOVED = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Page:
    url: str  # where it was in the end
    kind: str  # its MIME type
    text: str
    cut: bool = False


def fetch(
    url: str,
    *,
    private: Sequence[str],
    limit: int,
    seconds: float,
    called_off: Callable[[], bool],
    lookup: Lookup = resolve,
) -> Page:
    deadline = time.monotonic() + seconds
    for _ in range(REDIRECTS + 1):
        found = target(url, private, lookup)
        with _connected(found, deadline, called_off) as connection:
            try:
                answer = _asked(connection, found)
                moved = answer.getheader("Location") if answer.status in _MOVED else None
                if moved is None:
                    page = _page(answer, url, limit)
                    if not page.cut and (called_off() or time.monotonic() >= deadline):
                        # We have cut it off ourselves, which looks as if it had ended.
                        raise TimeoutError
                    return page
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise _failed(url, error, deadline, called_off) from error
        url = _next(url, moved)
    raise Refused(f"{url} leads on more than {REDIRECTS} times")


def _next(url: str, moved: str) -> str:
    # What a server sends as it is comes as Latin-1; browsers write it as %XX.
    try:
        return urljoin(url, quote(moved.strip().encode("latin-1"), safe=string.punctuation))
    except ValueError as error:
        raise ToolError(f"{url} leads to what is no URL: {error}") from None


def _asked(connection: http.client.HTTPConnection, found: Target) -> http.client.HTTPResponse:
    connection.putrequest("GET", found.path, skip_host=True, skip_accept_encoding=True)
    for name, value in (
        ("Host", found.named),
        ("User-Agent", "quire"),
        ("Accept", "text/html, text/plain, application/json;q=0.9, */*;q=0.1"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
    ):
        connection.putheader(name, value)
    connection.endheaders()
    return connection.getresponse()


@contextlib.contextmanager
def _connected(
    found: Target, deadline: float, called_off: Callable[[], bool]
) -> Iterator[http.client.HTTPConnection]:
    """To the address that was judged. It is cut off when time is over, whatever the server does."""
    connection = http.client.HTTPConnection(found.host, found.port)  # it gets its socket from us
    over = threading.Event()
    sock = _reached(found, deadline, called_off)
    with contextlib.closing(sock):
        watch = threading.Thread(target=_cut_off, args=(sock, over, deadline, called_off))
        watch.daemon = True
        watch.start()
        try:
            if found.is_secure:
                import ssl

                context = ssl.create_default_context()
                try:
                    secure = context.wrap_socket(sock, server_hostname=found.host)
                except (OSError, ValueError) as error:
                    raise _failed(found.url.geturl(), error, deadline, called_off) from error
                connection.sock = secure
            else:
                connection.sock = sock
            yield connection
        finally:
            over.set()
            watch.join()
            connection.close()


def _reached(found: Target, deadline: float, called_off: Callable[[], bool]) -> socket.socket:
    """The first of its addresses that answers."""
    failed: OSError = OSError("it has no address")
    for address in found.addresses:
        left = deadline - time.monotonic()  # the system takes neither 0 nor for ever
        left = min(max(0.001, left), LONGEST_WAIT)
        try:
            return socket.create_connection((address, found.port), timeout=left)
        except OSError as error:
            failed = error
    raise _failed(found.url.geturl(), failed, deadline, called_off) from failed


def _cut_off(
    sock: socket.socket, over: threading.Event, deadline: float, called_off: Callable[[], bool]
) -> None:
    # wrap_socket takes the descriptor away from its socket: have one of our own.
    with contextlib.suppress(OSError), sock.dup() as own:
        while not over.wait(TICK):
            if called_off() or time.monotonic() > deadline:
                own.shutdown(socket.SHUT_RDWR)
                return


def _page(answer: http.client.HTTPResponse, url: str, limit: int) -> Page:
    if answer.status != 200:
        raise ToolError(f"{url} answered {answer.status} {answer.reason}")
    if answer.getheader("Content-Encoding", "identity").lower() != "identity":
        raise ToolError(f"{url} answered in an encoding that was not asked for")
    kind = (answer.getheader("Content-Type") or "").partition(";")[0].strip().lower()
    kind, unnamed = kind or "text/plain", not kind
    readable = kind.startswith("text/") or kind.endswith(("json", "xml"))
    if not readable:
        raise ToolError(f"{url} is {kind}, not a text", hint="fetch it in Python")
    parts: list[bytes] = []
    size = 0
    while size <= limit and (data := answer.read1(1 << 16)):
        parts.append(data)
        size += len(data)
    if size <= limit and answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    data = b"".join(parts)[:limit]
    if unnamed and _HTML.match(data[:_HEAD]):
        kind = "text/html"
    text = data.decode(_charset(answer, data, kind), "replace").removeprefix("\ufeff")
    if "\0" in text[:_HEAD]:
        raise ToolError(f"{url} is not a text", hint="fetch it in Python")
    return Page(url, kind, text, cut=size > limit)


_HEAD = 1024  # bytes in which a page says what it is, as browsers have it
_HTML = re.compile(rb"\s*<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_META = re.compile(rb"""<meta\s[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def _charset(answer: http.client.HTTPResponse, data: bytes, kind: str) -> str:
    """By the mark at its beginning, what the server says, what the page says; in that order."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return name
    if named := charsets.named_by_server(answer.getheader("Content-Type") or ""):
        return charsets.codec(named)
    said = _META.search(data[:_HEAD]) if "html" in kind else None
    return charsets.codec(said[1].decode("ascii"), by_page=True) if said else "utf-8"


def _failed(
    url: str, error: Exception, deadline: float, called_off: Callable[[], bool]
) -> ToolError:
    if called_off():
        return ToolError("called off")
    if time.monotonic() >= deadline:
        return ToolError(f"{url} took too long", hint="seconds under [tools] is the limit")
    return ToolError(f"{url}: {error}", hint="check the address")
