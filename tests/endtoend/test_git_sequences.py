"""Walks through git with the tool in every state: nobody is blocked by it, and nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from gitworld import execute
from toolworld import (
    BROKEN,
    STATES,
    Step,
    World,
    plain_world,
    put,
    set_up,
    take,
    walk,
    way_back,
)

from quire.git.setup import Program, wanted_config

_BY_HAND = re.compile(r"hand-\d+-\d+")  # in a notebook; what was made from a text may be made again
_ID = re.compile(r"\b[0-9a-f]{7,}\b")  # commits have times in them
# In git without Quire the notebook of a pair is as good as it was: nothing to decide there.
_DRIVER = "case %P in *own*) git merge-file --marker-size=%L %A %O %B;; esac"
SEEDS = range(40)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tool") / "venv" / "bin" / "quire"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> World:
    return plain_world(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def with_tool(plain: World, program: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    put(program, "installed")
    world = plain.copy(tmp_path_factory.mktemp("with") / "template")
    set_up(world, program)
    return world


def both_worlds(plain: World, with_tool: World, folder: Path, state: str) -> tuple[World, World]:
    theirs, ours = plain.copy(folder / "theirs"), with_tool.copy(folder / "ours")
    if state == "installed":
        theirs.git("config", "merge.quire.driver", _DRIVER)
    return theirs, ours


def compare(theirs: World, ours: World, step: Step, told: str) -> None:
    """What plain git left is there, and what a person typed; nothing is changed but by them."""
    where = (step, told)
    assert ours.files(".py", ".txt", ".toml") == theirs.files(".py", ".txt", ".toml"), where
    left, here = theirs.files(".ipynb"), ours.files(".ipynb")
    assert left.keys() <= here.keys(), where
    for name, text in left.items():
        assert set(_BY_HAND.findall(text)) <= set(_BY_HAND.findall(here[name])), (name, where)
    more = changed_files(ours) - changed_files(theirs)
    assert not more, where


def changed_files(world: World) -> set[str]:
    """Changed or deleted is the same: after a reset to before it was ignored, git knows a notebook
    again that a hook made, and that would not be there otherwise.
    """
    said = world.git("status", "--porcelain", "--no-renames")
    return {line[:2].replace("M", "D") + line[2:] for line in said.splitlines()}


def compare_kept(theirs: World, ours: World) -> None:
    """What is in git: every commit, and the files of branches and stashes that are no notebooks."""
    one, other = refs(theirs), refs(ours)
    assert other.keys() == one.keys()
    for ref in one:
        if one[ref] != other[ref]:
            (texts, notebooks), (here, there) = kept(theirs, ref), kept(ours, ref)
            assert here == texts, ref
            assert there >= notebooks, ref
    assert messages(ours) == messages(theirs)


def refs(world: World) -> dict[str, str]:
    listed = world.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
    stashes = world.git("log", "-g", "--format=%gd %H", "refs/stash") if stashed(world) else ""
    head = f"HEAD {world.git('rev-parse', 'HEAD')}"
    return dict(line.split(" ") for line in (listed + stashes + head).splitlines())


def stashed(world: World) -> bool:
    return (world.root / ".git" / "logs" / "refs" / "stash").exists()


def kept(world: World, ref: str) -> tuple[list[str], set[str]]:
    """The files of a commit that are no notebooks, and the names of those that are."""
    lines = world.git("ls-tree", "-r", ref).splitlines()
    names = {line.split("\t")[1] for line in lines if line.endswith(".ipynb")}
    return [line for line in lines if not line.endswith(".ipynb")], names


def messages(world: World) -> list[str]:
    return sorted(_ID.sub("", world.git("log", "--all", "--format=%s")).splitlines())


def go(theirs: World, ours: World, steps: Iterable[Step]) -> None:
    for step in steps:
        one, other = take(theirs, step), take(ours, step)
        told = other.stdout + other.stderr
        same = one.returncode == other.returncode
        assert same, (step, one.returncode, one.stdout + one.stderr, other.returncode, told)
        back = way_back(theirs) if one.returncode else None
        assert back == (way_back(ours) if other.returncode else None), (step, told)
        if back:
            theirs.git(*back)
            ours.git(*back)
        compare(theirs, ours, step, told)
    compare_kept(theirs, ours)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk_goes_as_without_the_tool(
    plain: World, with_tool: World, program: Path, tmp_path: Path, seed: int
) -> None:
    state = BROKEN[seed // 2 % len(BROKEN)] if seed % 2 else "installed"
    put(program, state)
    go(*both_worlds(plain, with_tool, tmp_path, state), walk(seed))


@pytest.mark.torture
@pytest.mark.parametrize("state", STATES)
def test_more_and_longer_walks(
    plain: World, with_tool: World, program: Path, tmp_path: Path, state: str
) -> None:
    put(program, state)
    for seed in range(100, 140):
        theirs, ours = both_worlds(plain, with_tool, tmp_path / str(seed), state)
        go(theirs, ours, walk(seed, 14))


# What each call comes to without Quire


@pytest.fixture(params=BROKEN)
def broken(
    request: pytest.FixtureRequest, with_tool: World, program: Path, tmp_path: Path
) -> World:
    """A repository that was set up; since then something has happened to Quire."""
    world = with_tool.copy(tmp_path / "broken")
    put(program, request.param)
    return world


def test_notebooks_come_and_go_as_they_are(broken: World) -> None:
    nb = broken.path("count.ipynb")
    broken.git("switch", "-q", "-c", "other")
    execute(nb, "hunter2\n")
    said = broken.call("add", "notebooks")
    assert said.returncode == 0
    assert "quire" in said.stderr
    text = nb.read_text()
    broken.git("commit", "-q", "-m", "With outputs")
    assert broken.git("cat-file", "blob", "HEAD:notebooks/count.ipynb") == text
    broken.git("switch", "-q", "main")
    assert "hunter2" not in nb.read_text()
    broken.git("switch", "-q", "other")
    assert nb.read_text() == text


def test_nothing_is_lost_that_is_filtered_file_by_file(broken: World) -> None:
    """As gits do that know no filters that stay."""
    broken.git("config", "--unset", "filter.quire.process")
    nb = broken.path("count.ipynb")
    execute(nb, "hunter2\n")
    broken.git("commit", "-q", "-a", "-m", "With outputs")
    assert broken.git("cat-file", "blob", "HEAD:notebooks/count.ipynb") == nb.read_text()


@pytest.mark.parametrize("external", [False, True], ids=["textconv", "command"])
def test_diffs_and_logs_are_of_the_json(broken: World, program: Path, external: bool) -> None:
    there = wanted_config(Program((str(program),)), external=True)
    if external:
        broken.git("config", "diff.quire.command", there["diff.quire.command"])
    nb = broken.path("count.ipynb")
    nb.write_text(nb.read_text().replace("value_1 = 0", "value_1 = 5"))
    assert "value_1 = 5" in broken.git("diff", "--no-color")
    broken.git("commit", "-q", "-a", "-m", "Changed")
    assert "value_1 = 5" in broken.git("log", "-p", "-1", "--ext-diff", "--no-color")


def test_notebooks_are_merged_as_text(broken: World) -> None:
    nb = broken.path("count.ipynb")
    text = nb.read_text()

    def change(old: str, new: str) -> None:
        nb.write_text(text.replace(old, new))
        broken.git("commit", "-q", "-a", "-m", new)

    broken.git("switch", "-q", "-c", "near")
    change("value_1 = 0", "value_1 = 11")
    broken.git("switch", "-q", "-c", "same", "main")
    change("value_1 = 0", "value_1 = 111")
    broken.git("switch", "-q", "main")
    change("value_4 = 0", "value_4 = 44")
    broken.git("merge", "near")
    merged = nb.read_text()
    assert "value_1 = 11\\n" in merged
    assert "value_4 = 44\\n" in merged
    # Both sides are there to decide between; a driver that just fails leaves one of them.
    assert broken.call("merge", "same").returncode == 1
    assert "value_1 = 11\\n" in nb.read_text()
    assert "value_1 = 111\\n" in nb.read_text()
    broken.git("merge", "--abort")
    assert nb.read_text() == merged


def test_a_hook_says_one_line(broken: World, program: Path) -> None:
    done = broken.call("switch", "-q", "--detach")
    assert done.returncode == 0
    assert [str(program) in line for line in done.stderr.splitlines()] == [True]
