from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from quire.host.host_socket import address, decode, encode, find_root
from quire.workspace import Engine, Workspace, shared_engine


@pytest.mark.parametrize("mark", ["quire.toml", ".quire", ".git"])
def test_the_root_is_the_nearest_folder_with_a_mark(tmp_path: Path, mark: str) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (tmp_path / "a" / mark).mkdir()
    assert Workspace(cwd=deep).root == tmp_path / "a"
    (deep / "quire.toml").write_text("")
    assert Workspace(cwd=deep).root == deep


def test_a_table_in_pyproject_is_a_mark_and_pyproject_alone_is_none(tmp_path: Path) -> None:
    deep = tmp_path / "a"
    deep.mkdir()
    (tmp_path / "quire.toml").write_text("")
    (deep / "pyproject.toml").write_text("[project]\n")
    assert find_root(str(deep)) == str(tmp_path)
    (deep / "pyproject.toml").write_text("[tool.quire]\n")
    assert find_root(str(deep)) == str(deep)


def test_a_folder_without_any_mark_is_its_own_workspace(tmp_path: Path) -> None:
    if find_root(str(tmp_path.parent)) != str(tmp_path.parent):
        pytest.skip("the temporary folder lies in a workspace")
    assert find_root(str(tmp_path)) == str(tmp_path)


def test_cwd_and_environment_are_the_callers(tmp_path: Path) -> None:
    env = {"A": "1"}
    ws = Workspace(tmp_path, cwd=tmp_path, env=env)
    env["A"] = "2"
    assert ws.env == {"A": "1"}
    assert Workspace(tmp_path).env == dict(os.environ)
    assert Workspace(tmp_path).cwd == Path.cwd()
    assert ws.runs.root == tmp_path / ".quire" / "runs"


def test_paths_are_named_as_a_person_would(tmp_path: Path) -> None:
    ws = Workspace(tmp_path, cwd=tmp_path)
    assert ws.named(tmp_path / "a" / "t.py") == "a/t.py"
    assert ws.named(Path("/elsewhere/t.py")) == "/elsewhere/t.py"


def test_the_configuration_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text("depth = 2")
    ws = Workspace(tmp_path, cwd=tmp_path)
    assert ws.config.depth == 2
    (tmp_path / "quire.toml").write_text("depth = 3")
    assert ws.config.depth == 2


def test_one_engine_for_the_process_unless_one_is_given(tmp_path: Path) -> None:
    assert Workspace(tmp_path).engine is shared_engine()
    own = Engine()
    assert Workspace(tmp_path, engine=own).engine is own
    own.close()
    own.close()


def test_a_hosts_address_is_short_enough_however_deep_the_workspace() -> None:
    near = address("/w", "1")
    assert near.startswith("/w/.quire/host-")
    deep = address("/w/" + "d" * 300, "1")
    assert len(os.fsencode(deep)) < 100
    assert deep != address("/w/" + "e" * 300, "1")
    assert near != address("/w", "2")


def test_a_request_travels_unchanged() -> None:
    argv = ["run", "t.py", "-p", "x", "", "a b", "é\n", "\udcff"]
    env = {"A": "1=2", "EMPTY": "", "NL": "a\nb", "BYTES": "\udcfe"}
    body = encode(argv, "/somewhere é", env, 80)
    assert int.from_bytes(body[:4], "big") == len(body) - 4
    *told, world = decode(body[4:])
    assert told == [argv, "/somewhere é", env, 80]
    assert world["affinity"] == list(os.sched_getaffinity(0))
    assert world["limits"]["NOFILE"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    before = os.umask(0o027)
    try:
        assert decode(encode([], "/", {}, 0)[4:])[-1]["umask"] == 0o027
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)


def test_a_chore_that_is_put_off_is_not_put_off_again() -> None:
    engine = Engine(outlives=True)
    done: list[str] = []
    engine.later("soon", lambda: done.append("soon"))
    engine.later("late", lambda: done.append("old"), after=1000.0)
    engine.later("late", lambda: done.append("new"), after=2000.0)
    assert engine.do_chores()
    assert engine._at_chores is not None
    engine._at_chores.join(60)
    assert done == ["soon"]
    assert not engine.do_chores()  # and what waits for its time keeps no host alive
    due, chore = engine._chores["late"]
    engine._chores["late"] = due - 1000.0, chore
    assert engine.do_chores()
    engine._at_chores.join(60)
    assert done == ["soon", "new"]
    engine.close()
