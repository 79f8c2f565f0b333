"""The digest: one page of many runs, and when a host writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kept_runs import ids, run_id

from made_archive import git, repository
from quire.engine.run import NotebookExecutor, drained
from quire.errors import UsageError
from quire.search import after_run
from quire.search.ask import Row
from quire.search.digest import LONGEST, digest, page
from quire.search.pieces import Fact, Piece
from quire.workspace import Engine, Workspace


def told(n: int, **more: Any) -> Row:
    day = datetime(2026, 11, 1 + n % 20, tzinfo=UTC).timestamp()
    given: dict[str, Any] = {"run_id": f"run-{n}", "task": "etl/load.py", "title": "Load"}
    given |= {"outcome": "ok", "started": day + n, "duration": 1.0, "by": "ada", "local": False}
    for kind in ("param", "result"):
        values = more.pop(kind, {})
        given["facts"] = (*given.get("facts", ()), *(Fact(kind, *one) for one in values.items()))
    texts = [("note", text) for text in more.pop("notes", ())]
    texts += [("error", text) for text in more.pop("said", ())]
    return Row(**{"id": n, "pieces": [Piece(name, "", text) for name, text in texts],
                  **given, **more})  # fmt: skip


def test_a_digest_says_what_was_learned_changed_and_failed() -> None:
    runs = [
        told(1, result={"score": 0.7}, notes=("Nulls come from *EU*",)),
        told(2, outcome="failed", said=["KeyError: 'a'"], error="KeyError: <value>"),
        told(3, result={"score": 0.9}, notes=("Nulls come from *EU*",)),
    ]
    text = page(runs, lambda run_id: f"runs/{run_id}")
    assert "3 runs of 1 task: 2 ok, 1 failed" in text
    assert "- result score: 0.7 → 0.9 ([run-3](runs/run-3))" in text
    assert text.count("Nulls come from \\*EU\\*") == 1
    assert "failed once: KeyError: 'a' (last [run-2](runs/run-2); passed since in [run-3]" in text
    for line in text.split("\n"):
        assert not line.startswith("- ") or "](runs/" in line


def test_a_digest_is_bounded_and_quotes_nothing_that_means_something() -> None:
    note = "<script>x</script> [a](http://b) \x1b[31m # h\n\n## not a heading"
    runs = [told(n, task=f"t{n}/{'x' * 90}.py", notes=(note * 5,)) for n in range(3000)]
    text = page(runs, lambda run_id: run_id)
    assert len(text) <= LONGEST
    assert "more runs of" in text
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "\n## not" not in text
    assert page([], str) == "# Digest of runs\n\nNo runs.\n"


def test_a_folder_with_too_many_tasks_is_cut_and_not_left_out() -> None:
    runs = [
        told(n, task=f"notebooks/t{n % 40}.py", notes=(f"{n} " + "learned " * 40,))
        for n in range(600)
    ]
    text = page(runs, lambda run_id: run_id)
    assert LONGEST * 0.8 < len(text) <= LONGEST
    assert text.count("\n### ") > 10
    shown = [int(n) for n in re.findall(r"^- 2026-11-\d\d: (\d+) ok", text, re.MULTILINE)]
    before = [int(n) for n in re.findall(r"^- before that: (\d+) runs", text, re.MULTILINE)]
    left = re.search(r"^(\d+) more runs of (\d+) tasks are left out here", text, re.MULTILINE)
    assert left is not None
    assert sum(shown) + sum(before) + int(left[1]) == 600
    assert text.count("\n### ") + int(left[2]) == 40


def test_a_digest_says_whether_the_same_passed_or_only_another() -> None:
    march, april = {"month": "03"}, {"month": "04"}
    failed = {"outcome": "failed", "said": ["E: x"], "error": "E: x", "param": march}
    runs = [told(1, **failed), told(2, param=april)]
    text = page(runs, str)
    assert "passed since with other parameters in [run-2](run-2)" in text
    text = page([*runs, told(3, param=march)], str)
    assert "passed since in [run-3](run-3)" in text


def test_a_digest_says_which_results_differ_by_what_was_given() -> None:
    march, april = {"month": "03"}, {"month": "04"}
    runs = [
        told(1, result={"rows": 5}, param=march),
        told(2, result={"rows": 6}, param=april),
    ]
    assert "- result rows: 5 → 6 with other parameters ([run-2](run-2))" in page(runs, str)
    runs.append(told(3, result={"rows": 7}, param=april))
    assert "- result rows: 6 → 7 ([run-3](run-3))" in page(runs, str)


def test_a_digest_links_only_to_what_the_archive_has_and_to_no_stranger() -> None:
    text = page([told(1, local=True, notes=("see www.evil.example",))], lambda _: "broken")
    assert "broken" not in text
    assert "last run-1\n" in text
    assert "www.evil" not in text


def test_a_digest_has_the_last_word_on_a_build() -> None:
    results = {"validations.failed": 1, "validations.passed": 3, "test_results.passed": 40}
    text = page([told(1, result=results)], lambda name: f"at/{name}")
    assert "- built, validations: 3 passed, 1 failed; tests: 40 passed ([run-1](at/run-1))" in text


def test_a_digest_of_the_archive(filled: Workspace) -> None:
    made = digest(filled, since="2026-11-01")
    assert made.runs == 4
    assert "Nulls come from the old exporter" in made.text
    assert f"[{run_id(2)}](runs/2026/11/16/{run_id(2)}/notebook.ipynb)" in made.text
    assert digest(filled, since="2026-11-01", task="report").text == made.text
    for narrowed in ({"task": "report"}, {"since": "90d"}):
        with pytest.raises(UsageError, match="last 30d"):
            digest(filled, write=True, **narrowed)
    now = datetime(2026, 11, 20, tzinfo=UTC)
    assert digest(filled, write=True, now=now).place == "reports:DIGEST.md"
    assert git(filled.root, "show", "reports:DIGEST.md").startswith("# Digest of runs")
    assert len(ids(filled)) == 4


def test_a_digest_of_more_runs_than_fit_says_so(
    filled: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quire.search.digest.MOST", 4)
    assert "Only" not in digest(filled, since="2026-11-01").text
    monkeypatch.setattr("quire.search.digest.MOST", 3)
    made = digest(filled, since="2026-11-01")
    assert made.runs == 3
    assert "Only the newest 3 runs of that time." in made.text


# Kept by a host.


@pytest.fixture
def hosted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("QUIRE_CONFIG_HOME", str(tmp_path / "home"))
    folder = tmp_path / "repo"
    repository(folder)
    (folder / "quire.toml").write_text("")
    (folder / "t.py").write_text("# %%\nprint(1)\n")
    engine = Engine(outlives=True)
    yield Workspace(folder, cwd=folder, engine=engine)
    engine.close()


def ran(ws: Workspace) -> str:
    return drained(NotebookExecutor("t.py", workspace=ws)).run_id


def do_chores(ws: Workspace) -> None:
    engine = ws.engine
    if engine.do_chores() and engine._at_chores is not None:
        engine._at_chores.join(60)
        assert not engine._at_chores.is_alive()


def kept(ws: Workspace) -> str:
    return git(ws.root, "show", "reports:DIGEST.md")


def digests(ws: Workspace) -> int:
    return git(ws.root, "log", "--format=%s%n%b", "reports").count("Quire-Digest:")


def test_it_comes_by_itself_and_once_for_many_runs(
    hosted: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(after_run, "DIGEST_EVERY", 0.0)
    runs = [ran(hosted), ran(hosted)]
    do_chores(hosted)
    assert all(run in kept(hosted) or "2 ok" in kept(hosted) for run in runs)
    assert digests(hosted) == 1
    do_chores(hosted)
    assert digests(hosted) == 1
    ran(hosted)
    do_chores(hosted)
    assert digests(hosted) == 2
    assert "3 ok" in kept(hosted)
    links = list(hosted.archive.history())
    assert [problem for link in links for problem in link.problems] == []


def test_it_waits_and_can_be_turned_off(hosted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(hosted)
    do_chores(hosted)
    assert digests(hosted) == 0  # it is due in minutes
    assert f"digest of {hosted.root}" in hosted.engine._chores
    (hosted.root / "quire.toml").write_text("[archive]\ndigest = false\n")
    monkeypatch.setattr(after_run, "DIGEST_EVERY", 0.0)
    engine = Engine(outlives=True)
    off = Workspace(hosted.root, cwd=hosted.root, engine=engine)
    ran(off)
    do_chores(off)
    engine.close()
    assert digests(hosted) == 0


def test_one_that_cannot_be_written_fails_nothing(
    hosted: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(after_run, "DIGEST_EVERY", 0.0)
    ran(hosted)
    git(hosted.root, "checkout", "-q", "-f", "reports")
    do_chores(hosted)
    assert digests(hosted) == 0
    git(hosted.root, "checkout", "-q", "-f", "--detach")
    ran(hosted)
    do_chores(hosted)
    assert digests(hosted) == 1
