"""Text notebooks that are not percent, or percent with settings of jupytext: read by jupytext."""

from __future__ import annotations

from typing import Any

from ..errors import DocumentError
from . import percent_marker
from .document import Cell, Document, cell_from, identified, language_of
from .percent import restored
from .percent_header import without_representation

# What jupytext notes for itself while it reads.
_NOTES = ("notebook_metadata_filter", "cell_metadata_filter", "main_language")


def loads(text: str) -> Document:
    import jupytext

    try:
        notebook = jupytext.reads(text.removeprefix("\ufeff"), fmt="py:percent")
        metadata = percent_marker.plain(notebook.metadata)
        cells = [_cell(cell) for cell in notebook.cells]
    except Exception as error:  # jupytext's errors have no common base
        said = " ".join(str(error).split())
        raise DocumentError(
            f"the file cannot be read in the format its header asks for: {said}",
            hint="check the `jupytext:` part of the header, or remove it",
        ) from error
    section = metadata.get("jupytext")
    if isinstance(section, dict):
        metadata["jupytext"] = {k: v for k, v in section.items() if k not in _NOTES}
    return Document(
        cells=identified(cells),
        metadata=without_representation(metadata),
        language=language_of(metadata),
        format="percent",
    )


def _cell(cell: Any) -> Cell:
    metadata = percent_marker.plain(cell.metadata)
    metadata.pop("lines_to_next_cell", None)
    metadata.pop("lines_to_end_of_cell_marker", None)
    return restored(cell_from(cell.cell_type, cell.source, metadata))
