"""Ask the configured language model for a text: one question, one answer, nothing remembered.

The endpoint speaks OpenAI's chat completions, as most servers do. What comes back is a stranger's
text: it is capped, and nobody here runs it or obeys it.
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
    429: "it wants fewer questions: say it again later",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask. The key is never shown: not by repr either."""

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
        _ = parts.port  # is looked at only when it is asked for
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


_ILL = re.compile(r"[^!-~]")


def _key(ws: Workspace, scheme: str, host: str) -> str:
    """The key, if it may go there. A configuration that came with a clone does not decide that."""
    name = ws.config.model.key_env
    if not name:
        return ""
    value = ws.env.get(name, "").strip()
    if not value:
        raise ConfigError(f"{name} is not set", hint=f"export {name}=…: model.key_env names it")
    if _ILL.search(value) or len(value) > 2_000:
        raise ConfigError(f"the key in {name} has characters that no key has", hint="set it again")
    if _loopback(host):
        return value
    if not trusted(ws, host):
        raise ConfigError(
            f"the key in {name} is not sent to {host}: nobody here said that it may be",
            hint=f"export {_HOST}={host}, where that is your model's server",
        )
    if scheme != "https":
        raise ConfigError(
            f"the key in {name} would go to {host} for anyone to read", hint="use https"
        )
    return value


def trusted(ws: Workspace, host: str) -> bool:
    """Whether somebody here said that what is ours may go there, or it is our own machine."""
    said = ws.env.get(_HOST, "").lower().split(",")
    return _loopback(host) or host.lower() in (each.strip() for each in said)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def complete(
    ws: Workspace, system: str, user: str, *, transport: httpx2.BaseTransport | None = None
) -> str:
    """The model's answer. Raises ConfigError or ModelError, and never returns half an answer."""
    asked = endpoint(ws)
    body = json.dumps(
        {
            "model": asked.model,
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": user},
            ],
            "stream": False,
        }
    )
    status, data = _posted(asked, body.encode(), transport)
    if status != 200:
        raise _refused(asked, status, data)
    return _text(asked, data)


def _posted(
    asked: Endpoint, body: bytes, transport: httpx2.BaseTransport | None
) -> tuple[int, bytes]:
    import httpx2

    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    headers["User-Agent"] = "quire"
    if asked.key:
        headers["Authorization"] = f"Bearer {asked.key}"
    limits = httpx2.Timeout(asked.timeout, connect=min(CONNECT, asked.timeout))
    end = time.monotonic() + asked.timeout
    # JSON may write one character in six bytes, and there is something around the text.
    most = asked.max_size * 6 + 65_536
    # A proxy of the environment has no business between us and our own machine.
    own = not _loopback(asked.host)
    data = bytearray()
    try:
        with (
            httpx2.Client(
                timeout=limits, follow_redirects=False, transport=transport, trust_env=own
            ) as client,
            client.stream("POST", asked.url, content=body, headers=headers) as response,
        ):
            for piece in response.iter_bytes():
                data += piece
                if len(data) > most:
                    raise ModelError(
                        f"the model at {asked.host} answered with more than {most:,} bytes",
                        hint="model.max_size in the configuration allows more",
                    )
                if time.monotonic() > end:
                    raise _late(asked)
            return response.status_code, bytes(data)
    except httpx2.TimeoutException as error:
        raise _late(asked) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise _failed(
            f"the model at {asked.host} could not be asked: {_clean(asked, str(error))}",
            "is it running, and is model.url right?",
        ) from error


def _late(asked: Endpoint) -> ModelError:
    return _failed(
        f"the model at {asked.host} did not answer within {asked.timeout:g} s",
        "model.timeout in the configuration gives it longer",
    )


def _failed(message: str, hint: str) -> ModelError:
    error = ModelError(message, hint=hint)
    error.retryable = True
    return error


def _refused(asked: Endpoint, status: int, data: bytes) -> ModelError:
    said = ""
    try:
        told: Any = json.loads(data)
        about = told.get("error", told) if isinstance(told, dict) else ""
        said = str(about.get("message", "") if isinstance(about, dict) else about)
    except (ValueError, RecursionError):
        pass
    said = _clean(asked, said)
    if 300 <= status < 400:
        hint = "it sends us elsewhere, where nobody follows: put that address into model.url"
    else:
        hint = _HINTS.get(status, "the fault is the server's: look at its log, or try again later")
    error = ModelError(
        f"the model at {asked.host} refused: {status}{f' {said}' if said else ''}",
        hint=hint.format(key=asked.variable or "model.key_env"),
    )
    error.retryable = status == 429 or status >= 500
    return error


def _text(asked: Endpoint, data: bytes) -> str:
    try:
        choice = json.loads(data)["choices"][0]
        content, ended = choice["message"]["content"], choice.get("finish_reason")
    except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
        content, ended = None, None
    if not isinstance(content, str) or not content.strip():
        raise ModelError(
            f"the model at {asked.host} answered with something else than a text",
            hint="model.url has to speak OpenAI's chat completions",
        )
    if ended == "length" or len(content) > asked.max_size:
        raise ModelError(
            f"the answer of the model at {asked.host} is too long",
            hint="ask for less, or set model.max_size higher",
        )
    return content


def _clean(asked: Endpoint, text: str) -> str:
    """A stranger's words in one line of ours; our key is not in them."""
    text = text.replace(asked.key, "…") if asked.key else text
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]+", " ", text).split())[:300]
