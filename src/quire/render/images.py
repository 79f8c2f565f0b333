"""The picture in a MIME bundle, checked to be one before it goes into a page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from ..text import scrubbed, text_of

BEGINNING = 16  # characters, which a picture has more of than any magic number needs
# SVG first: it is sharp at every size. As an image it cannot run the scripts it may hold.
_MAGIC = {
    "image/svg+xml": b"",
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def picture(data: Mapping[str, Any]) -> tuple[str, str] | None:
    """MIME type and base64 payload of the best picture, or None."""
    for mime, magic in _MAGIC.items():
        if mime in data:
            payload = _payload(mime, text_of(data[mime]), magic)
            if payload:
                return mime, payload
    return None


def raster(data: Mapping[str, Any]) -> tuple[str, str] | None:
    """The same, but only of pixels: what a reader who sees images can be given. Looks at its
    beginning alone: whoever opens it sees the rest."""
    for mime in ("image/png", "image/jpeg", "image/webp", "image/gif"):
        if mime in data:
            joined = "".join(text_of(data[mime]).split())
            if _checked_base64(joined[:BEGINNING], _MAGIC[mime]):
                return mime, joined
    return None


def data_uri(mime: str, payload: str) -> str:
    return f"data:{mime};base64,{payload}"


def checked(uri: str) -> str | None:
    """A data URI as it may stand in a page, or None if it is no picture."""
    head, comma, payload = uri.strip().partition(",")
    mime = head.removeprefix("data:").removesuffix(";base64").lower()
    if not comma or head != f"data:{mime};base64" or mime not in _MAGIC:
        return None
    found = _checked_base64(payload, _MAGIC[mime])
    return data_uri(mime, found) if found else None


def _payload(mime: str, text: str, magic: bytes) -> str:
    if mime == "image/svg+xml" and "<" in text:
        return base64.b64encode(scrubbed(text).encode()).decode()
    return _checked_base64(text, magic)


def _checked_base64(text: str, magic: bytes) -> str:
    """The payload without its line breaks; empty if it is not base64 of such a picture."""
    joined = "".join(text.split())
    try:
        raw = base64.b64decode(joined, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return joined if raw and raw.startswith(magic) else ""
