"""Two cells of which one has an output only as a pointer: what it points at is not at hand.

The pointer has the output's digest. An output of the other side with that digest is the same one,
and takes the pointer's place. Otherwise the two differ, unless the digest cannot tell: it also
covers what is noise to a comparison. Then there is a doubt, and nobody claims anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..text import text_of
from .comparable_outputs import named, told
from .executed_notebook import output_json
from .output_digests import pointer
from .plan import jsonable
from .record import CellRecord
from .record_files import POINTER, canonical

Output = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Doubt:
    """Outputs that could not be compared, each side as text; empty where it has none."""

    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Sides:
    """What can be compared, and what cannot."""

    old: Sequence[Output]
    new: Sequence[Output]
    doubts: tuple[Doubt, ...] = ()


def sides(before: CellRecord, after: CellRecord) -> Sides:
    """The outputs of both, with as few pointers as can be."""
    if not any(pointer(output) for cell in (before, after) for output in cell.outputs):
        return Sides(before.outputs, after.outputs)
    old, new = list(_known_again(before, after)), list(_known_again(after, before))
    doubts = [*_streams(old, new), *_others(old, new, before, after)]
    return Sides(old, new, tuple(doubts))


def _known_again(cell: CellRecord, other: CellRecord) -> Iterator[Output]:
    known: dict[str, Output] = {}
    for output in (*_whole_streams(other.outputs), *other.outputs):
        if pointer(output) is not None:
            continue
        known[_described(output)["sha256"]] = output
        if output.get("output_type") == "execute_result":
            # How often a kernel had run something is noise.
            counted = {**output, "execution_count": cell.execution_count}
            known[_described(counted)["sha256"]] = output
    errors = sum(_kind(output) == "error" for output in cell.outputs)
    for output in cell.outputs:
        found = pointer(output)
        if found is None:
            yield output
        elif found["sha256"] in known:
            yield known[found["sha256"]]
        elif _kind(output) == "error" and cell.error is not None and errors == 1:
            # The record itself tells what of an error is compared.
            raised = {"ename": cell.error.name, "evalue": cell.error.value}
            yield {"output_type": "error", **raised, "traceback": []}
        else:
            yield output


def _whole_streams(outputs: Iterable[Output]) -> Iterator[Output]:
    """Each stream in one piece: how the two interleave is luck."""
    texts: dict[str, list[str]] = {}
    for output in outputs:
        if output.get("output_type") == "stream":
            texts.setdefault(str(output.get("name")), []).append(text_of(output.get("text", "")))
    for name, parts in texts.items():
        yield {"output_type": "stream", "name": name, "text": "".join(parts)}


def _kind(output: Output) -> str:
    """The kind of output, also of one that is elsewhere."""
    found = pointer(output)
    return str((output if found is None else found).get("output_type", ""))


def _described(output: Output) -> Mapping[str, Any]:
    """Its pointer, or the one that the archive would have for it."""
    found = pointer(output)
    if found is not None:
        return found
    try:
        shown = output_json(output)
    except (KeyError, TypeError, AttributeError):
        shown = dict(output)  # a stranger's archive may hold anything
    data = canonical(jsonable(shown))
    digest = hashlib.sha256(data).hexdigest()
    return {"sha256": digest, "size": len(data), "output_type": output.get("output_type")}


def _streams(old: list[Output], new: list[Output]) -> Iterator[Doubt]:
    """A pointer does not name its stream: it can be told apart only where there is one piece."""
    here, there = _of_kind(old, "stream"), _of_kind(new, "stream")
    if not any(pointer(output) for output in (*here, *there)):
        return
    if not here or not there:
        return  # one side has none: that they differ is certain
    one, other = _unmatched(here, there), _unmatched(there, here)
    if not one and not other:
        return
    if len(one) == len(other) == 1 and _are_alone(one[0], other[0], (*here, *there)):
        _as_pointers(old, one[0], new, other[0])
        return
    _drop(old, here)
    _drop(new, there)
    yield Doubt("streams", _all_told(here), _all_told(there))


def _are_alone(one: Output, other: Output, streams: Iterable[Output]) -> bool:
    """Whether no third piece can belong to the stream that these two are."""
    names = {str(output.get("name")) for output in (one, other) if pointer(output) is None}
    rest = [output for output in streams if output is not one and output is not other]
    if not names:
        return not rest
    return not any(pointer(output) or str(output.get("name")) in names for output in rest)


def _drop(side: list[Output], gone: Iterable[Output]) -> None:
    ids = {id(output) for output in gone}
    side[:] = [output for output in side if id(output) not in ids]


def _others(
    old: list[Output], new: list[Output], before: CellRecord, after: CellRecord
) -> Iterator[Doubt]:
    """Those that nothing on the other side is equal to, paired in their order."""
    for kind in ("display_data", "execute_result", "error"):
        left = [_unmatched(_of_kind(a, kind), b) for a, b in ((old, new), (new, old))]
        for one, other in zip(*left, strict=False):
            ends = pointer(one), pointer(other)
            if ends == (None, None):
                continue
            counts = before.execution_count, after.execution_count
            uncounted = kind == "execute_result" and None not in ends and counts[0] != counts[1]
            if kind != "error" and not uncounted:
                _as_pointers(old, one, new, other)
                continue
            _drop(old, [one])
            _drop(new, [other])
            yield Doubt(named(one), _all_told([one]), _all_told([other]))


def _of_kind(side: Iterable[Output], kind: str) -> list[Output]:
    return [output for output in side if _kind(output) == kind]


def _unmatched(outputs: Iterable[Output], others: Sequence[Output]) -> list[Output]:
    there = [_described(other)["sha256"] for other in others]
    left: list[Output] = []
    for output in outputs:
        digest = _described(output)["sha256"]
        if digest in there:
            there.remove(digest)
        else:
            left.append(output)
    return left


def _as_pointers(old: list[Output], one: Output, new: list[Output], other: Output) -> None:
    """Both by their digests, under the name that one of them tells."""
    name = named(other if pointer(one) else one)
    for side, output in ((old, one), (new, other)):
        at = next(n for n, found in enumerate(side) if found is output)
        data = {POINTER: {**_described(output), "name": name}, "text/plain": ""}
        side[at] = {"output_type": "display_data", "data": data, "metadata": {}}


def _all_told(outputs: Iterable[Output]) -> str:
    return "; ".join(told(_described(output)) for output in outputs)
