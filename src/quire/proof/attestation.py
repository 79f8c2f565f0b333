"""The proof of a run: an in-toto statement that is signed, and what it says when it is checked.

The statement is a function of the archived files alone. So whoever has them can make it again,
compare it with the one that was signed, and name what differs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..record.finding import Finding
from ..record.output_digests import behind, output_digest
from ..record.record import RECOVERED
from ..record.record_files import NOTEBOOK, RECORD, SOURCE, ReadObject, canonical
from .consistency import agreement, shape
from .signatures import ATTESTATION, PAYLOAD, Opened, envelope, loaded, named, opened
from .strict_json import brief
from .trust import Trust, Trusted

__all__ = ["ATTESTATION", "Examined", "Finding", "check", "envelope", "examine", "statement"]

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:quire:run:v1"
# How much the predicate quotes of the record: longer values are named by their digest.
_QUOTED = 200
_DEPTH = 4
_THEN, _NOW = "was there when it was signed and is gone", "was not there when it was signed"


@dataclass(frozen=True, slots=True)
class Examined:
    """What came of checking one run. It verifies when there are no findings."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()  # what was not looked at
    key: str = ""  # id of the key that the envelope names
    signer: Trusted | None = None  # whose that is, if it is trusted

    @property
    def ok(self) -> bool:
        return not self.findings


def statement(files: Mapping[str, bytes]) -> dict[str, Any]:
    """What is to be signed. Raises ValueError for files that are not a run."""
    record, nb = json.loads(files[RECORD]), json.loads(files[NOTEBOOK])
    wrong = next(shape(record, nb), None)
    if wrong is not None:
        raise ValueError(str(wrong))
    return _statement(files, record, nb)


def check(files: Mapping[str, bytes], trust: Trust) -> list[Finding]:
    return list(examine(files, trust).findings)


def examine(
    files: Mapping[str, bytes],
    trust: Trust,
    *,
    run_id: str = "",
    read_object: ReadObject | None = None,
    version: str = "",
) -> Examined:
    """Everything that can be checked with the files at hand.

    `run_id` is the one the archive keeps the files under. `version` is that of the engine that
    checks: some comparisons are certain only when the same engine wrote the run.
    """
    found = list(_wrong_files(files))
    seen = opened(files[ATTESTATION], trust) if ATTESTATION in files else Opened(())
    found += seen.findings
    signer = trust.keys.get(seen.key)
    notes: list[str] = []
    record = loaded(files[RECORD], RECORD, found) if RECORD in files else None
    nb = loaded(files[NOTEBOOK], NOTEBOOK, found) if NOTEBOOK in files else None
    try:
        wrong = [] if record is None or nb is None else list(shape(record, nb))
        found += wrong
        if record is None or nb is None or wrong:
            notes.append("the run cannot be read: only whole files were compared")
            found += _changed_files(seen.payload, files)
        else:
            if signer is not None:
                found += _out_of_time(signer, record)
            found += _differences(seen.payload, _statement(files, record, nb))
            found += _kept_as(record, run_id)
            if record.get("recovered"):
                notes.append(RECOVERED)
            found += agreement(record, nb, _source(files), version, notes)
            found += behind(nb, read_object, notes)
    except RecursionError:
        found.append(Finding(RECORD, "it or the notebook is nested too deeply to be read", "form"))
    return Examined(tuple(found), tuple(notes), seen.key, signer)


def _out_of_time(signer: Trusted, record: Mapping[str, Any]) -> Iterator[Finding]:
    why = signer.objection(record["finished"] or record["started"])
    if why:
        yield Finding(ATTESTATION, f"the key {named(signer)} {why}", "key")


def _kept_as(record: Mapping[str, Any], run_id: str) -> Iterator[Finding]:
    if run_id and record["run_id"] != run_id:
        what = f"this is the run {brief(record['run_id'])}, kept under the name {run_id}"
        yield Finding(f"{RECORD} run_id", what, "name")


def _wrong_files(files: Mapping[str, bytes]) -> Iterator[Finding]:
    sources = [name for name in files if _is_source(name)]
    for name in (RECORD, NOTEBOOK, ATTESTATION):
        if name not in files:
            yield Finding(name, "it is missing", "file")
    if len(sources) != 1:
        what = f"there are {len(sources)} of them, not one" if sources else "it is missing"
        yield Finding(SOURCE, what, "file")
    for name in sorted(files.keys() - {RECORD, NOTEBOOK, ATTESTATION, *sources}):
        yield Finding(name, "this file does not belong to a run", "file")


def _is_source(name: str) -> bool:
    return name.partition(".")[0] == SOURCE


def _source(files: Mapping[str, bytes]) -> tuple[str, bytes]:
    name = next(filter(_is_source, files), "")
    return name, files.get(name, b"")


# The statement


def _statement(files: Mapping[str, bytes], record: Any, nb: Any) -> dict[str, Any]:
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": digest}}
            for name, digest in _subjects(files, record, nb)
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {**_abridged(record), "mode": record["plan"].get("mode", "clean")},
    }


def _subjects(files: Mapping[str, bytes], record: Any, nb: Any) -> Iterator[tuple[str, str]]:
    yield from _file_subjects(files)
    yield "parameters", _sha256(canonical(record["plan"].get("parameters", {})))
    rest = {key: value for key, value in nb.items() if key != "cells"}
    yield "notebook/metadata", _sha256(canonical(rest))
    for cell in nb["cells"]:
        name = f"cell/{cell['id']}"
        bare = {key: value for key, value in cell.items() if key != "outputs"}
        yield name, _sha256(canonical(bare))
        for at, output in enumerate(cell.get("outputs", ())):
            yield f"{name}/output/{at}", output_digest(output)


def _file_subjects(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    for name in sorted(files.keys() - {ATTESTATION}):
        yield name, _sha256(files[name])


def _abridged(value: Any, depth: int = 0) -> Any:
    if isinstance(value, dict) and depth < _DEPTH:
        return {key: _abridged(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list) and depth < _DEPTH:
        return [_abridged(item, depth + 1) for item in value]
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, str) and len(value) <= _QUOTED:
        return value
    data = canonical(value)
    short = len(data) <= _QUOTED and not isinstance(value, str)
    return value if short else {"sha256": _sha256(data)}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# What was signed against what is there


def _differences(signed: Any, now: dict[str, Any]) -> Iterator[Finding]:
    if signed is None:
        return
    for key in ("_type", "predicateType"):
        if signed.get(key) != now[key]:
            what = f"its {key} is {brief(signed.get(key))}, not {now[key]}"
            yield Finding(PAYLOAD, what, "statement")
    for key in sorted(signed.keys() - now.keys()):
        yield Finding(PAYLOAD, f"{brief(key)} has no place in it", "statement")
    then = _digests(signed.get("subject"))
    if then is None:
        yield Finding(PAYLOAD, "its subjects cannot be read", "statement")
    else:
        yield from _changed(then, {s["name"]: s["digest"]["sha256"] for s in now["subject"]})
    yield from _fields(signed.get("predicate"), now["predicate"], ())


def _changed_files(signed: Any, files: Mapping[str, bytes]) -> Iterator[Finding]:
    then = None if signed is None else _digests(signed.get("subject"))
    if then is not None:
        here = dict(_file_subjects(files))
        yield from _changed({name: then[name] for name in then if name in here}, here)


def _digests(subjects: Any) -> dict[str, str] | None:
    """Names to digests; None for what is not a list of subjects as we write it."""
    found: dict[str, str] = {}
    for one in subjects if isinstance(subjects, list) else [None]:
        if not isinstance(one, dict) or one.keys() != {"name", "digest"}:
            return None
        name, digest = one["name"], one["digest"]
        if not isinstance(name, str) or name in found:
            return None
        if not isinstance(digest, dict) or digest.keys() != {"sha256"}:
            return None
        found[name] = digest["sha256"]
    return found


def _changed(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Finding]:
    for name in [*then, *(name for name in now if name not in then)]:
        if name not in now or name not in then:
            yield Finding(_place(name), _THEN if name in then else _NOW, "changed")
        elif then[name] != now[name]:
            yield Finding(_place(name), "changed after it was signed", "changed")


def _place(subject: str) -> str:
    """A subject's name as people read it: `cell ab12 output 0`."""
    if subject == "notebook/metadata":
        return f"{NOTEBOOK} metadata"
    return subject.replace("/", " ") if subject.startswith("cell/") else subject


def _fields(then: Any, now: Any, path: tuple[str, ...]) -> Iterator[Finding]:
    """Where two predicates differ, field by field."""
    if _is_digest(then) and _is_digest(now):
        if then != now:
            yield Finding(_field(path), "changed after it was signed", "field")
    elif isinstance(then, dict) and isinstance(now, dict):
        for key in [*then, *(key for key in now if key not in then)]:
            if key in now and key in then:
                yield from _fields(then[key], now[key], (*path, key))
            else:
                yield Finding(_field((*path, key)), _THEN if key in then else _NOW, "field")
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for at, (one, other) in enumerate(zip(then, now, strict=True)):
            id_ = other.get("id") if isinstance(other, dict) else None
            yield from _fields(one, other, (*path, str(id_ or at)))
    elif canonical(then) != canonical(now):
        yield Finding(_field(path), f"signed as {brief(then)}, now {brief(now)}", "field")


def _is_digest(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"sha256"}


def _field(path: tuple[str, ...]) -> str:
    return f"{RECORD} {'.'.join(path)}" if path else RECORD
