"""A text as its readers come to see it. What a terminal obeys, and what no eye sees, may stand in
the middle of a secret: the masker does not find it there, and it comes off when it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .printed import without_escapes

_CONTROL = "\x00-\x07\x0b-\x1f\x7f-\x9f"  # but for tab, new line and backspace
_UNSEEN = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_HIDING = re.compile(f"[{_CONTROL}{_UNSEEN}\b]")
_NOT_SHOWN = re.compile(f"[{_CONTROL}{_UNSEEN}]")


def undisguised(text: str, mask: Callable[[str], str]) -> str:
    """A text that is masked as it is, masked also as it is seen. It keeps what is in it of colours
    and the like unless they hid something."""
    if not _HIDING.search(text):
        return text
    for view in _views(text):
        masked = mask(view)
        if masked != view:
            return mask(masked.replace("\b", ""))
    return text


def _views(text: str) -> Iterator[str]:
    bare = _NOT_SHOWN.sub("", without_escapes(text.replace("\r\n", "\n")))
    yield bare
    if "\b" in bare:
        yield bare.replace("\b", "")  # as a page shows it
        yield _drawn(bare)  # as a terminal does


def _drawn(text: str) -> str:
    """A backspace takes back what stands before it on its line."""
    out: list[str] = []
    for char in text:
        if char != "\b":
            out.append(char)
        elif out and out[-1] != "\n":
            out.pop()
    return "".join(out)
