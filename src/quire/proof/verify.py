"""Check that archived runs are what was run: one, all of them, or an executed notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import __version__
from ..archive.layout import Archive, Link
from ..errors import Hint, NextStep, QuireError, RunNotFound, UsageError
from ..record.finding import Finding
from ..record.record_files import RECORD
from ..record.run_folders import RunFolder
from ..text import plain
from ..workspace import Workspace
from . import attestation, strict_json
from .coverage import Coverage, object_reader, uncovered
from .keys import trust_of
from .signatures import check_seal, named
from .trust import LIST, Trust, when

__all__ = ["Summary", "Verdict", "uncovered", "verify_all", "verify_notebook", "verify_run"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one run. It verifies when there are no findings."""

    run_id: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    key: str = ""  # id of the key that signed, or says so
    signer: str = ""  # whose it is, if it is trusted
    trust: str = ""  # who says so

    @property
    def ok(self) -> bool:
        return not self.findings

    @property
    def line(self) -> str:
        """The verdict, for a person."""
        if self.ok and not self.key:
            return f"verified {self.run_id}: its outputs are those of an archived run"
        if self.ok:
            return f"verified {self.run_id}: signed by {self.signer}"
        return f"NOT verified {self.run_id}: {count(len(self.findings), 'finding')}"

    def as_dict(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "verified": self.ok,
            "findings": [as_dict(one) for one in self.findings],
            "notes": list(self.notes),
            "key": self.key,
            "signer": self.signer,
            "trust": self.trust,
        }


@dataclass(slots=True)
class Summary:
    """Of a whole archive. `history` is what is wrong with its steps and with what is missing."""

    where: str
    trust: str
    runs: list[Verdict] = field(default_factory=list)
    history: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.history and all(one.ok for one in self.runs)

    @property
    def noted(self) -> list[Verdict]:
        """The runs of which not everything was looked at."""
        return [one for one in self.runs if one.notes]

    @property
    def line(self) -> str:
        good = sum(one.ok for one in self.runs)
        if self.ok:
            return f"verified: {count(good, 'run')} of {self.where}, and the history"
        wrong = len(self.history) + sum(len(one.findings) for one in self.runs)
        told = f"{good} of {count(len(self.runs), 'run')} of {self.where} verified"
        return f"NOT verified: {told}, {count(wrong, 'finding')}"

    def as_dict(self) -> dict[str, Any]:
        return {
            "archive": self.where,
            "verified": self.ok,
            "checked": len(self.runs),
            "runs": [one.as_dict() for one in self.runs if not one.ok],
            "history": [as_dict(one) for one in self.history],
            "notes": [{"run_id": one.run_id, "notes": list(one.notes)} for one in self.noted],
            "trust": self.trust,
        }


def as_dict(finding: Finding) -> dict[str, str]:
    return {"where": finding.where, "what": finding.what, "code": finding.code}


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def verify_run(ws: Workspace, run: str = "last", *, trust: Trust | None = None) -> Verdict:
    """One run: signature, key, every digest, and whether its files tell one story.

    `trust` is whose signatures count; without it, the list in the working tree. A reviewer gives
    `trust_of(ws, revision=base)`.
    """
    run_id, archive = _archived(ws, run)
    trust = trust or trust_of(ws)
    if run_id not in archive.ids():
        place = plain(str((_folder(ws, run_id).archived() or {}).get("place", "")))
        what = f"{run_id} was archived as {place[:200]} and is no longer there"
        lost = Finding(archive.where, what, "removed")
        return Verdict(run_id, (lost,), trust=said(trust))
    return _kept(ws, archive, run_id, trust)


def verify_notebook(ws: Workspace, path: str, *, trust: Trust | None = None) -> Verdict:
    """Whether the outputs of an executed notebook are those of an archived run."""
    trust = trust or trust_of(ws)
    try:
        data = (ws.cwd / path).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot read {path}: {why}", hint="check the path") from error
    found = Coverage(ws, trust).look(data)
    return Verdict(path, found.findings, found.notes, trust=said(trust))


def verify_all(ws: Workspace, *, trust: Trust | None = None) -> Summary:
    """Every run, every seal, and what is no longer there.

    Others may archive runs meanwhile. So what must be in the archive is read first, then the
    archive as it is at one moment, then the keys: whatever counts was there before it is missed.
    """
    ours = [run_id for run_id in ws.runs.ids() if _was_archived(ws, _folder(ws, run_id))]
    archive = ws.archive.now()
    trust = trust or trust_of(ws)
    out = Summary(archive.where, said(trust))
    runs: dict[str, Verdict] = {}
    reached, orderly, cut = "", True, False
    for link in archive.history():
        cut = cut or link.cut
        reached = max(reached, _finished(link.files), key=_moment)
        orderly = orderly and not link.problems
        out.history += _link_findings(link, trust, reached)
        if link.run_id:
            runs[link.run_id] = _verdict(ws, link.run_id, link.files, trust)
    present = set(archive.ids())
    if not orderly:  # a step may have touched a run that was added before: what is there now counts
        runs |= {id_: _kept(ws, archive, id_, trust) for id_ in present & runs.keys()}
    if cut:  # which step has added them cannot be known here; what they are can
        runs |= {id_: _kept(ws, archive, id_, trust) for id_ in present - runs.keys()}
    out.runs = [runs[run_id] for run_id in sorted(runs)]
    for run_id in sorted(present - runs.keys()):
        out.history.append(Finding(run_id, "no step of the history has added it", "history"))
    for run_id in sorted(runs.keys() - present):
        out.history.append(Finding(run_id, "it was archived and is no longer there", "removed"))
    witness = archive.witness_problem()
    if witness:
        out.history.append(Finding("witness", witness, "witness"))
    for run_id in sorted(set(ours) - present - runs.keys()):
        what = "it was archived from here and is no longer there"
        out.history.append(Finding(run_id, what, "removed"))
    if not out.runs and out.ok:
        raise _nothing(ws)
    return out


def _nothing(ws: Workspace) -> UsageError:
    """No run, and no trace of one: that verifies nothing."""
    remote = ws.repository.remote(ws.config.archive.remote) if ws.repository is not None else None
    hint: str = Hint("run a task first: {}", NextStep("run", {"path": "notebooks/x.py"}))
    if remote is not None:
        branch = ws.config.archive.branch
        hint += f"; to have the archive of {remote}: git fetch {remote} {branch}:{branch}"
    return UsageError(f"there is nothing to verify: {ws.archive.where} has no runs", hint=hint)


def _link_findings(link: Link, trust: Trust, reached: str) -> Iterator[Finding]:
    """`reached` is how far the history had come: a key that was over by then cannot go on."""
    where = link.run_id or "step"
    # A commit is known by the beginning of its id; a line of a chain has a number at the end.
    place = f" (step {link.place if ':' in link.place else link.place[:12]})"
    for problem in link.problems:
        yield Finding(where, problem + place, "history")
    if link.sealed and (link.seal or not link.problems):
        for one in check_seal(link.sealed, link.seal, trust, reached):
            yield Finding(f"{where} {one.where}", one.what + place, one.code)


def _finished(files: Mapping[str, bytes]) -> str:
    try:
        told = strict_json.loads(files[RECORD])
        return str(told["finished"] or told["started"])
    except (ValueError, KeyError, TypeError):
        return ""  # said of the run itself


def _moment(text: str) -> float:
    found = when(text)
    return found.timestamp() if found is not None else float("-inf")


def _kept(ws: Workspace, archive: Archive, run_id: str, trust: Trust) -> Verdict:
    """A run as the archive has it."""
    try:
        files = archive.files(run_id)
    except QuireError as error:
        wrong = Finding(archive.path(run_id), error.message, "file")
        return Verdict(run_id, (wrong,), trust=said(trust))
    return _verdict(ws, run_id, files, trust)


def _verdict(ws: Workspace, run_id: str, files: Mapping[str, bytes], trust: Trust) -> Verdict:
    reader = object_reader(ws)
    done = attestation.examine(files, trust, run_id=run_id, read_object=reader, version=__version__)
    signer = "" if done.signer is None else named(done.signer)
    return Verdict(run_id, done.findings, done.notes, done.key, signer, said(trust))


def said(trust: Trust) -> str:
    """Who says whom to trust."""
    return f"this machine's own keys: there is no {LIST}" if trust.own else trust.where


def _archived(ws: Workspace, name: str) -> tuple[str, Archive]:
    """The id of a run that is in the archive, or that was once put there from here; and the
    archive after that was known."""
    try:
        local = ws.runs.find(name)
    except RunNotFound:
        archive = ws.archive.now()
        return archive.find(name), archive
    # The archive's own last run says nothing of one that was taken from its end.
    known = _was_archived(ws, local)
    archive = ws.archive.now()
    if not known and local.run_id not in archive.ids():
        raise UsageError(
            f"the run {local.run_id} is not archived: there is nothing to verify it by",
            hint=Hint("{} lists the runs that are", NextStep("log")),
        )
    return local.run_id, archive


def _folder(ws: Workspace, run_id: str) -> RunFolder:
    return RunFolder(ws.runs.root / run_id)


def _was_archived(ws: Workspace, folder: RunFolder) -> bool:
    """By our own books, and into this archive: a workspace may have had another one before."""
    return (folder.archived() or {}).get("archive") == ws.archive.where
