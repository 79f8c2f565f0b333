"""A ref that only grows, in every kind of repository, and what git says when it cannot."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from made_archive import git, repository
from quire.errors import GitError, UsageError
from quire.git import ref_log
from quire.git.housekeeping import tidy
from quire.git.objects import commits
from quire.git.ref_log import GitLog, Import, Look, Step
from quire.git.repository import Repository

REF = "refs/heads/log"


@pytest.fixture
def log(tmp_path: Path) -> GitLog:
    return GitLog(repository(tmp_path / "repo"), REF)


def state(folder: Path) -> tuple[str, str, list[str]]:
    """What nobody may touch: the head, the index and the files."""
    names = sorted(p.name for p in folder.iterdir())
    return (folder / ".git" / "HEAD").read_text(), git(folder, "status", "--porcelain"), names


def test_changes_stand_on_each_other(log: GitLog) -> None:
    assert (log.tip(), log.paths(), log.read("a")) == (None, [], None)
    first = log.append({"a": b"1\n", "b/c": b"\0\xff"}, "One\n\nwith more")
    second = log.append({"a": b"2", "b/d": b""}, "Two")
    assert log.tip() == second
    assert log.paths() == ["a", "b/c", "b/d"]
    assert log.paths("b/") == ["b/c", "b/d"]
    assert [log.read(path) for path in ("a", "b/c", "b/d", "b", "e")][:3] == [b"2", b"\0\xff", b""]
    assert log.read("e") is None
    third = log.append({"a": None}, "Three")
    told = list(commits(log.repository, REF))
    assert [commit.id for commit in told] == [first, second, third]
    assert [commit.parents for commit in told] == [(), (first,), (second,)]
    assert told[0].message.rstrip() == "One\n\nwith more"
    assert [(c.kind, c.path) for c in told[1].changes] == [("M", "a"), ("A", "b/d")]
    assert [(c.kind, c.path) for c in told[2].changes] == [("D", "a")]
    assert git(log.repository.here, "fsck", "--full", "--strict") == ""


def test_nothing_else_is_touched(log: GitLog) -> None:
    folder = log.repository.here
    (folder / "mine.txt").write_text("staged")
    git(folder, "add", "mine.txt")
    (folder / "mine.txt").write_text("changed since")
    before = state(folder)
    log.append({"mine.txt": b"of the log"}, "One")
    assert state(folder) == before
    assert (folder / "mine.txt").read_text() == "changed since"


def test_several_steps_land_together_and_know_what_they_stand_on(log: GitLog) -> None:
    known: list[str | None] = []

    def message(parent: str | None) -> str:
        known.append(parent)
        return f"after {parent}"

    steps = [Step({str(n): b"x"}, message) for n in range(3)]
    tip = log.change(lambda look: steps if look.tip is None else [])
    ids = [commit.id for commit in commits(log.repository, REF)]
    assert known == [None, *ids[:-1]]
    assert tip == ids[-1]
    assert log.change(lambda look: []) == tip


def test_who_is_quicker_is_not_overwritten(log: GitLog) -> None:
    looked: list[str | None] = []

    def slow(look: Look) -> list[Step]:
        looked.append(look.tip)
        if len(looked) <= 2:  # somebody else, who does not wait for our turn
            with Import(log.repository, REF, look.tip) as stream:
                stream.commit(Step({f"theirs{len(looked)}": b""}, "theirs"))
                assert stream.finish()
        return [Step({"ours": b""}, "ours")]

    log.change(slow)
    assert log.paths() == ["ours", "theirs1", "theirs2"]
    assert [c.message.strip() for c in commits(log.repository, REF)] == ["theirs", "theirs", "ours"]
    assert looked[0] is None
    assert len(set(looked)) == 3


def test_a_log_that_never_stands_still_is_an_error_with_nothing_lost(
    log: GitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ref_log, "TRIES", 3)

    def slow(look: Look) -> list[Step]:
        with Import(log.repository, REF, look.tip) as stream:
            stream.commit(Step({f"theirs{look.tip}": b""}, "theirs"))
            assert stream.finish()
        return [Step({"ours": b""}, "ours")]

    with pytest.raises(GitError, match="moved 3 times"):
        log.change(slow)
    assert len(log.paths()) == 3
    assert "ours" not in log.paths()


def test_threads_of_one_process_take_turns(log: GitLog) -> None:
    def work(name: int) -> None:
        for n in range(4):
            log.append({f"{name}/{n}": b"x"}, f"{name} {n}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(log.paths()) == 16
    assert git(log.repository.here, "rev-list", "--count", "--min-parents=2", REF) == "0"
    assert git(log.repository.here, "rev-list", "--count", REF) == "16"


def test_where_locks_do_not_work_git_still_compares(
    log: GitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(ref_log.fcntl, "flock", no_locks)
    test_threads_of_one_process_take_turns(log)


# Kinds of repositories.


@pytest.mark.parametrize("options", [(), ("--bare",), ("--object-format=sha256",)])
def test_kinds_of_repositories(tmp_path: Path, options: tuple[str, ...]) -> None:
    log = GitLog(repository(tmp_path / "r", *options), REF)
    log.append({"a": b"1"}, "One")
    tip = log.append({"b": b"2"}, "Two")
    assert tip == log.tip() == log.repository.resolve(REF)
    assert log.paths() == ["a", "b"]


def test_a_worktree_writes_to_the_repository_it_belongs_to(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main.here, "commit", "--quiet", "--allow-empty", "-m", "Begin")
    git(main.here, "worktree", "add", "--quiet", "--detach", str(tmp_path / "side"))
    side = Repository.find(tmp_path / "side")
    assert side is not None
    tip = GitLog(side, REF).append({"a": b"1"}, "One")
    assert GitLog(main, REF).tip() == tip


def test_a_submodule_has_a_log_of_its_own(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner")
    git(inner.here, "commit", "--quiet", "--allow-empty", "-m", "Begin")
    outer = repository(tmp_path / "outer")
    allow = ("-c", "protocol.file.allow=always")
    git(outer.here, *allow, "submodule", "--quiet", "add", str(inner.here), "sub")
    sub = Repository.find(outer.here / "sub")
    assert sub is not None
    tip = GitLog(sub, REF).append({"a": b"1"}, "One")
    assert sub.resolve(REF) == tip
    assert outer.resolve(REF) is None
    assert git(outer.here, "status", "--porcelain") == "A  .gitmodules\nA  sub"


def test_packed_refs_and_objects_of_another_repository(tmp_path: Path) -> None:
    origin = repository(tmp_path / "origin")
    GitLog(origin, REF).append({"a": b"1"}, "One")
    git(tmp_path, "clone", "--quiet", "--shared", "--bare", "origin", "copy")
    copy = Repository.find(tmp_path / "copy")
    assert copy is not None
    git(copy.here, "pack-refs", "--all")
    assert not (copy.common / REF).exists()
    log = GitLog(copy, REF)
    log.append({"b": b"2"}, "Two")
    assert log.paths() == ["a", "b"]
    assert tidy(copy, most=0)
    assert log.read("a") == b"1"


def test_what_the_environment_says_of_other_repositories_is_not_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = repository(tmp_path / "other")
    mine = repository(tmp_path / "mine")
    world = {
        **os.environ,
        "GIT_DIR": str(other.git_dir),
        "GIT_OBJECT_DIRECTORY": str(other.git_dir / "objects"),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
    }
    found = Repository.find(mine.here, world)
    assert found is not None
    GitLog(found, REF).append({"a": b"1"}, "One")
    assert other.resolve(REF) is None
    assert mine.resolve(REF) is not None


def test_nobody_has_told_git_their_name(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    git(tmp_path, "config", "user.useConfigOnly", "true")
    found = Repository.find(tmp_path)
    assert found is not None
    GitLog(found, REF).append({"a": b"1"}, "One")
    assert git(tmp_path, "log", "-1", "--format=%cn", REF) == "Quire"


# What goes wrong.


def test_a_branch_that_is_checked_out_is_left_alone(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    git(main.here, "commit", "--quiet", "--allow-empty", "-m", "Begin")
    git(main.here, "worktree", "add", "--quiet", "-b", "log", str(tmp_path / "side"))
    before = main.resolve(REF)
    with pytest.raises(GitError, match=r"log is checked out in .*side") as caught:
        GitLog(main, REF).append({"a": b"1"}, "One")
    assert "switch" in caught.value.hint
    assert main.resolve(REF) == before


def test_a_branch_that_is_checked_out_and_not_born_yet(tmp_path: Path) -> None:
    """A new repository whose first branch is the log's."""
    main = repository(tmp_path / "main")
    git(main.here, "symbolic-ref", "HEAD", REF)
    with pytest.raises(GitError, match="checked out"):
        GitLog(main, REF).append({"a": b"1"}, "One")
    assert main.resolve(REF) is None


def test_a_lock_that_was_left_behind(log: GitLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ref_log, "LOCK", 50)
    first = log.append({"a": b"1"}, "One")
    lock = log.repository.common / f"{REF}.lock"
    lock.touch()
    with pytest.raises(GitError, match=r"log\.lock") as caught:
        log.append({"b": b"2"}, "Two")
    assert "remove the .lock file" in caught.value.hint
    lock.unlink()
    assert log.tip() == first
    log.append({"b": b"2"}, "Two")
    assert log.paths() == ["a", "b"]


def test_a_lock_that_is_held_for_a_moment_is_waited_for(log: GitLog) -> None:
    log.append({"a": b"1"}, "One")
    lock = log.repository.common / f"{REF}.lock"
    lock.touch()
    threading.Timer(0.3, lock.unlink).start()
    log.append({"b": b"2"}, "Two")
    assert log.paths() == ["a", "b"]


def test_another_branch_stands_in_the_way(log: GitLog) -> None:
    git(log.repository.here, "commit", "--quiet", "--allow-empty", "-m", "Begin")
    git(log.repository.here, "branch", "log/of/others")
    with pytest.raises(GitError, match="log/of/others"):
        log.append({"a": b"1"}, "One")
    assert log.tip() is None


def test_a_step_that_cannot_be_made_leaves_nothing(log: GitLog) -> None:
    first = log.append({"a": b"1"}, "One")

    def no_key(_: str | None) -> str:
        raise UsageError("there is no key", hint="make one")

    with pytest.raises(UsageError, match="there is no key"):
        log.change(lambda _: [Step({"b": b"2"}, "Two"), Step({"c": b"3"}, no_key)])
    assert log.tip() == first
    assert list(log.repository.git_dir.glob("fast_import_crash_*")) == []


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "/x",
        "x//y",
        "x/",
        ".git/config",
        "a/.GIT/x",
        "a\nD b",
        '"x"',
        "a\\b",
        "",
        ".",
        "x\0",
    ],
)
def test_paths_that_are_none(log: GitLog, path: str) -> None:
    with pytest.raises(UsageError, match="cannot be a path"):
        log.append({path: b"x"}, "One")
    assert log.tip() is None


@pytest.mark.parametrize(
    "message", ["", "-m x\n--force", "data 3\nfrom x\n", "\u2603 \udcff", "\n\n"]
)
def test_messages_of_strangers(log: GitLog, message: str) -> None:
    log.append({"a b/\u2603.txt": b"1"}, message)
    assert log.paths() == ["a b/\u2603.txt"]
    assert log.append({"b": b""}, "Two") == log.tip()


def test_refs_that_are_none(log: GitLog) -> None:
    with pytest.raises(UsageError, match="full name"):
        GitLog(log.repository, "log")


def test_an_object_that_is_too_large_is_not_read(
    log: GitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append({"a": b"x" * 2000}, "One")
    monkeypatch.setattr(ref_log, "LARGEST", 1000)
    with pytest.raises(GitError, match="2,000 bytes"):
        log.read("a")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)]
    if subprocess.run(options, check=False).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_the_disk_is_full(small_disk: Path) -> None:
    log = GitLog(repository(small_disk / "r", "--template="), REF)
    first = log.append({"a": b"1"}, "One")
    with pytest.raises(GitError, match="diskspace") as caught:
        log.append({"b": os.urandom(2_000_000)}, "Two")
    assert "space" in caught.value.hint
    assert log.tip() == first
    assert list(log.repository.git_dir.glob("fast_import_crash_*")) == []
    assert list(log.repository.git_dir.rglob("tmp_pack_*")) == []
    log.append({"c": b"3"}, "Three")
    assert log.paths() == ["a", "c"]
    assert git(log.repository.here, "fsck", "--full") == ""


def test_the_repository_is_read_only(small_disk: Path) -> None:
    log = GitLog(repository(small_disk / "r", "--template="), REF)
    first = log.append({"a": b"1"}, "One")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(GitError, match="Read-only") as caught:
        log.append({"b": b"2"}, "Two")
    assert "cannot be written" in caught.value.hint
    assert (log.tip(), log.read("a")) == (first, b"1")
    assert not tidy(log.repository, most=0)


# Housekeeping.


def packs(log: GitLog) -> int:
    return len(list((log.repository.common / "objects" / "pack").glob("*.pack")))


def test_many_packs_become_few(log: GitLog) -> None:
    for n in range(8):
        log.append({f"{n}": b"%d" % n}, str(n))
    assert packs(log) == 8
    assert not tidy(log.repository, most=8)
    assert tidy(log.repository, most=7)
    assert packs(log) < 4
    assert log.paths() == [str(n) for n in range(8)]
    assert git(log.repository.here, "fsck", "--full") == ""


def test_housekeeping_while_others_write_and_read(log: GitLog) -> None:
    done = threading.Event()
    failed: list[BaseException] = []

    def sweep() -> None:
        try:
            while not done.is_set():
                tidy(log.repository, most=2)
                # Not fsck: it takes for damage what is written while it looks.
                assert git(log.repository.here, "rev-list", "--objects", REF)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            failed.append(error)

    log.append({"first": b""}, "first")
    thread = threading.Thread(target=sweep)
    thread.start()
    for n in range(40):
        log.append({f"{n}": b"%d" % n}, str(n))
        assert log.read(f"{n // 2}") == b"%d" % (n // 2)
    done.set()
    thread.join()
    assert failed == []
    assert len(log.paths()) == 41
    assert git(log.repository.here, "fsck", "--full") == ""


def test_what_a_killed_git_has_left_goes(log: GitLog) -> None:
    log.append({"a": b"1"}, "One")
    pack = log.repository.common / "objects" / "pack"
    for name in ("tmp_pack_old", "tmp_pack_new", "tmp_pack_other.txt"):
        (pack / name).write_bytes(b"x")
    os.utime(pack / "tmp_pack_old", (0, 0))
    tidy(log.repository)
    assert not (pack / "tmp_pack_old").exists()
    assert (pack / "tmp_pack_new").exists()


def test_only_one_keeps_house(log: GitLog) -> None:
    for n in range(3):
        log.append({f"{n}": b""}, str(n))
    lock = os.open(
        ref_log.own_folder(log.repository) / "tidy.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    )
    ref_log.fcntl.flock(lock, ref_log.fcntl.LOCK_EX)
    assert not tidy(log.repository, most=0)
    os.close(lock)
    assert tidy(log.repository, most=0)
