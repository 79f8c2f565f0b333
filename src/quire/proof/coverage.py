"""Does an archived run stand behind the outputs that a notebook shows?

One run must have all of it: the code of every cell, in the same order, with the same outputs, and
what the metadata say of times, parameters and outcomes. Cells from two runs side by side are
something that no kernel has ever produced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .. import __version__
from ..archive.layout import is_run_id
from ..errors import QuireError
from ..record.finding import Finding
from ..record.output_digests import output_digest, pointer, settled
from ..record.record_files import NOTEBOOK, ReadObject, canonical
from ..workspace import Workspace
from . import attestation, strict_json
from .consistency import text_of
from .keys import trust_of
from .notebook_metadata_check import untrue
from .trust import Trust


@dataclass(frozen=True, slots=True)
class Coded:
    """A code cell: what it says, and its outputs by digest. A pointer has two: its own, and that
    of the output it stands for."""

    id: str
    source: str
    outputs: tuple[frozenset[str], ...]
    count: Any
    metadata: Any

    @property
    def claims(self) -> bool:
        """Whether it says that it has been executed."""
        return bool(self.outputs) or self.count is not None

    def shows(self, other: Coded) -> bool:
        """Whether the outputs are the other's; a count may be left out."""
        return (
            len(self.outputs) == len(other.outputs)
            and all(map(frozenset.intersection, self.outputs, other.outputs))
            and self.count in (None, other.count)
        )


@dataclass(frozen=True, slots=True)
class Covered:
    """What came of looking for the run behind a notebook. Without findings, there is one."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()  # what was not looked at


def uncovered(ws: Workspace, data: bytes, *, trust: Trust | None = None) -> list[Finding]:
    """The cells of an executed notebook that no run covers which verifies; none: all are."""
    return Coverage(ws, trust).uncovered(data)


class Coverage:
    """The archive, looked at for several notebooks: it is read through once at most."""

    def __init__(self, ws: Workspace, trust: Trust | None = None) -> None:
        self.ws = ws
        self.trust = trust or trust_of(ws)
        self._by_code: dict[str, list[str]] | None = None

    def uncovered(self, data: bytes) -> list[Finding]:
        return list(self.look(data).findings)

    def look(self, data: bytes) -> Covered:
        try:
            nb = strict_json.loads(data)
            cells = list(coded(nb))
        except (ValueError, RecursionError) as error:
            return Covered((Finding("notebook", f"it cannot be read: {error}", "form"),))
        if not any(cell.claims for cell in cells):
            return Covered(notes=("it shows no outputs: there is nothing to compare",))
        near: Covered | None = None
        for run_id in self._candidates(nb, cells):
            found = self._against(run_id, nb, cells)
            if not found.findings:
                return found
            if near is None or (_is_close(found) and not _is_close(near)):
                near = found
            if run_id == _named(nb):
                break  # it says itself which run it is of
        if near is not None:
            return near
        what = "no archived run had this code with these outputs"
        return Covered(
            tuple(Finding(f"cell {cell.id}", what, "cover") for cell in cells if cell.claims)
        )

    def _candidates(self, nb: Mapping[str, Any], cells: list[Coded]) -> Iterator[str]:
        """The run that the notebook names, then every run of the same code, newest first."""
        ids = self.ws.archive.ids()
        named = _named(nb)
        if named in ids:
            yield named
        if self._by_code is None:
            self._by_code = {}
            for run_id, files in self.ws.archive.each(ids):
                code = _code(coded(_read(files)))
                self._by_code.setdefault(code, []).append(run_id)
        yield from (run for run in self._by_code.get(_code(cells), ()) if run != named)

    def _against(self, run_id: str, nb: Mapping[str, Any], cells: list[Coded]) -> Covered:
        """What the notebook shows or says that this run did not."""
        files = dict(self.ws.archive.each([run_id])).get(run_id, {})
        run = _read(files)
        ran = list(coded(run))
        found = list(_unlike(cells, ran, run_id))
        if not found:
            found = list(_untrue(nb, run, zip(cells, ran, strict=True), run_id))
        if found:
            return Covered(tuple(found))
        done = attestation.examine(
            files,
            self.trust,
            run_id=run_id,
            read_object=object_reader(self.ws, _shown(nb)),
            version=__version__,
        )
        if done.findings:
            what = f"the run {run_id} has these outputs and does not verify: {done.findings[0]}"
            return Covered((Finding("notebook", what, "cover"),))
        return Covered(notes=done.notes)


def object_reader(ws: Workspace, known: Mapping[str, bytes] | None = None) -> ReadObject:
    """What is kept outside the archive, whatever its digest is; `known` need not be looked for."""

    def read(digest: str) -> bytes | None:
        if known is not None and digest in known:
            return known[digest]
        try:
            return ws.objects.found(digest)
        except QuireError:
            return None  # a store that does not answer: not looked at, and said so

    return read


def _shown(nb: Mapping[str, Any]) -> dict[str, bytes]:
    """The outputs that the notebook has in full, by digest."""
    shown = (
        canonical(settled(output)) for cell in nb["cells"] for output in cell.get("outputs") or ()
    )
    return {hashlib.sha256(data).hexdigest(): data for data in shown}


def _named(nb: Mapping[str, Any]) -> str:
    """The run that the notebook says it is of."""
    metadata = nb.get("metadata")
    ours = metadata.get("quire") if isinstance(metadata, dict) else None
    named = ours.get("run_id") if isinstance(ours, dict) else None
    return named if isinstance(named, str) and is_run_id(named) else ""


def _is_close(found: Covered) -> bool:
    """Whether only the metadata differ."""
    return all(finding.code == "claim" for finding in found.findings)


def _untrue(
    nb: Mapping[str, Any],
    run: Mapping[str, Any],
    pairs: Iterable[tuple[Coded, Coded]],
    run_id: str,
) -> Iterator[Finding]:
    """What the notebook's metadata say that those of the run do not."""
    yield from untrue(nb.get("metadata"), run.get("metadata"), run_id, "notebook")
    for one, other in pairs:
        yield from untrue(one.metadata, other.metadata, run_id, f"cell {one.id}")
    ran = {cell.get("id"): cell.get("metadata") for cell in run["cells"] if not _says(cell)}
    for cell in nb["cells"]:
        if not _says(cell):  # text, which may differ, but which nobody has run
            id_ = cell.get("id") if isinstance(cell.get("id"), str) else ""
            yield from untrue(cell.get("metadata"), ran.get(id_), run_id, f"cell {id_}")


def _unlike(cells: list[Coded], ran: list[Coded], run_id: str) -> Iterator[Finding]:
    if len(cells) == len(ran) and all(
        one.source == other.source and one.shows(other)
        for one, other in zip(cells, ran, strict=True)
    ):
        return
    alone = True
    for cell in cells:
        same_code = [other for other in ran if other.source == cell.source]
        if any(cell.shows(other) for other in same_code):
            continue
        alone = False
        what = f"the run {run_id} had no such code"
        if same_code:
            what = f"its outputs are not those of the run {run_id}: {_where(cell, same_code[0])}"
        yield Finding(f"cell {cell.id}", what, "cover")
    if alone:
        what = f"its cells are those of the run {run_id}, but not all of them, or in another order"
        yield Finding("notebook", what, "cover")


def _where(cell: Coded, other: Coded) -> str:
    if len(cell.outputs) != len(other.outputs):
        return f"{len(cell.outputs)} and not {len(other.outputs)} outputs"
    for at, (one, two) in enumerate(zip(cell.outputs, other.outputs, strict=True)):
        if not one & two:
            return f"output {at} differs"
    shown, ran = strict_json.brief(cell.count), strict_json.brief(other.count)
    return f"the execution count is {shown}, not {ran}"


def coded(nb: Any) -> Iterator[Coded]:
    """The code cells that say anything. Raises ValueError for what is no notebook."""
    cells = nb.get("cells") if isinstance(nb, dict) else None
    old = isinstance(nb, dict) and ("worksheets" in nb or nb.get("nbformat", 4) != 4)
    if old or not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise ValueError("it is not a notebook of nbformat 4")
    for at, cell in enumerate(cells):
        if cell.get("cell_type") != "code":
            if cell.get("outputs"):
                raise ValueError(f"cell {at} is text and has outputs")
            continue
        source, outputs = text_of(cell), cell.get("outputs", [])
        if source is None or not isinstance(outputs, list):
            raise ValueError(f"cell {at} is not one of nbformat 4")
        if not all(isinstance(output, dict) for output in outputs):
            raise ValueError(f"an output of cell {at} is not an object")
        if _says(cell):
            id_ = cell.get("id")
            name = id_ if isinstance(id_, str) and id_ else str(at)
            digests = tuple(map(_digests, outputs))
            yield Coded(name, source, digests, cell.get("execution_count"), cell.get("metadata"))


def _says(cell: Mapping[str, Any]) -> bool:
    """Whether it is code, and more than an empty line."""
    return cell.get("cell_type") == "code" and bool(
        (text_of(cell) or "").strip() or cell.get("outputs")
    )


def _digests(output: Mapping[str, Any]) -> frozenset[str]:
    found = pointer(output)
    own = output_digest(output)
    return frozenset((own,) if found is None else (own, str(found["sha256"])))


def _read(files: Mapping[str, bytes]) -> dict[str, Any]:
    """The run's own notebook."""
    try:
        nb = strict_json.loads(files[NOTEBOOK])
        list(coded(nb))
    except (ValueError, KeyError, RecursionError):
        return {"cells": []}  # nothing that could cover anything; `verify` says why
    assert isinstance(nb, dict)
    return nb


def _code(cells: Iterable[Coded]) -> str:
    digest = hashlib.sha256()
    for cell in cells:
        digest.update(cell.source.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
