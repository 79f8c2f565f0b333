"""One side of a pair of notebooks: its text, its document, and what makes it equal to the other."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..errors import DocumentError
from . import formats, percent
from .document import Cell, Document, metadata_of
from .percent_writing import DROPPED

KEY = "quire"
_SOURCE, _CELLS = "source_sha256", "cells_sha256"
# What an engine writes into a notebook it ran; see record/executed_notebook.py.
_TRACES = frozenset({_SOURCE, _CELLS, "run_id", "uuid", "outcome", "parent"})
# Front ends and engines write these; a `.py` does not hold them and a notebook keeps its own.
_VOLATILE = ("language_info", "widgets", "papermill")
# What of a cell's metadata decides what Quire does with it. The rest is the front ends' own.
_HEEDED = frozenset({"tags", "title", "name", "kernel", "language", "active", KEY})
_DEFAULT_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


@dataclass(frozen=True, slots=True)
class Stamp:
    source: str
    cells: str


@dataclass(frozen=True)
class Twin:
    text: str
    document: Document

    @cached_property
    def text_digest(self) -> str:
        return text_digest(self.text)

    @cached_property
    def digest(self) -> str:
        """Equal for two documents that say the same, outputs aside."""
        return _sha256(json.dumps(_essence(self.document), sort_keys=True))

    @cached_property
    def says(self) -> list[Any]:
        """What a reader sees and a kernel runs, and nothing of how a front end lays it out."""
        metadata, *cells = _essence(self.document)
        heeded = {key: metadata.get(key) for key in (KEY, "kernelspec")}
        return [heeded, self.document.language, *map(_heeded, cells)]

    @property
    def stamp(self) -> Stamp | None:
        section = self.document.metadata.get(KEY)
        if not isinstance(section, Mapping):
            return None
        source, cells = section.get(_SOURCE), section.get(_CELLS)
        return Stamp(source, cells) if isinstance(source, str) and isinstance(cells, str) else None


def loads(text: str, suffix: str) -> Twin:
    return Twin(text, formats.loads(text, suffix))


def run_id(twin: Twin) -> str | None:
    """The run whose executed notebook this is."""
    section = twin.document.metadata.get(KEY)
    found = section.get("run_id") if isinstance(section, Mapping) else None
    return found if isinstance(found, str) else None


def text_digest(text: str) -> str:
    # Git may check a file out with other line ends; nobody edited it then.
    return _sha256(text.replace("\r\n", "\n"))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _essence(doc: Document) -> list[Any]:
    metadata = _own_metadata(doc)
    metadata["kernelspec"] = doc.kernel_name or _default_name(doc)
    return [metadata, *(cell_essence(cell) for cell in doc.cells)]


def cell_essence(cell: Cell) -> list[Any]:
    source = cell.source.replace("\r\n", "\n").replace("\r", "\n")
    metadata = {k: v for k, v in metadata_of(_untraced(cell)).items() if k not in DROPPED}
    return [cell.kind, source, metadata, dict(cell.attachments)]


def _heeded(cell: list[Any]) -> list[Any]:
    kind, source, metadata, attachments = cell
    return [kind, source, {k: v for k, v in metadata.items() if k in _HEEDED}, attachments]


def _default_name(doc: Document) -> str:
    return "python3" if doc.language == "python" else ""


def _own_metadata(doc: Document) -> dict[str, Any]:
    """What a person set: without our marks and without what front ends add by themselves."""
    metadata = {k: v for k, v in doc.metadata.items() if k not in _VOLATILE}
    if "language_info" in doc.metadata and not doc.kernel_name and doc.language != "python":
        metadata["language_info"] = doc.metadata["language_info"]  # all that names the language
    section = metadata.get(KEY)
    if isinstance(section, Mapping):
        rest = {k: v for k, v in section.items() if k not in _TRACES}
        metadata[KEY] = rest
        if not rest:
            del metadata[KEY]
    return metadata


def _untraced(cell: Cell) -> Cell:
    """Without the status an executed notebook has in each cell."""
    section = cell.metadata.get(KEY)
    if not isinstance(section, Mapping) or set(section) - {"status"}:
        return cell
    return replace(cell, metadata={k: v for k, v in cell.metadata.items() if k != KEY})


def notebook_text(here: Twin, there: Twin | None) -> str:
    """The `.ipynb` of a `.py`. Cells that did not change keep the outputs they had."""
    doc = here.document
    metadata = _own_metadata(doc)
    if doc.language == "python":
        metadata.setdefault("kernelspec", _DEFAULT_KERNEL)
    cells = doc.cells
    if there is not None:
        old = there.document
        metadata |= {k: v for k, v in old.metadata.items() if k in _VOLATILE and k not in metadata}
        kept = {cell.id: cell for cell in old.cells}
        cells = tuple(_with_outputs(cell, kept.get(cell.id)) for cell in cells)
    written = Document(cells, metadata, doc.language, "ipynb")
    fresh = loads(formats.dumps(written, ".ipynb"), ".ipynb")
    return stamped(fresh, source=here.text)


def _with_outputs(cell: Cell, old: Cell | None) -> Cell:
    """Ids are digests of the content: the same id is the same code."""
    if old is None or cell.kind != "code":
        return cell
    return replace(cell, outputs=old.outputs, execution_count=old.execution_count)


def stamped(there: Twin, *, source: str) -> str:
    """The notebook's own text with a new stamp and nothing else changed."""
    data = json.loads(there.text.removeprefix("\ufeff"))
    metadata = data.setdefault("metadata", {})
    section = metadata.get(KEY)
    section = dict(section) if isinstance(section, Mapping) else {}
    metadata[KEY] = section | {_SOURCE: text_digest(source), _CELLS: there.digest}
    text = json.dumps(data, ensure_ascii=False, indent=1)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate: JSON can say it, UTF-8 cannot
        text = json.dumps(data, indent=1)
    return text + "\n"


def python_text(here: Twin | None, there: Twin) -> str:
    """The `.py` of an `.ipynb`. Cells that did not change keep the lines they had."""
    doc = there.document
    metadata = _own_metadata(doc)
    unsaid = here is None or "kernelspec" not in here.document.metadata
    if unsaid and here is not None and doc.kernel_name == "python3":
        metadata.pop("kernelspec", None)
    cells = tuple(_untraced(cell) for cell in doc.cells)
    target = Document(cells, metadata, doc.language, "percent")
    text = formats.dumps(target, ".py")
    if here is None:
        return text
    patched = _patched(here, target, text) or text
    return patched.replace("\n", "\r\n") if "\r\n" in here.text else patched


def _patched(here: Twin, target: Document, written: str) -> str | None:
    """The old text with only the changed cells taken from `written`; None if that cannot be."""
    old_text = here.text.replace("\r\n", "\n")
    try:
        old_spans, new_spans = percent.spans(old_text), percent.spans(written)
    except DocumentError:
        return None
    olds = [json.dumps(cell_essence(c), sort_keys=True) for c in here.document.cells]
    news = [json.dumps(cell_essence(c), sort_keys=True) for c in target.cells]
    if len(old_spans) != len(olds) or len(new_spans) != len(news):
        return None
    old_lines, new_lines = old_text.split("\n"), written.split("\n")
    body: list[str] = []
    was_kept = True
    matcher = difflib.SequenceMatcher(None, olds, news, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        kept = tag == "equal"
        for start, end in old_spans[i:j] if kept else new_spans[k:m]:
            if body and body[-1].strip() and not (kept and was_kept):
                body.append("")
            body += (old_lines if kept else new_lines)[start:end]
            was_kept = kept
    # The new header where a changed cell needs one: only there is a commented magic no comment.
    heads = (
        old_lines[: old_spans[0][0] if old_spans else 0],
        new_lines[: new_spans[0][0] if new_spans else 0],
    )
    texts = ("\n".join([*head, *body]).rstrip("\n") + "\n" for head in heads)
    return next((text for text in texts if _says(text, target)), None)


def _says(text: str, target: Document) -> bool:
    try:
        found = formats.loads(formats.decode(text.encode(), "patched.py"), ".py")
    except (DocumentError, UnicodeEncodeError):
        return False
    return _essence(found) == _essence(replace(target, format="percent"))
