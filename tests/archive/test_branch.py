"""The archive's branch: what does not belong there shows, and nothing of anybody's is touched."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
from quire.archive import layout
from quire.archive.branch import GitArchive
from quire.archive.history import MARKER, ROOT, run_message
from quire.archive.last_seen_tip import Witness
from quire.archive.layout import run_folder
from quire.errors import GitError
from quire.git.ref_log import GitLog, Import, Step
from quire.git.repository import Repository, Said

REF = "refs/heads/reports"


@pytest.fixture
def archive(tmp_path: Path) -> GitArchive:
    repository(tmp_path / "repo")
    archive = git_archive(tmp_path / "repo")
    for number in range(3):
        add(archive, number)
    assert problems(archive) == []
    return archive


def step(archive: GitArchive, files: dict[str, bytes | None], message: str = "By hand\n") -> str:
    with Import(archive.repository, REF, archive.log.tip()) as stream:
        commit = stream.commit(Step(files, message))
        assert stream.finish()
    return commit


def path(number: int, name: str = "notebook.ipynb") -> str:
    return f"{run_folder(run_id(number))}/{name}"


def sealed_step(archive: GitArchive, files: dict[str, bytes], number: int = 7) -> Step:
    """A step by somebody who has the key: only its shape can give it away."""
    message = run_message(run_id(number), files, seal)
    return Step({f"{run_folder(run_id(number))}/{name}": d for name, d in files.items()}, message)


def test_the_branch_begins_with_what_tells_a_person_what_it_is(archive: GitArchive) -> None:
    root = git(archive.repository.here, "rev-list", "--max-parents=0", REF)
    names = git(archive.repository.here, "ls-tree", "--name-only", root).split("\n")
    assert names == [MARKER, "README.md"]
    assert "written by Quire" in git(archive.repository.here, "show", f"{root}:README.md")


def test_archives_of_several_clones_have_one_root(tmp_path: Path) -> None:
    roots = set()
    for name in ("one", "two"):
        repository(tmp_path / name)
        add(git_archive(tmp_path / name), len(name) + ord(name[0]))
        roots.add(git(tmp_path / name, "rev-list", "--max-parents=0", REF))
    assert len(roots) == 1


def test_nothing_but_the_branch_is_touched(tmp_path: Path) -> None:
    main = repository(tmp_path / "repo")
    (main.here / "a.txt").write_text("one")
    git(main.here, "add", ".")
    git(main.here, "commit", "--quiet", "-m", "Begin")
    (main.here / "a.txt").write_text("two")
    (main.here / "b.txt").write_text("untracked")
    told = git(main.here, "status", "--porcelain", "--branch")
    index = (main.git_dir / "index").read_bytes()
    add(git_archive(main.here), 1)
    assert (main.git_dir / "index").read_bytes() == index
    assert git(main.here, "status", "--porcelain", "--branch") == told
    assert git(main.here, "for-each-ref", "--format=%(refname)") == "refs/heads/main\n" + REF
    assert git(main.here, "stash", "list") == ""


@pytest.mark.parametrize("prepare", ["", "detached", "orphan"])
def test_repositories_without_a_branch(tmp_path: Path, prepare: str) -> None:
    main = repository(tmp_path / "repo")
    if prepare:
        git(main.here, "commit", "--quiet", "--allow-empty", "-m", "Begin")
        git(
            main.here,
            "checkout",
            "--quiet",
            *(["--detach"] if prepare == "detached" else ["--orphan", "x"]),
        )
    head = (main.git_dir / "HEAD").read_text()
    archive = git_archive(main.here)
    add(archive, 1)
    assert problems(archive) == []
    assert (main.git_dir / "HEAD").read_text() == head


def test_an_unrelated_branch_is_left_alone(tmp_path: Path) -> None:
    main = repository(tmp_path / "repo")
    git(main.here, "commit", "--quiet", "--allow-empty", "-m", "Begin")
    git(main.here, "branch", "reports")
    before = main.resolve(REF)
    archive = git_archive(main.here)
    for call in (lambda: add(archive, 1), archive.ids, lambda: archive.find("last")):
        with pytest.raises(GitError, match="reports is there already and is no archive") as caught:
            call()
        assert "archive.branch" in caught.value.hint
    assert main.resolve(REF) == before
    other = git_archive(main.here, "run/reports-2")
    add(other, 1)
    assert problems(other) == []


@pytest.mark.parametrize("marker", [b"", b"[]", b"\xff", b'{"format": 2}', b"[" * 100_000])
def test_markers_that_are_not_ours(tmp_path: Path, marker: bytes) -> None:
    log = GitLog(repository(tmp_path / "repo"), REF)
    tip = log.append({MARKER: marker}, "Begin")
    with pytest.raises(GitError, match="reports has"):
        add(git_archive(tmp_path / "repo"), 1)
    assert log.tip() == tip


@pytest.mark.parametrize(
    "name",
    ["-x", "a..b", "a b", "refs/heads/x", "", "a\nb", "x.lock", "HEAD", "FETCH_HEAD", "ORIG_HEAD",
     "MERGE_HEAD", "CHERRY_PICK_HEAD", "AUTO_MERGE"],
)  # fmt: skip
def test_branch_names_that_are_none(tmp_path: Path, name: str) -> None:
    main = repository(tmp_path / "repo")
    with pytest.raises(layout.UsageError, match="cannot be the name of a branch"):
        GitArchive(main, name, seal)


# What somebody may have done to the branch.


def test_a_changed_run_shows(archive: GitArchive) -> None:
    step(archive, {path(1): b"forged"})
    assert f"changes {path(1)}" in problems(archive)
    assert archive.files(run_id(1))["notebook.ipynb"] == b"forged"
    assert [link.run_id for link in archive.history()][:3] == [run_id(n) for n in range(3)]


def test_a_removed_run_shows(archive: GitArchive) -> None:
    step(archive, {path(1, name): None for name in run_files("x")})
    assert run_id(1) not in archive.ids()
    told = problems(archive)
    assert f"removes {path(1)}" in told
    assert "is not a step of Quire's" in told


def test_a_renamed_run_shows(archive: GitArchive) -> None:
    moved = {path(1, name): None for name in run_files("x")}
    moved |= {path(8, name): data for name, data in run_files(run_id(1)).items()}
    step(archive, moved)
    assert f"removes {path(1)}" in problems(archive)


def test_files_added_to_an_earlier_run_show(archive: GitArchive) -> None:
    step(archive, {path(1, "source.R"): b"x"})
    assert f"adds to the run {run_id(1)}, which was archived before" in problems(archive)


@pytest.mark.parametrize(
    "name",
    [
        "README2.md",
        "runs/x",
        "runs/2026/11/16/x/record.json",
        "evil\u202etxt",
        "runs/a/b/c/d/e/f/g",
    ],
)
def test_files_of_no_run_show(archive: GitArchive, name: str) -> None:
    step(archive, {name: b"x"})
    told = problems(archive)
    assert any("which is no part of a run" in one for one in told)
    assert all(one.isprintable() for one in told)
    assert len(archive.ids()) == 3


def test_a_run_in_the_folder_of_another_day_shows(archive: GitArchive) -> None:
    step(archive, {f"runs/2026/11/17/{run_id(9)}/record.json": b"{}"})
    assert any("does not fit the date" in one for one in problems(archive))
    assert run_id(9) not in archive.ids()


def test_extra_files_in_a_run_show_even_if_sealed(archive: GitArchive) -> None:
    with Import(archive.repository, REF, archive.log.tip()) as stream:
        stream.commit(sealed_step(archive, {**run_files(run_id(7)), "evil.sh": b"rm"}))
        assert stream.finish()
    told = problems(archive)
    assert told == [f"adds {path(7, 'evil.sh')}, which is no part of a run"]
    with pytest.raises(GitError, match=r"evil\.sh"):
        archive.files(run_id(7))
    assert dict(archive.each([run_id(7)]))[run_id(7)] == run_files(run_id(7))


def test_two_runs_in_one_step_show(archive: GitArchive) -> None:
    step(archive, {path(7, "record.json"): b"{}", path(8, "record.json"): b"{}"})
    assert "adds more than one run" in problems(archive)


def test_a_step_that_changes_nothing_shows(archive: GitArchive) -> None:
    step(archive, {})
    assert "changes nothing" in problems(archive)


@pytest.mark.parametrize(
    ("mode", "told"),
    [("120000", "a symbolic link"), ("100755", "an executable file"), ("160000", "a submodule")],
)
def test_modes_show(archive: GitArchive, mode: str, told: str) -> None:
    place, tip = archive.repository.here, str(archive.log.tip())
    blob = git(place, "hash-object", "-w", "--stdin", given=b"/etc/passwd")
    env = {**os.environ, "GIT_INDEX_FILE": str(place / ".git" / "other-index")}
    what = tip if mode == "160000" else blob
    for args in (
        ("read-tree", tip),
        ("update-index", "--add", "--cacheinfo", f"{mode},{what},{path(7, 'record.json')}"),
    ):
        subprocess.run(["git", *args], cwd=place, env=env, check=True)
    tree = subprocess.run(
        ["git", "write-tree"], cwd=place, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()
    commit = git(place, "commit-tree", tree, "-p", tip, "-m", "By hand")
    git(place, "update-ref", REF, commit)
    assert any(f"as {told}" in one for one in problems(archive))
    with pytest.raises(GitError, match="no file of a run"):
        archive.files(run_id(7))
    assert dict(archive.each([run_id(7)])) == {run_id(7): {}}


def test_a_merge_shows(archive: GitArchive) -> None:
    place, tip = archive.repository.here, str(archive.log.tip())
    tree = git(place, "rev-parse", f"{tip}^{{tree}}")
    commit = git(place, "commit-tree", tree, "-p", tip, "-p", f"{tip}~1", "-m", "Merge")
    git(place, "update-ref", REF, commit)
    assert "is a merge" in problems(archive)


def test_a_merge_of_another_history_shows(archive: GitArchive) -> None:
    place, tip = archive.repository.here, str(archive.log.tip())
    tree = git(place, "rev-parse", f"{tip}^{{tree}}")
    other = git(place, "commit-tree", tree, "-m", "Another beginning")
    commit = git(place, "commit-tree", tree, "-p", tip, "-p", other, "-m", "Merge")
    git(place, "update-ref", REF, commit)
    told = problems(archive)
    assert "is a merge" in told
    assert len(told) >= 2


def rebuilt(archive: GitArchive, keep: Callable[[list[str]], list[str]]) -> None:
    """The branch made anew from some of its own commits, messages and all."""
    place = archive.repository.here
    ids = git(place, "rev-list", "--reverse", REF).split("\n")
    tip = ids[0]
    for commit in keep(ids[1:]):
        number = git(place, "log", "-1", "--format=%s", commit).removeprefix("Run ")
        files = {f"{run_folder(number)}/{name}": data for name, data in run_files(number).items()}
        message = git(place, "log", "-1", "--format=%B", commit) + "\n"
        git(place, "update-ref", "-d", "refs/heads/other")
        with Import(archive.repository, "refs/heads/other", tip) as stream:
            tip = stream.commit(Step(files, message))
            assert stream.finish()
    git(place, "update-ref", REF, tip)
    git(place, "update-ref", "-d", "refs/heads/other")


@pytest.mark.parametrize(
    ("keep", "bad"),
    [
        (lambda ids: [ids[1], ids[2]], 2),  # the first is gone
        (lambda ids: [ids[0], ids[2]], 1),  # one in the middle is gone
        (lambda ids: [ids[1], ids[0], ids[2]], 3),  # another order
    ],
)
def test_a_rewritten_history_breaks_its_seals(
    archive: GitArchive, keep: Callable[[list[str]], list[str]], bad: int
) -> None:
    rebuilt(archive, keep)
    assert sum(not is_good(link) for link in archive.history()) == bad
    assert archive.witness_problem() is not None


def test_a_seal_for_another_run_is_no_seal(archive: GitArchive) -> None:
    place = archive.repository.here
    last = git(place, "log", "-1", "--format=%B", REF)
    git(place, "update-ref", REF, f"{REF}~1")
    files = {path(7, name): data for name, data in run_files(run_id(7)).items()}
    step(archive, files, last.replace(run_id(2), run_id(7)) + "\n")
    links = list(archive.history())
    assert links[-1].run_id == run_id(7)
    assert not is_good(links[-1])


def test_messages_that_lie(archive: GitArchive) -> None:
    files = {path(7, name): data for name, data in run_files(run_id(7)).items()}
    step(archive, files, f"x\n\nQuire-Run: {run_id(1)}\nQuire-Seal: a:b\nQuire-Seal: c:d\n")
    assert {"does not name the run it adds", "has more than one seal"} <= set(problems(archive))


def test_a_branch_reset_to_an_earlier_commit_shows(archive: GitArchive) -> None:
    """Every seal on it is good; only what this repository has acknowledged tells."""
    lost = str(archive.log.tip())
    git(archive.repository.here, "update-ref", REF, f"{REF}~1")
    assert all(is_good(link) and not link.problems for link in archive.history())
    told = archive.witness_problem()
    assert told is not None
    assert lost in told
    # A new run on top does not make it forgotten.
    add(archive, 8)
    assert archive.witness_problem() is not None
    # Nor does another process.
    assert git_archive(archive.repository.here).witness_problem() is not None
    # To set it to where it was drops what came on top.
    git(archive.repository.here, "update-ref", REF, lost)
    told = archive.witness_problem()
    assert told is not None
    assert run_id(8) in told
    assert lost[:12] not in told.partition("was at")[2][:14]


def asked_of_git(archive: GitArchive, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What git is asked from now on, besides the one that writes."""
    asked: list[str] = []
    real = Repository.ask

    def counted(self: Repository, *args: str, **how: Any) -> Said:
        asked.append(args[0])
        return real(self, *args, **how)

    monkeypatch.setattr(Repository, "ask", counted)
    return asked


def test_adding_to_a_branch_that_was_set_back_warns(
    archive: GitArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = archive.repository.here
    add(archive, 6)
    asked = asked_of_git(archive, monkeypatch)
    add(archive, 7)
    assert archive.warning == ""
    assert asked == []  # nothing to ask as long as the branch is where it was left
    lost = str(archive.log.tip())
    git(place, "update-ref", REF, f"{REF}~2")
    shortened = archive.witness_problem()
    assert shortened is not None
    assert f"runs were removed: {run_id(6)}, {run_id(7)}. To have them back: " in shortened
    add(archive, 8)
    assert f"runs were removed or changed: {run_id(6)}" in archive.warning
    assert archive.warning.endswith("; quire verify --all says what to do")
    # As long as they are gone, whoever adds is told, and `verify` says where they are.
    other = git_archive(place)
    add(other, 9)
    assert run_id(7) in other.warning
    told = str(other.witness_problem())
    assert all(run in told for run in (run_id(6), run_id(7)))
    look, keep = told.partition("To look at them: ")[2].split("; so that git keeps them: ")
    assert git(place, *look.split()[1:], "--format=%s") == f"Run {run_id(7)}\nRun {run_id(6)}"
    git(place, *keep.split()[1:])
    assert git(place, "rev-parse", f"refs/heads/reports-{lost[:12]}") == lost
    # What came on top is remembered as well.
    git(place, "update-ref", REF, f"{REF}~1")
    told = str(other.witness_problem())
    assert run_id(9) in told
    assert run_id(7) in told


def test_the_command_that_brings_removed_runs_back(archive: GitArchive) -> None:
    place = archive.repository.here
    git(place, "update-ref", REF, f"{REF}~1")
    told = str(archive.witness_problem())
    git(place, *told.partition("To have them back: git ")[2].split())
    assert problems(archive) == []
    add(archive, 8)
    assert archive.warning == ""
    assert len(archive.ids()) == 4


def test_lost_and_newer_runs_come_together_through_a_copy(
    archive: GitArchive, tmp_path: Path
) -> None:
    """As docs/archive.md says it."""
    place, lost = archive.repository.here, str(archive.log.tip())
    git(place, "update-ref", REF, f"{REF}~1")
    add(archive, 8)
    git(place, "clone", "--quiet", "--bare", ".", str(tmp_path / "lost.git"))
    git(tmp_path / "lost.git", "update-ref", REF, lost)
    git(place, "remote", "add", "lost", str(tmp_path / "lost.git"))
    archive.push("lost")
    assert archive.ids() == [run_id(n) for n in (8, 2, 1, 0)]
    assert problems(archive) == []
    add(archive, 9)
    assert archive.warning == ""


def test_lost_commits_that_git_has_thrown_away(archive: GitArchive) -> None:
    place = archive.repository.here
    git(place, "update-ref", REF, f"{REF}~1")
    git(place, "reflog", "expire", "--expire=now", "--all")
    git(place, "gc", "--quiet", "--prune=now")
    add(archive, 8)
    assert "does not hold it any more: runs were removed" in archive.warning
    assert "quire push takes what the remote still has" in str(archive.witness_problem())


@pytest.mark.parametrize("begin", [True, False])
def test_a_current_branch_that_is_no_archive(tmp_path: Path, begin: bool) -> None:
    """To leave the branch would not help: it is another one that is needed."""
    main = repository(tmp_path / "repo")
    if begin:
        git(main.here, "commit", "--quiet", "--allow-empty", "-m", "Begin")
    with pytest.raises(GitError, match="is no archive" if begin else "checked out") as caught:
        add(git_archive(main.here, "main"), 1)
    assert "archive.branch" in caught.value.hint
    assert "switch" not in caught.value.hint


def test_an_archive_that_is_checked_out(archive: GitArchive, tmp_path: Path) -> None:
    git(archive.repository.here, "worktree", "add", "--quiet", str(tmp_path / "side"), "reports")
    with pytest.raises(GitError, match="checked out") as caught:
        add(archive, 8)
    assert "switch" in caught.value.hint


MESSAGES: dict[str, Callable[[str], str]] = {
    "another subject": lambda text: text.replace("Run ", "Ran ", 1),
    "a subject for another run": lambda text: text.replace(run_id(2), run_id(1), 1),
    "one more trailer": lambda text: text + "Reviewed-by: Eve\n",
    "one more line": lambda text: text.replace("\n\n", "\n\nThis is the final one.\n\n", 1),
    "the seal again": lambda text: text + text.splitlines()[-1] + "\n",
    "the seal again, hidden": lambda text: text + " " + text.splitlines()[-1] + "\n",
    "no line at the end": lambda text: text.rstrip("\n"),
    "lines at the end": lambda text: text + "\n\n",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_the_last_commit_says_what_quire_has_written(archive: GitArchive, name: str) -> None:
    """Nothing stands on it, and a fresh clone remembers nothing: its form is all there is."""
    amended(archive, lambda head, text: (head, MESSAGES[name](text)))
    assert len(problems(archive)) == 1
    assert list(archive.history())[-1].problems


@pytest.mark.parametrize("header", ["encoding latin1", "gpgsig x\n y", "evil 1"])
def test_nothing_else_is_in_the_head_of_the_last_commit(archive: GitArchive, header: str) -> None:
    amended(archive, lambda head, text: (f"{head}\n{header}", text))
    (told,) = problems(archive)
    assert "has more in its head than Quire has written" in told


def amended(archive: GitArchive, change: Callable[[str, str], tuple[str, str]]) -> None:
    place = archive.repository.here
    raw = git(place, "cat-file", "commit", REF) + "\n"
    head, _, text = raw.partition("\n\n")
    made = "\n\n".join(change(head, text)).encode()
    options = ("hash-object", "-t", "commit", "-w", "--literally", "--stdin")
    git(place, "update-ref", REF, git(place, *options, given=made))
    (archive.repository.common / "quire" / "reports.tip").unlink()


def test_a_deleted_branch_shows(archive: GitArchive) -> None:
    lost = str(archive.log.tip())
    git(archive.repository.here, "branch", "--quiet", "-D", "reports")
    told = archive.witness_problem()
    assert told is not None
    assert f"git branch reports {lost}" in told
    assert list(archive.history()) == []
    add(archive, 8)
    assert archive.witness_problem() is not None


def test_a_branch_that_grew_elsewhere_is_no_problem(archive: GitArchive) -> None:
    other = GitArchive(archive.repository, "reports", seal)
    add(other, 8)
    (archive.repository.common / "quire" / "reports.tip").write_text("")
    assert archive.witness_problem() is None
    add(archive, 9)
    assert problems(archive) == []


def test_grafts_and_replacements_bend_nothing(archive: GitArchive) -> None:
    place = archive.repository.here
    ids = git(place, "rev-list", "--reverse", REF).split("\n")
    forged = git(place, "commit-tree", f"{ids[1]}^{{tree}}", "-p", ids[0], "-m", "x")
    git(place, "replace", "--graft", ids[3], ids[1])
    git(place, "replace", ids[2], forged)
    assert problems(archive) == []
    assert len(list(archive.history())) == 3
    git(place, "replace", "-d", ids[2], ids[3])
    (archive.repository.common / "info").mkdir(exist_ok=True)
    (archive.repository.common / "info" / "grafts").write_text(f"{ids[3]} {ids[1]}\n")
    assert problems(archive) == []
    assert len(list(archive.history())) == 3


def test_what_a_push_put_elsewhere_between_two_looks_is_not_missed(archive: GitArchive) -> None:
    """A push moves runs to other commits. Who looked before it and after it sees no loss."""
    add(archive, 1)
    place = archive.repository.here
    before = Witness(archive.repository, "reports")
    seen, old = before.read(), git(place, "rev-parse", "reports")
    new = git(place, "commit-tree", "reports^{tree}", "-p", "reports^", "-m", "The same, elsewhere")
    git(place, "update-ref", "refs/heads/reports", new)
    assert before.missing(new, seen) == (old,)  # nobody says that a push did it
    before.write((new,))
    assert before.missing(new, seen) == ()


def test_a_shallow_clone_says_so(archive: GitArchive, tmp_path: Path) -> None:
    url = archive.repository.here.as_uri()
    options = ("--quiet", "--depth=1", "--branch=reports", "--bare")
    git(tmp_path, "clone", *options, url, "shallow")
    clone = git_archive(tmp_path / "shallow")
    (told,) = problems(clone)
    assert told.startswith("is where this shallow clone ends")
    assert told.endswith("git fetch --unshallow")
    git(tmp_path / "shallow", "fetch", "--quiet", "--unshallow", "origin", "reports:reports")
    assert problems(clone) == []


def test_a_damaged_object_is_a_problem_and_no_crash(archive: GitArchive) -> None:
    place = archive.repository.here
    packs = list((archive.repository.common / "objects" / "pack").glob("*.pack"))
    for pack in packs:  # loose objects, so that one of them can be broken
        data = pack.read_bytes()
        pack.with_suffix(".idx").unlink()
        pack.unlink()
        git(place, "unpack-objects", "-q", given=data)
    blob = git(place, "rev-parse", f"{REF}:{path(1)}")
    loose = archive.repository.common / "objects" / blob[:2] / blob[2:]
    loose.chmod(0o644)
    loose.write_bytes(b"broken")
    links = list(archive.history())
    told = [one for link in links for one in link.problems]
    assert told == ["notebook.ipynb is missing from the repository, or damaged"] * 3
    commit = git(place, "rev-parse", f"{REF}~1")
    (archive.repository.common / "objects" / commit[:2] / commit[2:]).unlink()
    told = [one for link in archive.history() for one in link.problems]
    assert any("the history cannot be read" in one for one in told)


def test_a_file_too_large_to_be_ours_is_not_read(
    archive: GitArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    step(archive, {path(7, "record.json"): b"x" * 5000})
    monkeypatch.setattr("quire.archive.history.LARGEST", 1000)
    told = problems(archive)
    assert any("5,000 bytes" in one for one in told)


def test_the_configuration_of_a_person_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "gitconfig"
    config.write_text(
        "[user]\nname = Grace\nemail = g@example.org\n[commit]\ngpgSign = true\n[log]\n"
        "showSignature = true\n[core]\nfsync = none\nquotePath = true\nautocrlf = true\n"
        "[diff]\nrenames = copies\nnoprefix = true\nrelative = true\n[color]\nui = always\n"
        "[core]\nabbrev = 4\n[fastimport]\nunpackLimit = 1000\n[i18n]\ncommitEncoding = latin1\n"
        "logOutputEncoding = latin1\n[gc]\nauto = 1\n[format]\npretty = oneline\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    main = repository(tmp_path / "repo")
    archive = git_archive(main.here)
    for number in range(3):
        run = run_id(number)
        archive.add(run, {"record.json": b"line\r\nline\n", "source.py": "\u00e9\n".encode()})
    assert problems(archive) == []
    assert archive.files(run_id(1))["record.json"] == b"line\r\nline\n"


def test_long_histories_are_read_in_few_calls(
    archive: GitArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = run_files(run_id(0))
    with Import(archive.repository, REF, archive.log.tip()) as stream:
        for number in range(100, 1300):
            stream.commit(sealed_step(archive, files, number))
        assert stream.finish()
    started: list[str] = []
    popen = subprocess.Popen

    class Counted(popen):  # type: ignore[type-arg, valid-type, misc]
        def __init__(self, args: list[str], *rest: object, **more: object) -> None:
            started.append(next(a for a in args[1:] if not a.startswith("-") and "=" not in a))
            super().__init__(args, *rest, **more)

    monkeypatch.setattr(subprocess, "Popen", Counted)
    assert sum(1 for _ in archive.history()) == 1203
    assert len(archive.ids()) == 1203
    assert sum(1 for _ in archive.each(archive.ids())) == 1203
    assert len(started) < 14, started


def test_root_is_what_every_archive_begins_with() -> None:
    assert set(ROOT.files) == {MARKER, "README.md"}


def test_a_fresh_clone_reads_and_goes_on(archive: GitArchive, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--no-checkout", str(archive.repository.here), "clone")
    clone = git_archive(tmp_path / "clone")
    assert clone.ids() == archive.ids()
    assert clone.repository.resolve(REF) is None
    add(clone, 8)
    assert len(clone.ids()) == 4
    assert problems(clone) == []
    found = Repository.find(tmp_path / "clone")
    assert found is not None
    assert found.resolve(f"{REF}~1") == archive.log.tip()
