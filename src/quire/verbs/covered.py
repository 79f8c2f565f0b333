"""Does an archived run stand behind the outputs that a notebook shows?

One run must have all of it: the code of every cell, in the same order, with the same outputs. Cells
from two runs side by side are something that no kernel has ever produced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .. import __version__
from ..runs import attest, strict
from ..runs.agreement import text_of
from ..runs.archived import NOTEBOOK
from ..runs.finding import Finding
from ..runs.outputs import output_digest, pointer
from ..runs.trust import Trust
from ..store.archive import is_run_id
from ..workspace import Workspace
from .keys import trust_of


@dataclass(frozen=True, slots=True)
class Coded:
    """A code cell: what it says, and its outputs by digest. A pointer has two: its own, and that
    of the output it stands for."""

    id: str
    source: str
    outputs: tuple[frozenset[str], ...]
    count: Any

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
        try:
            nb = strict.loads(data)
            cells = list(coded(nb))
        except (ValueError, RecursionError) as error:
            return [Finding("notebook", f"it cannot be read: {error}", "form")]
        if not any(cell.claims for cell in cells):
            return []
        near: list[Finding] | None = None
        for run_id in self._candidates(nb, cells):
            found = self._against(run_id, cells)
            if not found:
                return []
            near = found if near is None else near
        if near is not None:
            return near
        return [
            Finding(f"cell {cell.id}", "no archived run had this code with these outputs", "cover")
            for cell in cells
            if cell.claims
        ]

    def _candidates(self, nb: Mapping[str, Any], cells: list[Coded]) -> Iterator[str]:
        """The run that the notebook names, then every run of the same code, newest first."""
        ids = self.ws.archive.ids()
        ours = nb["metadata"].get("quire") if isinstance(nb.get("metadata"), dict) else None
        named = ours.get("run_id") if isinstance(ours, dict) else None
        if isinstance(named, str) and is_run_id(named) and named in ids:
            yield named
        if self._by_code is None:
            self._by_code = {}
            for run_id, files in self.ws.archive.each(ids):
                code = _code(_cells_of(files))
                self._by_code.setdefault(code, []).append(run_id)
        yield from (run for run in self._by_code.get(_code(cells), ()) if run != named)

    def _against(self, run_id: str, cells: list[Coded]) -> list[Finding]:
        """What the notebook shows that this run did not produce."""
        files = dict(self.ws.archive.each([run_id])).get(run_id, {})
        ran = list(_cells_of(files))
        found = list(_unlike(cells, ran, run_id))
        if found:
            return found
        done = attest.examine(files, self.trust, run_id=run_id, version=__version__)
        if done.findings:
            what = f"the run {run_id} has these outputs and does not verify: {done.findings[0]}"
            return [Finding("notebook", what, "cover")]
        return []


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
    return f"the execution count is {strict.brief(cell.count)}, not {strict.brief(other.count)}"


def coded(nb: Any) -> Iterator[Coded]:
    """The code cells that say anything. Raises ValueError for what is no notebook."""
    cells = nb.get("cells") if isinstance(nb, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise ValueError("it is not a notebook of nbformat 4")
    for at, cell in enumerate(cells):
        if cell.get("cell_type") != "code":
            continue
        source, outputs = text_of(cell), cell.get("outputs", [])
        if source is None or not isinstance(outputs, list):
            raise ValueError(f"cell {at} is not one of nbformat 4")
        if not all(isinstance(output, dict) for output in outputs):
            raise ValueError(f"an output of cell {at} is not an object")
        if source.strip() or outputs:
            id_ = cell.get("id")
            name = id_ if isinstance(id_, str) and id_ else str(at)
            yield Coded(name, source, tuple(map(_digests, outputs)), cell.get("execution_count"))


def _digests(output: Mapping[str, Any]) -> frozenset[str]:
    found = pointer(output)
    own = output_digest(output)
    return frozenset((own,) if found is None else (own, str(found["sha256"])))


def _cells_of(files: Mapping[str, bytes]) -> Iterator[Coded]:
    try:
        yield from list(coded(strict.loads(files[NOTEBOOK])))
    except (ValueError, KeyError, RecursionError):
        return  # nothing that could cover anything; `verify` says why


def _code(cells: Iterable[Coded]) -> str:
    digest = hashlib.sha256()
    for cell in cells:
        digest.update(cell.source.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
