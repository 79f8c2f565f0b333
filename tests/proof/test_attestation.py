"""What is signed can be checked by anybody; what was changed afterwards is named."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from made_events import streams
from made_runs import (
    ADA,
    EVE,
    ORIGIN,
    RUN,
    SHOWN,
    TASK,
    VERSION,
    edited,
    files_of,
    honest,
    ran,
    signed,
    trust,
)
from quire.proof.attestation import ATTESTATION, Examined, check, examine, statement
from quire.proof.key_store import Key
from quire.proof.signatures import PAYLOAD_TYPE, check_seal, envelope, pae, seal
from quire.record.events import OriginNoted
from quire.record.record_files import POINTER

Files = dict[str, bytes]
NB, REC, SRC = "notebook.ipynb", "record.json", "source.py"
HONEST = honest()
PARAMETERS, INJECTED, LOOK, QUIET = (c["id"] for c in json.loads(HONEST[NB])["cells"][1:])


def looked(files: Files, **how: Any) -> Examined:
    return examine(files, trust(), **{"run_id": RUN, "version": VERSION, **how})


def told(files: Files, **how: Any) -> list[str]:
    return [str(finding) for finding in looked(files, **how).findings]


# What is signed


def test_an_honest_run_verifies() -> None:
    done = looked(HONEST)
    assert done.findings == ()
    assert done.notes == ()
    assert done.key == ADA.id
    assert done.signer is not None
    assert done.signer.name == "ada"
    assert check(HONEST, trust()) == []


def test_the_statement_is_an_in_toto_statement_of_everything() -> None:
    made = statement(HONEST)
    assert made["_type"] == "https://in-toto.io/Statement/v1"
    names = [subject["name"] for subject in made["subject"]]
    assert {NB, REC, SRC, "parameters", f"cell/{LOOK}/output/0", f"cell/{LOOK}/output/1"} <= {
        *names
    }
    assert len(names) == len(set(names))
    assert all(len(subject["digest"]["sha256"]) == 64 for subject in made["subject"])
    predicate = made["predicate"]
    assert predicate["environment"]["packages"] == {"numpy": "2.1.0", "pandas": "2.2.3"}
    assert predicate["environment"]["interpreter"]["version"] == "3.11.2"
    assert predicate["engine"] == {"name": "quire", "version": VERSION}
    assert predicate["git"] == {"commit": "ab" * 20, "branch": "main", "dirty": False}
    assert predicate["kernel"]["kind"] == "native"
    assert predicate["asked"] == {"by": "ada", "behalf": "the board"}
    assert (predicate["mode"], predicate["outcome"]) == ("clean", "ok")
    assert predicate["finished"] == "2026-11-16T15:55:09.25+00:00"


def test_the_statement_says_how_a_run_was_resumed() -> None:
    assert statement(files_of(ran(mode="resumed")))["predicate"]["mode"] == "resumed"


def test_the_encoding_is_that_of_the_specification() -> None:
    """The example of the DSSE protocol page."""
    made = pae("http://example.com/HelloWorld", b"hello world")
    assert made == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def other_reader(files: Files, key: Key = ADA) -> Any:
    """An implementation of DSSE that is not ours."""
    public = base64.b64decode(key.public).hex()
    theirs = SSlibKey(key.id, "ed25519", "ed25519", {"public": public})
    read = Envelope.from_dict(json.loads(files[ATTESTATION]))
    read.verify([theirs], 1)
    return json.loads(read.payload)


def test_somebody_elses_code_verifies_our_envelope() -> None:
    assert other_reader(HONEST) == statement(HONEST)
    forged = edited(
        HONEST, ATTESTATION, lambda e: e.update(payload=base64.b64encode(b"{}").decode())
    )
    with pytest.raises(VerificationError):
        other_reader(forged)


def test_long_values_are_named_by_their_digest_and_still_compared() -> None:
    files = honest(results=[("story", "x" * 5000)], warnings=["w" * 5000])
    assert len(json.dumps(statement(files)["predicate"])) < 5000
    forged = edited(files, REC, lambda r: r["results"]["story"].update(value="y" * 5000))
    assert "record.json results.story.value: changed after it was signed" in told(forged)


def test_a_statement_is_only_made_of_a_run() -> None:
    with pytest.raises(ValueError, match="cells"):
        statement({**HONEST, NB: b"{}"})


# Forgeries: each with what must be said of it


def nb(change: Callable[[Any], None]) -> Callable[[Files], Files]:
    return lambda files: edited(files, NB, change)


def rec(change: Callable[[Any], None]) -> Callable[[Files], Files]:
    return lambda files: edited(files, REC, change)


def env(change: Callable[[Any], None]) -> Callable[[Files], Files]:
    return lambda files: edited(files, ATTESTATION, change)


def swap(old: bytes, new: bytes, name: str = NB) -> Callable[[Files], Files]:
    def forge(files: Files) -> Files:
        assert files[name].count(old) >= 1
        return {**files, name: files[name].replace(old, new, 1)}

    return forge


def cell(value: Any, id_: str = LOOK) -> Any:
    return next(c for c in value["cells"] if c["id"] == id_)


OTHER = honest(
    parameters={"n": 5},
    shown=((), (), ({"output_type": "stream", "name": "stdout", "text": "total 5\n"},), ()),
    run_id="2026-11-16-155502-report-9999",
)


def sig(change: Callable[[Any], None]) -> Callable[[Files], Files]:
    return env(lambda e: change(e["signatures"][0]))


def payload(change: Callable[[bytes], bytes]) -> Callable[[Files], Files]:
    def forge(e: Any) -> None:
        e["payload"] = base64.b64encode(change(base64.b64decode(e["payload"]))).decode()

    return env(forge)


def urlsafe(e: Any) -> None:
    e["payload"] = base64.urlsafe_b64encode(base64.b64decode(e["payload"])).decode().rstrip("=")


def spare_bits(s: Any) -> None:
    """Another text for the same bytes: the last digit has bits that count for nothing."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    digits = s["sig"].rstrip("=")
    last = alphabet[alphabet.index(digits[-1]) ^ 1]
    s["sig"] = digits[:-1] + last + "=" * (len(s["sig"]) - len(digits))


FORGERIES: dict[str, tuple[Callable[[Files], Files], str]] = {
    "one byte of an output": (swap(b"total 4", b"total 5"), f"cell {LOOK} output 0: changed"),
    "the result of a cell": (
        nb(lambda n: cell(n)["outputs"][1]["data"].update({"text/plain": "9"})),
        f"cell {LOOK} output 1: changed",
    ),
    "only the HTML of a result": (
        nb(lambda n: cell(n)["outputs"][1]["data"].update({"text/html": "<b>9</b>"})),
        f"cell {LOOK} output 1: changed",
    ),
    "an output added to a silent cell": (
        nb(lambda n: cell(n, QUIET)["outputs"].append(cell(n)["outputs"][0])),
        f"cell {QUIET} output 0: was not there",
    ),
    "an output removed": (
        nb(lambda n: cell(n)["outputs"].pop()),
        f"cell {LOOK} output 1: was there when it was signed and is gone",
    ),
    "two outputs exchanged": (
        nb(lambda n: cell(n)["outputs"].reverse()),
        f"cell {LOOK} output 0: changed",
    ),
    "the stream an output went to": (
        nb(lambda n: cell(n)["outputs"][0].update(name="stderr")),
        f"cell {LOOK} output 0: changed",
    ),
    "code changed in the notebook only": (
        nb(lambda n: cell(n).update(source=["print('total', 4)\n", "8"])),
        f"cell {LOOK}: its code is not what its id stands for",
    ),
    "code changed in the source only": (
        swap(b"n * 2", b"n * 3", SRC),
        "source.py: changed after it was signed",
    ),
    "a cell added": (
        nb(lambda n: n["cells"].append({**cell(n), "id": "more"})),
        "cell more: it is in the notebook and not in the record",
    ),
    "a cell removed": (
        nb(lambda n: n["cells"].remove(cell(n))),
        f"cell {LOOK}: was there when it was signed and is gone",
    ),
    "cells in another order": (
        nb(lambda n: n["cells"].reverse()),
        "notebook.ipynb: its cells are in another order",
    ),
    "an execution count": (
        nb(lambda n: cell(n).update(execution_count=7)),
        f"cell {LOOK} execution_count: the notebook says 7, the record 3",
    ),
    "a status in the notebook": (
        nb(lambda n: cell(n)["metadata"]["quire"].update(status="failed")),
        f'cell {LOOK} metadata.quire.status: it says "failed", the record "ok"',
    ),
    "papermill's duration of the run": (
        nb(lambda n: n["metadata"]["papermill"].update(duration=0.1)),
        "metadata.papermill.duration: it says 0.1, the record 7.75",
    ),
    "papermill's times of a cell": (
        nb(lambda n: cell(n)["metadata"]["papermill"].update(start_time="2020-01-01")),
        f"cell {LOOK} metadata.papermill.start_time",
    ),
    "papermill's parameters": (
        nb(lambda n: n["metadata"]["papermill"]["parameters"].update(n=5)),
        "metadata.papermill.parameters",
    ),
    "the kernel a notebook names": (
        nb(lambda n: n["metadata"]["kernelspec"].update(name="ir")),
        "notebook.ipynb metadata: changed after it was signed",
    ),
    "the parameters of the record": (
        rec(lambda r: r["plan"]["parameters"].update(n=5)),
        "parameters: changed after it was signed",
    ),
    "the outcome": (
        rec(lambda r: r.update(outcome="failed")),
        'record.json outcome: signed as "ok", now "failed"',
    ),
    "the status of a cell": (
        rec(lambda r: cell(r).update(status="failed")),
        f'record.json cells.{LOOK}.status: signed as "ok", now "failed"',
    ),
    "the duration of a cell": (
        rec(lambda r: cell(r).update(duration=0.01)),
        f"record.json cells.{LOOK}.duration: signed as 0.25, now 0.01",
    ),
    "the duration of the run": (rec(lambda r: r.update(duration=1)), "record.json duration"),
    "a version of a package": (
        rec(lambda r: r["environment"]["packages"].update(numpy="1.0")),
        'record.json environment.packages.numpy: signed as "2.1.0", now "1.0"',
    ),
    "a package removed": (
        rec(lambda r: r["environment"]["packages"].pop("pandas")),
        "record.json environment.packages.pandas: was there",
    ),
    "the commit": (rec(lambda r: r["git"].update(commit="cd" * 20)), "record.json git.commit"),
    "dirty made clean": (rec(lambda r: r["git"].update(dirty=None)), "record.json git.dirty"),
    "who asked": (rec(lambda r: r["asked"].update(by="eve")), "record.json asked.by"),
    "on whose behalf": (rec(lambda r: r["asked"].pop("behalf")), "record.json asked.behalf"),
    "resumed made clean": (rec(lambda r: r["plan"].update(mode="resumed")), "record.json mode"),
    "a result nobody glued": (
        rec(lambda r: r["results"].update(score={"kind": "json", "value": 1, "cell": LOOK})),
        "record.json results.score: was not there when it was signed",
    ),
    "a cell's status twice in the record": (
        swap(b'"status": "ok"', b'"status": "ok", "status": "failed"', REC),
        'record.json: the key "status" stands twice in one object',
    ),
    "NaN in the record": (swap(b"7.75", b"NaN", REC), "record.json: NaN is not JSON"),
    "a number without end": (
        swap(b"7.75", b"1e999", REC),
        'record.json: the number "1e999" is too',
    ),
    "a number of many digits": (swap(b"7.75", b"7" * 5000, REC), "record.json: a number in it has"),
    "bytes that are no text": (swap(b"ada", b"\xff\xfe", REC), "record.json: it is not UTF-8"),
    "a record that is a list": (lambda f: {**f, REC: b"[]"}, "record.json: it holds []"),
    "nesting without end": (
        swap(b"7.75", b"[" * 100_000 + b"]" * 100_000, REC),
        "record.json: its lists and objects are nested too deeply",
    ),
    "cells that are no list": (rec(lambda r: r.update(cells={})), "record.json cells: it is {}"),
    "a status that is a number": (
        rec(lambda r: cell(r).update(status=1)),
        "record.json cell 3 status: it is 1",
    ),
    "the notebook of another run": (
        lambda f: {**f, NB: OTHER[NB]},
        "notebook.ipynb metadata.quire.run_id",
    ),
    "the record of another run": (
        lambda f: {**f, REC: OTHER[REC]},
        "record.json run_id: this is the run",
    ),
    "the attestation of another run": (
        lambda f: {**f, ATTESTATION: OTHER[ATTESTATION]},
        "record.json run_id: signed as",
    ),
    "another run under this id": (lambda f: OTHER, f"kept under the name {RUN}"),
    "another file": (lambda f: {**f, "evil.sh": b"rm"}, "evil.sh: this file does not belong"),
    "another source": (lambda f: {**f, "source.md": b""}, "source: there are 2 of them"),
    "no source": (lambda f: {k: v for k, v in f.items() if k != SRC}, "source: it is missing"),
    "no record": (lambda f: {k: v for k, v in f.items() if k != REC}, "record.json: it is missing"),
    "no attestation": (
        lambda f: {k: v for k, v in f.items() if k != ATTESTATION},
        "attestation.json: it is missing",
    ),
    "the signature stripped": (
        env(lambda e: e.update(signatures=[])),
        "attestation.json: it is not signed",
    ),
    "an empty signature": (
        sig(lambda s: s.update(sig="")),
        "the signature is not that of ada",
    ),
    "one bit of the signature": (
        sig(lambda s: s.update(sig=("B" if s["sig"][0] == "A" else "A") + s["sig"][1:])),
        "the signature is not that of ada",
    ),
    "two signatures": (
        env(lambda e: e.update(signatures=e["signatures"] * 2)),
        "attestation.json: it has 2 signatures, not one",
    ),
    "a key that nobody knows": (
        lambda f: signed(f, EVE),
        f"attestation.json: unknown key {EVE.id[:16]}: it is not in .quire-keys",
    ),
    "another key under a known name": (
        lambda f: sig(lambda s: s.update(keyid=ADA.id))(signed(f, EVE)),
        "the signature is not that of ada",
    ),
    "no key id": (sig(lambda s: s.pop("keyid")), "its signature is not a keyid and a sig"),
    "another payload": (
        payload(lambda p: p.replace(b'"outcome":"ok"', b'"outcome":"no"')),
        "the signature is not that of ada",
    ),
    "another type of payload": (
        env(lambda e: e.update(payloadType="text/plain")),
        'payloadType is "text/plain"',
    ),
    "the payload in other base64": (env(urlsafe), "its payload is not the base64 that was written"),
    "the signature in other base64": (
        sig(spare_bits),
        "its signature is not the base64 that was written",
    ),
    "line breaks in the base64": (
        env(lambda e: e.update(payload=e["payload"][:64] + "\n" + e["payload"][64:])),
        "its payload is not the base64 that was written",
    ),
    "two payloads": (
        swap(b'"payload":', b'"payload": "e30=", "payload":', ATTESTATION),
        'attestation.json: the key "payload" stands twice',
    ),
    "something beside the payload": (
        env(lambda e: e.update(payloads=[])),
        '"payloads" does not belong in an envelope',
    ),
    "a space in the envelope": (
        swap(b": ", b":  ", ATTESTATION),
        "attestation.json: it is not written as it was",
    ),
    "an envelope that is empty": (lambda f: {**f, ATTESTATION: b""}, "attestation.json: it is not"),
    "an envelope that is a number": (
        lambda f: {**f, ATTESTATION: b"4"},
        "attestation.json: it holds 4",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_named(name: str) -> None:
    forge, wanted = FORGERIES[name]
    forged = forge(dict(HONEST))
    assert forged != HONEST
    found = told(forged)
    assert any(wanted in line for line in found), found


def test_an_error_cannot_be_taken_out() -> None:
    files = honest(fails_at=2)
    assert told(files) == []
    forged = edited(files, NB, lambda n: cell(n)["outputs"].pop())
    assert f"cell {LOOK} output 2: was there when it was signed and is gone" in told(forged)
    mended = edited(files, REC, lambda r: r.update(outcome="ok", error=None))
    assert any(line.startswith("record.json outcome: signed as") for line in told(mended))


# Large outputs


def large() -> tuple[Files, dict[str, bytes]]:
    kept: dict[str, bytes] = {}

    def keep(data: bytes) -> None:
        kept[hashlib.sha256(data).hexdigest()] = data

    shown = (*SHOWN[:2], [{"output_type": "stream", "name": "stdout", "text": "row\n" * 500}])
    return signed(files_of(ran(shown=shown), large=300, keep=keep)), kept


def test_what_is_kept_elsewhere_is_checked_where_it_is_at_hand() -> None:
    files, kept = large()
    (digest,) = kept
    assert told(files, read_object=kept.get) == []
    assert looked(files, read_object=kept.get).notes == ()
    away = looked(files, read_object=lambda _: None)
    assert away.findings == ()
    assert f"cell {LOOK} output 0" in away.notes[0]
    assert "not looked at" in away.notes[0]
    for data in (b"other", kept[digest] + b" ", b""):
        found = told(files, read_object=lambda _, data=data: data)
        assert found == [
            f"cell {LOOK} output 0: the object {digest[:16]} kept outside git is not what was run"
        ]


def test_a_pointer_cannot_be_turned_to_another_object() -> None:
    files, kept = large()
    forged = edited(
        files, NB, lambda n: cell(n)["outputs"][0]["data"][POINTER].update(sha256="0" * 64)
    )
    assert f"cell {LOOK} output 0: changed after it was signed" in told(
        forged, read_object=kept.get
    )


def test_a_task_may_show_what_looks_like_a_pointer() -> None:
    odd = {POINTER: {"sha256": 3}, "text/plain": "x"}
    shown = [{"output_type": "display_data", "data": odd, "metadata": {}}]
    files = honest(shown=((), (), shown))
    assert told(files, read_object=lambda _: b"") == []


# Keys and times


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [
        ({"until": "2026-11-16T15:55:09.25Z"}, ""),
        ({"until": "2026-11-16T15:55:09Z"}, "ended at 2026-11-16T15:55:09Z, before this run did"),
        ({"until": "2026-11-16T16:55:08+01:00"}, "ended at"),
        ({"since": "2026-11-16T15:55:00Z"}, ""),
        ({"since": "2026-11-17T00:00:00Z"}, "counts only since 2026-11-17T00:00:00Z"),
    ],
)
def test_a_key_counts_in_its_time(bounds: dict[str, str], wanted: str) -> None:
    found = [str(one) for one in check(HONEST, trust(ADA, **bounds))]
    assert bool(found) == bool(wanted)
    assert all(wanted in line for line in found)


def test_a_key_with_an_end_needs_a_time_to_compare() -> None:
    forged = signed(edited(HONEST, REC, lambda r: r.update(finished="soon", started="")))
    found = [str(one) for one in check(forged, trust(ADA, until="2030-01-01T00:00:00Z"))]
    assert any("does not say when it ended" in line for line in found)


def test_a_run_of_an_unknown_key_is_compared_all_the_same() -> None:
    forged = swap(b"total 4", b"total 5")(signed(HONEST, EVE))
    found = told(forged)
    assert any("unknown key" in line for line in found)
    assert f"cell {LOOK} output 0: changed after it was signed" in found


def test_seals() -> None:
    made = seal(b"step", ADA)
    later = trust(ADA, until="2026-11-16T00:00:00Z")
    assert check_seal(b"step", made, trust()) == []
    assert "does not fit" in str(check_seal(b"stem", made, trust())[0])
    assert "unknown key" in str(check_seal(b"step", made, trust(EVE))[0])
    assert "there is none" in str(check_seal(b"step", "", trust())[0])
    assert "is not a seal" in str(check_seal(b"step", made + "\n", trust())[0])
    assert check_seal(b"step", made, later, "2026-11-15T23:00:00Z") == []
    assert "ended at" in str(check_seal(b"step", made, later, "2026-11-16T01:00:00Z")[0])


@pytest.mark.parametrize("key", ["_type", "predicateType"])
def test_a_signed_statement_of_another_kind_is_none_of_a_run(key: str) -> None:
    """Whoever signs for Quire may sign other statements too, also with the same subjects."""
    made = {**statement(HONEST), key: "https://example.org/of-something-else"}
    forged = {**HONEST, ATTESTATION: envelope(made, ADA)}
    (line,) = told(forged)
    assert f"its {key} is" in line
    assert "https://example.org/of-something-else" in line


def test_a_seal_is_no_attestation_and_the_other_way_round() -> None:
    """Neither signature fits the other's place, whatever text was given to be sealed."""
    payload = json.dumps(statement(HONEST)).encode()
    text = seal(pae(PAYLOAD_TYPE, payload), ADA).partition(":")[2]

    def forge(e: Any) -> None:
        e["payload"] = base64.b64encode(payload).decode()
        e["signatures"][0]["sig"] = text

    assert any("not that of ada" in line for line in told(edited(HONEST, ATTESTATION, forge)))


# Lies that somebody signs who may: the files must tell one story


LIES: dict[str, tuple[Callable[[Files], Files], str]] = {
    "a notebook with other code": (
        nb(lambda n: cell(n).update(source=["print('total', 5)"])),
        f"cell {LOOK}: its code is not what source.py says",
    ),
    "another source": (
        swap(b"n * 2", b"n * 3", SRC),
        "source.py: it is not the source of the plan",
    ),
    "a cell that the task has not": (
        lambda f: edited(
            edited(f, NB, lambda n: n["cells"].append({**cell(n), "id": "more"})),
            REC,
            lambda r: r["cells"].append({**cell(r), "id": "more"}),
        ),
        "cell more: it is not in source.py",
    ),
    "a cell left out of both": (
        lambda f: edited(
            edited(f, NB, lambda n: n["cells"].remove(cell(n))),
            REC,
            lambda r: r["cells"].remove(cell(r)),
        ),
        f"cell {LOOK}: it is only in source.py",
    ),
    "another outcome": (rec(lambda r: r.update(outcome="failed")), "metadata.quire.outcome"),
    "a failure that is ok": (
        rec(lambda r: cell(r).update(status="died")),
        f"cell {LOOK} status: the run is ok, this cell died",
    ),
    "an error in a run that is ok": (
        rec(lambda r: r.update(error={"cell": "", "name": "E", "value": "", "traceback": []})),
        "record.json error: the outcome",
    ),
    "outputs of a cell that never ran": (
        lambda f: edited(
            edited(f, REC, lambda r: cell(r).update(status="not run")),
            NB,
            lambda n: cell(n)["metadata"]["quire"].update(status="not run"),
        ),
        f"cell {LOOK}: it has outputs and never ran",
    ),
    "carried over in a clean run": (
        rec(lambda r: cell(r).update(status="carried")),
        f"cell {LOOK} status: it is carried over",
    ),
    "parameters that were not set": (
        lambda f: edited(
            edited(f, REC, lambda r: r["plan"]["parameters"].update(n=5)),
            NB,
            lambda n: n["metadata"]["papermill"]["parameters"].update(n=5),
        ),
        "parameters n: the notebook sets 4, the record has 5",
    ),
    "a parameter too many": (
        rec(lambda r: r["plan"]["parameters"].update(m=5)),
        "parameters m: the record has it, the notebook does not set it",
    ),
    "no cell that sets the parameters": (
        nb(lambda n: cell(n, INJECTED)["metadata"].pop("tags")),
        "parameters: the notebook has 0 cells that set them",
    ),
    "another kernel": (rec(lambda r: r["kernel"].update(kind="jupyter")), "record.json kernel"),
    "a result of no cell": (
        rec(lambda r: r["results"].update(score={"kind": "json", "value": 1, "cell": "x"})),
        "record.json results.score: no cell of this run can have glued it",
    ),
    "another id": (
        rec(lambda r: r.update(run_id="2026-11-16-155501-x-0001")),
        "kept under the name",
    ),
    "another format": (rec(lambda r: r.update(format=2)), "record.json format: it is 2, not 1"),
    "one id for two cells": (
        nb(lambda n: cell(n).update(id=QUIET)),
        f'notebook.ipynb cell 4: the id "{QUIET}" stands twice',
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_signed_lie_is_named(name: str) -> None:
    forge, wanted = LIES[name]
    forged = forge(dict(HONEST))
    try:
        forged = signed(forged)
    except ValueError:
        # Our own code does not even sign it; somebody else's would.
        forged[ATTESTATION] = envelope(statement(HONEST), ADA)
    found = told(forged)
    assert any(wanted in line for line in found), found


def test_what_another_version_read_is_not_compared_and_that_is_said() -> None:
    lie = signed(
        edited(
            edited(HONEST, NB, lambda n: n["cells"].append({**cell(n), "id": "more"})),
            REC,
            lambda r: r["cells"].append({**cell(r), "id": "more"}),
        )
    )
    done = looked(lie, version="10")
    assert not any("source.py" in str(finding) for finding in done.findings)
    assert "another version of the engine" in done.notes[0]


def test_a_run_that_was_cut_off_has_no_word_about_its_engine_and_that_is_said() -> None:
    """As one has whose host was killed: what it came from is noted last."""
    done = looked(signed(edited(HONEST, REC, lambda r: r.update(engine={}))), version="10")
    assert not done.findings, done.findings
    (note,) = done.notes
    assert "cut off before it was noted which version" in note
    assert "another version" not in note


def test_masked_text_is_not_taken_for_a_lie() -> None:
    """What was masked in the source is not what ran: its digest and its cells' ids differ."""
    secret = TASK.replace("total", "hunter2")
    record = ran(secret)
    files = {
        name: data.replace(b"hunter2", b"[masked:PW]")
        for name, data in files_of(record, secret).items()
    }
    done = looked(signed(files))
    assert done.findings == ()
    assert "masked" in done.notes[0]


# No false alarms, no tracebacks

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=8,
)
huge = st.integers(-(10**4500), 10**4500)
text = st.text(st.characters(), max_size=20)
bundles = st.fixed_dictionaries(
    {"text/plain": st.text(st.characters(), max_size=2000)},
    optional={"application/json": anything | huge, "text/html": st.just("<b>")},
)
metadata = st.dictionaries(st.text(max_size=5), anything, max_size=2)
odd_outputs = (
    streams()
    | st.fixed_dictionaries(
        {"output_type": st.just("display_data"), "data": bundles, "metadata": metadata}
    )
    | st.fixed_dictionaries(
        {
            "output_type": st.just("execute_result"),
            "data": bundles,
            "metadata": metadata,
            "execution_count": st.integers(1, 9),
        }
    )
    | st.fixed_dictionaries(
        {
            "output_type": st.just("error"),
            "ename": text,
            "evalue": text,
            "traceback": st.lists(text, max_size=3),
        }
    )
)
odd_lines = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30)
values = st.dictionaries(
    st.sampled_from(["n", "m", "k"]),
    st.none()
    | st.booleans()
    | huge
    | st.floats()
    | st.text(st.characters(), max_size=9)
    | st.lists(st.integers(), max_size=3)
    | st.dictionaries(st.text(max_size=4), st.integers(), max_size=2)
    | st.dates()
    | st.datetimes()
    | st.sets(st.text(max_size=3), max_size=3),
    max_size=3,
)


@st.composite
def tasks(draw: st.DrawFn) -> tuple[str, str]:
    lines = draw(st.lists(odd_lines, min_size=1, max_size=4))
    if draw(st.booleans()):
        return "\n".join(f"# %% {n}\n# {line}\nprint({n})\n" for n, line in enumerate(lines)), ".py"
    cells = [
        {"cell_type": kind, "metadata": {"tags": tags}, "source": draw(st.text(st.characters()))}
        | ({"outputs": [], "execution_count": None} if kind == "code" else {})
        for kind, tags in draw(
            st.lists(
                st.tuples(
                    st.sampled_from(["code", "markdown"]),
                    st.lists(st.sampled_from(["parameters", "injected-parameters", "x"])),
                ),
                max_size=4,
            )
        )
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook), ".ipynb"


@settings(max_examples=300, deadline=None)
@given(
    tasks(),
    values,
    st.lists(st.lists(odd_outputs, max_size=3), max_size=5),
    st.none() | st.integers(0, 3),
    st.lists(st.tuples(st.text(max_size=5), anything), max_size=2),
    st.lists(st.text(st.characters(), max_size=300), max_size=2),
    st.booleans(),
)
def test_no_false_alarm(
    task: tuple[str, str],
    parameters: dict[str, Any],
    shown: list[list[dict[str, Any]]],
    fails_at: int | None,
    results: list[tuple[str, Any]],
    warnings: list[str],
    pointers: bool,
) -> None:
    source, suffix = task
    kept: list[bytes] = []
    record = ran(
        source, suffix, parameters, shown, fails_at=fails_at, results=results, warnings=warnings
    )
    files = files_of(record, source, suffix, large=400 if pointers else None, keep=kept.append)
    objects = {hashlib.sha256(data).hexdigest(): data for data in kept}
    done = examine(signed(files), trust(), run_id=RUN, read_object=objects.get, version=VERSION)
    assert done.findings == ()
    assert [note for note in done.notes if "kept elsewhere" in note] == []


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_byte_can_be_changed(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(HONEST)))
    was = HONEST[name]
    at = data.draw(st.integers(0, len(was) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != was[at]))
    forged = {**HONEST, name: was[:at] + bytes([byte]) + was[at + 1 :]}
    found = looked(forged).findings
    assert any(finding.where.startswith(name) for finding in found)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_whatever_stands_there_is_a_finding_and_never_a_traceback(data: st.DataObject) -> None:
    """A value of another kind in any place of any file, signed again where that can be."""
    name = data.draw(st.sampled_from([NB, REC, ATTESTATION]))
    value = json.loads(HONEST[name])
    place, key = value, data.draw(st.sampled_from(sorted(value)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(keys))
    new = data.draw(anything.filter(lambda v: json.dumps(v) != json.dumps(place[key])))
    place[key] = new
    forged = {**HONEST, name: json.dumps(value).encode()}
    assert looked(forged).findings
    if name != ATTESTATION:
        try:
            forged = signed(forged)
        except ValueError:
            return
        looked(forged)  # may be true or false, but is said


def test_signing_takes_a_few_milliseconds() -> None:
    ADA.sign(b"")  # the library is loaded once
    made = statement(HONEST)
    took = []
    for _ in range(20):
        began = time.perf_counter()
        envelope(made, ADA)
        took.append(time.perf_counter() - began)
    assert min(took) < 0.005


def test_an_origin_that_is_not_known_is_no_lie() -> None:
    assert told(honest(origin=OriginNoted({}, {}, None, {}))) == []
    assert told(honest(origin=ORIGIN)) == []
