"""Which archived run stands behind a version of a task, and what its other runs say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ..proof.trust import Trust
from ..proof.verify import Verdict, verify_run
from ..record.record import Record
from ..record.summary import worded
from ..workspace import Workspace
from . import change_set
from .change_set import Ran

NOTES = 3
NOTED = 20  # later runs that are looked at for notes


@dataclass(frozen=True, slots=True)
class Backing:
    """A run, whether it verifies, and what came after it."""

    ran: Ran | None = None
    proof: Verdict | None = None
    notes: tuple[str, ...] = ()


def backing(
    ws: Workspace,
    task: str,
    source: bytes | None,
    trust: Trust,
    *,
    proposed: Collection[str] = (),
    failed_too: bool = False,
) -> Backing:
    """The run of just this text that a reader should see.

    That is one of `proposed`, if it verifies; else the newest that verifies and went well
    (`failed_too`: or not); else the newest that verifies; else the newest. So whoever may write
    to the archive cannot put a run of theirs before one that counts.
    """
    if source is None:
        return Backing()
    runs = (ran for ran in change_set.runs_of(ws, task) if change_set.ran_text(ran.files, source))
    for ran in change_set.named(ws, proposed):
        if ran.record.task == task and change_set.ran_text(ran.files, source):
            proof = verify_run(ws, ran.run_id, trust=trust)
            if proof.ok:
                notes = _later(ws, runs, trust, ran)
                return Backing(ran, proof, tuple(_few(notes)))
    return _newest(ws, runs, trust, failed_too=failed_too)


def best(ws: Workspace, runs: Iterable[Ran], trust: Trust) -> Backing:
    """The newest of some runs that verifies, else the newest."""
    return _newest(ws, runs, trust, failed_too=True)


def _newest(ws: Workspace, runs: Iterable[Ran], trust: Trust, *, failed_too: bool) -> Backing:
    passed: list[tuple[str, str]] = []  # runs that were passed over, and what there is to say
    first: Backing | None = None
    good: Backing | None = None
    for ran in runs:
        proof = verify_run(ws, ran.run_id, trust=trust)
        found = Backing(ran, proof)
        first = first or found
        if proof.ok:
            good = good or found
            if failed_too or ran.record.ok:
                good = found
                break
        passed.append((ran.run_id, _note(ran, proof)))
    chosen = good or first
    if chosen is None or chosen.ran is None:
        return Backing()
    ids = [run_id for run_id, _ in passed]
    until = ids.index(chosen.ran.run_id) if chosen.ran.run_id in ids else len(ids)
    return Backing(chosen.ran, chosen.proof, tuple(_few(note for _, note in passed[:until])))


def _later(ws: Workspace, runs: Iterable[Ran], trust: Trust, chosen: Ran) -> Iterator[str]:
    for at, ran in enumerate(runs):
        if ran.run_id == chosen.run_id or at == NOTED:
            return
        proof = verify_run(ws, ran.run_id, trust=trust)
        if proof.ok and ran.record.ok:
            if not chosen.record.ok:
                yield f"a later run, {ran.run_id}, went well: quire propose shows it"
        else:
            yield _note(ran, proof)


def _note(ran: Ran, proof: Verdict) -> str:
    if not proof.ok:
        return f"a later run, {ran.run_id}, does not verify: it does not count"
    return f"a later run, {ran.run_id}, {ended(ran.record)}"


def ended(record: Record) -> str:
    """Such as `failed`, `was cancelled`."""
    was = "was " if record.outcome == "cancelled" else ""
    return f"{was}{worded(record.outcome)}"


def _few(notes: Iterable[str]) -> Iterator[str]:
    found = list(notes)
    yield from found[:NOTES]
    if len(found) > NOTES:
        yield f"and {len(found) - NOTES} more such runs"
