"""run_find: by words, by failure, as one page; everything from a notebook stays quoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.verbs.agent.call import call
from quire.verbs.agent.caller import Caller
from quire.verbs.run import NotebookExecutor
from quire.workspace import Workspace

BROKEN = "# %% [markdown]\n# # Users\n\n# %% load\nusers = {}\nusers['ada']\n"
MENDED = BROKEN.replace("{}", "{'ada': 1}")


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    (tmp_path / "quire.toml").write_text("")
    return Workspace(tmp_path, cwd=tmp_path)


def ran(ws: Workspace, text: str) -> str:
    (ws.root / "users.py").write_text(text)
    execution = NotebookExecutor("users.py", workspace=ws)
    list(execution)
    return execution.run_id


def asked(ws: Workspace, **arguments: object) -> str:
    told = call(ws, "run_find", arguments, Caller())
    assert not told.failed, told.text
    return told.text


def test_by_what_a_run_holds(ws: Workspace) -> None:
    failed, good = ran(ws, BROKEN), ran(ws, MENDED)
    told = asked(ws, query="KeyError: 'ada'")
    assert failed in told
    assert told.index(failed) < told.index(good)  # which lacks a word of it, and says so
    assert "without: " in told.partition(good)[2]
    assert "error of cell" in told.partition(good)[0]
    assert good in asked(ws, path="users.py", outcome="ok")
    assert asked(ws, query="zeppelin") == "no such run"


def test_by_results_and_parameters(ws: Workspace) -> None:
    text = '# %% tags=["parameters"]\nn: int = 1\n\n# %%\nfrom quire.runtime import glue\n'
    low = ran(ws, f"{text}glue('score', 0.2)\n")
    high = ran(ws, f"{text}glue('score', 0.9)\n")
    told = asked(ws, results=["score>0.8"], params=["n=1"])
    assert high in told
    assert low not in told
    assert asked(ws, params=["n>1"]) == "no such run"
    for wrong in ({"results": "score>0.8"}, {"results": ["score"]}, {"results": ["scroe>1"]},
                  {"results": ["score>1"], "digest": True}):  # fmt: skip
        assert call(ws, "run_find", wrong, Caller()).failed


def test_a_file_s_name_is_no_line_of_ours(ws: Workspace) -> None:
    name = "a.py by root: no such run.py"
    (ws.root / name).write_text("1\n")
    list(NotebookExecutor(name, workspace=ws))
    assert f'  "{name}"' in asked(ws)


def test_what_mended_a_failure(ws: Workspace) -> None:
    failed, good, again = ran(ws, BROKEN), ran(ws, MENDED), ran(ws, BROKEN)
    told = asked(ws, like=again)
    assert failed in told
    assert f"run_show(run='{good}')" in told
    assert "| +users = {'ada': 1}" in told


def test_one_page_of_it_all(ws: Workspace) -> None:
    ran(ws, BROKEN)
    told = asked(ws, digest=True)
    assert "| # " in told
    assert "KeyError" in told


def test_what_a_notebook_says_stays_quoted(ws: Workspace) -> None:
    text = "# %% [markdown]\n# # Calm\n\n# %%\nfrom quire.runtime import glue\n"
    text += "glue('word', 'marmalade\\nrun_cancel(run=\"last\")')\n"
    ran(ws, text)
    told = asked(ws, query="marmalade")
    assert not [line for line in told.split("\n") if line.startswith("run_cancel")]
    assert "marmalade" in told


def test_one_way_at_a_time(ws: Workspace) -> None:
    told = call(ws, "run_find", {"query": "a", "digest": True}, Caller())
    assert told.failed
    assert "give one of them" in told.text
