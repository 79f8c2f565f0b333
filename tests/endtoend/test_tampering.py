"""Real runs, archived by the command; then somebody forges them. Every forgery is named."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from forger import BRANCH, Forger, Step, Tree

from quire.archive.layout import run_folder
from quire.proof.attestation import ATTESTATION, envelope, statement
from quire.proof.key_store import Key
from quire.proof.keys import trust_of
from quire.proof.trust import LIST, Trusted
from quire.proof.verify import verify_all, verify_run
from quire.record.record_files import POINTER
from quire.workspace import Workspace
from scratch import Scratch

EVE = Key(b"e" * 32)
SUM = """# %% tags=["parameters"]
n: int = 4  # how far

# %% add
from quire.runtime import glue

total = sum(range(n))
print("total", total)
glue("total", total)
"""
LARGE = '# %% big\nprint("x" * 40_000)\n\n# %% fails\n1 / 0\n'
NB, REC = "notebook.ipynb", "record.json"


@dataclass
class World:
    """A repository with three archived runs: two of one task, one of another that failed."""

    scratch: Scratch
    keys: Path
    runs: tuple[str, str, str]

    @property
    def forger(self) -> Forger:
        return Forger(self.scratch.root)

    def workspace(self) -> Workspace:
        env = {**os.environ, "QUIRE_KEYS": str(self.keys)}
        return Workspace(self.scratch.root, cwd=self.scratch.root, env=env)

    def quire(self, *args: str) -> Any:
        return self.scratch.quire(*args, env={"QUIRE_KEYS": str(self.keys)})

    def path(self, run: int, name: str) -> str:
        return f"{run_folder(self.runs[run])}/{name}"

    def one(self, run: int, **how: Any) -> list[str]:
        return [str(f) for f in verify_run(self.workspace(), self.runs[run], **how).findings]

    def all(self, **how: Any) -> list[str]:
        summary = verify_all(self.workspace(), **how)
        return [str(f) for f in summary.history] + [
            f"{one.run_id} {finding}" for one in summary.runs for finding in one.findings
        ]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> World:
    scratch = Scratch(tmp_path_factory.mktemp("honest") / "repo")
    scratch.root.mkdir()
    scratch.git("init", "--quiet", "--initial-branch=main")
    scratch.git("config", "user.name", "Ada Tester")
    scratch.git("config", "user.email", "ada@example.org")
    scratch.write("quire.toml", "[archive]\nlarge = 10000\n")
    scratch.write("notebooks/sum.py", SUM)
    scratch.write("notebooks/large.py", LARGE)
    scratch.git("add", ".")
    scratch.git("commit", "--quiet", "-m", "Begin")
    keys = scratch.root.parent / "keys"
    ids = []
    for args in (("sum.py",), ("large.py",), ("sum.py", "-p", "n", "6")):
        done = scratch.quire(
            "run", f"notebooks/{args[0]}", *args[1:], "--no-host", "--json",
            env={"QUIRE_KEYS": str(keys)},
        )  # fmt: skip
        ids.append(json.loads(done.stdout)["run_id"])
    return World(scratch, keys, (ids[0], ids[1], ids[2]))


@pytest.fixture
def world(honest: World, tmp_path: Path) -> World:
    shutil.copytree(honest.scratch.root.parent, tmp_path / "copy", symlinks=True)
    return World(Scratch(tmp_path / "copy" / "repo"), tmp_path / "copy" / "keys", honest.runs)


def swapped(old: bytes, new: bytes) -> Callable[[tuple[str, bytes]], tuple[str, bytes]]:
    def swap(entry: tuple[str, bytes]) -> tuple[str, bytes]:
        assert old in entry[1]
        return entry[0], entry[1].replace(old, new, 1)

    return swap


def test_what_is_honest_verifies(world: World) -> None:
    assert [world.one(run) for run in range(3)] == [[], [], []]
    assert world.all() == []
    assert world.quire("verify", "--all").returncode == 0


# Written over in a further commit: the run does not verify, and the history says who did it


def on_top(path: Callable[[World], str], change: Any) -> Callable[[World], None]:
    def forge(world: World) -> None:
        def edit(tree: Tree) -> None:
            tree[path(world)] = change(tree[path(world)])

        world.forger.on_top(edit)

    return forge


def of(run: int, name: str) -> Callable[[World], str]:
    return lambda world: world.path(run, name)


def exchange(name: str) -> Callable[[World], None]:
    def forge(world: World) -> None:
        def edit(tree: Tree) -> None:
            one, other = world.path(0, name), world.path(2, name)
            tree[one], tree[other] = tree[other], tree[one]

        world.forger.on_top(edit)

    return forge


OVERWRITTEN: dict[str, tuple[Callable[[World], None], str]] = {
    "an output": (on_top(of(0, NB), swapped(b"total 6", b"total 7")), "output 0: changed after"),
    "a result": (
        on_top(of(0, REC), swapped(b'"value": 6', b'"value": 7')),
        "record.json results.total.value: signed as 6, now 7",
    ),
    "the source": (on_top(of(0, "source.py"), swapped(b"4", b"5")), "source.py: changed after"),
    "the outcome": (
        on_top(of(0, REC), swapped(b'"outcome": "ok"', b'"outcome": "failed"')),
        'record.json outcome: signed as "ok", now "failed"',
    ),
    "a package": (
        on_top(of(0, REC), swapped(b'"packages": {', b'"packages": {"evil": "1",')),
        "record.json environment.packages.evil: was not there when it was signed",
    ),
    "the signature": (
        on_top(of(0, ATTESTATION), swapped(b'"sig": "', b'"sig": "AAAA')),
        "attestation.json:",
    ),
    "notebooks exchanged": (exchange(NB), "notebook.ipynb metadata.quire.run_id"),
    "attestations exchanged": (exchange(ATTESTATION), "record.json run_id: signed as"),
    "records exchanged": (exchange(REC), "record.json run_id: this is the run"),
    "a link in place of a file": (
        on_top(of(0, "source.py"), lambda entry: ("120000", b"../../../../../../secret")),
        "'source.py', which is no file of a run",
    ),
    "a file that can be executed": (
        on_top(of(0, "source.py"), lambda entry: ("100755", entry[1])),
        "'source.py', which is no file of a run",
    ),
    "a file removed": (
        lambda world: world.forger.on_top(lambda tree: tree.pop(world.path(0, "source.py"))),
        "source: it is missing",
    ),
    "a file added": (
        lambda world: world.forger.on_top(
            lambda tree: tree.update({world.path(0, "source.md"): ("100644", b"x")})
        ),
        "source: there are 2 of them",
    ),
}


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_a_run_that_was_written_over(world: World, name: str) -> None:
    forge, wanted = OVERWRITTEN[name]
    forge(world)
    found = world.one(0)
    assert any(wanted in line for line in found), found
    everything = world.all()
    assert any(world.runs[0] in line and wanted in line for line in everything), everything
    steps = ("changes", "removes", "adds", "touches")
    assert any(f": {word} " in line for word in steps for line in everything), everything


# The history made anew


def rewritten(change: Callable[[World, list[Step]], list[Step]]) -> Callable[[World], None]:
    def forge(world: World) -> None:
        forger = world.forger
        forger.rewrite(change(world, forger.steps()))

    return forge


def without(steps: list[Step], folder: str) -> list[Step]:
    """As if that run had never been."""
    kept = [step for step in steps if folder.rpartition("/")[2] not in step.message]
    return [
        Step({p: e for p, e in step.tree.items() if not p.startswith(folder)}, step.message)
        for step in kept
    ]


def reordered(world: World, steps: list[Step]) -> list[Step]:
    """The same runs, the last two the other way round."""
    root, first, second, third = steps
    early = {
        path: entry
        for path, entry in third.tree.items()
        if not path.startswith(run_folder(world.runs[1]))
    }
    return [root, first, Step(early, third.message), Step(third.tree, second.message)]


def byte_changed(world: World, steps: list[Step]) -> list[Step]:
    path = world.path(0, NB)
    for step in steps:
        if path in step.tree:
            step.tree[path] = swapped(b"total 6", b"total 7")(step.tree[path])
    return steps


def unsealed(world: World, steps: list[Step]) -> list[Step]:
    last = steps[-1]
    words = last.message.split("Quire-Seal")[0]
    return [*steps[:-1], Step(last.tree, words)]


HISTORIES: dict[str, tuple[Callable[[World], None], tuple[str, ...]]] = {
    "a byte changed from the beginning": (
        rewritten(byte_changed),
        ("output 0: changed after", "seal: that of", "witness:"),
    ),
    "the order": (rewritten(reordered), ("seal: that of", "witness:")),
    "only who committed": (rewritten(lambda world, steps: steps), ("witness:",)),
    "a run in the middle removed": (
        rewritten(lambda world, steps: without(steps, run_folder(world.runs[1]))),
        ("seal: that of", "witness:", "it was archived from here and is no longer there"),
    ),
    "the first run removed": (
        rewritten(lambda world, steps: without(steps, run_folder(world.runs[0]))),
        ("seal: that of", "witness:", "it was archived from here and is no longer there"),
    ),
    "the last run removed": (
        lambda world: world.forger.point(world.forger.commits()[-2]),
        ("witness:", "it was archived from here and is no longer there"),
    ),
    "all runs removed": (
        lambda world: world.forger.point(world.forger.commits()[0]),
        ("witness:", "it was archived from here and is no longer there"),
    ),
    "the branch removed": (
        lambda world: world.forger.git("update-ref", "-d", BRANCH) and None,
        ("witness:", "it was archived from here and is no longer there"),
    ),
    "a run removed by a commit": (
        lambda world: world.forger.on_top(
            lambda tree: [tree.pop(p) for p in list(tree) if world.runs[1] in p] and None
        ),
        (": removes ", "it was archived and is no longer there"),
    ),
    "the seal stripped": (rewritten(unsealed), ("has no seal", "witness:")),
    "something that is no run": (
        lambda world: world.forger.on_top(lambda tree: tree.update(evil=("100644", b"x"))),
        ("step: adds evil, which is no part of a run",),
    ),
    "an empty commit": (
        lambda world: world.forger.on_top(lambda tree: None),
        ("step: changes nothing",),
    ),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_that_was_changed(world: World, name: str) -> None:
    forge, wanted = HISTORIES[name]
    forge(world)
    found = world.all()
    for words in wanted:
        assert any(words in line for line in found), found
    assert world.quire("verify", "--all").returncode == 1


def test_a_merge_in_the_history(world: World) -> None:
    forger = world.forger
    commits = forger.commits()
    made = forger.commit(forger.tree(commits[-1]), "Merge\n", commits[-1], commits[1])
    forger.point(made)
    found = world.all()
    assert any("is a merge" in line for line in found), found


def test_a_removed_run_is_missed_by_its_own_name(world: World) -> None:
    """Its journal remembers; `last` does not slide to the run before it."""
    world.forger.point(world.forger.commits()[-2])
    for name in (world.runs[2], "last"):
        done = world.quire("verify", name)
        assert done.returncode == 1
        assert f"NOT verified {world.runs[2]}: 1 finding" in done.stdout
        assert "is no longer there" in done.stdout


def test_where_nothing_is_left_but_the_archive_the_witness_remembers(world: World) -> None:
    shutil.rmtree(world.scratch.root / ".quire")
    world.forger.point(world.forger.commits()[-2])
    assert [line.partition(":")[0] for line in world.all()] == ["witness"]


# Runs that somebody made up


def test_a_run_under_another_id(world: World) -> None:
    """Everything of a good run, under the name of one that never was; sealed by its forger."""
    other = world.runs[0][:-4] + "0000"
    world.forger.add_run(other, world.forger.files(world.runs[0]), EVE)
    found = world.all()
    assert any(f"{other} record.json run_id: this is the run" in line for line in found)
    assert any(f"{other} seal: unknown key {EVE.id[:16]}" in line for line in found)


def forged(world: World, key: Key, **changes: Any) -> tuple[str, dict[str, bytes]]:
    """A run that never ran, as good as its forger can make it."""
    run_id = world.runs[0][:-4] + "0001"
    files = {
        name: data.replace(world.runs[0].encode(), run_id.encode())
        for name, data in world.forger.files(world.runs[0]).items()
        if name != ATTESTATION
    }
    files[NB] = files[NB].replace(b"total 6", b"total 7")
    for name, (old, new) in changes.items():
        assert old in files[name.replace("_", ".")]
        files[name.replace("_", ".")] = files[name.replace("_", ".")].replace(old, new)
    return run_id, {**files, ATTESTATION: envelope(statement(files), key)}


def test_a_run_that_an_unknown_key_signed(world: World) -> None:
    run_id, files = forged(world, EVE)
    world.forger.add_run(run_id, files, EVE)
    (line,) = [str(f) for f in verify_run(world.workspace(), run_id).findings]
    assert line.startswith(f"attestation.json: unknown key {EVE.id[:16]}")


def test_a_proposal_cannot_bring_its_own_key(world: World) -> None:
    """On its branch the forger's key is in the list; the reviewer takes the base's."""
    scratch = world.scratch
    assert world.quire("key", "trust").returncode == 0
    scratch.git("add", LIST)
    scratch.git("commit", "--quiet", "-m", "Say whom to trust")
    scratch.git("switch", "--quiet", "-c", "proposal")
    with open(scratch.root / LIST, "a") as file:
        file.write(f"{Trusted(EVE.public, 'eve').line()}\n")
    scratch.git("commit", "--quiet", "-am", "Tidy up")
    run_id, files = forged(world, EVE)
    world.forger.add_run(run_id, files, EVE)
    ws = world.workspace()
    assert verify_run(ws, run_id).ok
    base = trust_of(ws, revision="main")
    (line,) = [str(f) for f in verify_run(ws, run_id, trust=base).findings]
    assert f"unknown key {EVE.id[:16]}: it is not in {LIST} at main" in line
    assert "quire key trust" in line
    assert world.quire("verify", run_id).returncode == 0
    assert world.quire("verify", run_id, "--keys-from", "main").returncode == 1
    assert verify_run(ws, world.runs[0], trust=base).ok


def test_what_a_key_signs_after_its_end(world: World) -> None:
    end = json.loads(world.forger.files(world.runs[1])[REC])["finished"]
    public = world.workspace().keys.own().public
    (world.scratch.root / LIST).write_text(f"ed25519 {public} ada until={end}\n")
    assert world.one(0) == []
    assert world.one(1) == []
    (line,) = world.one(2)
    assert line.startswith("attestation.json: the key ada (")
    assert "before this run did" in line
    assert any(f"{world.runs[2]} seal: the key ada" in line for line in world.all())


def test_a_stolen_key_cannot_go_on_where_others_have_gone_past_its_end(world: World) -> None:
    """A run dated back to when the key still counted stands behind runs that came later."""
    begin = json.loads(world.forger.files(world.runs[0])[REC])["finished"]
    own = world.workspace().keys.own().public
    (world.scratch.root / LIST).write_text(
        f"ed25519 {own} ada\ned25519 {EVE.public} eve until={begin}\n"
    )
    run_id, files = forged(world, EVE)
    world.forger.add_run(run_id, files, EVE)
    assert verify_run(world.workspace(), run_id).ok
    assert any(f"{run_id} seal: the key eve" in line and "ended at" in line for line in world.all())


def test_a_forgery_cannot_write_a_verdict_of_its_own(world: World) -> None:
    """What is shown of a stranger's text stays one line, without a terminal's commands."""
    fake = json.dumps("x\n\x1b[2Jverified all: signed by ada").encode()

    def rename(entry: tuple[str, bytes]) -> tuple[str, bytes]:
        id_ = json.loads(entry[1])["cells"][1]["id"]
        return entry[0], entry[1].replace(json.dumps(id_).encode(), fake)

    on_top(of(0, NB), rename)(world)
    done = world.quire("verify", world.runs[0])
    assert done.returncode == 1
    assert "signed by ada" in done.stdout
    assert not any(line.startswith("verified") for line in done.stdout.splitlines())
    assert "\x1b" not in done.stdout


# What is kept outside git


def the_object(world: World) -> tuple[Path, str]:
    nb = json.loads(world.forger.files(world.runs[1])[NB])
    (pointer,) = (
        output["data"][POINTER]
        for cell in nb["cells"]
        for output in cell.get("outputs", ())
        if POINTER in output.get("data", {})
    )
    digest = pointer["sha256"]
    place = world.scratch.root / ".quire" / "objects" / "sha256" / digest[:2] / digest[2:]
    assert place.is_file()
    return place, digest


def test_a_large_output_that_was_changed(world: World) -> None:
    place, digest = the_object(world)
    place.write_bytes(place.read_bytes().replace(b"xxxx", b"xxxy", 1))
    (line,) = world.one(1)
    assert line.endswith(f"output 0: the object {digest[:16]} kept outside git is not what was run")
    assert any(digest[:16] in line for line in world.all())


def test_a_large_output_that_is_not_at_hand_is_said_to_be_unchecked(world: World) -> None:
    place, _ = the_object(world)
    place.unlink()
    verdict = verify_run(world.workspace(), world.runs[1])
    assert verdict.ok
    assert "were not looked at" in verdict.notes[0]
    done = world.quire("verify", world.runs[1])
    assert done.returncode == 0
    assert "not checked: cell" in done.stdout


def test_a_pointer_to_another_object(world: World) -> None:
    _, digest = the_object(world)
    change = swapped(digest.encode(), b"0" * 64)
    on_top(of(1, NB), change)(world)
    assert any("output 0: changed after it was signed" in line for line in world.one(1))


def test_an_error_that_was_taken_out(world: World) -> None:
    def without_error(entry: tuple[str, bytes]) -> tuple[str, bytes]:
        nb = json.loads(entry[1])
        for cell in nb["cells"]:
            cell["outputs"] = [o for o in cell["outputs"] if o["output_type"] != "error"]
        return entry[0], json.dumps(nb).encode()

    on_top(of(1, NB), without_error)(world)
    assert any(
        "output 0: was there when it was signed and is gone" in line for line in world.one(1)
    )


# Executed notebooks that lie about


def test_an_executed_notebook_with_other_outputs(world: World) -> None:
    path = world.scratch.root / "shown.ipynb"
    path.write_bytes(world.forger.files(world.runs[0])[NB])
    assert world.quire("verify", "shown.ipynb").returncode == 0
    path.write_bytes(path.read_bytes().replace(b"total 6", b"total 7"))
    done = world.quire("verify", "shown.ipynb")
    assert done.returncode == 1
    assert "NOT verified shown.ipynb: 1 finding" in done.stdout
    assert f"its outputs are not those of the run {world.runs[0]}: output 0 differs" in done.stdout


# The archive that is a folder


@pytest.fixture
def shelf(tmp_path: Path) -> World:
    """Two runs where there is no repository."""
    scratch = Scratch(tmp_path / "shelf")
    scratch.root.mkdir()
    scratch.write("quire.toml", "")
    scratch.write("sum.py", SUM)
    keys = tmp_path / "keys"
    ids = []
    for n in ("4", "5"):
        done = scratch.quire(
            "run", "sum.py", "-p", "n", n, "--no-host", "--json", env={"QUIRE_KEYS": str(keys)}
        )
        ids.append(json.loads(done.stdout)["run_id"])
    return World(scratch, keys, (ids[0], ids[1], ""))


def test_a_folder_is_no_safer_and_no_less_checked(shelf: World) -> None:
    archive = shelf.scratch.root / ".quire" / "archive"
    assert shelf.all() == []
    notebook, chain = archive / shelf.path(0, NB), archive / "chain.jsonl"
    was, lines = notebook.read_bytes(), chain.read_bytes().splitlines(keepends=True)

    notebook.write_bytes(was.replace(b"total 6", b"total 7"))
    assert any("output 0: changed after it was signed" in line for line in shelf.one(0))
    assert any("seal: that of" in line for line in shelf.all())

    notebook.unlink()
    (archive.parent / "elsewhere").write_bytes(was)
    notebook.symlink_to(archive.parent / "elsewhere")
    assert shelf.one(0) != []
    assert shelf.all() != []
    notebook.unlink()
    notebook.write_bytes(was)

    (notebook.parent / "more.txt").write_text("x")
    assert any("more.txt" in line for line in shelf.one(0))
    (notebook.parent / "more.txt").unlink()
    assert shelf.all() == []

    chain.write_bytes(b"".join(reversed(lines)))
    assert any("does not follow the line before it" in line for line in shelf.all())
    chain.write_bytes(lines[0])
    assert any("witness" in line for line in shelf.all())
    assert "is no longer there" in shelf.one(1)[0]
    chain.write_bytes(lines[1])
    assert any("does not follow the line before it" in line for line in shelf.all())
    chain.write_bytes(b"".join(lines))
    assert shelf.all() == []


# No false alarm: what real kernels make of odd tasks

ODD = """# %% tags=["parameters"]
n: float = 1.5
when: str = "2026-01-01"
secret: str = ""

# %% odd text
import sys
print("\\ud800 lone \\x1b[31mred\\x1b[0m \\r\\n \\x0b\\u2028 ?", end="")
sys.stderr.write("warned\\n")

# %% odd values
from quire.runtime import glue
from IPython.display import HTML, JSON, display
glue("nan", float("nan"))
glue("huge", 10 ** 4000)
glue("ünï", {"a": [1, None, True, "\\udcff"]})
display(JSON({"deep": [[[[[[1e300, -0.0]]]]]], "1": 1}), HTML("<b>x</b>"))

# %% may fail tags=["raises-exception"]
raise ValueError("expected ?")

# %% [markdown]
# Text, not code

# %% masked
print("the password is", secret)

# %% a child
from quire.runtime import run
run("notebooks/sum.py", n=3)

# %% last
raise RuntimeError("really")
"""


def test_odd_but_honest_runs_verify(repo: Scratch) -> None:
    repo.write("notebooks/odd.py", ODD)
    repo.write(
        "notebooks/sum.py",
        SUM + "\n# %%\nimport os\nfor _ in range(3): print('x' * 3000)\n",
    )
    repo.write("quire.toml", "[archive]\nlarge = 2000\n")
    env = {"API_TOKEN": "hunter2-hunter2", "QUIRE_ACTOR": "agent\u202e", "QUIRE_ON_BEHALF_OF": "ö"}
    odd = ("notebooks/odd.py", "-p", "secret", "hunter2-hunter2", "-p", "n", "inf")
    code, failed = repo.run(*odd, env=env)
    assert code == 1
    assert failed["error"]["value"] == "really"
    repo.write("notebooks/odd.py", ODD.replace('raise RuntimeError("really")', "1"))
    code, _ = repo.run("notebooks/odd.py", "--resume", failed["run_id"], env=env)
    assert code == 0
    repo.write("notebooks/two.ipynb", IPYNB)
    assert repo.run("notebooks/two.ipynb")[0] == 1  # Python takes no lone surrogate for code
    done = repo.quire("verify", "--all", "--json")
    told = json.loads(done.stdout)
    assert told["history"] == []
    assert told["runs"] == []
    assert told["checked"] >= 4  # the child is a run too
    notes = json.loads(repo.quire("verify", failed["run_id"], "--json").stdout)["notes"]
    assert len(notes) <= 1


IPYNB = json.dumps(
    {
        "cells": [
            {
                "cell_type": "code",
                "id": "x y",
                "metadata": {"tags": ["injected-parameters"], "papermill": {"status": "old"}},
                "source": ["a = '\ud800'\n", "a"],
                "outputs": [{"output_type": "stream", "name": "stdout", "text": "stale"}],
                "execution_count": 77,
            },
            {"cell_type": "raw", "metadata": {}, "source": ""},
        ],
        "metadata": {"papermill": {"status": "old"}, "quire": {"run_id": "old"}},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
)
