"""What git refuses: each time the next step is told."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from quire.errors import GitError
from quire.git.repository import Repository, Said, refused
from scratch import Scratch


@pytest.fixture
def repository(repo: Scratch) -> Repository:
    found = Repository.find(repo.root)
    assert found is not None
    return found


def hint(repository: Repository, *args: str, **env: str) -> str:
    with pytest.raises(GitError) as caught:
        repository.git(*args, **env)
    return caught.value.hint


def test_locks_that_were_left_behind(repository: Repository) -> None:
    (repository.git_dir / "config.lock").touch()
    assert "remove config.lock" in hint(repository, "config", "--local", "a.b", "c")
    (repository.git_dir / "index.lock").touch()
    assert "remove the .lock file" in hint(repository, "read-tree", "HEAD")


def test_a_hook_that_refuses(repository: Repository) -> None:
    said = Said(128, b"", "fatal: ref updates aborted by hook")
    assert "a hook refused" in refused(said, ["push"]).hint


@pytest.mark.parametrize("how", ["garbage", "empty", "missing"])
def test_an_object_that_is_damaged(repository: Repository, how: str) -> None:
    tree = repository.git("rev-parse", "HEAD^{tree}")
    path = repository.git_dir / "objects" / tree[:2] / tree[2:]
    path.unlink()
    if how != "missing":
        path.write_bytes(b"garbage" if how == "garbage" else b"")
    assert "git fsck" in hint(repository, "ls-tree", "HEAD")


def test_a_pack_that_is_damaged(repo: Scratch, repository: Repository) -> None:
    repo.git("repack", "-a", "-d", "-q")
    (pack,) = (repository.git_dir / "objects" / "pack").glob("*.pack")
    pack.chmod(0o644)
    os.truncate(pack, 40)
    assert "git fsck" in hint(repository, "ls-tree", "-r", "HEAD")


def test_no_repository_where_the_remote_points(repository: Repository, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    for words in (("fetch", gone), ("push", gone, "main")):
        assert "git remote -v" in hint(repository, *words)
    forge = Said(
        128, b"", "remote: Repository not found.\nfatal: repository 'https://x/y' not found"
    )
    assert "you may not see it" in refused(forge, ["fetch"]).hint


def test_a_repository_of_somebody_else(repository: Repository) -> None:
    said = hint(repository, "rev-parse", "HEAD", GIT_TEST_ASSUME_DIFFERENT_OWNER="1")
    assert said == f"git config --global --add safe.directory {repository.top}"
    assert repository.refusal() is None


def test_whatever_else_it_is_there_is_a_next_step(repository: Repository) -> None:
    assert "git fsck" in refused(Said(1, b"", "fatal: the moon is full"), ["gc"]).hint
    shutil.rmtree(repository.git_dir / "refs")
    assert repository.refusal() is not None
