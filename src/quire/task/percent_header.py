"""What stands above the cells of a `.py`: shebang, encoding line, YAML between `# ---` lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import DocumentError
from . import percent_marker
from .document import language_of

CODING = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)")
_JUPYTER = re.compile(r"jupyter\s*:\s*$")
_OURS = re.compile(r"(jupyter|quire)\s*:")
REPRESENTATION = {"extension": ".py", "format_name": "percent", "format_version": "1.3"}


@dataclass(slots=True)
class Header:
    metadata: dict[str, Any]
    # YAML beside `jupyter:` is front matter, which is a raw cell in a notebook.
    front: str | None = None
    start: int = 0
    end: int = 0

    @property
    def section(self) -> Mapping[str, Any]:
        """The settings of the text format."""
        found = self.metadata.get("jupytext")
        return found if isinstance(found, Mapping) else {}

    @property
    def format_name(self) -> str:
        """The text format a converter wrote; empty when the file does not say."""
        representation = self.section.get("text_representation")
        if not isinstance(representation, Mapping):
            return ""
        return str(representation.get("format_name", "percent"))

    @property
    def converted(self) -> bool:
        """Whether a converter wrote the cells. Only then are there comments that are code."""
        return bool(self.format_name) or self.section.get("comment_magics") is True

    @property
    def language(self) -> str:
        return language_of(self.metadata)


def read(lines: list[str]) -> Header:
    header = Header({})
    seen: dict[str, str] = {}
    if lines and lines[0].startswith("#!"):
        seen["executable"] = lines[0][2:]
        header.end = 1
    at = header.end
    if at < len(lines) and CODING.match(lines[at]) and not percent_marker.MARKER.match(lines[at]):
        seen["encoding"] = lines[at]
        header.end += 1
    header.start = header.end
    _read_yaml(header, lines)
    if seen:
        section = header.metadata.setdefault("jupytext", {})
        if isinstance(section, dict):
            section.update(seen)
    return header


def _read_yaml(header: Header, lines: list[str]) -> None:
    at = header.start
    while at < len(lines) and lines[at].startswith("#") and not lines[at][1:].strip():
        at += 1
    if at >= len(lines) or not _is_rule(lines[at]):
        return
    first = at + 1
    at = first
    while at < len(lines) and lines[at].startswith("#") and not _is_rule(lines[at]):
        at += 1
    if at >= len(lines) or not _is_rule(lines[at]):
        return
    _take(header, [uncommented(line) for line in lines[first:at]], at)
    header.end = at + 1
    if header.end < len(lines) and not uncommented(lines[header.end]).strip():
        header.end += 1


def uncommented(line: str) -> str:
    if line.startswith("# "):
        return line[2:]
    return line[1:] if line.startswith("#") else line


def _is_rule(line: str) -> bool:
    text = uncommented(line)
    return line.startswith("#") and text.startswith("---") and not text[3:].strip()


def _take(header: Header, body: list[str], at: int) -> None:
    jupyter: list[str] = []
    front: list[str] = []
    inside = False
    for line in body:
        if _JUPYTER.match(line):
            inside = True
        elif line and not line[0].isspace():
            inside = False
        (jupyter if inside else front).append(line)
    if jupyter:
        header.metadata = _metadata(jupyter, at)
    if front:
        header.front = "\n".join(["---", *front, "---"])


def _metadata(lines: list[str], at: int) -> dict[str, Any]:
    import yaml

    try:
        metadata = yaml.safe_load("\n".join(lines))["jupyter"]
        metadata = {} if metadata is None else percent_marker.plain(metadata)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _unreadable(at, error) from error
    if not isinstance(metadata, dict):
        raise DocumentError(
            f"`jupyter:` in the header that ends on line {at + 1} is not a mapping",
            hint="write `kernelspec:` and other keys below it, indented",
        )
    return metadata


def _unreadable(at: int, error: Exception) -> DocumentError:
    said = " ".join(str(error).split())
    return DocumentError(
        f"the YAML header that ends on line {at + 1} cannot be read: {said}",
        hint="correct the lines between the two `# ---` lines, or remove them",
    )


def check(lines: list[str]) -> None:
    """Raises where lines above the cells are meant as a header and are not read as one."""
    head = read(lines)
    if head.front is not None:
        last = max(n for n in range(head.end) if _is_rule(lines[n]))
        _check_front(head.front.split("\n")[1:-1], last)
        return
    cells = (n for n, line in enumerate(lines) if percent_marker.MARKER.match(line))
    above = lines[head.end : next(cells, len(lines))]
    rule = next((n for n, line in enumerate(above) if _is_rule(line)), len(above))
    if any(line[:1] == "#" and _OURS.match(uncommented(line)) for line in above[rule:]):
        raise DocumentError(
            f"what begins on line {head.end + rule + 1} is not read as a header",
            hint="a header is at the top: comment lines between two `# ---` lines",
        )


def _check_front(body: list[str], at: int) -> None:
    import yaml

    try:
        front = yaml.safe_load("\n".join(body))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _unreadable(at, error) from error
    jupyter = front.get("jupyter") if isinstance(front, dict) else None
    if isinstance(front, dict) and ("quire" in front or isinstance(jupyter, dict)):
        name = "quire" if "quire" in front else "jupyter"
        raise DocumentError(
            f"`{name}:` in the header that ends on line {at + 1} is not read",
            hint="write a line `# jupyter:`, and `#   quire:` and other keys below it, indented",
        )


def without_representation(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Notebook metadata without what only says how this text file is written."""
    out = dict(metadata)
    section = out.get("jupytext")
    if isinstance(section, Mapping):
        rest = {key: value for key, value in section.items() if key != "text_representation"}
        out["jupytext"] = rest
        if not rest:
            del out["jupytext"]
    return out


def write(metadata: Mapping[str, Any], front: str | None, *, converted: bool) -> list[str]:
    """The lines above the cells. `converted` says that magics and their look-alikes are escaped."""
    top, metadata = _top_lines(metadata)
    body: list[str] = front.split("\n")[1:-1] if front is not None else []
    if converted or metadata:
        import yaml

        section = metadata.get("jupytext", {})
        if isinstance(section, Mapping):
            metadata["jupytext"] = dict(section) | {"text_representation": REPRESENTATION}
        text = yaml.safe_dump({"jupyter": metadata}, allow_unicode=True, width=2**31)
        if len(text.splitlines()) != text.count("\n"):
            # Other readers break lines at U+2028 and its like: escape them.
            text = yaml.safe_dump({"jupyter": metadata}, width=2**31)
        body += text.rstrip("\n").split("\n")
    if body or front is not None:
        rules = ["---", *body, "---"]
        return [*top, *(f"# {line}" if line else "#" for line in rules), ""]
    return top


def _top_lines(metadata: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    rest = dict(metadata)
    section = rest.get("jupytext")
    if not isinstance(section, Mapping):
        return [], rest
    section = dict(section)
    top = []
    executable, encoding = section.pop("executable", None), section.pop("encoding", None)
    if isinstance(executable, str) and len(executable.splitlines()) == 1:
        top.append(f"#!{executable}")
    coding = CODING.match(encoding) if isinstance(encoding, str) else None
    # The text is written as UTF-8 whatever the file it came from was.
    if encoding and coding and coding[1].lower() in ("utf-8", "utf8"):
        top.append(encoding)
    rest["jupytext"] = section
    if not section:
        del rest["jupytext"]
    return top, rest
