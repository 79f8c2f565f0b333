"""Repositories for tests of what git calls, also for users with a configuration of their own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from scratch import Scratch

TASK = """# %% [markdown]
# # Count
#
# Counts.

# %% one
a = 1

# %% two
b = 2

# %% three
c = 3
print(a + b + c)
"""


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def own_configuration(folder: Path) -> Path:
    """What people have in ~/.gitconfig, each line of which has broken some tool."""
    log = folder / "hooks.log"
    for name in ("post-checkout", "post-merge", "pre-commit", "post-rewrite"):
        script(folder / "hooks" / name, f'echo "{name} $*" >> "{log}"\n')
    script(folder / "template" / "hooks" / "post-merge", "exit 0\n")
    signer = script(
        folder / "gpg",
        'cat > /dev/null\necho "[GNUPG:] SIG_CREATED " >&2\n'
        "printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'\n",
    )
    shower = script(folder / "show", 'cat "$2" "$5"\n')
    watcher = script(folder / "watch", "printf 'token\\0/\\0'\n")
    (folder / "attributes").write_text("*.ipynb filter=other diff=other merge=other text\n")
    path = folder / "gitconfig"
    path.write_text(f"""
[user]
    useConfigOnly = true
[core]
    hooksPath = {folder}/hooks
    attributesFile = {folder}/attributes
    autocrlf = input
    fsmonitor = {watcher}
    untrackedCache = true
    quotePath = true
    pager = cat
[commit]
    gpgsign = true
[gpg]
    program = {signer}
[diff]
    external = {shower}
    noprefix = true
    mnemonicPrefix = true
    renames = copies
[color]
    ui = always
[init]
    templateDir = {folder}/template
[merge]
    conflictStyle = zdiff3
    ff = false
[log]
    showSignature = true
    decorate = full
[status]
    short = true
    showUntrackedFiles = no
[rerere]
    enabled = true
[alias]
    add = !false
    st = status
[filter "other"]
    clean = sed s/a/z/
    smudge = sed s/z/a/
[diff "other"]
    textconv = tr a-z A-Z <
[merge "other"]
    driver = false
[feature]
    manyFiles = true
[grep]
    lineNumber = true
    patternType = perl
""")
    return path


@pytest.fixture(params=["plain", "own"])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whose git it is: nobody's, or that of a person who has set everything differently."""
    if request.param == "own":
        folder = tmp_path / "home"
        folder.mkdir()
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own_configuration(folder)))
    return str(request.param)


@pytest.fixture
def ready(world: str, repo: Scratch) -> Scratch:
    """A repository with one task and its notebook, set up and committed."""
    return set_up(repo)


def set_up(repo: Scratch) -> Scratch:
    repo.write("notebooks/count.py", TASK)
    done = repo.quire("init")
    assert done.returncode == 0, done.stderr
    assert repo.quire("sync", "notebooks").returncode == 0
    commit(repo, "Set up")
    return repo


def commit(repo: Scratch, message: str) -> str:
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", message)
    return repo.git("rev-parse", "HEAD")


def execute(path: Path, text: str = "42\n") -> None:
    """As a front end would: outputs and counts, nothing else."""
    nb = json.loads(path.read_text())
    for n, cell in enumerate(c for c in nb["cells"] if c["cell_type"] == "code"):
        cell["execution_count"] = n + 1
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": [text]}]
        cell["metadata"]["execution"] = {"iopub.status.busy": "2026-01-01T00:00:00Z"}
    path.write_text(json.dumps(nb, indent=1, ensure_ascii=False) + "\n")


def told(repo: Scratch, *args: str, code: int = 0, **env: str) -> str:
    """What a git command says, stdout and stderr together."""
    done = subprocess.run(
        ["git", *args],
        cwd=repo.root,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


def is_in_step(repo: Scratch, *names: str) -> bool:
    done = repo.quire("sync", *(names or ("notebooks",)), "--check")
    return done.returncode == 0


def changes(repo: Scratch) -> str:
    return repo.git("status", "--porcelain", "--untracked-files=normal")
