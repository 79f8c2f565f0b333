"""Whether the files of a run tell one story. A signature cannot say that: its owner signs anything.

Only what is certain counts: where an honest run could differ too, nothing is said.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import QuireError
from ..record.cell_calls import CALLS_MIME
from ..record.executed_notebook import paired
from ..record.finding import Finding
from ..record.plan import jsonable
from ..record.record import CHANGED
from ..record.record_files import FORMAT, NOTEBOOK, RECORD
from ..task import formats, frontmatter, params
from ..task.document import Document, digest_id
from ..task.logbook import KEPT
from ..task.parameter_cell import INJECTED_TAG
from .strict_json import brief

_MASKED = "[masked:"
_MARKER = re.compile(r"\[masked:[^\]\s]*\]")
_STEM = re.compile(r"-\d+\Z")
_TEXTS = ("run_id", "uuid", "task", "title", "outcome", "reason", "started", "finished")
_BROKEN = ("timed_out", "cancelled", "died")


def shape(record: Any, nb: Any) -> Iterator[Finding]:
    """What is not where it belongs, or of another kind. With none, the rest can rely on it."""
    for name, value in ((RECORD, record), (NOTEBOOK, nb)):
        if not isinstance(value, dict):
            yield Finding(name, f"it holds {brief(value)}, not an object", "form")
            return
    yield from _kinds(
        record,
        RECORD,
        dict.fromkeys(_TEXTS, str)
        | {
            "format": int,
            "plan": dict,
            "results": dict,
            "cells": list,
            "kernel": dict,
        },
    )
    yield from _kinds(record, RECORD, {"recovered": bool}, needed=False)
    yield from _kinds(nb, NOTEBOOK, {"cells": list, "metadata": dict})
    if record.get("format", FORMAT) != FORMAT:
        yield Finding(f"{RECORD} format", f"it is {brief(record['format'])}, not {FORMAT}", "form")
    if isinstance(record.get("plan"), dict):
        yield from _kinds(record["plan"], f"{RECORD} plan", {"parameters": dict}, needed=False)
    yield from _cell_shapes(record.get("cells"), RECORD, {"id": str, "kind": str, "status": str})
    yield from _cell_shapes(
        nb.get("cells"), NOTEBOOK, {"id": str, "cell_type": str, "metadata": dict}
    )


def _kinds(
    value: Mapping[str, Any], where: str, kinds: Mapping[str, type], *, needed: bool = True
) -> Iterator[Finding]:
    for key, kind in kinds.items():
        if key not in value:
            if needed:
                yield Finding(f"{where} {key}", "it is missing", "form")
        elif type(value[key]) is not kind:
            yield Finding(f"{where} {key}", f"it is {brief(value[key])}", "form")


def _cell_shapes(cells: Any, name: str, kinds: Mapping[str, type]) -> Iterator[Finding]:
    if not isinstance(cells, list):
        return
    seen: set[str] = set()
    for at, cell in enumerate(cells):
        where = f"{name} cell {at}"
        if not isinstance(cell, dict):
            yield Finding(where, f"it is {brief(cell)}", "form")
            continue
        yield from _kinds(cell, where, kinds)
        id_ = cell.get("id")
        if isinstance(id_, str):
            if id_ in seen:
                yield Finding(where, f"the id {brief(id_)} stands twice", "form")
            seen.add(id_)
        outputs = cell.get("outputs", [])
        if not isinstance(outputs, list) or not all(isinstance(one, dict) for one in outputs):
            yield Finding(f"{where} outputs", "they are not a list of objects", "form")
        if name == NOTEBOOK and text_of(cell) is None:
            yield Finding(f"{where} source", "it is not a text", "form")


def text_of(cell: Mapping[str, Any]) -> str | None:
    """The source of a notebook's cell: a string, or a list of lines."""
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        return "".join(source)
    return source if isinstance(source, str) else None


def agreement(
    record: Mapping[str, Any],
    nb: Mapping[str, Any],
    source: tuple[str, bytes],
    version: str,
    notes: list[str],
) -> Iterator[Finding]:
    """`source` is the name and the bytes of the task as it was run."""
    yield from _heads(record, nb)
    yield from _cells(record, nb)
    yield from _outcome(record)
    yield from _parameters(record, nb)
    yield from _task(record, nb, source, version, notes)


def _heads(record: Mapping[str, Any], nb: Mapping[str, Any]) -> Iterator[Finding]:
    """The notebook's metadata against the record."""
    ours, papermill = (nb["metadata"].get(key) for key in ("quire", "papermill"))
    plan = record["plan"]
    ok = record["outcome"] == "ok"
    yield from _same(
        "quire", ours, {key: record.get(key) for key in ("run_id", "uuid", "outcome", "parent")}
    )
    yield from _same(
        "papermill",
        papermill,
        {
            "parameters": plan.get("parameters", {}),
            "default_parameters": plan.get("defaults", {}),
            "input_path": record["task"],
            "start_time": record["started"] or None,
            "end_time": record["finished"] or None,
            "duration": record.get("duration"),
            "exception": None if ok else True,
        },
    )
    if record["kernel"] != plan.get("kernel", {}):
        yield Finding(f"{RECORD} kernel", "it is not the kernel of the plan", "disagree")


def _same(section: str, told: Any, wanted: Mapping[str, Any], cell: str = "") -> Iterator[Finding]:
    place = (
        f"{NOTEBOOK} cell {cell} metadata.{section}" if cell else f"{NOTEBOOK} metadata.{section}"
    )
    if not isinstance(told, dict):
        yield Finding(place, "it is missing", "disagree")
        return
    for key, value in wanted.items():
        if not _equal(told.get(key), value):
            what = f"it says {brief(told.get(key))}, the record {brief(value)}"
            yield Finding(f"{place}.{key}", what, "disagree")


def _equal(one: Any, other: Any) -> bool:
    """True is 1 in Python, and not in JSON."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _cells(record: Mapping[str, Any], nb: Mapping[str, Any]) -> Iterator[Finding]:
    told = {cell["id"]: cell for cell in record["cells"]}
    shown = {cell["id"]: cell for cell in nb["cells"]}
    for id_ in told.keys() - shown.keys():
        yield Finding(f"cell {id_}", "it is in the record and not in the notebook", "disagree")
    for id_ in shown.keys() - told.keys():
        yield Finding(f"cell {id_}", "it is in the notebook and not in the record", "disagree")
    if told.keys() == shown.keys() and list(told) != list(shown):
        yield Finding(NOTEBOOK, "its cells are in another order than the record's", "disagree")
    for id_ in told:
        if id_ in shown:
            yield from _cell(told[id_], shown[id_])


def _cell(told: Mapping[str, Any], shown: Mapping[str, Any]) -> Iterator[Finding]:
    id_, metadata = told["id"], shown["metadata"]
    wanted = {"cell_type": told["kind"]}
    if told["kind"] == "code":
        wanted["execution_count"] = told.get("execution_count")
        yield from _same("quire", metadata.get("quire"), {"status": told["status"]}, id_)
    yield from _same("papermill", metadata.get("papermill"), _timing(told), id_)
    for key, value in wanted.items():
        if not _equal(shown.get(key), value):
            what = f"the notebook says {brief(shown.get(key))}, the record {brief(value)}"
            yield Finding(f"cell {id_} {key}", what, "disagree")
    if _tags(told.get("tags")) != _tags(metadata.get("tags")):
        yield Finding(f"cell {id_} tags", "the notebook has others than the record", "disagree")
    idle = told["status"] in ("not run", "text")
    # That somebody was asked about a cell is told under it, also where it did not run.
    outputs = [
        output
        for output in shown.get("outputs") or ()
        if not (isinstance(output, dict) and CALLS_MIME in (output.get("data") or {}))
    ]
    if idle and (outputs or shown.get("execution_count") is not None):
        yield Finding(f"cell {id_}", "it has outputs and never ran", "disagree")


def _tags(tags: Any) -> set[str]:
    return {tag for tag in tags if isinstance(tag, str)} if isinstance(tags, list) else set()


def _timing(told: Mapping[str, Any]) -> dict[str, Any]:
    idle = told["status"] in ("text", "not run", "skipped")
    return {
        "exception": None if idle else told["status"] not in ("ok", "carried"),
        "start_time": told.get("started") or None,
        "end_time": told.get("finished") or None,
        "duration": told.get("duration"),
    }


def _outcome(record: Mapping[str, Any]) -> Iterator[Finding]:
    ok = record["outcome"] == "ok"
    if (ok or record["outcome"] == "paused") != (record.get("error") is None):
        what = f"the outcome is {brief(record['outcome'])}, the error {brief(record.get('error'))}"
        yield Finding(f"{RECORD} error", what, "disagree")
    if record.get("recovered") and record["outcome"] in ("ok", "paused"):
        what = f"it is recovered, and its outcome {brief(record['outcome'])}"
        yield Finding(f"{RECORD} recovered", what, "disagree")
    resumed = record["plan"].get("mode", "clean") != "clean"
    ids = set()
    for cell in record["cells"]:
        ids.add(cell["id"])
        status, tags = cell["status"], _tags(cell.get("tags"))
        failed = status == "failed" and "raises-exception" not in tags
        if ok and (failed or status in _BROKEN):
            what = f"the run is ok, this cell {status}"
            yield Finding(f"cell {cell['id']} status", what, "disagree")
        if status == "carried" and not resumed:
            what = "it is carried over from another run, this one says it is clean"
            yield Finding(f"cell {cell['id']} status", what, "disagree")
    for name, result in record["results"].items():
        if not isinstance(result, dict) or result.get("cell") not in ids:
            what = "no cell of this run can have glued it"
            yield Finding(f"{RECORD} results.{name}", what, "disagree")


def _parameters(record: Mapping[str, Any], nb: Mapping[str, Any]) -> Iterator[Finding]:
    """The cell that set the parameters against the record, as far as it is plain Python."""
    values = record["plan"].get("parameters", {})
    # A logbook's cell sets those that were not given too, to what they are by default.
    defaults = record["plan"].get("defaults")
    expected = {**(defaults if isinstance(defaults, Mapping) else {}), **values}
    if record["plan"].get("language", "python") != "python":
        return
    # Without values only a logbook has such a cell of ours; a notebook may bring its own.
    if not values and not record["plan"].get("logbook"):
        return
    cells = [c for c in nb["cells"] if INJECTED_TAG in _tags(c["metadata"].get("tags"))]
    if not values and not cells:
        return
    if len(cells) != 1:
        what = f"the notebook has {len(cells)} cells that set them, not one"
        yield Finding("parameters", what, "disagree")
        return
    source = text_of(cells[0]) or ""
    set_here = _assigned(source)
    if set_here is None or _MASKED in source:
        return
    for name in values.keys() - set_here.keys():
        what = "the record has it, the notebook does not set it"
        yield Finding(f"parameters {name}", what, "disagree")
    for name in set_here.keys() - expected.keys():
        what = "the notebook sets it, the record does not have it"
        yield Finding(f"parameters {name}", what, "disagree")
    for name, node in set_here.items():
        known, value = _literal(node)
        if known and name in expected and not _equal(value, expected[name]):
            what = f"the notebook sets {brief(value)}, the record has {brief(expected[name])}"
            yield Finding(f"parameters {name}", what, "disagree")


def _assigned(source: str) -> dict[str, ast.expr] | None:
    """`name = value` lines; None for what is more than that."""
    found: dict[str, ast.expr] = {}
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            return None
        found[node.targets[0].id] = node.value
    return found


def _literal(node: ast.expr) -> tuple[bool, Any]:
    """The value as a record holds it, where it is certain. A set has no order."""
    if any(isinstance(part, ast.Set | ast.Call) for part in ast.walk(node)):
        return False, None
    try:
        return True, paired(jsonable(ast.literal_eval(node)))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return False, None


# It is noted last of all: one whose host was ended has no word about it.
UNKNOWN_ENGINE = "the run was cut off before it was noted which version of the engine read it"


def _task(
    record: Mapping[str, Any],
    nb: Mapping[str, Any],
    source: tuple[str, bytes],
    version: str,
    notes: list[str],
) -> Iterator[Finding]:
    """The task as it was run against the record and the notebook's cells."""
    name, data = source
    if not name:
        return
    if _MASKED.encode() in data:
        notes.append(f"{name}: it holds masked text, so its cells were not compared")
        return
    digest = record["plan"].get("source_sha256")
    if digest is not None and digest != hashlib.sha256(data).hexdigest():
        yield Finding(name, "it is not the source of the plan", "disagree")
    yield from _ids(nb)
    engine = record.get("engine")
    if isinstance(engine, dict) and not engine.get("version"):
        notes.append(f"{name}: {UNKNOWN_ENGINE}; its cells were not compared")
        return
    if not version or not isinstance(engine, dict) or engine.get("version") != version:
        notes.append(f"{name}: another version of the engine read it; its cells were not compared")
        return
    try:
        document = _as_placed(record["plan"], data, f".{name.partition('.')[2]}")
    except (QuireError, ValueError, RecursionError) as error:
        yield Finding(name, f"it cannot be read as a task: {error}", "disagree")
        return
    injected = bool(record["plan"].get("parameters") or frontmatter.of(document).parameters)
    wanted = {
        cell.id: paired(cell.source)
        for cell in document.cells
        if not (injected and INJECTED_TAG in cell.tags)
    }
    found = {
        cell["id"]: _before_changes(cell)
        for cell in nb["cells"]
        if not (injected and INJECTED_TAG in _tags(cell["metadata"].get("tags")))
    }
    hidden = _with_hidden_values(wanted, found)
    if hidden:
        notes.append(f"{name}: what stands where a value is masked was not compared")
    for id_ in [*wanted, *(id_ for id_ in found if id_ not in wanted)]:
        if id_ not in hidden and wanted.get(id_) != found.get(id_):
            what = f"its code is not what {name} says"
            if id_ not in found or id_ not in wanted:
                what = f"it is only in {name}" if id_ in wanted else f"it is not in {name}"
            yield Finding(f"cell {id_}", what, "disagree")


def _with_hidden_values(wanted: Mapping[str, str], found: Mapping[str, str | None]) -> set[str]:
    """The ids, on both sides, of cells that are the same but for masked values.

    A logbook has the values of parameters in its cells: the notebook has a marker where the task is
    rendered with the value or with another marker, and so the ids are others too.
    """
    theirs = [(id_, text) for id_, text in found.items() if wanted.get(id_) != text]
    ours = [(id_, text) for id_, text in wanted.items() if found.get(id_) != text]
    alike: set[str] = set()
    for (one, shown), (other, text) in zip(theirs, ours, strict=False):
        if _fills(text, *_MARKER.split(shown or "")):
            alike |= {one, other}
    return alike


def _fills(text: str, first: str, *rest: str) -> bool:
    """Whether it is these parts in turn, with anything between them."""
    if not rest or not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return len(text) - len(rest[-1]) >= at and text.endswith(rest[-1])


def _as_placed(plan: Mapping[str, Any], data: bytes, suffix: str) -> Document:
    """The document of a source, with the parameters of the run in their places."""
    metadata, values = plan.get("metadata"), plan.get("parameters")
    kept = metadata.get(KEPT) if isinstance(metadata, Mapping) else None
    kernels = kept.get("kernels") if isinstance(kept, Mapping) else None
    names = frozenset(map(str, kernels)) if isinstance(kernels, list) else frozenset[str]()
    document = formats.loads(data.decode("utf-8", "surrogatepass"), suffix, names)
    return params.placed(document, values if isinstance(values, Mapping) else {})


def _before_changes(cell: Mapping[str, Any]) -> str | None:
    """The code as the task has it, where it was changed for the run. What ran is signed too."""
    changed = cell["metadata"].get(CHANGED)
    if isinstance(changed, Mapping) and isinstance(changed.get("original"), str):
        return paired(changed["original"])  # type: ignore[no-any-return]
    return text_of(cell)


def _ids(nb: Mapping[str, Any]) -> Iterator[Finding]:
    """A cell's id holds a digest of its code."""
    for cell in nb["cells"]:
        text = _before_changes(cell) or ""
        if _MASKED in text:
            continue
        if _STEM.sub("", cell["id"]) != digest_id(cell["cell_type"], text):
            yield Finding(
                f"cell {cell['id']}", "its code is not what its id stands for", "disagree"
            )
