"""Proposals in the repository itself: merging beside a working tree, and travelling."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from quire.errors import ForgeError, GitError
from quire.git.repository import Repository
from quire.review.local_forge import REFS, LocalForge
from quire.review.protocol import Check, Proposal
from quire.review.sync_with_remote import fetch, push
from scratch import Scratch


def forge_of(place: Scratch | Path, **env: str) -> LocalForge:
    root = place.root if isinstance(place, Scratch) else place
    repository = Repository.find(root, {**os.environ, **env})
    assert repository is not None
    return LocalForge(repository)


def branch(repo: Scratch, name: str, files: dict[str, str], start: str = "main") -> None:
    repo.git("switch", "--quiet", "-c", name, start)
    for path, text in files.items():
        repo.write(path, text)
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", f"On {name}")
    repo.git("switch", "--quiet", "main")


def proposed(repo: Scratch, name: str = "add", **files: str) -> Proposal:
    branch(repo, name, files or {f"{name}.py": "1\n"})
    return forge_of(repo).open(branch=name, base="main", title=f"Add {name}", body="")


def clone(repo: Scratch, folder: Path, name: str) -> Scratch:
    subprocess.run(["git", "clone", "--quiet", str(repo.root), str(folder)], check=True)
    made = Scratch(folder)
    made.git("config", "user.name", name)
    made.git("config", "user.email", f"{name}@example.org")
    return made


# Merging.


def test_the_checked_out_base_follows(repo: Scratch) -> None:
    number = proposed(repo).number
    repo.write("notes.txt", "mine, not in git\n")
    repo.write("notebooks/sum.py", "# changed here, and not in the proposal\n")
    commit = forge_of(repo).merge(number, "Merge")
    assert repo.git("rev-parse", "HEAD") == commit
    assert (repo.root / "add.py").read_text() == "1\n"
    assert repo.git("status", "--porcelain") == " M notebooks/sum.py\n?? notes.txt"


def test_the_base_moves_also_where_nobody_has_it_checked_out(repo: Scratch) -> None:
    number = proposed(repo).number
    repo.git("switch", "--quiet", "add")
    before = repo.git("status", "--porcelain")
    commit = forge_of(repo).merge(number, "Merge")
    assert repo.git("rev-parse", "main") == commit
    assert repo.git("branch", "--show-current") == "add"
    assert repo.git("status", "--porcelain") == before


def test_another_worktree_with_the_base_follows(repo: Scratch, tmp_path: Path) -> None:
    number = proposed(repo).number
    repo.git("switch", "--quiet", "add")
    repo.git("worktree", "add", "--quiet", str(tmp_path / "other"), "main")
    commit = forge_of(repo).merge(number, "Merge")
    other = Scratch(tmp_path / "other")
    assert other.git("rev-parse", "HEAD") == commit
    assert other.git("status", "--porcelain") == ""
    assert (other.root / "add.py").exists()


@pytest.mark.parametrize("how", ["changed", "staged", "untracked"])
def test_work_in_the_way_is_not_overwritten(repo: Scratch, how: str) -> None:
    path = "add.py" if how == "untracked" else "notebooks/sum.py"
    number = proposed(repo, "add", **{path: "theirs\n"}).number
    repo.write(path, "mine\n")
    if how == "staged":
        repo.git("add", path)
    before = repo.git("rev-parse", "main")
    with pytest.raises(ForgeError, match=f"{path} there would be overwritten") as caught:
        forge_of(repo).merge(number, "Merge")
    assert "stash" in caught.value.hint
    assert (repo.root / path).read_text() == "mine\n"
    assert repo.git("rev-parse", "main") == before
    assert forge_of(repo).proposal(number).state == "open"


def test_conflicts_are_named(repo: Scratch) -> None:
    number = proposed(repo, "add", **{"notebooks/sum.py": "a\n", "b c.py": "x\n"}).number
    repo.write("notebooks/sum.py", "b\n")
    repo.write("b c.py", "y\n")
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "Other")
    with pytest.raises(ForgeError) as caught:
        forge_of(repo).merge(number, "Merge")
    assert caught.value.message == (
        f"proposal {number} conflicts with main in b c.py, notebooks/sum.py"
    )
    assert "git switch add && git merge main" in caught.value.hint
    assert repo.git("status", "--porcelain") == ""


def test_the_commit_holds_what_finish_makes_of_it(repo: Scratch) -> None:
    number = proposed(repo).number
    forge = forge_of(repo)

    def finish(tree: str) -> str:
        blob = forge.repository.git("hash-object", "-w", "--stdin", input=b"made\n")
        listing = forge.repository.git("ls-tree", tree) + f"\n100644 blob {blob}\tadd.ipynb\n"
        return forge.repository.git("mktree", input=listing.encode())

    assert forge.finishes
    commit = forge.merge(number, "Merge", finish)
    assert repo.git("show", f"{commit}:add.ipynb") == "made"
    assert (repo.root / "add.ipynb").read_text() == "made\n"
    assert repo.git("status", "--porcelain") == ""


def test_a_finish_that_fails_changes_nothing(repo: Scratch) -> None:
    number = proposed(repo).number
    before = repo.git("rev-parse", "main")

    def finish(tree: str) -> str:
        raise ForgeError("cannot regenerate", hint="mend it")

    with pytest.raises(ForgeError, match="cannot regenerate"):
        forge_of(repo).merge(number, "Merge", finish)
    with pytest.raises(GitError):
        forge_of(repo).merge(number, "Merge", lambda tree: "0" * 40)
    assert repo.git("rev-parse", "main") == before
    assert forge_of(repo).proposal(number).state == "open"


def test_the_base_that_moves_meanwhile_is_merged_again(repo: Scratch) -> None:
    number = proposed(repo).number
    repo.git("switch", "--quiet", "--detach", "main")
    calls: list[str] = []

    def finish(tree: str) -> str:
        calls.append(tree)
        if len(calls) == 1:  # somebody else commits to main at the worst moment
            forge = forge_of(repo).repository
            other = forge.git("commit-tree", "main^{tree}", "-p", "main", input=b"Other\n")
            forge.git("update-ref", "refs/heads/main", other)
        return tree

    commit = forge_of(repo).merge(number, "Merge", finish)
    assert len(calls) == 2
    assert repo.git("log", "-1", "--format=%s", f"{commit}^1") == "Other"
    assert repo.git("rev-parse", "main") == commit


def test_what_git_merged_already_is_only_noted(repo: Scratch) -> None:
    """Also what is left when the power goes between the merge and the note of it."""
    number = proposed(repo).number
    repo.git("merge", "--quiet", "--no-ff", "--no-edit", "add")
    by_hand = repo.git("rev-parse", "HEAD")
    repo.git("commit", "--quiet", "--allow-empty", "-m", "Later")
    assert forge_of(repo).merge(number, "Merge") == by_hand
    assert forge_of(repo).proposal(number).merged == by_hand
    second = proposed(repo, "more").number
    repo.git("merge", "--quiet", "--ff-only", "more")
    assert forge_of(repo).merge(second, "Merge") == repo.git("rev-parse", "more")


def test_a_bare_repository_merges_too(repo: Scratch, tmp_path: Path) -> None:
    number = proposed(repo).number
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "--quiet", "--mirror", str(repo.root), str(bare)], check=True)
    who = {f"GIT_{r}_{w}": "bob" for r in ("AUTHOR", "COMMITTER") for w in ("NAME", "EMAIL")}
    commit = forge_of(bare, **who).merge(number, "Merge")
    there = Scratch(bare)
    assert there.git("rev-parse", "refs/heads/main") == commit
    assert there.git("fsck", "--strict") == ""


def test_unrelated_histories(repo: Scratch) -> None:
    repo.git("switch", "--quiet", "--orphan", "alone")
    repo.write("x.py", "1\n")
    repo.git("add", "x.py")
    repo.git("commit", "--quiet", "-m", "Alone")
    repo.git("switch", "--quiet", "main")
    made = forge_of(repo).open(branch="alone", base="main", title="Alone", body="")
    with pytest.raises(ForgeError, match="no commit in common"):
        forge_of(repo).merge(made.number, "Merge")


def test_a_branch_that_is_gone_is_merged_from_what_was_proposed(repo: Scratch) -> None:
    made = proposed(repo)
    repo.git("branch", "--quiet", "-D", "add")
    assert forge_of(repo).proposal(made.number).head == made.head
    commit = forge_of(repo).merge(made.number, "")
    title = repo.git("log", "-1", "--format=%s", commit)
    assert title == f"Merge proposal {made.number}: Add add"


# What is kept, and who may break it.


def test_nothing_of_the_working_tree_is_touched(repo: Scratch) -> None:
    repo.write("staged.py", "1\n")
    branch(repo, "add", {"add.py": "1\n"})
    repo.write("staged.py", "2\n")
    repo.git("add", "staged.py")
    before = (repo.git("status", "--porcelain"), repo.git("rev-parse", "HEAD"))
    forge = forge_of(repo)
    number = forge.open(branch="add", base="main", title="Add", body="").number
    forge.comment(number, "x")
    forge.review(number, "approve", "")
    forge.set_check(repo.git("rev-parse", "add"), Check("quire/ci", "success"))
    forge.attach(number, "x.ipynb", b"{}")
    forge.close(number)
    assert (repo.git("status", "--porcelain"), repo.git("rev-parse", "HEAD")) == before
    assert repo.git("fsck", "--strict", "--no-dangling") == ""
    assert repo.git("rev-list", "--count", f"{REFS}{number}") == "6"
    assert repo.git("branch", "--format=%(refname:short)").split() == ["add", "main"]


def test_many_at_once_lose_nothing(repo: Scratch) -> None:
    number = proposed(repo).number
    script = (
        "import sys; from pathlib import Path; from quire.git.repository import Repository;"
        "from quire.review.local_forge import LocalForge;"
        "f = LocalForge(Repository.find(Path('.')));"
        "[f.comment(int(sys.argv[1]), f'{sys.argv[2]}-{i}') for i in range(5)]"
    )
    command = [sys.executable, "-c", script, str(number)]
    started = [subprocess.Popen([*command, str(n)], cwd=repo.root) for n in range(4)]
    assert [process.wait(60) for process in started] == [0] * 4
    said = {comment.text for comment in forge_of(repo).proposal(number).comments}
    assert said == {f"{n}-{i}" for n in range(4) for i in range(5)}


def test_numbers_are_given_once(repo: Scratch) -> None:
    for n in range(6):
        branch(repo, f"b{n}", {f"b{n}.py": "1\n"})
    numbers: list[int] = []
    forges = [forge_of(repo) for _ in range(6)]

    def go(n: int) -> None:
        made = forges[n].open(branch=f"b{n}", base="main", title=f"B{n}", body="")
        numbers.append(made.number)

    threads = [threading.Thread(target=go, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == [1, 2, 3, 4, 5, 6]
    assert {p.title for p in forge_of(repo).proposals()} == {f"B{n}" for n in range(6)}


@pytest.mark.parametrize(
    "content",
    ["", "not json", "[]", '{"format": 2, "id": "x"}', '{"format": 1, "id": 7}',
     '{"format": 1, "id": "x", "title": "t", "branch": "b"}'],
)  # fmt: skip
def test_a_ref_that_holds_something_else(repo: Scratch, content: str) -> None:
    good = proposed(repo).number
    repository = forge_of(repo).repository
    blob = repository.git("hash-object", "-w", "--stdin", input=content.encode())
    tree = repository.git("mktree", input=f"100644 blob {blob}\tproposal.json\n".encode())
    commit = repository.git("commit-tree", tree, input=b"x\n")
    repository.git("update-ref", f"{REFS}7", commit)
    repository.git("update-ref", f"{REFS}seven", commit)
    assert [p.number for p in forge_of(repo).proposals()] == [good]
    with pytest.raises(ForgeError, match="does not hold a proposal") as caught:
        forge_of(repo).proposal(7)
    assert "git log -p" in caught.value.hint
    assert proposed(repo, "next").number == 8


def test_events_that_are_none_are_left_out(repo: Scratch) -> None:
    from quire.git.ref_log import GitLog

    number = proposed(repo).number
    log = GitLog(forge_of(repo).repository, f"{REFS}{number}")
    log.append(
        {
            "events/0-a.json": b"broken",
            "events/0-b.json": b'{"kind": "unheard-of"}',
            "events/0-c.json": b'{"kind": "comment", "text": 7, "author": null}',
            "events/0-d.json": b'{"kind": "review", "verdict": "shout", "author": "eve"}',
            "events/0-e.json": b'{"kind": "check", "commit": [], "state": {}}',
            "other.txt": b"x",
        },
        "A stranger's",
    )
    found = forge_of(repo).proposal(number)
    assert found.state == "open"
    assert [(c.author, c.text, c.verdict) for c in found.comments] == [
        ("", "", None),
        ("eve", "", None),
    ]


@pytest.mark.parametrize(
    "change",
    [{"branch": "--upload-pack=touch x"}, {"branch": "../../x"}, {"branch": "main^"},
     {"base": "main:notebooks"}, {"base": ""}, {"head": "HEAD"}, {"head": "--help"}],
)  # fmt: skip
def test_a_stranger_names_no_other_ref(repo: Scratch, change: dict[str, str]) -> None:
    from quire.git.ref_log import GitLog
    from quire.review.proposal_events import dumps

    head = repo.git("rev-parse", "HEAD")
    first = {"format": 1, "id": "x", "title": "t", "base": "main", "head": head, "branch": "add"}
    log = GitLog(forge_of(repo).repository, f"{REFS}1")
    log.append({"proposal.json": dumps(first)}, "x")
    assert forge_of(repo).proposal(1).head == head
    log.append({"proposal.json": dumps(first | change)}, "x")
    with pytest.raises(ForgeError, match="does not hold a proposal"):
        forge_of(repo).merge(1, "x")


def test_without_a_name_git_says_what_to_do(repo: Scratch) -> None:
    made = proposed(repo)
    repo.git("config", "--unset", "user.name")
    repo.git("config", "user.useConfigOnly", "true")
    with pytest.raises(GitError) as caught:
        forge_of(repo).comment(made.number, "x")
    assert caught.value.hint


# Travelling.


@pytest.fixture
def clones(repo: Scratch, tmp_path: Path) -> tuple[Scratch, Scratch, Scratch]:
    """A bare repository in the middle, and two clones."""
    middle = Scratch(tmp_path / "middle.git")
    subprocess.run(
        ["git", "clone", "--quiet", "--bare", str(repo.root), str(middle.root)], check=True
    )
    one = clone(middle, tmp_path / "one", "ada")
    two = clone(middle, tmp_path / "two", "bob")
    return middle, one, two


def sent(place: Scratch, *branches: str) -> None:
    place.git("push", "--quiet", "origin", *branches)
    push(forge_of(place), "origin")


def test_a_proposal_travels_and_is_merged_elsewhere(
    clones: tuple[Scratch, Scratch, Scratch],
) -> None:
    _, ada, bob = clones
    made = proposed(ada)
    sent(ada, "add")
    bob.git("fetch", "--quiet")
    told = fetch(forge_of(bob), "origin")
    assert (told.new, told.changed, told.renumbered) == ((made.number,), (), {})
    assert forge_of(bob).proposal(made.number) == made
    forge_of(bob).review(made.number, "approve", "Fine")
    commit = forge_of(bob).merge(made.number, "Merge")
    sent(bob, "main")
    ada.git("pull", "--quiet", "--ff-only")
    told = fetch(forge_of(ada), "origin")
    assert told.changed == (made.number,)
    found = forge_of(ada).proposal(made.number)
    assert (found.state, found.merged) == ("merged", commit)
    assert [(c.author, c.verdict) for c in found.comments] == [("bob", "approve")]
    assert ada.git("rev-parse", "HEAD") == commit


def test_what_two_clones_say_is_the_union(clones: tuple[Scratch, Scratch, Scratch]) -> None:
    middle, ada, bob = clones
    number = proposed(ada).number
    sent(ada, "add")
    fetch(forge_of(bob), "origin")
    for n in range(3):
        forge_of(ada).comment(number, f"ada {n}")
        forge_of(bob).comment(number, f"bob {n}")
    sent(bob)
    sent(ada)
    fetch(forge_of(bob), "origin")
    expected = {f"{who} {n}" for who in ("ada", "bob") for n in range(3)}
    for place in (ada, bob, middle):
        said = forge_of(place).proposal(number).comments
        assert {c.text for c in said} == expected
        assert place.git("fsck", "--strict", "--no-dangling") == ""
    tips = {place.git("rev-parse", f"{REFS}{number}") for place in (ada, bob, middle)}
    assert len(tips) == 1
    assert push(forge_of(ada), "origin").changed == ()


def test_merged_here_and_closed_there_is_merged(clones: tuple[Scratch, Scratch, Scratch]) -> None:
    """Whoever closes later, by their clock, cannot take back what is in the branch."""
    middle, ada, bob = clones
    number = proposed(ada).number
    sent(ada, "add")
    bob.git("fetch", "--quiet")
    fetch(forge_of(bob), "origin")
    commit = forge_of(ada).merge(number, "Merge")
    forge_of(bob).close(number)
    sent(ada, "main")
    push(forge_of(bob), "origin")
    found = forge_of(middle).proposal(number)
    assert (found.state, found.merged) == ("merged", commit)


def test_a_number_taken_twice_belongs_to_the_first(
    clones: tuple[Scratch, Scratch, Scratch],
) -> None:
    middle, ada, bob = clones
    assert proposed(ada, "from-ada").number == proposed(bob, "from-bob").number == 1
    proposed(bob, "second")
    forge_of(bob).comment(1, "On mine")
    sent(ada, "from-ada")
    told = push(forge_of(bob), "origin")
    assert told.renumbered == {1: 3}
    assert told.new == (1,)
    for place in (bob, middle):
        titles = {p.number: p.title for p in forge_of(place).proposals()}
        assert titles == {1: "Add from-ada", 2: "Add second", 3: "Add from-bob"}
    assert [c.text for c in forge_of(bob).proposal(3).comments] == ["On mine"]
    assert fetch(forge_of(ada), "origin").new == (2, 3)
    assert push(forge_of(bob), "origin").renumbered == {}


def test_a_number_that_changed_under_way_is_noticed(
    clones: tuple[Scratch, Scratch, Scratch], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ada, bob = clones
    proposed(ada, "from-ada")
    proposed(bob, "from-bob")
    sent(ada, "from-ada")
    forge = forge_of(bob)
    kept: Callable[[int], object] = forge._kept

    def slow(number: int) -> object:
        found = kept(number)
        fetch(forge_of(bob), "origin")  # a fetch of another process comes between
        return found

    monkeypatch.setattr(forge, "_kept", slow)
    with pytest.raises(ForgeError, match="has another number"):
        forge.comment(1, "For mine, not for theirs")
    assert forge_of(bob).proposal(1).comments == ()


def test_a_race_of_two_pushes_ends_with_both(clones: tuple[Scratch, Scratch, Scratch]) -> None:
    middle, ada, bob = clones
    for place, who in ((ada, "ada"), (bob, "bob")):
        for n in range(3):
            proposed(place, f"{who}-{n}")
    errors: list[Exception] = []

    def go(place: Scratch) -> None:
        try:
            push(forge_of(place), "origin")
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=go, args=(place,)) for place in (ada, bob)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    titles = {p.title for p in forge_of(middle).proposals()}
    assert titles == {f"Add {who}-{n}" for who in ("ada", "bob") for n in range(3)}
    assert sorted(p.number for p in forge_of(middle).proposals()) == [1, 2, 3, 4, 5, 6]


def test_a_remote_that_is_gone_changes_nothing(
    clones: tuple[Scratch, Scratch, Scratch], tmp_path: Path
) -> None:
    _, ada, _ = clones
    number = proposed(ada).number
    ada.git("remote", "set-url", "origin", str(tmp_path / "nowhere"))
    with pytest.raises(GitError) as caught:
        push(forge_of(ada), "origin")
    assert caught.value.hint
    assert forge_of(ada).proposal(number).state == "open"
