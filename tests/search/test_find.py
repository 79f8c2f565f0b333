"""Finding runs in an archive, through everything between the files and the answer."""

from __future__ import annotations

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from made_archive import git, repository
from made_runs import ADA, ORIGIN, TASK, files_of, ran, signed
from quire.archive.layout import run_folder
from quire.errors import RunNotFound, UsageError
from quire.record.events import NoteAdded
from quire.search.digest import digest
from quire.search.fill import catch_up, index_of, rebuild, status
from quire.search.find import find
from quire.search.similar import similar
from quire.workspace import Workspace

FAILS = TASK.replace('print("total", n)', 'print(frame["user_id"])')
MENDED = TASK.replace('print("total", n)', 'print(frame["customer"])')


def run_id(number: int) -> str:
    return f"2026-11-16-1555{number:02d}-report-{number:04x}"


def keep(ws: Workspace, number: int, source: str = TASK, note: str = "", **how: Any) -> str:
    record = ran(source, run_id=run_id(number), **how)
    at = f"2026-11-16T15:55:{number:02d}+00:00"
    notes = (NoteAdded(record.cells[1].id, note, at),) if note else ()
    record = replace(record, notes=notes, started=at)
    ws.archive.add(record.run_id, signed(files_of(record, source), ADA))
    return record.run_id


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    folder = tmp_path / "repo"
    repository(folder)
    (folder / "quire.toml").write_text("")
    return Workspace(folder, cwd=folder)


@pytest.fixture
def filled(ws: Workspace) -> Workspace:
    keep(ws, 1, note="Nulls come from the old exporter")
    keep(ws, 2, FAILS, fails_at=2)
    keep(ws, 3, MENDED, parameters={"n": 9}, results=[("score", 0.91), ("region", "eu")])
    keep(ws, 4, results=[("score", 0.4), ("region", "us")])
    return ws


def ids(ws: Workspace, query: str = "", **how: Any) -> list[str]:
    return [hit.run_id for hit in find(ws, query, **how).hits]


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


def test_numbers_beyond_64_bits_and_what_is_no_number_are_compared(ws: Workspace) -> None:
    keep(ws, 1, results=[("big", 2**70), ("loss", "nan")])
    keep(ws, 2, results=[("big", -(2**70)), ("loss", 0.5)])
    keep(ws, 3, results=[("big", 7), ("loss", 0.7)])
    assert ids(ws, results=["big>5"]) == [run_id(3), run_id(1)]
    assert ids(ws, results=[f"big>={2**70}"]) == ids(ws, results=[f"big={2**70}"]) == [run_id(1)]
    assert ids(ws, results=["big<-9223372036854775808"]) == [run_id(2)]
    assert ids(ws, results=["loss=NaN"]) == [run_id(1)]
    assert ids(ws, results=["loss>0"]) == [run_id(3), run_id(2)]


def test_a_value_that_cannot_be_compared_is_not_said_to_be_missing(ws: Workspace) -> None:
    keep(ws, 1, results=[("pods", ["api", "db"]), ("metrics", {"f1": 0.5, "by": {"eu": 1}})])
    with pytest.raises(UsageError, match="'pods' is no single value") as caught:
        find(ws, results=["pods=api"])
    assert "result:pods" in str(caught.value.hint)
    with pytest.raises(UsageError, match="'metrics' is a mapping") as caught:
        find(ws, results=["metrics>0.4"])
    assert "metrics.by.eu, metrics.f1" in str(caught.value.hint)
    with pytest.raises(UsageError, match="no run has a result 'pod'"):
        find(ws, results=["pod=api"])


def test_the_index_follows_the_archive(filled: Workspace) -> None:
    assert catch_up(filled).added == 4
    assert catch_up(filled).added == 0
    new = keep(filled, 5, note="something else")
    assert status(filled)["behind"] == 1
    assert ids(filled, "something") == [new]
    told = status(filled)
    assert (told["runs"], told["behind"], told["problem"]) == (5, 0, "")


def test_while_another_adds_the_few_that_are_missing_it_waits(
    filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    catch_up(filled)
    new = keep(filled, 9, note="zeros from the new exporter")
    monkeypatch.setattr("quire.search.fill.PATIENCE", 60.0)
    with ExitStack() as held, ThreadPoolExecutor() as pool:
        held.enter_context(index_of(filled).writing())
        asked = pool.submit(find, filled, "zeros")
        with pytest.raises(TimeoutError):
            asked.result(0.3)
        held.close()
        assert [hit.run_id for hit in asked.result(60).hits] == [new]
        assert not asked.result().warnings


def test_runs_that_went_are_not_found(filled: Workspace) -> None:
    assert len(ids(filled)) == 4
    git(filled.root, "update-ref", "refs/heads/reports", "refs/heads/reports~2")
    assert ids(filled) == [run_id(2), run_id(1)]
    keep(filled, 3, MENDED)
    assert ids(filled) == [run_id(3), run_id(2), run_id(1)]


def test_deleted_or_damaged_it_is_made_anew(filled: Workspace) -> None:
    first = ids(filled, "total")
    index_of(filled).path.unlink()
    assert ids(filled, "total") == first
    index_of(filled).path.write_bytes(b"x" * 5000)
    found = find(filled, "total")
    assert [hit.run_id for hit in found.hits] == first
    assert "was made anew" in found.warnings[0]
    assert index_of(filled).path.with_name("index.sqlite.broken").exists()
    assert find(filled, "total").warnings == ()


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_where_nothing_can_be_written_the_index_as_it_is_is_searched(
    filled: Workspace, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    before = ids(filled, "total")
    keep(filled, 5, note="too late for the index")
    real = os.open

    def refused(path: Any, flags: int, mode: int = 0o777) -> int:
        if "index." in str(path) and flags & os.O_CREAT:
            raise OSError(code, os.strerror(code), path)
        return real(path, flags, mode)

    monkeypatch.setattr("os.open", refused)
    found = find(filled, "total")
    assert [hit.run_id for hit in found.hits] == before
    assert os.strerror(code) in found.warnings[0]
    assert "1 runs may be missing here" in found.warnings[0]
    assert status(filled)["behind"] == 1
    assert digest(filled, since="2026-11-01").runs == 4
    monkeypatch.undo()
    assert ids(filled, "late") == [run_id(5)]
    assert find(filled, "late").warnings == ()


def test_damage_behind_the_head_is_found_too(filled: Workspace) -> None:
    first = ids(filled, "total")
    path = index_of(filled).path
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    assert ids(filled, "total") == first


def test_a_damaged_run_is_named_and_the_rest_is_searched(filled: Workspace) -> None:
    bad, empty = run_id(7), run_id(8)
    stream = b"commit refs/heads/reports\ncommitter E <e@x> 1 +0000\ndata 1\nx\n"
    stream += b"from refs/heads/reports^0\n"
    for run, data in ((bad, b"{"), (empty, b'{"format": 1}')):
        stream += b"M 100644 inline %b/record.json\ndata %d\n%b\n" % (
            run_folder(run).encode(), len(data), data)  # fmt: skip
    git(filled.root, "fast-import", "--quiet", given=stream)
    found = find(filled, "nulls")
    assert [hit.run_id for hit in found.hits] == [run_id(1)]
    assert f"{bad}, {empty}" in found.warnings[0]
    assert set(rebuild(filled).damaged) == {bad, empty}
    assert set(status(filled)["damaged"]) == {bad, empty}


def test_a_run_under_another_s_name_is_damaged(filled: Workspace) -> None:
    filled.archive.add(run_id(9), signed(files_of(ran(run_id=run_id(6))), ADA))
    assert set(catch_up(filled).damaged) == {run_id(9)}


def test_outputs_of_strangers_are_made_plain(ws: Workspace) -> None:
    said = {"output_type": "stream", "name": "stdout", "text": "evil \x1b]0;title\x07\u202egnp\x00"}
    keep(ws, 1, shown=((), (), (said,)))
    (hit,) = find(ws, "evil").hits
    shown = next(spot.snippet for spot in hit.spots if spot.field == "output")
    assert shown == "evil <U+202E>gnp"
    json.dumps(hit.as_dict())


def test_what_failed_alike_and_what_mended_it(filled: Workspace) -> None:
    found = similar(filled, run_id(2))
    assert found.error == "ValueError: no"
    assert found.runs == ()
    again = keep(filled, 6, FAILS, fails_at=2)
    (one,) = similar(filled, again).runs
    assert (one.hit.run_id, one.why) == (run_id(2), "the same error")
    assert one.fix is not None
    assert one.fix.run_id == run_id(3)
    assert dict(one.fix.parameters) == {"n": (4, 9)}
    assert '-print(frame["user_id"])\n+print(frame["customer"])\n' in one.fix.diff
    newest, first = similar(filled, "ValueError: no").runs
    assert (newest.hit.run_id, newest.fix) == (again, None)
    assert first.hit.run_id == run_id(2)


def failing(ws: Workspace, number: int, name: str, value: str, source: str = FAILS) -> str:
    return keep(ws, number, source, fails_at=2, error=(name, value))


def alike(ws: Workspace, what: str, **how: Any) -> list[tuple[str, str]]:
    return [(one.hit.run_id, one.why) for one in similar(ws, what, **how).runs]


def test_who_said_the_same_to_the_word_comes_before_newer_ones(ws: Workspace) -> None:
    mine = failing(ws, 1, "KeyError", "'user_id'")
    for n in range(2, 20):
        failing(ws, n, "KeyError", f"'column {n}'")
    assert alike(ws, "KeyError: 'user_id'", limit=1) == [(mine, "the same error")]
    assert alike(ws, "KeyError: 'nobody'", limit=1) == [(run_id(19), "the same error")]


def test_an_error_is_found_with_its_module_without_its_name_and_with_what_follows(
    ws: Workspace,
) -> None:
    one = failing(ws, 1, "OperationalError", "no such column: currency")
    failing(ws, 2, "OperationalError", "database is locked")
    failing(ws, 3, "TypeError", "type NoneType has no method round")
    for pasted in (
        "sqlite3.OperationalError: no such column: currency",
        "OperationalError: no such column: currency\n12:00:01 the job ended with status 1",
    ):
        assert alike(ws, pasted) == [(one, "the same error")], pasted
    for pasted in ("no such column: currency", "error: no such column: total, currency"):
        assert alike(ws, pasted) == [(one, "an error like it")], pasted
    assert alike(ws, "TypeError: unsupported operand type(s) for *: 'a' and 'b'") == []
    assert alike(ws, "TypeError") == [(run_id(3), "an error like it")]


def test_what_passed_with_other_parameters_has_mended_nothing(ws: Workspace) -> None:
    failing(ws, 1, "ValueError", "no")
    keep(ws, 2, FAILS, parameters={"n": 5})
    (one,) = similar(ws, "ValueError: no").runs
    assert one.fix is not None
    assert one.fix.run_id == run_id(2)
    keep(ws, 3, MENDED)
    (one,) = similar(ws, "ValueError: no").runs
    assert one.fix is not None
    assert (one.fix.run_id, one.fix.diff != "", dict(one.fix.parameters)) == (run_id(3), True, {})


def test_only_failures_have_the_like(filled: Workspace) -> None:
    with pytest.raises(UsageError, match="did not fail"):
        similar(filled, run_id(1))
    with pytest.raises(RunNotFound):
        similar(filled, "2020-01-01")


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


def test_a_digest_of_the_archive(filled: Workspace) -> None:
    made = digest(filled, since="2026-11-01")
    assert made.runs == 4
    assert "Nulls come from the old exporter" in made.text
    assert f"[{run_id(2)}](runs/2026/11/16/{run_id(2)}/notebook.ipynb)" in made.text
    assert digest(filled, since="2026-11-01", task="report").text == made.text
    with pytest.raises(UsageError):
        digest(filled, task="report", write=True)
    with pytest.raises(UsageError, match="last 30d"):
        digest(filled, since="90d", write=True)
    assert digest(filled, write=True).place == "reports:DIGEST.md"
    assert git(filled.root, "show", "reports:DIGEST.md").startswith("# Digest of runs")
    assert len(ids(filled)) == 4
    assert ORIGIN.asked["by"] == "ada"


def test_a_digest_of_more_runs_than_fit_says_so(
    filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.search.digest.MOST", 4)
    assert "Only" not in digest(filled, since="2026-11-01").text
    monkeypatch.setattr("quire.search.digest.MOST", 3)
    made = digest(filled, since="2026-11-01")
    assert made.runs == 3
    assert "Only the newest 3 runs of that time." in made.text


def test_what_is_like_an_error_without_a_name_is_told_as_it_was_given(filled: Workspace) -> None:
    assert similar(filled, "division by zero").error == "division by zero"
    assert similar(filled, "ZeroDivisionError").error == "ZeroDivisionError"


def test_without_a_repository_and_without_any_run(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text("")
    ws = Workspace(tmp_path, cwd=tmp_path)
    assert find(ws, "anything").hits == ()
    keep(ws, 1, note="in a folder")
    assert ids(ws, "folder") == [run_id(1)]
    digest(ws, write=True)
    assert (tmp_path / ".quire" / "archive" / "DIGEST.md").exists()
    assert ids(ws, "folder") == [run_id(1)]
