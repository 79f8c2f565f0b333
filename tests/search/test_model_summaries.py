"""Summaries by a model, against a stand-in on loopback that says what is laid ready."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from model_server import Said, standing_in
from quire.agent.call_tool import call
from quire.agent.caller import Caller
from quire.engine.run import NotebookExecutor, drained
from quire.errors import ConfigError, ModelError
from quire.search import model_summaries
from quire.search.fill import rebuild
from quire.search.find import find
from quire.workspace import Engine, Workspace

TASK = '# %%\nfrom quire.runtime import glue\nglue("score", 0.8)\nprint("a private line")\n'
SECRET = "hunter2-hunter2-hunter2"


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(outlives=True)
    yield engine
    engine.close()


def workspace(root: Path, engine: Engine, url: str, more: str = "summaries = true") -> Workspace:
    (root / "quire.toml").write_text(f'[model]\nurl = "{url}"\nmodel = "small"\n{more}\n')
    (root / "t.py").write_text(TASK)
    env = {**os.environ, "MY_PASSWORD": SECRET}
    return Workspace(root, cwd=root, env=env, engine=engine)


def do_chores(engine: Engine) -> None:
    if engine.do_chores() and engine._at_chores is not None:
        engine._at_chores.join(60)
        assert not engine._at_chores.is_alive()


def test_a_model_s_words_stand_in_for_the_rules_and_say_so(tmp_path: Path, engine: Engine) -> None:
    said = f"Scored\x1b[31m 0.8\n\nof # all. {SECRET} " + "x" * 2_000
    with standing_in(Said(said)) as server:
        ws = workspace(tmp_path, engine, server.url)
        run = drained(NotebookExecutor("t.py", workspace=ws)).run_id
        assert server.asked == []  # the run did not wait for it
        do_chores(engine)
    assert server.wrong == []
    (asked,) = server.asked
    sent = asked["messages"][1]["content"]
    assert "Result score = 0.8" in sent
    assert "private line" not in sent
    rebuild(ws)
    (hit,) = find(ws, "score").hits
    assert (hit.run_id, hit.summary_by) == (run, "model small")
    assert hit.summary.startswith("Scored 0.8 of # all.")
    assert len(hit.summary) <= model_summaries.LONGEST
    assert SECRET not in hit.summary
    assert SECRET not in (tmp_path / ".quire" / "summaries" / f"{run}.json").read_text()
    told = call(ws, "run_find", {"query": "score"}, Caller()).text
    assert "Scored 0.8" in told
    assert "(by " in told


def test_nobody_is_asked_who_was_not_to_be(tmp_path: Path, engine: Engine) -> None:
    with standing_in(Said("x")) as server:
        ws = workspace(tmp_path, engine, server.url, "")
        drained(NotebookExecutor("t.py", workspace=ws))
        do_chores(engine)
    assert server.asked == []
    assert find(ws, "score").hits[0].summary_by == ""
    far = workspace(tmp_path, engine, "https://model.example/v1")
    record = drained(NotebookExecutor("t.py", workspace=ws))
    with pytest.raises(ConfigError, match=r"is not sent to model\.example"):
        model_summaries.write(far, record)


def test_a_model_that_fails_fails_nothing(tmp_path: Path, engine: Engine) -> None:
    with standing_in(Said(status=500, raw=b"")) as server:
        ws = workspace(tmp_path, engine, server.url)
        record = drained(NotebookExecutor("t.py", workspace=ws))
        do_chores(engine)
        drained(NotebookExecutor("t.py", workspace=ws))
        do_chores(engine)
    assert len(server.asked) == 1  # and it is left alone for a while
    assert find(ws, "score").hits[0].summary.startswith("ok in")
    with standing_in(Said(status=500, raw=b"")) as server, pytest.raises(ModelError):
        model_summaries.write(workspace(tmp_path, engine, server.url), record)


@pytest.mark.parametrize(
    "data", ["", "[]", '{"text": 1, "model": "m"}', '{"text": " ", "model": "m"}', "[" * 5_000]
)
def test_a_damaged_file_is_none(tmp_path: Path, engine: Engine, data: str) -> None:
    ws = workspace(tmp_path, engine, "http://127.0.0.1:1/v1")
    run = "2026-11-16-155501-report-0001"
    place = tmp_path / ".quire" / "summaries" / f"{run}.json"
    place.parent.mkdir(parents=True)
    place.write_text(data)
    assert model_summaries.of(ws, run) is None
    place.write_text(json.dumps({"text": "a\x1b[31m\nb", "model": "m\nn"}))
    assert model_summaries.of(ws, run) == model_summaries.Summary("a b", "m n")
    assert model_summaries.of(ws, "../../etc/passwd") is None
