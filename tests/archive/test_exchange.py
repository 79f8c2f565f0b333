"""Archives of several clones through one remote: all land, nothing is forced, nothing is lost."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import cast

import pytest

from made_archive import (
    add,
    git,
    git_archive,
    is_good,
    problems,
    repository,
    run_files,
    run_id,
    seal,
)
from quire.archive import exchange as gitexchange
from quire.archive.branch import GitArchive
from quire.archive.exchange import Exchanged, exchange
from quire.archive.history import run_message
from quire.errors import GitError
from quire.git.ref_log import GitLog, Import, Step
from quire.git.repository import Repository

REF = "refs/heads/reports"


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--bare", "hub.git")
    return tmp_path / "hub.git"


@pytest.fixture
def one(hub: Path) -> GitArchive:
    return clone(hub, "one")


@pytest.fixture
def two(hub: Path) -> GitArchive:
    return clone(hub, "two")


def clone(hub: Path, name: str) -> GitArchive:
    git(hub.parent, "clone", "--quiet", str(hub), name)
    git(hub.parent / name, "config", "user.name", name)
    git(hub.parent / name, "config", "user.email", f"{name}@example.org")
    return git_archive(hub.parent / name)


def everything(*archives: GitArchive) -> list[str]:
    """They agree, and all is well; the runs of it."""
    assert len({archive.log.tip() for archive in archives}) == 1
    for archive in archives:
        assert problems(archive) == []
    runs = [link.run_id for link in archives[0].history()]
    assert sorted(runs, reverse=True) == archives[0].ids()
    return runs


def test_the_first_push_makes_the_branch(one: GitArchive, hub: Path) -> None:
    assert one.push("origin") == Exchanged()
    add(one, 1)
    assert one.push("origin") == Exchanged(sent=1)
    assert git(hub, "rev-parse", REF) == one.log.tip()
    assert one.push("origin") == Exchanged()


def test_runs_of_two_clones_come_together(one: GitArchive, two: GitArchive) -> None:
    for number in range(3):
        add(one, number)
    for number in range(10, 12):
        add(two, number)
    assert one.push("origin") == Exchanged(sent=3)
    assert two.push("origin") == Exchanged(sent=2, taken=3, replayed=2)
    assert one.push("origin") == Exchanged(taken=2)
    assert everything(one, two) == [run_id(n) for n in (0, 1, 2, 10, 11)]


def test_who_has_made_a_run_stays_its_author(one: GitArchive, two: GitArchive) -> None:
    add(one, 1)
    add(two, 2)
    one.push("origin")
    when = git(two.repository.here, "log", "-1", "--format=%at", REF)
    two.push("origin")
    shown = git(two.repository.here, "log", "-1", "--format=%an %at", REF)
    assert shown == f"two {when}"


def test_only_taking(one: GitArchive, two: GitArchive) -> None:
    add(one, 1)
    one.push("origin")
    assert two.ids() == []
    assert two.push("origin") == Exchanged(taken=1)
    assert everything(one, two) == [run_id(1)]


def test_the_same_run_on_both_sides_is_one_run(one: GitArchive, two: GitArchive) -> None:
    for archive in (one, two):
        add(archive, 1)
    add(two, 2)
    one.push("origin")
    assert two.push("origin").replayed == 1
    one.push("origin")
    assert everything(one, two) == [run_id(1), run_id(2)]


def test_two_runs_of_one_id_are_refused_and_stay(one: GitArchive, two: GitArchive) -> None:
    add(one, 1)
    two.add(run_id(1), run_files(run_id(1), b"other"))
    one.push("origin")
    before = two.log.tip()
    with pytest.raises(GitError, match="is not the same here and there"):
        two.push("origin")
    assert two.log.tip() == before
    assert problems(two) == []
    assert list(two.repository.git_dir.glob("fast_import_crash_*")) == []


def test_somebody_is_quicker_between_fetch_and_push(
    one: GitArchive, two: GitArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(two, 20)
    real, told = gitexchange._push, []

    def slow(log: GitLog, *rest: object) -> str:
        if log is two.log and len(told) < 3:
            add(one, len(told))
            one.push("origin")
        said = real(log, *rest)  # type: ignore[arg-type]
        if log is two.log:
            told.append(said)
        return said

    monkeypatch.setattr(gitexchange, "_push", slow)
    done = two.push("origin")
    assert [bool(said) for said in told] == [True, True, True, False]
    assert done.sent == 1
    one.push("origin")
    assert everything(one, two) == [*(run_id(n) for n in range(3)), run_id(20)]


def test_a_run_is_added_here_while_a_replay_is_made(
    one: GitArchive, two: GitArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(one, 1)
    one.push("origin")
    add(two, 2)
    real, made = gitexchange._replay, []

    def slow(*args: object) -> object:
        found = real(*args)  # type: ignore[arg-type]
        if not made:
            made.append(True)
            # Not through the archive: this writer does not wait for our turn.
            with Import(two.repository, REF, two.log.tip()) as stream:
                files = {
                    f"{two.path(run_id(3))}/{name}": data
                    for name, data in run_files(run_id(3)).items()
                }
                stream.commit(Step(files, run_message(run_id(3), run_files(run_id(3)), seal)))
                assert stream.finish()
        return found

    monkeypatch.setattr(gitexchange, "_replay", slow)
    assert two.push("origin").replayed == 2
    one.push("origin")
    assert everything(one, two) == [run_id(n) for n in (1, 2, 3)]


def test_a_remote_that_lost_runs_gets_them_back(
    one: GitArchive, two: GitArchive, hub: Path
) -> None:
    for number in range(3):
        add(one, number)
    one.push("origin")
    git(hub, "update-ref", REF, f"{REF}~2")
    add(two, 9)
    two.push("origin")
    assert one.push("origin").replayed == 2
    two.push("origin")
    assert sorted(everything(one, two)) == [run_id(n) for n in (0, 1, 2, 9)]


def test_a_branch_here_that_lost_runs_gets_them_back(one: GitArchive) -> None:
    for number in range(3):
        add(one, number)
    one.push("origin")
    git(one.repository.here, "update-ref", REF, f"{REF}~2")
    add(one, 9)
    assert one.witness_problem() is not None
    assert one.push("origin") == Exchanged(sent=1, taken=2, replayed=1)
    assert everything(one) == [run_id(n) for n in (0, 1, 2, 9)]


def test_archives_that_began_apart_come_together(one: GitArchive, two: GitArchive) -> None:
    """As if another version of Quire had begun the other one."""
    with Import(one.repository, REF, None) as stream:
        stream.commit(Step({".quire-archive": b'{"format": 1}', "README.md": b"older"}, "Begin"))
        assert stream.finish()
    add(one, 1)
    one.push("origin")
    add(two, 2)
    two.push("origin")
    one.push("origin")
    assert everything(one, two) == [run_id(1), run_id(2)]


# What is refused.


def by_hand(archive: GitArchive, files: dict[str, bytes | None]) -> None:
    with Import(archive.repository, REF, archive.log.tip()) as stream:
        stream.commit(Step(files, "By hand"))
        assert stream.finish()


@pytest.mark.parametrize("where", ["there", "here"])
@pytest.mark.parametrize("here", [0, 1])
def test_a_history_in_which_runs_were_changed_does_not_travel(
    one: GitArchive, two: GitArchive, where: str, here: int
) -> None:
    add(one, 1)
    one.push("origin")
    two.push("origin")
    notebook = f"{one.path(run_id(1))}/notebook.ipynb"
    guilty, other = (one, two) if where == "there" else (two, one)
    by_hand(guilty, {notebook: b"forged"})
    if where == "there":
        git(one.repository.here, "push", "--quiet", "origin", "reports")
    for number in range(here):
        add(other, 5 + number)
        if where == "here":
            other.push("origin")
    before = [archive.log.tip() for archive in (one, two)]
    whose = "the remote's" if where == "there" else "this"
    with pytest.raises(GitError, match=f"{whose} branch reports has a commit .* that changes"):
        two.push("origin")
    assert [archive.log.tip() for archive in (one, two)] == before
    if where == "there":
        assert two.files(run_id(1)) == run_files(run_id(1))


def test_an_unrelated_branch_there(one: GitArchive, hub: Path) -> None:
    other = repository(hub.parent / "other")
    git(other.here, "commit", "--quiet", "--allow-empty", "-m", "Sales reports")
    git(other.here, "push", "--quiet", str(hub), f"main:{REF}")
    add(one, 1)
    before = git(hub, "rev-parse", REF)
    with pytest.raises(GitError, match="the remote's branch reports is there already") as caught:
        one.push("origin")
    assert "archive.branch" in caught.value.hint
    assert git(hub, "rev-parse", REF) == before
    assert problems(one) == []


def test_a_run_is_not_sealed_anew_if_its_seal_is_not_good(one: GitArchive, two: GitArchive) -> None:
    add(one, 1)
    one.push("origin")
    add(two, 2)
    careful = GitArchive(
        two.repository, "reports", seal, objection=lambda data, given: f"unknown key {given[:4]}"
    )
    before = two.log.tip()
    with pytest.raises(GitError, match=f"{run_id(2)} would have to be sealed anew.*unknown key"):
        careful.push("origin")
    assert two.log.tip() == before
    good = GitArchive(
        two.repository, "reports", seal, objection=lambda d, given: "" if given == seal(d) else "x"
    )
    assert good.push("origin").replayed == 1
    assert problems(two) == []


def test_a_checked_out_branch_is_not_moved(one: GitArchive, two: GitArchive) -> None:
    add(one, 1)
    one.push("origin")
    add(two, 2)
    git(two.repository.here, "checkout", "--quiet", "reports")
    before = two.log.tip()
    with pytest.raises(GitError, match="checked out"):
        two.push("origin")
    assert two.log.tip() == before
    assert git(two.repository.here, "status", "--porcelain") == ""


# Remotes that do not do what they should.


def hook(hub: Path, name: str, text: str) -> Path:
    path = hub / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_rejected_push(one: GitArchive, hub: Path) -> None:
    add(one, 1)
    refuse = hook(hub, "pre-receive", "echo 'the branch is protected' >&2; exit 1")
    with pytest.raises(GitError, match=r"origin refused .*the branch is protected") as caught:
        one.push("origin")
    assert "nothing is lost" in caught.value.hint
    assert everything(one) == [run_id(1)]
    refuse.unlink()
    assert one.push("origin").sent == 1


def test_a_remote_that_denies_by_configuration(
    one: GitArchive, hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gitexchange, "TRIES", 2)
    add(one, 1)
    one.push("origin")
    (hub / f"{REF}.lock").touch()
    add(one, 2)
    with pytest.raises(GitError, match="would not take") as caught:
        one.push("origin")
    assert "try again" in caught.value.hint
    (hub / f"{REF}.lock").unlink()
    assert one.push("origin").sent == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("/no/such/place", "does not appear to be a git repository"),
        ("http://127.0.0.1:9/x.git", "unable to access|Connection refused|remote-http"),
        ("ext::false", "not allowed|ext"),
    ],
)
def test_a_dead_remote(one: GitArchive, url: str, said: str) -> None:
    add(one, 1)
    git(one.repository.here, "remote", "set-url", "origin", url)
    with pytest.raises(GitError, match=said) as caught:
        one.push("origin", timeout=20)
    assert "cannot fetch from origin" in caught.value.message
    assert caught.value.hint
    assert everything(one) == [run_id(1)]


def test_a_remote_that_never_answers(
    one: GitArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "ssh"
    script.write_text("#!/bin/sh\nexec sleep 300\n")
    script.chmod(0o755)
    own = tmp_path / "gitconfig"
    own.write_text(f"[core]\n\tsshCommand = {script}\n")
    monkeypatch.setitem(cast("dict[str, str]", one.repository.env), "GIT_CONFIG_GLOBAL", str(own))
    git(one.repository.here, "remote", "set-url", "origin", "ssh://nowhere.example/x.git")
    add(one, 1)
    with pytest.raises(GitError, match=r"did not answer within 0\.5 s"):
        one.push("origin", timeout=0.5)
    assert everything(one) == [run_id(1)]


def test_hooks_and_settings_for_source_do_not_stand_in_the_way(one: GitArchive, hub: Path) -> None:
    place = one.repository.here
    hooks = one.repository.git_dir / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "pre-push").write_text("#!/bin/sh\nexit 1\n")
    (hooks / "pre-push").chmod(0o755)
    for key, value in (("push.followTags", "true"), ("push.default", "nothing"),
                       ("fetch.prune", "true"), ("push.recurseSubmodules", "on-demand"),
                       ("remote.origin.tagOpt", "--tags")):  # fmt: skip
        git(place, "config", key, value)
    git(place, "commit", "--quiet", "--allow-empty", "-m", "Begin")
    git(place, "tag", "-a", "-m", "x", "v1")
    add(one, 1)
    assert one.push("origin").sent == 1
    assert git(hub, "for-each-ref", "--format=%(refname)") == REF


# Logs of any kind.


def test_other_logs_are_replayed_as_they_are(one: GitArchive, two: GitArchive) -> None:
    ref = "refs/quire/notes/1"
    mine, yours = (GitLog(archive.repository, ref) for archive in (one, two))
    mine.append({"a": b"1", "b": b"1"}, "Begin")
    exchange(mine, "origin")
    exchange(yours, "origin")
    mine.append({"a": b"2"}, "Mine")
    yours.append({"b": None, "c/d": b"3"}, "Yours")
    exchange(mine, "origin")
    assert exchange(yours, "origin") == Exchanged(sent=1, taken=1, replayed=1)
    exchange(mine, "origin")
    assert mine.tip() == yours.tip()
    assert mine.paths() == ["a", "c/d"]
    told = git(one.repository.here, "log", "--format=%s", ref).split("\n")
    assert told == ["Yours", "Mine", "Begin"]
    yours.append({"a": b"3"}, "Yours")
    mine.append({"a": b"4"}, "Mine")
    exchange(mine, "origin")
    before = yours.tip()
    with pytest.raises(GitError, match="a is not the same here and there"):
        exchange(yours, "origin")
    assert yours.tip() == before


def test_a_shared_remote_of_another_object_format(one: GitArchive, tmp_path: Path) -> None:
    """git itself says that these cannot talk; nothing is lost by it."""
    git(tmp_path, "init", "--quiet", "--bare", "--object-format=sha256", "new.git")
    git(one.repository.here, "remote", "add", "new", str(tmp_path / "new.git"))
    add(one, 1)
    with pytest.raises(GitError):
        one.push("new")
    assert everything(one) == [run_id(1)]


def test_killed_in_the_middle_of_a_replay(
    one: GitArchive, two: GitArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each of the moments around the move of the branch."""
    add(one, 1)
    one.push("origin")
    add(two, 2)
    move = gitexchange._move

    class Killed(BaseException):
        pass

    def before(*_: object) -> bool:
        raise Killed

    def after(*args: object) -> bool:
        move(*args)  # type: ignore[arg-type]
        raise Killed

    for moment in (before, after):
        monkeypatch.setattr(gitexchange, "_move", moment)
        with pytest.raises(Killed):
            two.push("origin")
        assert problems(two) == []
        assert run_id(2) in two.ids()
    monkeypatch.setattr(gitexchange, "_move", move)
    two.push("origin")
    one.push("origin")
    assert everything(one, two) == [run_id(1), run_id(2)]


def test_links_of_the_whole_are_good(one: GitArchive, two: GitArchive) -> None:
    for number in range(4):
        add((one, two)[number % 2], number)
        (one, two)[number % 2].push("origin")
    for archive in (one, two):
        archive.push("origin")
    assert all(is_good(link) for archive in (one, two) for link in archive.history())
    found = Repository.find(one.repository.here)
    assert found is not None
    done = subprocess.run(
        ["git", "fsck", "--full"], cwd=found.here, capture_output=True, check=True
    )
    assert b"error" not in done.stderr
