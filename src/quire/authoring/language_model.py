"""Ask the configured language model one question, over OpenAI's chat completions.

The answer is untrusted text: its size is limited, and nothing of it is run or obeyed.
"""

from __future__ import annotations

import ipaddress
import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import ConfigError, ModelError
from ..workspace import Workspace

if TYPE_CHECKING:
    import httpx2

CONNECT = 10.0  # seconds
_HOST = "QUIRE_MODEL_HOST"
_HINTS = {
    400: "does the server know model.model, and is model.url the address above /chat/completions?",
    401: "the key in {key} is wrong, or has run out",
    403: "the key in {key} may not use that model",
    404: "check model.url and model.model in the configuration",
    413: "say it in fewer words",
    429: "it wants fewer questions: try again later",
}
_ILL = re.compile(r"[^!-~]")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask. The key is never shown, by repr neither."""

    url: str
    host: str
    model: str
    timeout: float
    max_size: int
    key: str = field(default="", repr=False)
    variable: str = ""


def configured(ws: Workspace) -> bool:
    return bool(ws.config.model.url)


def endpoint(ws: Workspace) -> Endpoint:
    """As the configuration has it, checked before anything is sent."""
    settings = ws.config.model
    if not settings.url:
        raise ConfigError(
            "no language model is configured", hint='[model] url = "…" and model = "…"'
        )
    if not settings.model:
        raise ConfigError("model.url is set, and model.model is not", hint='model = "…"')
    try:
        parts = urlsplit(settings.url)
        host, odd = parts.hostname or "", parts.username or parts.query or parts.fragment
        _ = parts.port  # checked only when it is read
    except ValueError:
        parts, host, odd = urlsplit(""), "", ""
    if parts.scheme not in ("http", "https") or not host or odd or _ILL.search(settings.url):
        raise ConfigError(
            "model.url is no address of a server",
            hint='url = "https://host/v1": without a name, a key or a query in it',
        )
    url = settings.url.rstrip("/").removesuffix("/chat/completions") + "/chat/completions"
    key = _key(ws, parts.scheme, host)
    return Endpoint(
        url, host, settings.model, settings.timeout, settings.max_size, key, settings.key_env
    )


def _key(ws: Workspace, scheme: str, host: str) -> str:
    """The key, if it may go there. A configuration that came with a clone does not decide that."""
    name = ws.config.model.key_env
    value = ws.env.get(name, "").strip() if name else ""
    where, problem, hint = f"the key in {name}", "", ""
    if not name:
        return ""
    if not value:
        where, problem, hint = name, "is not set", f"export {name}=…: model.key_env names it"
    elif _ILL.search(value) or len(value) > 2_000:
        problem, hint = "has characters that no key has", "set it again"
    elif not trusted(ws, host):
        problem = f"is not sent to {host}: {_HOST} does not allow it"
        hint = f"export {_HOST}={host}, where that is your model's server"
    elif scheme != "https" and not _loopback(host):
        problem, hint = f"would go to {host} for anyone to read", "use https"
    if problem:
        raise ConfigError(f"{where} {problem}", hint=hint)
    return value


def trusted(ws: Workspace, host: str) -> bool:
    """Whether the user's environment allows to send data there, or it is this machine."""
    allowed = ws.env.get(_HOST, "").lower().split(",")
    return _loopback(host) or host.lower() in (each.strip() for each in allowed)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def complete(
    ws: Workspace, system: str, user: str, *, transport: httpx2.BaseTransport | None = None
) -> str:
    """The model's answer, whole. Raises ConfigError or ModelError."""
    asked = endpoint(ws)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    body = json.dumps({"model": asked.model, "messages": messages, "stream": False})
    status, data = _posted(asked, body.encode(), transport)
    if status != 200:
        raise _refused(asked, status, data)
    try:
        choice = json.loads(data)["choices"][0]
        content, ended = choice["message"]["content"], choice.get("finish_reason")
    except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
        content, ended = None, None
    name = f"the model at {asked.host}"
    if not isinstance(content, str) or not content.strip():
        hint = "model.url has to speak OpenAI's chat completions"
        raise ModelError(f"{name} answered with something else than a text", hint=hint)
    if ended == "length" or len(content) > asked.max_size:
        hint = "ask for less, or set model.max_size higher"
        raise ModelError(f"the answer of {name} is too long", hint=hint)
    return content


def _posted(
    asked: Endpoint, body: bytes, transport: httpx2.BaseTransport | None
) -> tuple[int, bytes]:
    import httpx2

    name = f"the model at {asked.host}"
    headers = {"Content-Type": "application/json", "User-Agent": "quire"}
    if asked.key:
        headers["Authorization"] = f"Bearer {asked.key}"
    limits = httpx2.Timeout(asked.timeout, connect=min(CONNECT, asked.timeout))
    end = time.monotonic() + asked.timeout
    # JSON may write one character in six bytes, and there is something around the text.
    most = asked.max_size * 6 + 65_536
    # A proxy of the environment is not used for this machine itself.
    client = httpx2.Client(timeout=limits, transport=transport, trust_env=not _loopback(asked.host))
    data = bytearray()
    try:
        with client, client.stream("POST", asked.url, content=body, headers=headers) as response:
            for piece in response.iter_bytes():
                data += piece
                if len(data) > most:
                    hint = "model.max_size in the configuration allows more"
                    raise ModelError(f"{name} answered with more than {most:,} bytes", hint=hint)
                if time.monotonic() > end:
                    raise httpx2.ReadTimeout("the whole answer")
            return response.status_code, bytes(data)
    except httpx2.TimeoutException as error:
        said = f"{name} did not answer within {asked.timeout:g} s"
        hint = "model.timeout in the configuration gives it longer"
        raise _retryable(ModelError(said, hint=hint)) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        said = f"{name} could not be asked: {_clean(asked, str(error))}"
        hint = "is it running, and is model.url right?"
        raise _retryable(ModelError(said, hint=hint)) from error


def _retryable(error: ModelError, is_so: bool = True) -> ModelError:
    error.retryable = is_so
    return error


def _refused(asked: Endpoint, status: int, data: bytes) -> ModelError:
    said = ""
    try:
        told: Any = json.loads(data)
        about = told.get("error", told) if isinstance(told, dict) else ""
        said = _clean(asked, str(about.get("message", "") if isinstance(about, dict) else about))
    except (ValueError, RecursionError):
        pass
    hint = "the fault is the server's: look at its log, or try again later"
    if 300 <= status < 400:
        hint = "redirects are not followed: put the address it leads to into model.url"
    hint = _HINTS.get(status, hint).format(key=asked.variable or "model.key_env")
    message = f"the model at {asked.host} refused: {status}{f' {said}' if said else ''}"
    return _retryable(ModelError(message, hint=hint), status == 429 or status >= 500)


def _clean(asked: Endpoint, text: str) -> str:
    """The server's words in one line, without our key."""
    text = text.replace(asked.key, "…") if asked.key else text
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]+", " ", text).split())[:300]
