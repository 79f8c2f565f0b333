from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.cell_tools.allowed_paths import Places, Spot
from quire.cell_tools.shell_command import KEEPER_GONE, run_command, words_of
from quire.cell_tools.toolbox import Toolbox
from quire.config import Tools
from quire.errors import Refused, ToolError

ENV = {"PATH": os.environ["PATH"], "GREETING": "hello"}


def run(command: str, tmp_path: Path, **more: Any) -> dict[str, Any]:
    given = {"seconds": 20.0, "limit": 10_000, "called_off": lambda: False, **more}
    return run_command(words_of(command, (), ()), str(tmp_path), ENV, **given)


def test_output_and_end_of_a_command(tmp_path: Path) -> None:
    done = run("echo $GREETING; pwd; echo bad >&2; exit 3", tmp_path)
    assert done["output"] == f"hello\n{tmp_path}\nbad\n"
    assert (done["exit_code"], done["timed_out"], done["truncated"]) == (3, False, False)
    assert run("kill -9 $$", tmp_path)["exit_code"] == -9
    assert run("cat", tmp_path)["output"] == "", "there is nothing to read"
    assert run("no-such-command", tmp_path)["exit_code"] == 127


def test_long_output_keeps_head_and_tail(tmp_path: Path) -> None:
    done = run("seq 1 200000", tmp_path, limit=1_000)
    assert done["truncated"]
    assert done["output"].startswith("1\n2\n")
    assert done["output"].endswith("199999\n200000\n")
    assert "bytes were cut here]" in done["output"]
    assert len(done["output"]) < 1_100


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    done = run("echo begun; sleep 1000", tmp_path, seconds=0.3)
    assert (done["output"], done["exit_code"], done["timed_out"]) == ("begun\n", -1, True)
    assert "took longer than 0.3 s" in done["error"]


def test_what_it_started_is_ended_with_it(tmp_path: Path) -> None:
    run("setsid sleep 1000 & echo $! > pid", tmp_path)
    pid = (tmp_path / "pid").read_text().strip()
    assert not Path(f"/proc/{pid}").exists()


# In a process of its own, for it becomes one that adopts orphans, as a host is.
ATTACKS_KEEPER = """
import os, sys, tempfile
from pathlib import Path
from quire.kernel import processes as children
from quire.cell_tools.shell_command import run_command

children.alone()
done = run_command(
    ["/bin/sh", "-c", sys.argv[1]], ".", dict(os.environ), 0.5, 1_000, lambda: False
)
print(done["exit_code"], done.get("error"))
pids = [int(pid) for pid in Path("pids").read_text().split()]
print([pid for pid in pids if Path(f"/proc/{pid}").exists()], os.listdir(tempfile.gettempdir()))
"""
LATE = "it took longer than 0.5 s and was ended"


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("kill -9 $PPID; sleep 1000", KEEPER_GONE),
        ("kill -STOP $PPID; sleep 1000", LATE),
        ("while :; do kill -STOP $PPID; done", LATE),
    ],
    ids=["killed", "stopped", "stopped again and again"],
)
def test_a_command_that_ends_or_stops_its_keeper_ends_too(
    tmp_path: Path, command: str, error: str
) -> None:
    kept = "(setsid sleep 1000 & echo $! >> pids); sleep 1000 & echo $! $$ $PPID >> pids; "
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", ATTACKS_KEEPER, kept + command],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == [f"-1 {error}", "[] []"], done.stderr


def test_it_is_called_off(tmp_path: Path) -> None:
    off = threading.Event()
    off.set()
    done = run("sleep 1000", tmp_path, called_off=off.is_set)
    assert (done["error"], done["exit_code"]) == ("called off", -1)


class Exchanged(Places):
    """Somebody puts a link in the place of the folder when it has been looked at, or later."""

    exchange: Callable[[], None]
    at_once: bool

    @contextlib.contextmanager
    def at(self, *given: Any, **more: Any) -> Iterator[Spot]:
        with super().at(*given, **more) as spot:
            if self.at_once:
                self.exchange()
            yield spot
        if not self.at_once:
            self.exchange()


@pytest.mark.parametrize("at_once", [True, False])
def test_the_folder_of_a_command_is_the_one_that_was_looked_at(
    tmp_path: Path, at_once: bool
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "here").mkdir(parents=True)
    outside.mkdir()
    for folder in (root / "here", outside):
        (folder / folder.name).touch()

    def exchange() -> None:
        (root / "here").rename(root / "there")
        (root / "here").symlink_to(outside)

    places = Exchanged([(str(root), True)])
    places.exchange, places.at_once = exchange, at_once
    box = Toolbox(Tools(), places, ENV, str(root))
    given = {"command": "ls", "folder": "here", "cwd": str(root)}
    if at_once:
        with pytest.raises(ToolError, match="here: "):
            box.use("terminal", given, lambda: False)
    else:
        assert box.use("terminal", given, lambda: False)["output"] == "here\n"


ALLOWED = ("git status", "git log *", "pytest -q tests/*", "grep * *.txt")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("git status", ["git", "status"]),
        ("  git   status ", ["git", "status"]),
        ("git log", ["git", "log"]),
        ("git log --oneline -n 3", ["git", "log", "--oneline", "-n", "3"]),
        ("pytest -q tests/a.py", ["pytest", "-q", "tests/a.py"]),
        ("grep 'a|b; $x' notes.txt", ["grep", "a|b; $x", "notes.txt"]),
        ('grep "a|b" notes.txt', ["grep", "a|b", "notes.txt"]),
        (r"grep a\;b notes.txt", ["grep", "a;b", "notes.txt"]),
        ("git log HEAD~2", ["git", "log", "HEAD~2"]),
        (r'grep "\"a;" notes.txt', ["grep", '"a;', "notes.txt"]),
    ],
)
def test_allowed_commands_are_words(command: str, words: list[str]) -> None:
    assert words_of(command, ALLOWED, ()) == words


@pytest.mark.parametrize(
    "command",
    [
        "git",
        "git push",
        "git status -s",
        "gitstatus",
        "pytest -q tests/a.py other.py",
        "pytest tests/a.py",
        "grep a b c.txt",
        "git log; id",
        "git log *.py",
        "git log ~/x",
        "git log # id",
        "git log\x00id",
        r"git log \`id\` `id`",
        "git log '\"' ; id",
        'git log "\'" `id` "\'"',
        r"git log \' ; id \'",
        'git log "$(id)"',
    ],
)
def test_others_are_refused(command: str) -> None:
    with pytest.raises(Refused):
        words_of(command, ALLOWED, ())


@pytest.mark.parametrize(
    "command",
    [
        "git log --output=x",
        "git log -1 --output=x",
        "git log -1 -p --output=x HEAD",
        "find . -exec id {} +",
        "find . -name 'a b' -exec id ';'",
        "find -exec id",
        "rm",
        "rm -rf x",
    ],
)
def test_other_words_do_not_hide_what_is_refused(command: str) -> None:
    refused = ["git log --output*", "find * -exec*", "rm *"]
    with pytest.raises(Refused, match="which is refused"):
        words_of(command, ["git *", "find *", "rm", "rm *"], refused)
    assert words_of("git log --oneline", ["git *"], refused)
    assert words_of("echo git log --output", ["echo *"], refused)


def test_what_is_refused_wins() -> None:
    assert words_of("git log", ("git *",), ("git push *",)) == ["git", "log"]
    with pytest.raises(Refused, match="which is refused"):
        words_of("git push origin", ("git *",), ("git push *",))
    with pytest.raises(Refused, match="needs a shell"):
        words_of("true; git push", (), ("git push *",))
