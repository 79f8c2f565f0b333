"""Find the fenced code blocks of Markdown, and read what stands behind a fence.

By CommonMark's rules as far as fences go: three or more of "`" or "~", closed by at least as many;
up to three spaces before them, or as deep as the list item they belong to. What stands in a
comment or a quotation is shown, not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})(.*)$")
_ITEM = re.compile(r"( *)(?:[-*+]|[0-9]{1,9}[.)])( +|$)")
_TOKEN = re.compile(
    r"""\s*,?\s*(?:
        (?P<key>[A-Za-z_][\w.-]*)\s*(?:=\s*|:\s+|:(?=["'\[])|:(?=(?:true|false|yes|no)(?:[\s,]|$)))
        (?P<value>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\[[^\]]*\]|[^\s,]+)
      | [#](?P<id>[\w-]+)
      | (?P<word>[^\s,]+)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Block:
    """Lines `first` to `last`, fences included. `closed` is false where the text ends before."""

    first: int
    last: int
    indent: str
    fence: str
    info: str
    closed: bool = True


@dataclass(frozen=True, slots=True)
class Info:
    """What stands behind a fence: "python title="Load" approve: true raises-exception"."""

    language: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()


def blocks(lines: list[str], start: int = 0) -> Iterator[Block]:
    """Every fenced block that is not in a comment, in order. Lines have no line ends."""
    items: list[int] = []  # how deep the text of each open list item stands
    comment = False
    at = start
    while at < len(lines):
        line = lines[at]
        if comment:
            comment = "-->" not in line
        elif re.match(r" {0,3}<!--", line):
            comment = "-->" not in line[line.index("<!--") + 4 :]
        elif line.strip():
            found = _opening(line, items)
            if found is not None:
                block = _block(lines, at, *found)
                yield block
                at = block.last
            else:
                items = _items(line, items)
        at += 1


def alone(lines: list[str]) -> Block | None:
    """The block that these lines are, however deep it stood where they come from."""
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip(" \t"))] if lines else ""
    found = _opening(lines[0], [_width(indent)]) if lines else None
    block = _block(lines, 0, *found) if found else None
    return block if block and block.last == len(lines) - 1 else None


def _items(line: str, items: list[int]) -> list[int]:
    """The list items that are open after a line."""
    depth = _width(line[: len(line) - len(line.lstrip())])
    items = [item for item in items if item <= depth]
    found = _ITEM.match(line)
    while found and found[2]:
        items.append(found.end())
        inner = _ITEM.match(line, found.end())
        found = inner if inner and not inner[1] else None
    return items


def _width(indent: str) -> int:
    return len(indent.expandtabs(4))


def _opening(line: str, items: list[int]) -> tuple[str, str, str] | None:
    found = _FENCE.match(line)
    if found is None or (found[2][0] == "`" and "`" in found[3]):
        return None
    depth = _width(found[1])
    base = max((item for item in items if item <= depth), default=0)
    return (found[1], found[2], found[3].strip()) if depth - base <= 3 else None


def _block(lines: list[str], first: int, indent: str, fence: str, info: str) -> Block:
    depth = _width(indent)
    for at in range(first + 1, len(lines)):
        found = _FENCE.match(lines[at])
        if (
            found is not None
            and found[2].startswith(fence)
            and not found[3].strip()
            and _width(found[1]) <= depth + 3
        ):
            return Block(first, at, indent, fence, info)
    return Block(first, len(lines) - 1, indent, fence, info, closed=False)


def content(lines: list[str], block: Block) -> list[str]:
    """The lines between the fences, as far to the left as the fence lets them be."""
    inner = lines[block.first + 1 : block.last + (not block.closed)]
    return [_outdented(line, block.indent) for line in inner] if block.indent else inner


def _outdented(line: str, indent: str) -> str:
    if line.startswith(indent):
        return line[len(indent) :]
    depth = _width(indent)
    own = len(line) - len(line.lstrip(" "))
    return line[min(own, depth) :]


def parse(info: str) -> Info:
    """Reads `python key=value`, `python key: value`, `{python}` and `{.python #name key=value}`."""
    text = info.strip()
    if text.startswith("{"):
        text = text[1:].removesuffix("}").strip().removeprefix(".")
    elif text.endswith("}") and "{" in text:
        text = text.replace("{", " ", 1).removesuffix("}")
    language, _, rest = text.partition(" ") if " " in text else (text, "", "")
    if "," in language:  # R Markdown: {r, echo=FALSE}
        language, _, more = text.partition(",")
        rest = more
    options: dict[str, Any] = {}
    words: list[str] = []
    for token in _TOKEN.finditer(rest):
        if token["key"]:
            options[token["key"].lower()] = _value(token["value"])
        elif token["id"]:
            options["id"] = token["id"]
        else:
            words.append(token["word"].removeprefix("."))
    return Info(language.strip(), options, tuple(words))


def _value(text: str) -> Any:
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text.startswith("["):
        return [_value(part.strip()) for part in text[1:-1].split(",") if part.strip()]
    return _WORDS.get(text.lower(), text)


def quoted(value: str) -> str:
    """A value as it stands behind a fence, where a backtick would end the fence's line."""
    return '"' + re.sub(r'(["\\])', r"\\\1", value.replace("`", "'")) + '"'
