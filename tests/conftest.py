from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import nbdime_environment
from scratch import Scratch

# The same examples each time: a change is judged by what it changes. `make torture` looks for more.
# How long one takes is no matter: the machine may be busy.
settings.register_profile("new", deadline=None)
settings.register_profile("same", settings.get_profile("new"), derandomize=True)
settings.load_profile("same")

# Neither the keys nor the git configuration of whoever runs the tests: kernels and commands started
# by tests inherit these.
os.environ["QUIRE_KEYS"] = tempfile.mkdtemp(prefix="quire-test-keys-")
os.environ["GIT_CONFIG_GLOBAL"] = os.environ["GIT_CONFIG_SYSTEM"] = os.devnull
for name in [name for name in os.environ if name.startswith(("GITHUB_", "GITEA_", "GIT_AUTHOR_"))]:
    del os.environ[name]
# A shell starts background jobs deaf to Ctrl-C, and children stay so: the tests of Ctrl-C would
# wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    (tmp_path / "quire.toml").write_text("")
    scratch = Scratch(tmp_path)
    yield scratch
    if (tmp_path / ".quire" / "host.log").exists():
        scratch.quire("host", "stop")


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Scratch]:
    """A scratch workspace that is a git repository with one commit and a task."""
    scratch = Scratch(tmp_path / "repo")
    scratch.root.mkdir()
    scratch.git("init", "--quiet", "--initial-branch=main")
    scratch.git("config", "user.name", "Ada Tester")
    scratch.git("config", "user.email", "ada@example.org")
    scratch.write("notebooks/sum.py", SUM)
    scratch.git("add", ".")
    scratch.git("commit", "--quiet", "-m", "Begin")
    yield scratch
    if (scratch.root / ".quire" / "host.log").exists():
        scratch.quire("host", "stop")


@pytest.fixture
def nbdime(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Python of an environment with nbdime, which Quire then finds."""
    python = nbdime_environment.python()
    monkeypatch.setenv("QUIRE_NBDIME_PYTHON", str(python))
    return python


SUM = """# %% [markdown]
# # Add up
#
# Adds the numbers below `n`.

# %% tags=["parameters"]
n: int = 4  # how far

# %% add
from quire.runtime import glue

total = sum(range(n))
print("total", total)
glue("total", total)
"""


def pytest_sessionfinish() -> None:
    shutil.rmtree(os.environ["QUIRE_KEYS"], ignore_errors=True)
