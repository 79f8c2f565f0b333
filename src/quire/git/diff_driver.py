"""Notebooks as people read them in `git diff`: the text of their cells, and no JSON."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import QuireError
from ..task import formats, notebook_twin
from ..task.document import Document


def readable(data: bytes, *, outputs: bool = True) -> str:
    """The notebook as a percent text. What cannot be read as one comes back as it is.

    With `outputs`, cells that have some say so: nobody should overlook them in git.
    """
    try:
        there = notebook_twin.loads(formats.decode(data, "notebook.ipynb"), ".ipynb")
        text = notebook_twin.python_text(None, there)
    except (QuireError, RecursionError):
        return data.decode("utf-8", "replace")
    return text + (_outputs(there.document) if outputs else "")


def _outputs(doc: Document) -> str:
    rows = []
    for at, cell in enumerate(doc.cells):
        if cell.outputs:
            digest = notebook_twin.text_digest(repr(cell.outputs))[:12]
            rows.append(f"# cell {at}: {len(cell.outputs)} ({digest})\n")
    return "".join(["\n# %% [outputs that are in git]\n", *rows]) if rows else ""


def compared(words: Sequence[str]) -> str:
    """What an external diff prints. Git gives path, and file, id and mode of both sides."""
    from ..task.text_diff import unified

    if len(words) < 7:
        return f"* Unmerged path {words[0]}\n"
    old, new = (_side(words[place]) for place in (1, 4))
    name = words[7] if len(words) > 7 else words[0]
    shown = unified(old.splitlines(True), new.splitlines(True), words[0])
    moved = f"rename from {words[0]}\nrename to {name}\n" if name != words[0] else ""
    return f"diff --git a/{words[0]} b/{name}\n{moved}{shown}"


def _side(path: str) -> str:
    with open(path, "rb") as file:
        data = file.read()
    return readable(data, outputs=path.startswith("/")) if data else ""
