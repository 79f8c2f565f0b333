"""Folders and journals of sessions."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quire.errors import QuireError, UsageError
from quire.record.events import CellSubmitted, KernelReplaced, SessionClosed, SessionOpened
from quire.sessions.session_folders import SessionStore


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / ".quire" / "sessions")


def opened(store: SessionStore, wanted: str) -> str:
    name = store.reserve(wanted, exactly=False)
    journal = store.create(name)
    journal.append(SessionOpened(name, "now", f"/tasks/{wanted}.py", {"kernel": ""}))
    journal.close()
    return name


def test_names_follow_the_task(store: SessionStore) -> None:
    assert store.names() == []
    assert [opened(store, "report") for _ in range(3)] == ["report", "report-2", "report-3"]
    assert opened(store, "Übersicht 2026!") == "bersicht-2026"
    assert opened(store, "---") == "session"
    assert opened(store, "x" * 200) == "x" * 50
    assert store.names() == sorted(store.names())
    assert len(store.names()) == 6
    store.remove("report-2")
    assert opened(store, "report") == "report-2"


def test_a_given_name_is_taken_as_it_is(store: SessionStore) -> None:
    assert store.reserve("a.b-c_1", exactly=True) == "a.b-c_1"
    with pytest.raises(UsageError, match="there is already a session"):
        store.reserve("a.b-c_1", exactly=True)


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-x", " a", "a" * 65, "a\n", "ä"])
def test_names_that_could_be_something_else(store: SessionStore, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a session"):
        store.reserve(name, exactly=True)
    with pytest.raises(UsageError):
        store.read(name)
    assert store.names() == []


def test_many_at_once_get_different_names(store: SessionStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda _: store.reserve("t", exactly=False), range(24)))
    assert sorted(names) == sorted(store.names())
    assert len(set(names)) == 24


def test_nobody_else_reads_them_and_git_does_not_see_them(store: SessionStore) -> None:
    name = opened(store, "t")
    assert stat.S_IMODE(store.folder(name).path.stat().st_mode) == 0o700
    assert stat.S_IMODE(store.folder(name).events.stat().st_mode) == 0o600
    assert (store.root.parent / ".gitignore").read_text() == "*\n"


def test_a_journal_goes_on(store: SessionStore) -> None:
    name = opened(store, "t")
    with store.folder(name).events.open("ab") as file:
        file.write(b'{"half a li')  # the host was killed in the middle of a write
    journal = store.reopen(name)
    journal.append(KernelReplaced(2, "its host ended", "later"))
    journal.append(CellSubmitted("c1", 1, 0, "", "n = 1", "later"))
    state = store.read(name)
    assert (state.name, state.task, state.epoch) == (name, "/tasks/t.py", 2)
    assert [one.cell.source for one in state.ran] == ["n = 1"]
    # Two hosts never write one journal.
    with pytest.raises(QuireError):
        store.reopen(name)
    journal.close()
    store.reopen(name).close()


def test_what_cells_gave_out_costs_nothing_to_know_a_session(store: SessionStore) -> None:
    name = opened(store, "t")
    journal = store.reopen(name)
    journal.append(CellSubmitted("c1", 1, 0, "", "n = 1", "later"))
    journal.close()
    with store.folder(name).events.open("ab") as file:
        file.write(b'{"event":"OutputAdded","cell":not even read}\n')
    journal = store.reopen(name)
    journal.append(CellSubmitted("c2", 2, 1, "", "n = 2", "later"))
    journal.close()
    assert [one.cell.cell for one in store.read(name).ran] == ["c1", "c2"]


def test_the_sessions_on_a_task_are_known_by_how_they_began(store: SessionStore) -> None:
    opened(store, "other")
    names = [opened(store, "t"), opened(store, "t")]
    store.reserve("just-made", exactly=True)
    with store.folder(names[0]).events.open("ab") as file:
        file.write(b"what comes later is not read\n")
    assert store.on(Path("/tasks/t.py")) == names
    assert store.on(Path("/tasks/none.py")) == []


def test_states_skip_what_is_no_session(store: SessionStore) -> None:
    name = opened(store, "t")
    store.reserve("just-made", exactly=True)  # another call is about to write its journal
    (store.root / "stray.txt").write_text("x")
    assert [state.name for state in store.states() if state.name] == [name]
    journal = store.reopen(name)
    journal.append(SessionClosed("end"))
    journal.close()
    assert [state.closed for state in store.states() if state.name] == [True]
    with pytest.raises(UsageError, match="there is no session 'nope'"):
        store.read("nope")
    store.remove(name)
    store.remove(name)
    assert name not in store.names()
