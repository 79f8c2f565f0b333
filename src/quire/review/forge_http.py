"""A forge's REST API over HTTP: one question, one answer, and an error that says what to do.

The token goes to one server only. It is in no message, and no redirect takes it elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import ForgeError
from .forge_address import host_of

if TYPE_CHECKING:
    import httpx2

CONNECT = 10.0  # seconds
ANSWER = 30.0  # between two pieces of an answer
WHOLE = 120.0  # for all of it
MOST = 32_000_000  # bytes of one answer
PAGE = 50
PAGES = 200
HOPS = 3
PAUSES = (0.2, 1.0)  # before the second and the third try of what may be tried again
PASSING = (429, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Token:
    """What the environment says. Never shown: not by repr either."""

    value: str = field(repr=False)
    variable: str = ""

    @classmethod
    def find(cls, env: Mapping[str, str], names: Sequence[str], kind: str) -> Token:
        for name in names:
            if value := env.get(name, "").strip():
                if not re.fullmatch(r"[!-~]{1,1000}", value):
                    raise ForgeError(
                        f"the token in {name} has characters that no token has",
                        hint=f"set {name} again, without spaces and line breaks",
                    )
                return cls(value, name)
        raise ForgeError(
            f"there is no token for {kind}",
            hint=f"make one on its settings page and set {' or '.join(names)}",
        )


@dataclass(frozen=True, slots=True)
class Server:
    """Which forge is asked, and how a person would name and mend things there."""

    kind: str  # as a person writes it: Gitea, GitHub
    api: str  # without a slash at the end
    headers: Mapping[str, str]
    scopes: str  # what the token must be allowed to do


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Rest:
    """`asked` is always what a person wanted: "open the proposal", not the path."""

    def __init__(
        self,
        server: Server,
        find: Callable[[], Token],
        *,
        transport: httpx2.BaseTransport | None = None,
        pause: Callable[[float], None] = time.sleep,
        answer: float = ANSWER,
    ) -> None:
        self.server = server
        self._find = find
        self.pause = pause
        self._transport = transport
        self._answer = answer
        self._client: httpx2.Client | None = None

    @cached_property
    def token(self) -> Token:
        """Looked for when it is first needed: naming a forge needs none."""
        return self._find()

    def get(self, asked: str, path: str, **query: str | int) -> Any:
        return self._value(asked, self._call(asked, "GET", path, query))

    def send(self, asked: str, method: str, path: str, body: Mapping[str, Any]) -> Any:
        """For what changes something: said once, never again by itself."""
        return self._value(asked, self.told(asked, method, path, body))

    def told(self, asked: str, method: str, path: str, body: Mapping[str, Any]) -> Answer:
        """The same where the answer may be empty."""
        return self._call(asked, method, path, {}, json.dumps(body).encode(), "application/json")

    def upload(self, asked: str, path: str, name: str, data: bytes) -> Any:
        # Not by chance, so that the same upload is the same request; the data cannot hold it.
        border = f"quire-{hashlib.sha256(data).hexdigest()}"
        head = (
            f'--{border}\r\nContent-Disposition: form-data; name="attachment"; filename="{name}"'
            "\r\nContent-Type: application/octet-stream\r\n\r\n"
        )
        body = head.encode() + data + f"\r\n--{border}--\r\n".encode()
        kind = f"multipart/form-data; boundary={border}"
        return self._value(asked, self._call(asked, "POST", path, {"name": name}, body, kind))

    def pages(self, asked: str, path: str, **query: str | int) -> Iterator[Any]:
        """Every item of a list. We count the pages: no address of theirs is followed."""
        seen = 0
        size = "per_page" if self.server.kind == "GitHub" else "limit"
        for page in range(1, PAGES + 1):
            got = self._call(asked, "GET", path, {**query, size: PAGE, "page": page})
            items = self._value(asked, got)
            if not isinstance(items, list):
                raise self._odd(asked, "with something else than a list")
            yield from items
            seen += len(items)
            total = got.headers.get("x-total-count", "")
            more = 'rel="next"' in got.headers.get("link", "")
            if not items or not (more or (total.isdigit() and seen < int(total))):
                return
        raise self._odd(asked, f"with more than {PAGES} pages")

    # One call.

    def _call(
        self,
        asked: str,
        method: str,
        path: str,
        query: Mapping[str, str | int],
        body: bytes | None = None,
        kind: str = "",
    ) -> Answer:
        url = f"{self.server.api}{path}"
        tries = len(PAUSES) + 1 if method == "GET" else 1
        for left in reversed(range(tries)):
            try:
                got = self._followed(asked, method, url, query, body, kind)
            except Unreached as error:
                if left and error.again:
                    self.pause(PAUSES[-left])
                    continue
                raise self._unreached(asked, error, method) from error.cause
            if got.status in PASSING and left and (wait := _wait(got, PAUSES[-left])) is not None:
                self.pause(wait)
                continue
            if got.status < 200 or got.status > 299:
                raise self.refused(asked, got)
            return got
        raise AssertionError("every try ends in an answer or an error")

    def _followed(
        self,
        asked: str,
        method: str,
        url: str,
        query: Mapping[str, str | int],
        body: bytes | None,
        kind: str,
    ) -> Answer:
        """A redirect on the same server is followed; one to elsewhere never."""
        import httpx2

        target = httpx2.URL(url, params=dict(query)) if query else httpx2.URL(url)
        for _ in range(HOPS):
            got = self._once(method, target, body, kind)
            if got.status not in (301, 302, 303, 307, 308):
                return got
            there = target.join(got.headers.get("location", ""))
            same = (there.scheme, there.host, there.port) == (
                target.scheme,
                target.host,
                target.port,
            )
            if not same or (method != "GET" and got.status not in (307, 308)):
                raise ForgeError(
                    f"{self._named()} says that {asked} belongs to another address: "
                    f"{self._clean(f'{there.scheme}://{there.netloc.decode()}{there.path}')}",
                    hint="has it moved? git remote set-url …, or forge.url in the configuration",
                )
            target = there
        raise self._odd(asked, "with one redirect after another")

    def _once(self, method: str, url: httpx2.URL, body: bytes | None, kind: str) -> Answer:
        import httpx2

        headers = {**self.server.headers, **({"Content-Type": kind} if kind else {})}
        end = time.monotonic() + WHOLE
        data = bytearray()
        try:
            with self._opened().stream(method, url, content=body, headers=headers) as response:
                for piece in response.iter_bytes():
                    data += piece
                    if len(data) > MOST or time.monotonic() > end:
                        raise Unreached("too_long", False)
                got = dict(response.headers)
                return Answer(response.status_code, got, bytes(data))
        except httpx2.ConnectTimeout as error:
            raise Unreached("no_connection", True, error) from error
        except httpx2.TimeoutException as error:
            raise Unreached("timeout", False, error) from error
        except httpx2.ConnectError as error:
            certificate = "certificate" in str(error).lower() or "ssl" in str(error).lower()
            raise Unreached(
                "tls" if certificate else "no_connection", not certificate, error
            ) from (error)
        except httpx2.TransportError as error:
            raise Unreached("broken_off", True, error) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unreached("broken_off", False, error) from error

    def _opened(self) -> httpx2.Client:
        import httpx2

        if self._client is None:
            self._client = httpx2.Client(
                headers={
                    "Authorization": f"token {self.token.value}",
                    "User-Agent": "quire",
                    "Accept": "application/json",
                },
                timeout=httpx2.Timeout(self._answer, connect=min(CONNECT, self._answer)),
                follow_redirects=False,
                transport=self._transport,
            )
        return self._client

    # What went wrong.

    def _value(self, asked: str, got: Answer) -> Any:
        if not got.body.strip():
            raise self._odd(asked, "with nothing")
        try:
            return json.loads(got.body)
        except (ValueError, RecursionError):
            start = got.body.lstrip()[:1]
            page = "html" in got.headers.get("content-type", "") or start == b"<"
            what = "with a web page" if page else "with broken JSON"
            raise self._odd(asked, what) from None

    def _odd(self, asked: str, what: str) -> ForgeError:
        return ForgeError(
            f"{self._named()} answered {what} when asked to {asked}",
            hint=f"is there really a {self.server.kind} at {self.server.api}, with no login page "
            "or proxy before it? forge.url in the configuration says where it is",
        )

    def _unreached(self, asked: str, error: Unreached, method: str) -> ForgeError:
        what, hint = _UNREACHED[error.what]
        if method != "GET" and error.what not in ("no_connection", "tls"):
            hint = (
                "it may have been done all the same: look with quire proposals before you repeat it"
            )
        raised = ForgeError(
            f"{self._named()} {what} when asked to {asked}" + self._cause(error), hint=hint
        )
        raised.retryable = error.what != "tls"
        return raised

    def _cause(self, error: Unreached) -> str:
        said = self._clean(str(error.cause or ""))
        return f": {said}" if said else ""

    def refused(self, asked: str, got: Answer) -> ForgeError:
        """What the server said no with, in one line, and the next step."""
        said = self._clean(spoken(got))
        # Gitea says 500 of some things that are not there.
        status = 404 if got.status == 500 and "does not exist" in said else got.status
        raised = Refused(
            f"{self._named()} refused to {asked}: {got.status}{f' {said}' if said else ''}",
            hint=self._hint(status, got, said),
        )
        raised.retryable = status in (429, 500, 502, 503, 504)
        raised.status = status
        raised.said = said
        return raised

    def _hint(self, status: int, got: Answer, said: str) -> str:
        name, kind = self.token.variable, self.server.kind
        wait = got.headers.get("retry-after", "")
        limited = got.headers.get("x-ratelimit-remaining") == "0" or "rate limit" in said.lower()
        if status == 429 or (status == 403 and (limited or wait)):
            again = f"in {wait} s" if wait.isdigit() else "in some minutes"
            return f"{kind} wants fewer questions: say it again {again}"
        return {
            401: f"the token in {name} is wrong, or has run out: make another and set {name}",
            403: f"the token in {name} may not do that: it needs {self.server.scopes}",
            404: f"check the number and the name; a token in {name} without {self.server.scopes} "
            "also sees nothing",
            405: "it cannot be merged as it is: look at it with quire review",
            409: "somebody changed it meanwhile, or there is one already: quire proposals",
            413: "it is too large for that server: link to it instead",
            422: "mend what it complains of and say it again",
        }.get(status, f"the fault is {kind}'s: look at its log, or say it again later")

    def _named(self) -> str:
        return f"{self.server.kind} at {host_of(self.server.api)}"

    def _clean(self, text: str) -> str:
        """A stranger's words in one line of ours; our token is not in them."""
        text = text.replace(self.token.value, "…")
        return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]+", " ", text).split())[:300]


class Refused(ForgeError):
    """With what the server said, for those who know what it means there."""

    status = 0
    said = ""


class Unreached(Exception):
    def __init__(self, what: str, again: bool, cause: Exception | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.again = again
        self.cause = cause


_UNREACHED = {
    "no_connection": ("could not be reached", "is it up, and the network? check git remote -v"),
    "timeout": ("did not answer in time", "say it again later, or look at the server"),
    "too_long": ("gave an answer without an end", "look at the server: no answer is that long"),
    "broken_off": ("broke off its answer", "say it again; if that stays so, look at the server"),
    "tls": (
        "has a certificate that is not trusted, or no TLS,",
        "check the address, or name the certificate of its authority in SSL_CERT_FILE",
    ),
}


def _wait(got: Answer, least: float) -> float | None:
    """How long to wait before asking again; None when that is longer than anyone would."""
    wanted = got.headers.get("retry-after", "")
    if wanted and not wanted.isdigit():
        return None
    seconds = max(least, float(wanted or 0))
    return seconds if seconds <= 5 else None


def spoken(got: Answer) -> str:
    """The message in an answer that says no; both forges put it in the same place."""
    try:
        said = json.loads(got.body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(said, dict):
        return ""
    parts = [said.get("message")]
    errors = said.get("errors")
    for error in errors if isinstance(errors, list) else []:
        if isinstance(error, dict):
            named = " ".join(str(error[k]) for k in ("field", "code") if error.get(k))
            parts.append(error.get("message") or named)
        else:
            parts.append(error)
    return "; ".join(part for part in parts if isinstance(part, str) and part)
