"""Around a three-way merge of notebooks: what the merge tool gets, and what is made of its answer.

The tool sees notebooks without ids and with a short stand-in for the outputs of each cell. Ids of
ours are digests, so two edits of one cell would always conflict in them; and outputs that are
merged line by line would be outputs that no kernel ever gave out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..task.document import digest_id

Notebook = dict[str, Any]

CONFLICTS = "nbdime-conflicts"  # where the tool notes conflicts of metadata
_STAND_IN = "application/vnd.quire.outputs"
# Each run and each look at a notebook writes them anew: never worth a conflict, and what a run
# wrote would be wrong of a notebook that nobody has run.
_NOISE = ("papermill", "quire", "execution", "ExecuteTime", "collapsed", "scrolled", "autoscroll")
_NOTEBOOK_NOISE = ("papermill", "quire")
_OF_ONE_SIDE = ("language_info", "widgets")  # of the notebook: one of the two does
_SURROGATE = re.compile("[\ud800-\udfff]")
_VALID_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MARK = re.compile(r"^(?:<span[^>]*><b>)?<{7} ?(?:local|LOCAL|REMOTE|ours)", re.MULTILINE)


class Kept:
    """What was taken out of the notebooks, to be put back."""

    def __init__(self) -> None:
        self.outputs: dict[str, list[Any]] = {}
        self.counts: dict[tuple[str, str], Any] = {}
        self.ids: dict[tuple[str, str], str] = {}
        self.metadata: dict[str, Any] = {}


def prepared(nb: Notebook, kept: Kept) -> Notebook:
    """For the tool: no ids, stand-ins for outputs, nothing that always differs.

    Of what can be put back only once, the notebook that is prepared first decides.
    """
    metadata = nb.get("metadata", {})
    for key in _OF_ONE_SIDE:
        if key in metadata:
            kept.metadata.setdefault(key, metadata[key])
    return {
        "cells": [_prepared(cell, kept) for cell in nb["cells"]],
        "metadata": _without(metadata, (*_NOTEBOOK_NOISE, *_OF_ONE_SIDE)),
        "nbformat": 4,
        "nbformat_minor": 4,
    }


def _prepared(cell: Mapping[str, Any], kept: Kept) -> dict[str, Any]:
    out = {key: value for key, value in cell.items() if key != "id"}
    source = out["source"] = joined(cell.get("source", ""))
    out["metadata"] = _without(cell.get("metadata", {}), _NOISE)
    if isinstance(cell.get("id"), str):
        kept.ids.setdefault((cell["cell_type"], source), cell["id"])
    if cell["cell_type"] == "code":
        outputs = out["outputs"] = _stand_in(cell.get("outputs", []), kept)
        stand_ins = [_found(output) for output in outputs]
        kept.counts.setdefault((source, str(stand_ins)), cell.get("execution_count"))
        out["execution_count"] = None
    return out


def _without(metadata: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key not in keys}


def joined(source: Any) -> str:
    return source if isinstance(source, str) else "".join(source)


def _stand_in(outputs: list[Any], kept: Kept) -> list[dict[str, Any]]:
    if not outputs:
        return []
    digest = hashlib.sha256(json.dumps(outputs, sort_keys=True).encode()).hexdigest()
    kept.outputs[digest] = outputs
    return [{"output_type": "display_data", "metadata": {}, "data": {_STAND_IN: digest}}]


def restored(merged: Notebook, kept: Kept, minor: int) -> Notebook:
    """The tool's answer with outputs and ids again: valid, whatever the tool left half done."""
    cells = [_restored(cell, kept) for cell in merged["cells"]]
    if minor >= 5:
        _identify(cells, kept)
    metadata = {**merged.get("metadata", {}), **kept.metadata}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}


def _restored(cell: Mapping[str, Any], kept: Kept) -> dict[str, Any]:
    source = joined(cell.get("source", ""))
    out = {**cell, "source": source.splitlines(keepends=True)}
    out.pop("id", None)
    out["metadata"] = _agreed(cell.get("metadata", {}))
    if cell["cell_type"] == "code":
        shown = cell.get("outputs", [])
        out["outputs"] = [whole for output in shown for whole in _looked_up(output, kept)]
        stand_ins = [_found(output) for output in shown]
        out["execution_count"] = kept.counts.get((source, str(stand_ins)))
    else:
        # A cell that became text on one side has no place for these.
        out.pop("outputs", None)
        out.pop("execution_count", None)
    return out


def _agreed(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Two cells added in one place: the tool puts the metadata of both beside each other."""
    if set(metadata) != {"local_metadata", "remote_metadata"}:
        return dict(metadata)
    ours, theirs = metadata["local_metadata"], metadata["remote_metadata"]
    return {**theirs, **ours, CONFLICTS: {"local": ours, "remote": theirs}}


def _found(output: Mapping[str, Any]) -> str:
    return joined(output.get("data", {}).get(_STAND_IN, ""))


def _looked_up(output: Mapping[str, Any], kept: Kept) -> list[Any]:
    return kept.outputs.get(_found(output), [output])


def _identify(cells: list[dict[str, Any]], kept: Kept) -> None:
    taken: set[str] = set()
    for cell in cells:
        key = cell["cell_type"], joined(cell["source"])
        stem = kept.ids.get(key, "")
        if not _VALID_ID.fullmatch(stem):
            stem = digest_id(*key)
        id_, n = stem, 1
        while id_ in taken:
            n += 1
            id_ = f"{stem[:50]}-{n}"
        taken.add(id_)
        cell["id"] = id_


def lost(base: Notebook, ours: Notebook, theirs: Notebook, merged: Notebook) -> list[str]:
    """Lines, outputs and words of metadata that one side added and the merged notebook has not."""
    b, o, t, m = (Counter(_pieces(nb)) for nb in (base, ours, theirs, merged))
    gone: list[str] = []
    for piece in (o - b) + (t - b):
        # What one side took away need not be there, though the other still has it.
        needed = max(o[piece] - max(0, b[piece] - t[piece]), t[piece] - max(0, b[piece] - o[piece]))
        if m[piece] < needed:
            gone.append(piece)
    return gone


def _pieces(nb: Notebook) -> Iterator[str]:
    yield from _words(nb["metadata"])
    for cell in nb["cells"]:
        yield from _words(cell["metadata"])
        for line in joined(cell.get("source", "")).splitlines():
            if line.strip():
                yield line
        for output in cell.get("outputs", ()):
            yield json.dumps({**output, "execution_count": None}, sort_keys=True)
        for name, bundle in (cell.get("attachments") or {}).items():
            yield json.dumps([name.removeprefix("LOCAL_").removeprefix("REMOTE_"), bundle])


def _words(metadata: Any) -> Iterator[str]:
    """Tags, titles and the like, also where the tool has put them into its note of a conflict."""
    if isinstance(metadata, str):
        yield f"metadata {metadata}"
    elif isinstance(metadata, Mapping):
        for value in metadata.values():
            yield from _words(value)
    elif isinstance(metadata, list):
        for value in metadata:
            yield from _words(value)


def side_by_side(ours: Notebook, theirs: Notebook) -> Notebook:
    """Both whole, with marks between: for when cells cannot be merged one by one."""
    a, b = ours["cells"], theirs["cells"]
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    cells = [
        *a[:head],
        _mark("<<<<<<< local"),
        *a[head : len(a) - tail],
        _mark("======="),
        *b[head : len(b) - tail],
        _mark(">>>>>>> remote"),
        *a[len(a) - tail :],
    ]
    metadata = dict(ours["metadata"])
    if theirs["metadata"] != metadata:
        metadata[CONFLICTS] = {"local": ours["metadata"], "remote": theirs["metadata"]}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}


def _mark(text: str) -> dict[str, Any]:
    shown = f'<span style="color:red"><b>{text}</b></span>'
    return {"cell_type": "markdown", "metadata": {}, "source": shown}


def conflicts(nb: Notebook) -> int:
    """How many places are marked."""
    count = int(CONFLICTS in nb["metadata"])
    for cell in nb["cells"]:
        outputs = [o for o in cell.get("outputs", ()) if o.get("output_type") == "stream"]
        texts = [joined(cell["source"]), *(joined(output.get("text", "")) for output in outputs)]
        count += (CONFLICTS in cell["metadata"]) + sum(len(_MARK.findall(t)) for t in texts)
    return count


def dumps(nb: Notebook) -> bytes:
    text = json.dumps(nb, ensure_ascii=False, indent=1, sort_keys=True)
    # UTF-8 has no lone surrogates, JSON has an escape for them.
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"
