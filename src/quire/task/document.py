"""The parsed task: one model for every format. Values only, no I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import DocumentError

CellKind = Literal["code", "markdown", "raw"]
Format = Literal["percent", "ipynb", "logbook"]
NO_CELLS = "it has no cells yet"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. `metadata` holds what the user set, without `tags`, `name` and `title`'s own keys.

    `title` is the text after `# %%`. `name` is the `name` metadata key. `id` contains a digest of
    kind and source: the same text always gives the same id, changed text never does.
    """

    kind: CellKind
    source: str
    id: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    # Stored outputs of an .ipynb; a .py never has any.
    outputs: tuple[Mapping[str, Any], ...] = ()
    execution_count: int | None = None
    attachments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.metadata.get("name", ""))


@dataclass(frozen=True, slots=True)
class Document:
    cells: tuple[Cell, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    language: str = "python"
    format: Format = "percent"

    @property
    def kernel_name(self) -> str:
        """The kernel the notebook asks for, or '' when it does not say."""
        spec = self.metadata.get("kernelspec")
        return str(spec.get("name", "")) if isinstance(spec, Mapping) else ""

    @property
    def title(self) -> str:
        """The first Markdown heading, or '' when there is none."""
        for cell in self.cells:
            if cell.kind == "markdown":
                for line in cell.source.splitlines():
                    if line.startswith("#"):
                        return line.lstrip("#").strip()
        return ""

    @property
    def indexes(self) -> str:
        """Those that there are, as a hint."""
        return f"use an index from 0 to {len(self.cells) - 1}" if self.cells else NO_CELLS

    def find(self, address: str | int) -> int:
        """The position of a cell given by id, index or title."""
        if isinstance(address, int) or (address.lstrip("-").isdigit() and len(address) < 6):
            index = int(address)
            if -len(self.cells) <= index < len(self.cells):
                return index % len(self.cells)
            raise DocumentError(
                f"there is no cell {index}: the task has {len(self.cells)} cells",
                hint=f"{self.indexes}, a cell id or a title" if self.cells else self.indexes,
            )
        by_id = [i for i, cell in enumerate(self.cells) if cell.id == address]
        hits = by_id or [
            i for i, cell in enumerate(self.cells) if address in (cell.title, cell.name)
        ]
        if len(hits) == 1:
            return hits[0]
        if hits:
            raise DocumentError(
                f"{address!r} names {len(hits)} cells",
                hint="use the id or the index of one of them",
            )
        raise DocumentError(
            f"no cell has the id or title {address!r}",
            hint="the cell may have changed since it was read: read the task again",
        )


_KERNEL_LANGUAGES = {"python": "python", "ir": "r", "julia": "julia", "bash": "bash"}


def language_of(metadata: Mapping[str, Any]) -> str:
    """The language a notebook's metadata names, in lower case; Python when it names none."""
    kernel, info = metadata.get("kernelspec"), metadata.get("language_info")
    jupytext = metadata.get("jupytext")
    for section, key in ((jupytext, "main_language"), (kernel, "language"), (info, "name")):
        if isinstance(section, Mapping) and isinstance(section.get(key), str) and section[key]:
            return str(section[key]).lower()
    name = kernel.get("name") if isinstance(kernel, Mapping) else None
    if isinstance(name, str):
        for stem, language in _KERNEL_LANGUAGES.items():
            if name.lower().rstrip("0123456789.-") == stem:
                return language
    return "python"


def digest_id(kind: str, source: str) -> str:
    return hashlib.sha256(f"{kind}\0{source}".encode("utf-8", "surrogatepass")).hexdigest()[:10]


def identified(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """Give each cell its content id; equal cells get -2, -3, … in order."""
    seen: dict[str, int] = {}
    out: list[Cell] = []
    for cell in cells:
        stem = digest_id(cell.kind, cell.source)
        seen[stem] = n = seen.get(stem, 0) + 1
        # Not dataclasses.replace: this runs for every cell of every run, and that is slow.
        out.append(
            Cell(
                cell.kind,
                cell.source,
                stem if n == 1 else f"{stem}-{n}",
                cell.title,
                cell.tags,
                cell.metadata,
                cell.outputs,
                cell.execution_count,
                cell.attachments,
            )
        )
    return tuple(out)


def cell_from(kind: CellKind, source: str, metadata: Mapping[str, Any]) -> Cell:
    """A cell from notebook metadata, where title and tags are keys among the others."""
    rest = dict(metadata)
    title, tags = rest.get("title"), rest.get("tags")
    if isinstance(title, str):
        del rest["title"]
    else:
        title = ""
    if isinstance(tags, str):
        tags = [tags]
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        del rest["tags"]
        tags = tuple(dict.fromkeys(tags))
    else:
        tags = ()
    return Cell(kind, source, title=title, tags=tags, metadata=rest)


def metadata_of(cell: Cell) -> dict[str, Any]:
    """The inverse of `cell_from`: metadata as a notebook holds it."""
    metadata = dict(cell.metadata)
    if cell.title:
        metadata["title"] = cell.title
    if cell.tags:
        metadata["tags"] = list(cell.tags)
    return metadata
