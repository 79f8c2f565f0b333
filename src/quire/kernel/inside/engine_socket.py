"""A cell's line to the engine: one call, one answer.

The token never travels. The engine begins with a challenge, and what is sent back is a digest of
it, the call and the token: a call that somebody recorded is worth nothing on another line.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import sys
from typing import Any

CALL_LIMIT = 16 << 20  # bytes of one call


class ToolRefused(RuntimeError):
    """The workspace's policy says no. `hint` says what would have to change."""

    hint = ""


class ToolFailed(RuntimeError):
    """The call was allowed and could not be done. `hint` says what may help."""

    hint = ""


for _cls in (ToolRefused, ToolFailed):
    _cls.__module__ = "quire.runtime"


def call(name: str, arguments: dict[str, Any]) -> Any:
    address, line, token = _where(name)
    try:
        body = json.dumps({"call": name, "arguments": arguments}).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"the arguments of {name}() must be JSON values: {error}") from None
    if len(body) > CALL_LIMIT:
        raise ValueError(f"{name}() was given {len(body):,} bytes; at most {CALL_LIMIT:,} are sent")
    with socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.connect(address.replace("@", "\0", 1))  # an abstract address, as ss shows it
            challenge = _challenge(sock)
            proof = hmac.new(token.encode(), challenge + body, hashlib.sha256).hexdigest()
            sock.sendall(f"{line} {proof} {len(body)}\n".encode() + body)
            reply = json.loads(_line(sock))
        except (OSError, ValueError) as error:
            raise RuntimeError("the engine that runs this notebook has gone") from error
    if "error" in reply:
        _raise(reply["error"])
    return reply["value"]


def _raise(error: dict[str, Any]) -> None:
    hint = error.get("hint") or ""
    kinds: dict[str, type[RuntimeError]] = {"refused": ToolRefused, "tool": ToolFailed}
    kind = kinds.get(str(error.get("code")), RuntimeError)
    raised = kind(f"{error['message']} ({hint})" if hint else str(error["message"]))
    if isinstance(raised, (ToolRefused, ToolFailed)):
        raised.hint = hint
    raise raised


def _challenge(sock: socket.socket) -> bytes:
    try:
        return _line(sock)
    except ConnectionResetError:
        raise ToolRefused("there are too many calls at a time: make fewer at once") from None


def _line(sock: socket.socket) -> bytes:
    parts: list[bytes] = []
    while not parts or not parts[-1].endswith(b"\n"):
        data = sock.recv(1 << 16)
        if not data:
            raise ConnectionResetError("the line was closed")
        parts.append(data)
    return b"".join(parts)[:-1]


def _where(name: str) -> tuple[str, str, str]:
    context = getattr(sys.modules.get("_quire_inside"), "context", None) or {}
    if not context.get("socket") or not context.get("token"):
        raise RuntimeError(f"{name}() works in a cell that Quire runs; here nobody answers")
    if context.get("pid") not in (None, os.getpid()):
        raise RuntimeError(
            f"{name}() was called in a child process, which the engine does not answer: "
            "call it in the cell and pass on what it gives"
        )
    return context["socket"], context["line"], context["token"]
