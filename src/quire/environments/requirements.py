"""What a task needs to have installed, by its own words.

In a `.py` or `.ipynb` it stands at the top of a code cell, as PEP 723 has it:

    # /// script
    # requires-python = ">=3.11"
    # dependencies = ["pandas>=2", "rich"]
    # ///

In front matter it is the keys `dependencies` and `requires-python`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import DocumentError
from ..task.document import Document

_MARK = "# /// script"
_END = "# ///"
_FRONT = re.compile(r"^(?:dependencies|requires[-_]python)[ \t]*:", re.MULTILINE)
_KEYS = ("dependencies", "requires-python", "tool")
_NEWER = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))?\Z")
_WRITE = 'write a name and, where it matters, versions: "pandas>=2,<4"'
LONGEST = 500
MOST = 500


@dataclass(frozen=True, slots=True)
class Dependencies:
    """As they are written; `checked` says whether they can be meant."""

    requires: tuple[str, ...]
    python: str = ""  # versions of Python, such as ">=3.11"
    newest: str = ""  # nothing that was published later

    def digest(self, *more: str) -> str:
        """The same for the same words, in whatever order the packages are named."""
        words = [sorted({" ".join(one.split()) for one in self.requires}), self.python, self.newest]
        return hashlib.sha256(json.dumps([*words, *more]).encode()).hexdigest()[:24]

    def as_json(self) -> dict[str, Any]:
        return {
            "dependencies": list(self.requires),
            **({"requires_python": self.python} if self.python else {}),
            **({"exclude_newer": self.newest} if self.newest else {}),
        }


def declared(document: Document) -> Dependencies | None:
    """What the task says it needs, or None where it says nothing of it."""
    if document.language != "python":
        return None
    found = [
        _inline(cell.source)
        for cell in document.cells
        if cell.kind == "code" and _MARK in cell.source and _stands_on_top(cell.source)
    ]
    first = document.cells[0] if document.cells else None
    if first is not None and first.kind == "raw" and first.source.startswith("---"):
        front = _front(first.source)
        found += [front] if front is not None else []
    if len(found) > 1:
        raise DocumentError(
            "the task declares its dependencies more than once",
            hint="keep one `# /// script` block, or the `dependencies:` of the front matter",
        )
    return found[0] if found else None


def given(requires: Any, python: Any, where: str) -> Dependencies:
    """From values that a reader of front matter or configuration has found."""
    if not isinstance(requires, list | tuple) or not all(isinstance(r, str) for r in requires):
        raise DocumentError(f"the dependencies of {where} are no list of texts", hint=_WRITE)
    if not isinstance(python, str):
        raise DocumentError(
            f"requires-python of {where} is not a text", hint='write versions: ">=3.11"'
        )
    return Dependencies(tuple(requires), python)


def _stands_on_top(source: str) -> bool:
    """Above all code: what stands further down may be the text of a string."""
    above = source[: source.index(_MARK)].split("\n")
    return all(not line.strip() or line.startswith("#") for line in above)


def _inline(source: str) -> Dependencies:
    lines = source.split("\n")
    starts = [at for at, line in enumerate(lines) if line.rstrip() == _MARK]
    if len(starts) != 1:
        said = "there is more than one" if starts else f"nothing else may stand on the line {_MARK}"
        raise DocumentError(f"the `{_MARK}` block cannot be read: {said}", hint="keep one")
    body: list[str] = []
    for line in lines[starts[0] + 1 :]:
        if line.rstrip() == _END:
            return _read("\n".join(body))
        if line.rstrip() != "#" and not line.startswith("# "):
            break
        body.append(line[2:])
    raise DocumentError(
        f"the `{_MARK}` block is not closed",
        hint=f"every line of it begins with `# `, and the last one is `{_END}`",
    )


def _read(text: str) -> Dependencies:
    import tomllib

    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DocumentError(
            f"the `{_MARK}` block is not valid TOML: {error}",
            hint='dependencies = ["pandas>=2", "rich"]',
        ) from error
    strange = sorted(set(found) - set(_KEYS))
    if strange:
        raise DocumentError(
            f"the `{_MARK}` block has {', '.join(strange)}", hint=f"it has {', '.join(_KEYS)}"
        )
    said = given(
        found.get("dependencies", []), found.get("requires-python", ""), f"the `{_MARK}` block"
    )
    return Dependencies(said.requires, said.python, _newest(found.get("tool")))


def _newest(tools: Any) -> str:
    """Of the settings for uv the one that says what is meant, and not where it is to be had."""
    table = tools.get("uv") if isinstance(tools, dict) else None
    if table is None:
        return ""
    strange = sorted(set(table) - {"exclude-newer"}) if isinstance(table, dict) else ["no table"]
    if strange:
        raise DocumentError(
            f"[tool.uv] in the `{_MARK}` block has {', '.join(strange)}, which is not followed",
            hint="where packages come from is set by whoever runs the task: uv.toml, or UV_INDEX",
        )
    newest = str(table.get("exclude-newer", ""))
    if newest and not _NEWER.match(newest):
        raise DocumentError(
            f"exclude-newer is {newest!r}, not a date", hint='exclude-newer = "2026-01-31"'
        )
    return newest


def _front(source: str) -> Dependencies | None:
    if not _FRONT.search(source):
        return None
    import yaml

    try:
        values = yaml.safe_load("\n".join(source.split("\n")[1:-1]))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise DocumentError(
            f"the front matter cannot be read: {said}", hint="correct the lines between `---`"
        ) from error
    if not isinstance(values, Mapping):
        return None
    python = values.get("requires-python", values.get("requires_python", ""))
    return given(values.get("dependencies") or [], python, "the front matter")


def checked(wanted: Dependencies) -> list[str]:
    """As an installer gets them: only names with versions; no options, addresses or paths."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    if len(wanted.requires) > MOST:
        raise DocumentError(f"there are {len(wanted.requires)} dependencies", hint="name fewer")
    out: list[str] = []
    for text in wanted.requires:
        shown = text if len(text) < 80 else f"{text[:79]}…"
        try:
            parsed = Requirement(text)
        except InvalidRequirement as error:
            said = str(error).split("\n")[0]
            raise DocumentError(
                f"the dependency {shown!r} is not a requirement: {said}", hint=_WRITE
            ) from error
        if parsed.url is not None or len(text) > LONGEST or not text.isprintable():
            raise DocumentError(
                f"the dependency {shown!r} is not a name with versions: addresses and paths are "
                "not taken",
                hint="build a wheel of it, and name its folder to uv: UV_FIND_LINKS=FOLDER",
            )
        out.append(str(parsed))
    try:
        SpecifierSet(wanted.python)
    except InvalidSpecifier as error:
        raise DocumentError(
            f"requires-python is {wanted.python!r}, which names no versions",
            hint='write it so: ">=3.11"',
        ) from error
    return out


def fits(python: str, version: str) -> bool:
    """Whether this version of Python is one that the task says it runs on."""
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(python).contains(version, prereleases=True)


# Locks: the text of a requirements file in which every package has one version.

_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:\[[A-Za-z0-9._, -]+\])?"
    r"==(?P<version>[A-Za-z0-9.!+_-]+)"
    r"(?P<marker>\s*;(?:(?!\s-)[^\\#\n])*)?"
    r"(?P<hashes>(?:\s*\\\n\s*--hash=sha256:[0-9a-f]{64})*)\Z"
)


def pins(text: str, name: str) -> list[tuple[str, str, str]]:
    """Each package of a lock: name, version, and the whole entry as it goes to the installer."""
    out: list[tuple[str, str, str]] = []
    for entry in _entries(text):
        match = _PIN.match(entry)
        if match is None:
            first = entry.split("\n")[0][:80]
            raise DocumentError(
                f"{name}: {first!r} is not a package with one version",
                hint="a lock is made by `quire env lock TASK`, and has nothing else in it",
            )
        out.append((match["name"], match["version"], entry))
    return out


def _entries(text: str) -> Iterable[str]:
    entry: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if not entry and (not line.strip() or line.startswith("#")):
            continue
        entry.append(line.rstrip())
        if not line.rstrip().endswith("\\"):
            yield "\n".join(entry)
            entry = []
    if entry:
        yield "\n".join(entry)
