"""A text as its readers come to see it. What a terminal obeys, and what no eye sees, may stand in
the middle of a secret: the masker does not find it there, and it comes off when it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..text import INVISIBLE, without_escapes

if TYPE_CHECKING:
    from .masker import Masker

_CONTROL = "\x00-\x07\x0b-\x1f\x7f-\x9f"  # but for tab, new line and backspace
_HIDING = re.compile(f"[{_CONTROL}{INVISIBLE}\b]")
_NOT_SHOWN = re.compile(f"[{_CONTROL}{INVISIBLE}]")
_ASCII = tuple(char for char in map(chr, range(128)) if _HIDING.match(char))
LONG = 500  # characters
# An escape sequence that may go on.
_OPEN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b\n]*|[PX^_][^\x1b\n]*)?\Z")
_TAIL = 4_096  # characters of a line that are looked at when more of it may come


def _may_hide(text: str) -> bool:
    if len(text) > LONG and text.isascii():  # a stream of megabytes: one by one is far quicker
        return any(char in text for char in _ASCII)
    return _HIDING.search(text) is not None


def undisguised(text: str, mask: Callable[[str], str]) -> str:
    """A text that is masked as it is, masked also as it is seen. It keeps what is in it of colours
    and the like unless they hid something."""
    if not _may_hide(text):
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


class SeenStream:
    """A masker for text that comes in pieces, also where a secret is disguised over several. The
    end of a line is kept back while it may be the beginning of one."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._stream = masker.stream()
        self._held = ""

    def feed(self, chunk: str) -> str:
        """What can be given out now."""
        text = self._held + chunk
        end = self._certain(text)
        self._held = text[end:]
        return undisguised(self._stream.feed(text[:end]), self._masker.mask)

    def flush(self) -> str:
        text, self._held = self._held, ""
        return undisguised(self._stream.feed(text) + self._stream.flush(), self._masker.mask)

    def _certain(self, text: str) -> int:
        begin = max(text.rfind("\n") + 1, len(text) - _TAIL)
        tail = text[begin:]
        if not _may_hide(tail):
            return len(text)
        if _OPEN.search(tail) or any(map(self._masker.may_begin, _views(tail))):
            return begin
        return len(text)
