"""Reads the pages a person reads, finds what they claim, and runs it.

How to write a page that can be checked; directives are HTML comments right above a block:

    ```console     lines that start with `$ ` are run by bash, one after the other, in the page's
                   own scratch workspace, which has the repository's notebooks/ in it. The lines
                   below a command are its output, stdout and stderr together; without any, only the
                   exit status counts. `…` stands for anything.
    ```python      run as a script; a ```text block right below it is what it prints
    ```toml        must be a valid configuration
    ```json        must be JSON

A block whose fence is longer may hold others.

    <!-- file: NAME -->        the block below is not run but written to this file
    <!-- exit: 1 -->           the last command below ends with this status; otherwise it is 0
    <!-- output varies -->     the output below is an example; only the exit status counts
    <!-- run: COMMAND -->      run it, show nothing

Durations, times, memory, run ids, process ids and connection files are left out of the comparison
on both sides, so a page can show real output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# What agents read. It is run like the others, but an option told only there is not documented.
SKILL = sorted((ROOT / "src" / "quire" / "shipped" / "skill").rglob("*.md"))

_DIRECTIVE = re.compile(r"<!-- *(file|exit|run): *(.+?) *-->|<!-- *(output varies) *-->")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_HEADING = re.compile(r"(#+) (.*)")


@dataclass(frozen=True, slots=True)
class Command:
    line: str
    output: str = ""


@dataclass(slots=True)
class Block:
    """A fenced block, or a hidden command (language `run`)."""

    language: str
    text: str
    number: int  # of its first line
    file: str = ""
    exit: int = 0
    varies: bool = False

    def commands(self) -> Iterator[Command]:
        line = ""
        output: list[str] = []
        for row in self.text.splitlines():
            if row.startswith("$ "):
                if line:
                    yield Command(line, "\n".join(output))
                line, output = row[2:], []
            else:
                assert line, f"line {self.number}: output above the first command"
                output.append(row)
        yield Command(line, "\n".join(output))


@dataclass(slots=True)
class Page:
    path: Path
    text: str
    blocks: list[Block] = field(default_factory=list)

    @property
    def prose(self) -> str:
        """Without blocks and comments."""
        return _COMMENT.sub("", _without_blocks(self.text))

    def spans(self) -> list[str]:
        return _SPAN.findall(self.prose)

    def section(self, title: str) -> str:
        """Everything under the heading that has this text in it, down to the next as high."""
        found: list[str] = []
        level, taken, fenced = 0, False, ""
        for row in self.text.splitlines():
            fence = re.match(r"```+", row)
            if fence and fenced in ("", fence[0]):
                fenced = "" if fenced else fence[0]
            heading = None if fenced else _HEADING.match(row)
            if heading and (not taken or len(heading[1]) <= level):
                taken, level = title in heading[2], len(heading[1])
            if taken:
                found.append(row)
        return "\n".join(found)


def read(path: Path) -> Page:
    page = Page(path, path.read_text())
    block: Block | None = None
    pending: dict[str, str] = {}
    rows: list[str] = []
    fence = ""
    for number, row in enumerate(page.text.splitlines(), 1):
        if block is not None:
            if row.startswith(fence):
                block.text = "\n".join(rows)
                page.blocks.append(block)
                block, pending = None, {}
            else:
                rows.append(row)
        elif row.startswith("```"):
            exit_code, varies = int(pending.get("exit", 0)), "output varies" in pending
            file = pending.get("file", "")
            fence = "`" * (len(row) - len(row.lstrip("`")))
            language = row.strip("`").strip()
            block, rows = Block(language, "", number, file, exit_code, varies), []
        elif found := _DIRECTIVE.fullmatch(row.strip()):
            name, value = (found[1], found[2]) if found[1] else (found[3], "")
            if name == "run":
                page.blocks.append(Block("run", value, number))
            else:
                pending[name] = value
        elif row.strip():
            assert not pending, f"{path.name}:{number}: a directive stands right above its block"
    assert block is None, f"{path.name}: a block is not closed"
    return page


def _without_blocks(text: str) -> str:
    return re.sub(r"^(```+).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)


_VARYING = [
    (re.compile(r"\d{4}-\d\d-\d\d-\d{6}-([a-z0-9-]+)-[0-9a-f]{4}"), r"<run of \1>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*([+-]\d\d:?\d\d| UTC)?"), "<time>"),
    (re.compile(r'("(?:duration|uptime)": )[\d.e-]+'), r"\1#"),
    (re.compile(r"\b[\d.]+ m?s\b"), "# s"),
    (re.compile(r"\b[\d,.]+ MB\b"), "# MB"),
    (re.compile(r'(\bhost |"pid": )\d+'), r"\1#"),
    (re.compile(r"\S*/quire-\w{8}/kernel\.json"), "<connection file>"),
    (re.compile(r"-{20,}"), "---"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r" $", re.MULTILINE), ""),
]


def normal(text: str) -> str:
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text.strip()


def matches(expected: str, actual: str) -> bool:
    """Whether the output is what the page shows, up to what differs from run to run."""
    parts = [re.escape(part) for part in normal(expected).split("…")]
    return re.fullmatch(".*?".join(parts), normal(actual), re.DOTALL) is not None
