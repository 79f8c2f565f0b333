"""Local proposals where a remote has the base: it is merged there, or nothing has happened."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from quire.errors import ForgeError
from quire.git.repository import Repository
from quire.review.local_forge import LocalForge
from quire.review.sync_with_remote import fetch, push
from scratch import Scratch

World = tuple[Scratch, Scratch, Scratch]


def forge_of(place: Scratch) -> LocalForge:
    repository = Repository.find(place.root, dict(os.environ))
    assert repository is not None
    return LocalForge(repository)


@pytest.fixture
def world(repo: Scratch, tmp_path: Path) -> World:
    """The remote, and the clones of an author and of somebody else."""
    hub = Scratch(tmp_path / "hub.git")
    subprocess.run(["git", "clone", "--quiet", "--bare", str(repo.root), str(hub.root)], check=True)
    places = []
    for name in ("ada", "bob"):
        subprocess.run(["git", "clone", "--quiet", str(hub.root), str(tmp_path / name)], check=True)
        place = Scratch(tmp_path / name)
        place.git("config", "user.name", name)
        place.git("config", "user.email", f"{name}@example.org")
        places.append(place)
    return hub, places[0], places[1]


def committed(place: Scratch, name: str, text: str = "1\n") -> str:
    place.write(name, text)
    place.git("add", ".")
    place.git("commit", "--quiet", "-m", f"Write {name}")
    return place.git("rev-parse", "HEAD")


def proposed(place: Scratch, name: str = "add") -> int:
    place.git("switch", "--quiet", "-c", name)
    committed(place, f"{name}.py")
    place.git("switch", "--quiet", "main")
    return forge_of(place).open(branch=name, base="main", title=f"Add {name}", body="").number


def refs(*places: Scratch) -> list[str]:
    """All but what a fetch brings."""
    listed = [place.git("for-each-ref", "refs/heads", "refs/quire/proposals") for place in places]
    return [*listed, *(place.git("status", "--porcelain") for place in places[1:])]


def test_the_branch_goes_with_its_proposal(world: World) -> None:
    hub, ada, bob = world
    number = proposed(ada)
    told = push(forge_of(ada), "origin")
    assert (told.sent, told.branches, told.problems) == ((number,), ("add",), ())
    assert hub.git("rev-parse", "add") == ada.git("rev-parse", "add")
    assert fetch(forge_of(bob), "origin").new == (number,)
    assert bob.git("rev-parse", "refs/remotes/origin/add") == ada.git("rev-parse", "add")
    assert bob.git("branch", "--list", "add") == ""
    forge_of(bob).comment(number, "Hm.")
    assert push(forge_of(bob), "origin").added == (number,)


def test_only_what_was_proposed_goes(world: World) -> None:
    hub, ada, _ = world
    proposed(ada)
    head = ada.git("rev-parse", "add")
    ada.git("switch", "--quiet", "add")
    committed(ada, "not_yet.py")
    push(forge_of(ada), "origin")
    assert hub.git("rev-parse", "add") == head


def test_a_branch_that_the_remote_refuses_is_told(world: World) -> None:
    hub, ada, _ = world
    proposed(ada)
    hook(hub, "case $1 in refs/heads/add) echo no; exit 1;; esac")
    told = push(forge_of(ada), "origin")
    assert told.branches == ()
    (problem,) = told.problems
    assert problem.startswith("add did not go to origin")


def test_it_is_merged_on_top_of_what_the_remote_has(world: World) -> None:
    hub, ada, bob = world
    number = proposed(ada)
    push(forge_of(ada), "origin")
    theirs = committed(bob, "other.py")
    bob.git("push", "--quiet", "origin", "main")
    commit = forge_of(ada).merge(number, "Merge")
    assert hub.git("rev-parse", "main") == commit == ada.git("rev-parse", "HEAD")
    assert hub.git("rev-parse", "main^1") == theirs
    assert (ada.root / "other.py").exists()
    assert (ada.root / "add.py").exists()
    assert forge_of(ada).proposal(number).merged == commit


def test_one_who_pushes_meanwhile_is_not_run_over(world: World) -> None:
    hub, ada, bob = world
    number = proposed(ada)
    pushed: list[str] = []

    def finish(tree: str) -> str:
        if len(pushed) < 2:
            pushed.append(committed(bob, f"quick{len(pushed)}.py"))
            bob.git("push", "--quiet", "origin", "main")
        return tree

    commit = forge_of(ada).merge(number, "Merge", finish)
    assert hub.git("rev-parse", "main") == commit
    assert hub.git("rev-parse", "main^1") == pushed[-1]
    assert len(pushed) == 2


def hook(hub: Scratch, script: str) -> None:
    path = hub.write("hooks/update", f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("how", ["gone", "protected", "no branch"])
def test_what_the_remote_does_not_take_has_not_happened(world: World, how: str) -> None:
    hub, ada, _ = world
    number = proposed(ada)
    if how == "gone":
        ada.git("remote", "set-url", "origin", str(hub.root.parent / "nowhere"))
    elif how == "protected":
        hook(hub, "case $1 in refs/heads/main) echo protected; exit 1;; esac")
    else:
        hub.git("branch", "-m", "main", "trunk")
    before = refs(hub, ada)
    with pytest.raises(ForgeError) as caught:
        forge_of(ada).merge(number, "Merge")
    assert refs(hub, ada) == before
    assert forge_of(ada).proposal(number).state == "open"
    assert caught.value.retryable == (how == "gone")
    assert caught.value.hint.startswith(
        "git push origin main" if how == "no branch" else "nothing has changed"
    )


def test_work_of_ones_own_keeps_the_base_where_it_is(world: World) -> None:
    hub, ada, _ = world
    number = proposed(ada)
    own = committed(ada, "mine.py")
    commit = forge_of(ada).merge(number, "Merge")
    assert hub.git("rev-parse", "main") == commit
    assert ada.git("rev-parse", "main") == own


def test_said_again_it_takes_up_a_merge_that_was_pushed(world: World) -> None:
    """As when it was killed before it was noted."""
    hub, ada, bob = world
    number = proposed(ada)
    push(forge_of(ada), "origin")
    fetch(forge_of(bob), "origin")
    bob.git("merge", "--quiet", "--no-ff", "-m", "By hand", "origin/add")
    bob.git("push", "--quiet", "origin", "main")
    commit = forge_of(ada).merge(number, "Merge")
    assert commit == bob.git("rev-parse", "main") == hub.git("rev-parse", "main")
    assert ada.git("rev-parse", "main") == commit


def test_a_branch_that_was_rewritten_must_be_proposed_again(world: World) -> None:
    hub, ada, bob = world
    number = proposed(ada)
    push(forge_of(ada), "origin")
    fetch(forge_of(bob), "origin")
    ada.git("switch", "--quiet", "add")
    ada.git("commit", "--quiet", "--amend", "-m", "Another one")
    ada.git("push", "--quiet", "--force", "origin", "add")
    fetch(forge_of(bob), "origin")
    with pytest.raises(ForgeError, match="was rewritten since") as caught:
        forge_of(bob).merge(number, "Merge")
    assert caught.value.hint.endswith("quire propose --branch add")
    forge_of(ada).update(number, body="Again")
    push(forge_of(ada), "origin")
    fetch(forge_of(bob), "origin")
    assert forge_of(bob).proposal(number).head == ada.git("rev-parse", "add")
    forge_of(bob).merge(number, "Merge")
    assert "Another one" in hub.git("log", "--format=%s", "main")


def test_what_is_not_here_cannot_be_judged(world: World) -> None:
    """The proposal came, and its commits did not."""
    _, ada, bob = world
    number = proposed(ada)
    ada.git("push", "--quiet", "origin", f"refs/quire/proposals/{number}")
    fetch(forge_of(bob), "origin")
    for verdict in ("approve", "request_changes"):
        with pytest.raises(ForgeError, match="the commits of proposal 1 are not here"):
            forge_of(bob).review(number, verdict, "x")  # type: ignore[arg-type]
    with pytest.raises(ForgeError, match="the commits of proposal 1 are not here"):
        forge_of(bob).merge(number, "Merge")
