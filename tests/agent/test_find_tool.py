"""run_find: by words, by failure, as one page; everything from a notebook stays quoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.agent.call_tool import call
from quire.agent.caller import Caller
from quire.engine.run import NotebookExecutor
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


def test_a_run_that_goes_on_is_known_by_its_notebook(ws: Workspace) -> None:
    """Its first one: the index has nothing of the notebook yet."""
    (ws.root / "long.py").write_text("# %%\n1\n\n# %%\n2\n")
    execution = NotebookExecutor("long.py", workspace=ws)
    events = iter(execution)
    next(events)
    line = f"{execution.run_id}  running  long.py"
    assert asked(ws, path="long.py") == line
    assert asked(ws) == line
    assert asked(ws, path="long.py", since="1h") == line
    assert asked(ws, path="long.py", since="2999-01-01") == "no such run"
    assert asked(ws, path="long.py", outcome="failed") == "no such run"
    assert asked(ws, path="long.py", digest=True) == "no such run"
    other = call(ws, "run_find", {"path": "lnog.py"}, Caller())
    assert "did you mean long.py?" in other.text
    list(events)
    assert f"{execution.run_id}  ok  " in asked(ws, path="long.py")
    assert asked(ws).count(execution.run_id) == 1


def test_more_than_were_asked_for_are_counted_with_the_call_that_shows_them(ws: Workspace) -> None:
    known = [ran(ws, MENDED) for _ in range(3)]
    told = asked(ws, path="users.py", limit=2)
    assert told.endswith('\n… 1 more: run_find(path="users.py", limit=3)')
    assert known[0] not in told
    assert "more" not in asked(ws, limit=3)
    # How many have some of the words takes reading them.
    assert asked(ws, query="ada", limit=2).endswith(
        '\n… there are more: run_find(query="ada", limit=4)'
    )
    failed = [ran(ws, BROKEN) for _ in range(3)]
    told = asked(ws, like=failed[0], limit=1)
    assert told.endswith(f'\n… there are more: run_find(like="{failed[0]}", limit=2)')


def test_that_nothing_has_run_is_said_where_it_is_so(ws: Workspace) -> None:
    asked_for = {"results": ["score>3"]}
    assert call(ws, "run_find", asked_for, Caller()).text.endswith("hint: nothing has run yet")
    ran(ws, MENDED)
    told = call(ws, "run_find", asked_for, Caller()).text
    assert told.endswith("hint: no run has a result that can be compared")


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
