"""Files that a command names are those of whoever calls it, also where a host reads them."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from scratch import QUIRE, Scratch

TASK = """# %% parameters tags=["parameters"]
name: str = "nobody"

# %% greet
print("hello", name)
"""
CODE = 'print("hello", "Ada")'


@pytest.fixture
def here(scratch: Scratch) -> Scratch:
    """With a host, which another command has started: what it has open is not what we have."""
    scratch.write("t.py", TASK)
    assert scratch.run("t.py")[0] == 0
    return scratch


def shell(scratch: Scratch, line: str, given: str = "") -> str:
    done = subprocess.run(
        ["bash", "-c", line.replace("quire", " ".join(QUIRE))],
        cwd=scratch.root,
        env=scratch.environment({"CODE": CODE}),
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("quire run t.py -q -f <(echo name: Ada)", ""),
        ("quire run t.py -q -f <(echo name: Ada) --no-host", ""),
        ("quire run t.py -q -f /dev/stdin", "name: Ada"),
        ("quire run t.py -q -f /proc/self/fd/0", "name: Ada"),
        ("quire run t.py -q -f -", "name: Ada"),
        ("exec 5<<<'name: Ada'; quire run t.py -q -f /dev/fd/5", ""),
        ("quire run t.py -q --change greet <(printenv CODE)", ""),
        ("quire run t.py -q --change greet /dev/stdin", CODE),
        ("quire edit t.py greet --file <(printenv CODE) && quire run t.py -q", ""),
        ("quire session open t.py --name s -f <(echo name: Ada) && quire exec s all", ""),
    ],
)
def test_a_shell_hands_a_file_over(here: Scratch, line: str, given: str) -> None:
    said = shell(here, line, given)
    shown = here.quire("show", "last").stdout
    assert "hello Ada" in said + shown


def test_one_that_is_not_open_is_not_there(here: Scratch) -> None:
    code, told = here.run("t.py", "-f", "/dev/fd/199")
    assert (code, told["error"]["code"]) == (2, "usage")
    assert "/dev/fd/199: No such file" in told["error"]["message"]


def test_a_host_keeps_nothing_open_of_the_command_that_started_it(
    scratch: Scratch, tmp_path: Path
) -> None:
    """As in a script that holds a lock: it is free when the script ends, not when the host goes."""
    scratch.write("t.py", TASK)
    lock = tmp_path / "lock"
    shell(scratch, f"exec 9>{lock}; flock 9; quire run t.py -q")
    assert "pid" in scratch.quire("host", "status", "--json").stdout
    fd = os.open(lock, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(fd)
