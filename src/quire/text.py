"""Text a notebook printed, made fit to show: escape sequences, carriage returns, sheer length."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

# The final byte may be missing: a sequence can be cut off at the end of a write or of a line.
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?"
    r"|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
    r"|[PX^_][^\x1b\n]*(?:\x1b\\)?"
    r"|[ -~])?"
)
_COLOUR = re.compile(r"\x1b\[([0-9;:]{0,64})m")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# What turns the reading direction around makes text look like something that it is not, and so does
# what some readers take for the end of a line.
_TURNS = re.compile(r"[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Symbols that have a form as text and one as a picture: a selector behind one says which.
_SYMBOL = "\u00a9\u00ae\u203c\u2049\u2100-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
_SYMBOL += "\U0001f000-\U0001faff"
# What cannot be seen: a text can be hidden in it, and it in a text.
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Selectors are left where they have something to select from, and joiners where there is something
# to join, which is never plain ASCII.
_UNSEEN = re.compile(
    f"[{INVISIBLE}]"
    f"(?<![{_SYMBOL}][\ufe0e\ufe0f])(?<![0-9#*]\ufe0f(?=\u20e3))"
    "(?<![^\0-\x7f\u200b-\u200f][\u200c\u200d])"
)
# What `fold` leaves where more came than a record keeps: it says where the rest is.
CUT = re.compile(r"^\[quire: [0-9,]+ characters of \w+ were cut here; .*\]$", re.MULTILINE)
LINE_LIMIT = 10_000


def scrubbed(text: str) -> str:
    """Text that UTF-8 can hold: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def plain(text: str) -> str:
    """Without escape sequences and control characters; what turns a text around, or ends a line for
    some readers only, is named."""
    if text.isprintable():
        return text  # so most short texts are, and nothing of theirs would go
    return _TURNS.sub(_named, _CONTROL.sub("", _ESCAPE.sub("", _overwritten(scrubbed(text)))))


def visible(text: str) -> str:
    """Source as it is: nothing in it is left out, and nothing is obeyed. `^M` is a return that
    ends no line: Python begins a new one there, a terminal would write over the old one. What
    cannot be seen is named: whoever changes a cell has to know that it is there."""
    return unseen_named(_CONTROL.sub(_marked, scrubbed(text).replace("\r\n", "\n")))


def unseen_named(text: str) -> str:
    """What cannot be seen, and what turns a text around, by its code: `<U+200B>`."""
    return _UNSEEN.sub(_named, text)


def _named(found: re.Match[str]) -> str:
    return f"<U+{ord(found[0]):04X}>"


def _marked(found: re.Match[str]) -> str:
    at = ord(found[0])
    return f"^{chr(at ^ 0x40)}" if at < 0x80 else _named(found)


def without_escapes(text: str) -> str:
    return _ESCAPE.sub("", text)


def text_of(value: Any) -> str:
    """A MIME bundle's value as text: a notebook may hold a string, lines, or JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "".join(value)
    return pretty(value)


def pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _overwritten(text: str) -> str:
    """A progress bar redraws its line after a carriage return: only the last drawing counts."""
    text = text.replace("\r\n", "\n")
    if "\r" not in text:
        return text
    return "\n".join(_last_drawn(line) for line in text.split("\n"))


def _last_drawn(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")


@dataclass(frozen=True, slots=True)
class Shortened:
    head: str
    omitted: int = 0  # lines
    tail: str = ""
    note: str = ""  # where the rest lies, if the omitted part said so


def shortened(text: str, lines: int) -> Shortened:
    """Head and tail of a long text. Very long lines lose their ends."""
    rows = _overwritten(text).rstrip("\n").split("\n")
    if len(rows) <= lines:
        return Shortened("\n".join(map(_clipped, rows)))
    half = lines // 2
    middle = "\n".join(rows[half:-half])
    cuts = CUT.findall(middle)
    return Shortened(
        "\n".join(map(_clipped, rows[:half])),
        len(rows) - 2 * half,
        "\n".join(map(_clipped, rows[-half:])),
        cuts[-1] if cuts else "",
    )


def _clipped(line: str) -> str:
    if len(line) <= LINE_LIMIT:
        return line
    return f"{line[:LINE_LIMIT]} … {len(line) - LINE_LIMIT:,} more characters"


@dataclass(frozen=True, slots=True)
class _Look:
    colour: str = ""
    bold: bool = False
    italic: bool = False
    underline: bool = False
    dim: bool = False
    marked: bool = False

    @property
    def classes(self) -> str:
        names = [f"a-{self.colour}"] if self.colour else []
        for name in ("bold", "italic", "underline", "dim", "marked"):
            if getattr(self, name):
                names.append(f"a-{name}")
        return " ".join(names)


_PLAIN = _Look()
_NAMES = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")
_SWITCHES: dict[int, dict[str, Any]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"marked": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"marked": False},
    49: {"marked": False},
}


def coloured(text: str) -> str:
    """HTML, escaped, with spans for the colours. Each maps to one of six names that a light and a
    dark page can both show; a background of any colour is a mark."""
    look, out = _PLAIN, []
    pieces = _COLOUR.split(_overwritten(scrubbed(text)))
    for at, piece in enumerate(pieces):
        if at % 2:
            look = _after(look, piece)
            continue
        shown = html.escape(_CONTROL.sub("", _ESCAPE.sub("", piece)), quote=False)
        if shown:
            classes = look.classes
            out.append(f'<span class="{classes}">{shown}</span>' if classes else shown)
    return "".join(out)


def _after(look: _Look, codes: str) -> _Look:
    numbers = iter([int(part or 0) for part in re.split("[;:]", codes)])
    for code in numbers:
        if code == 0:
            look = _PLAIN
        elif code in _SWITCHES:
            look = replace(look, **_SWITCHES[code])
        elif 30 <= code <= 37 or 90 <= code <= 97:
            look = replace(look, colour=_NAMES[code % 10])
        elif code == 39:
            look = replace(look, colour="")
        elif 40 <= code <= 47 or 100 <= code <= 107:
            look = replace(look, marked=True)
        elif code in (38, 48):
            name = _extended(numbers)
            look = replace(look, colour=name) if code == 38 else replace(look, marked=True)
    return look


def _extended(numbers: Iterator[int]) -> str:
    """The name nearest to a colour of the 256 or of all."""
    kind = next(numbers, 0)
    if kind == 2:
        red, green, blue = (min(next(numbers, 0), 255) for _ in range(3))
        return _nearest(red, green, blue)
    number = next(numbers, 0) if kind == 5 else 0
    if number < 16:
        return _NAMES[number % 8]
    if number >= 232:
        return ""
    number = (number - 16) % 216
    return _nearest(*(51 * part for part in (number // 36, number // 6 % 6, number % 6)))


def _nearest(red: int, green: int, blue: int) -> str:
    top, bottom = max(red, green, blue), min(red, green, blue)
    if top - bottom < 40:
        return ""
    middle = (top + bottom) / 2
    bright = (red > middle) + 2 * (green > middle) + 4 * (blue > middle)
    return _NAMES[bright]
