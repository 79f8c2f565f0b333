"""Finding runs in an archive, through everything between the files and the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kept_runs import ids, keep, run_id

from made_runs import TASK
from quire.errors import UsageError
from quire.search.digest import digest
from quire.search.find import find
from quire.workspace import Workspace


def test_words_are_found_with_the_place_and_the_way_there(filled: Workspace) -> None:
    (hit,) = find(filled, "nulls exporter").hits
    assert hit.run_id == run_id(1)
    (spot,) = hit.spots
    assert (spot.field, spot.snippet) == ("note", "Nulls come from the old exporter")
    assert hit.command == f"quire show {hit.run_id} --cell {spot.cell}"
    assert [spot.snippet[start:end] for start, end in spot.marks] == ["Nulls", "exporter"]
    assert hit.missing == ()


def test_what_only_has_some_of_the_words_comes_last_and_says_so(filled: Workspace) -> None:
    hits = find(filled, "exporter customer").hits
    assert {hit.missing for hit in hits} == {("customer",), ("exporter",)}


def test_a_note_comes_before_an_output(ws: Workspace) -> None:
    said = {"output_type": "stream", "name": "stdout", "text": "drift " * 50}
    keep(ws, 1, shown=((), (), (said,)))
    keep(ws, 2, note="There was drift")
    keep(ws, 3, shown=((), (), (said,)))
    assert ids(ws, "drift")[0] == run_id(2)
    assert len(ids(ws, "drift")) == 3


def test_identifiers_are_found_to_the_letter(filled: Workspace) -> None:
    assert ids(filled, 'code:frame["user_id"]') == [run_id(2)]
    assert ids(filled, "user_id") == [run_id(2)]
    assert ids(filled, '"user id"') == []


def test_filters_narrow(filled: Workspace) -> None:
    assert ids(filled) == [run_id(4), run_id(3), run_id(2), run_id(1)]
    assert ids(filled, outcome=["failed"]) == [run_id(2)]
    assert ids(filled, results=["score>0.5"]) == [run_id(3)]
    assert ids(filled, results=["score<=0.91", "region!=us"]) == [run_id(3)]
    assert ids(filled, params=["n=9"]) == [run_id(3)]
    assert ids(filled, "total", results=["region=us"]) == [run_id(4)]
    assert ids(filled, since="2026-11-16T15:55:03", until="2026-11-16") == [run_id(4), run_id(3)]
    assert ids(filled, task="report", who="ADA", limit=1) == [run_id(4)]
    assert ids(filled, "total -nulls", task="notebooks/report.py", limit=2)


@pytest.mark.parametrize(
    "how",
    [
        {"task": "reprot"},
        {"who": "nobody"},
        {"outcome": ["good"]},
        {"results": ["scoer>1"]},
        {"params": ["n"]},
        {"since": "soon"},
        {"since": "today", "until": "7d"},
        {"query": "***"},
    ],
)
def test_what_cannot_be_is_said(filled: Workspace, how: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        find(filled, **how)
    assert caught.value.hint


def test_a_field_that_is_none_is_told_where_nothing_was_met(filled: Workspace) -> None:
    keep(filled, 7, note="listens on host:8080")
    assert find(filled, "host:8080").warnings == ()
    (said,) = find(filled, "host:9090").warnings
    assert "no field 'host'" in said
    found = find(filled, "exporter -notse:nulls")
    assert [hit.run_id for hit in found.hits] == [run_id(1)]
    assert "did you mean note" in found.warnings[0]


def test_scripts_without_spaces_are_found_by_any_piece(ws: Workspace) -> None:
    keep(ws, 1, note="在庫モジュールの翻訳が足りない")
    keep(ws, 2, note="訳を翻す")
    keep(ws, 3, note="GPU温度が高い")
    for query in ("翻訳", "翻訳*", "モジュール", "note:在庫", '"の翻訳が"'):
        (hit,) = find(ws, query).hits
        assert hit.run_id == run_id(1), query
        (spot,) = hit.spots
        ((start, end),) = spot.marks
        assert spot.snippet[start:end] in query
    assert ids(ws, "温度") == ids(ws, "GPU") == [run_id(3)]
    assert ids(ws, "訳翻") == []


def test_each_hit_says_where_also_of_other_forms_of_a_word(ws: Workspace) -> None:
    notes = ["der Schlüssel fehlt", "happy with it", "Schlu\u0308ssel zwei", "written in C++ here"]
    for n, note in enumerate(notes, 1):
        keep(ws, n, note=note)
    asked = {"schlussel": "Schlu\u0308ssel", "happiness": "happy", "^happy": "happy", "c++": "C++"}
    for query, word in asked.items():
        hit = find(ws, query).hits[0]
        (spot,) = (spot for spot in hit.spots if spot.field == "note")
        ((start, end),) = spot.marks
        assert spot.snippet[start:end] == word, query
    assert set(ids(ws, "Schlüssel")) == {run_id(1), run_id(3)}
    assert ids(ws, "c++") == [run_id(4)]
    assert find(ws, "happiness zebra").hits[0].missing == ("zebra",)


def test_of_runs_that_have_all_words_in_the_code_the_one_that_failed_with_it_is_first(
    ws: Workspace,
) -> None:
    raises = TASK.replace('print("total", n)', "raise LookupError(frame.read_rows())")
    failed = keep(ws, 1, raises, fails_at=2, error=("LookupError", "no rows"))
    for n in range(2, 8):
        keep(ws, n, raises)
    assert ids(ws, "frame.read_rows LookupError")[0] == failed


def test_a_bare_outcome_finds_the_runs_that_ended_so(filled: Workspace) -> None:
    assert ids(filled, "failed") == [run_id(2)]
    assert ids(filled, "failed report")[0] == run_id(2)
    assert set(ids(filled, "outcome:ok")) == {run_id(1), run_id(3), run_id(4)}
    (hit,) = find(filled, "failed").hits
    assert ("outcome", "failed") in [(spot.field, spot.snippet) for spot in hit.spots]
    keep(filled, 5, note="nothing failed here")
    assert set(ids(filled, "fail")) == {run_id(2), run_id(5)}
    assert ids(filled, "outcome:failed") == [run_id(2)]


def test_a_value_that_cannot_be_compared_says_what_can_be(ws: Workspace) -> None:
    keep(ws, 1, results=[("pods", ["api", "db"]), ("metrics", {"f1": 0.5, "by": {"eu": 1}})])
    with pytest.raises(UsageError, match="'metrics' that can be compared") as caught:
        find(ws, results=["metrics>0.4"])
    assert "metrics.f1" in str(caught.value.hint)
    with pytest.raises(UsageError, match="'pods' that can be compared"):
        find(ws, results=["pods=api"])


def test_numbers_beyond_64_bits_and_what_is_no_number_are_compared(ws: Workspace) -> None:
    keep(ws, 1, results=[("big", 2**70), ("loss", "nan")])
    keep(ws, 2, results=[("big", -(2**70)), ("loss", 0.5)])
    keep(ws, 3, results=[("big", 7), ("loss", 0.7)])
    assert ids(ws, results=["big>5"]) == [run_id(3), run_id(1)]
    assert ids(ws, results=[f"big>={2**70}"]) == ids(ws, results=[f"big={2**70}"]) == [run_id(1)]
    assert ids(ws, results=["big<-9223372036854775808"]) == [run_id(2)]
    assert ids(ws, results=["loss=NaN"]) == [run_id(1)]
    assert ids(ws, results=["loss>0"]) == [run_id(3), run_id(2)]


def test_outputs_of_strangers_are_made_plain(ws: Workspace) -> None:
    said = {"output_type": "stream", "name": "stdout", "text": "evil \x1b]0;title\x07\u202egnp\x00"}
    keep(ws, 1, shown=((), (), (said,)))
    (hit,) = find(ws, "evil").hits
    shown = next(spot.snippet for spot in hit.spots if spot.field == "output")
    assert shown == "evil <U+202E>gnp"
    json.dumps(hit.as_dict())


def test_a_build_is_found_by_its_sections(ws: Workspace) -> None:
    keep(ws, 1, results=[("dependencies", ["flask"]), ("architecture", {"modules": 3})])
    keep(ws, 2, results=[("dependencies", []), ("notes", "flask was dropped")])
    checks = [{"command": "mypy", "ok": False}]
    keep(ws, 3, results=[("validations", checks), ("test_results", {"passed": 4, "failed": 1})])
    assert ids(ws, "dependencies:flask") == [run_id(1)]
    assert ids(ws, "validations:failed") == [run_id(3)]
    assert ids(ws, "tests:failed validations:mypy") == [run_id(3)]
    assert ids(ws, "", results=["validations.failed>0"]) == [run_id(3)]
    assert set(ids(ws, "flask")) == {run_id(1), run_id(2)}


def test_tests_that_failed_are_told_from_those_of_which_none_did(ws: Workspace) -> None:
    none = {"errors": 0, "failed": 0, "passed": 0}
    for number, told in enumerate([
        none | {"passed": 4, "status": 0},
        none | {"failed": 2, "status": 1},
        none | {"errors": 1, "passed": 4, "status": 1},
        none | {"status": 0},
        none | {"status": 2},
    ]):  # fmt: skip
        keep(ws, number, results=[("test_results", told)])
    assert set(ids(ws, "tests:failed")) == {run_id(1), run_id(2), run_id(4)}
    assert set(ids(ws, "tests:passed")) == {run_id(0), run_id(2)}
    assert ids(ws, "tests:errors") == [run_id(2)]


def test_without_a_repository_and_without_any_run(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text("")
    ws = Workspace(tmp_path, cwd=tmp_path)
    assert find(ws, "anything").hits == ()
    keep(ws, 1, note="in a folder")
    assert ids(ws, "folder") == [run_id(1)]
    digest(ws, write=True)
    assert (tmp_path / ".quire" / "archive" / "DIGEST.md").exists()
    assert ids(ws, "folder") == [run_id(1)]
