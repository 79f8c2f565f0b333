"""Who may come in over HTTP, decided before anything else is looked at.

In order: Host and Origin, exactly; the token; the size of the body. Sessions belong to the token
that opened them, and each token has only so many: the one that was idle longest goes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..agent.token_file import Token

SESSIONS = 32  # of one token
SESSION = "mcp-session-id"
REQUESTS = 256  # at once
MAKE_ONE = "quire token create --agent NAME --scope run --scope write"


@dataclass(slots=True)
class Guard:
    app: ASGIApp
    check: Callable[[str], Token | None]
    hosts: Collection[str]
    origins: Collection[str]
    sessions: OrderedDict[str, str] = field(default_factory=OrderedDict)  # whose, oldest use first
    _busy: dict[str, int] = field(default_factory=dict)
    _requests: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(headers)
        token = None if refusal else self._token(headers)
        if refusal is None and token is None:
            refusal = _refused(401, "a valid token is required", MAKE_ONE)
            refusal.headers["WWW-Authenticate"] = "Bearer"
        if refusal is None and self._requests >= REQUESTS:
            refusal = _refused(503, "too many requests at once", "try again in a moment")
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        assert token is not None
        await self._serve(token, headers.get(SESSION, ""), scope, receive, send)

    def _refusal(self, headers: Headers) -> JSONResponse | None:
        """Pages in a browser can reach loopback: by another name, or from another origin."""
        given = headers.getlist("host")
        if len(given) != 1 or given[0].lower() not in self.hosts:
            return _refused(421, "this server does not answer to that Host", "--allow-host NAME")
        origins = headers.getlist("origin")
        if origins and (len(origins) != 1 or origins[0].lower() not in self.origins):
            return _refused(403, "pages from that Origin may not ask", "--allow-origin URL")
        return None

    def _token(self, headers: Headers) -> Token | None:
        given = headers.getlist("authorization")
        if len(given) != 1:
            return None
        kind, _, text = given[0].partition(" ")
        return self.check(text.strip()) if kind.lower() == "bearer" else None

    async def _serve(
        self, token: Token, session: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        access = AccessToken(token="", client_id=token.id, scopes=list(token.scopes))
        scope["user"] = AuthenticatedUser(access)
        scope["quire.token"] = token
        if session in self.sessions:
            self.sessions.move_to_end(session)
        opened: list[str] = []

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                name = Headers(raw=message.get("headers", [])).get(SESSION)
                if name and not session:
                    opened.append(name)
            await send(message)

        self._requests += 1
        self._busy[session] = self._busy.get(session, 0) + 1
        try:
            await self.app(scope, receive, watched)
        finally:
            self._requests -= 1
            self._busy[session] -= 1
            if not self._busy[session]:
                del self._busy[session]
        if scope["method"] == "DELETE":
            self.sessions.pop(session, None)
        for name in opened:
            self.sessions[name] = token.id
            await self._make_room(token)

    async def _make_room(self, token: Token) -> None:
        mine = [name for name, owner in self.sessions.items() if owner == token.id]
        for name in mine[: max(0, len(mine) - SESSIONS)]:
            if name in self._busy:
                continue
            del self.sessions[name]
            await self._end(name, token)

    async def _end(self, session: str, token: Token) -> None:
        """As its client would: by a DELETE of its own."""
        access = AccessToken(token="", client_id=token.id, scopes=list(token.scopes))
        host = next(iter(self.hosts))
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "DELETE",
            "scheme": "http",
            "path": "/mcp",
            "raw_path": b"/mcp",
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", host.encode()), (SESSION.encode(), session.encode())],
            "user": AuthenticatedUser(access),
        }
        sent = asyncio.Event()

        async def receive() -> Message:
            if sent.is_set():
                return {"type": "http.disconnect"}
            sent.set()
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_: Message) -> None:
            return

        await self.app(scope, receive, send)


def _refused(status: int, message: str, hint: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "hint": hint}}, status_code=status)
