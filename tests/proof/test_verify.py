"""`quire verify` and `quire key` as they are used; which list counts; what covers outputs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import pytest

from made_runs import SHOWN, TASK, files_of, ran
from quire.archive.branch import GitArchive
from quire.archive.folder_archive import FolderArchive
from quire.archive.last_seen_tip import Witness
from quire.archive.layout import run_folder
from quire.errors import QuireError, RunNotFound, UsageError
from quire.git.ref_log import GitLog
from quire.proof.attestation import ATTESTATION, envelope, statement
from quire.proof.coverage import Coverage, uncovered
from quire.proof.key_store import Key
from quire.proof.keys import trust_of, trusted
from quire.proof.trust import LIST
from quire.proof.verify import verify_all, verify_notebook, verify_run
from quire.record.run_folders import RunFolder, RunStore
from quire.workspace import Workspace
from scratch import Scratch

BOB = Key(b"b" * 32)
FIRST, SECOND = "2026-11-16-155501-report-8121", "2026-11-16-155502-report-8122"


@pytest.fixture
def ws(repo: Scratch, tmp_path: Path) -> Workspace:
    env = {**os.environ, "QUIRE_KEYS": str(tmp_path / "own-keys")}
    return Workspace(repo.root, cwd=repo.root, env=env)


def archived(ws: Workspace, run_id: str = FIRST, key: Key | None = None, **how: Any) -> bytes:
    """Put a run into the archive; its executed notebook."""
    files = files_of(ran(run_id=run_id, **how), large=2000, keep=ws.objects.put)
    files[ATTESTATION] = envelope(statement(files), key or ws.keys.own())
    ws.archive.add(run_id, files)
    return files["notebook.ipynb"]


def edited(data: bytes, change: Callable[[Any], None]) -> bytes:
    nb = json.loads(data)
    change(nb)
    return json.dumps(nb).encode()


def code(nb: Mapping[str, Any]) -> list[Any]:
    return [cell for cell in nb["cells"] if cell["cell_type"] == "code"]


def said(findings: Any) -> list[str]:
    return [str(finding) for finding in findings]


# One run, all runs


def test_a_run_by_any_of_its_names(ws: Workspace) -> None:
    archived(ws)
    archived(ws, SECOND)
    assert verify_run(ws, FIRST).ok
    assert verify_run(ws, FIRST[:17]).run_id == FIRST
    assert verify_run(ws, "last").run_id == SECOND
    with pytest.raises(RunNotFound, match="fits 2 runs"):
        verify_run(ws, "2026")
    with pytest.raises(RunNotFound, match="no run 'nothing'"):
        verify_run(ws, "nothing")
    summary = verify_all(ws)
    assert summary.ok
    assert summary.line == "verified: 2 runs of git branch reports, and the history"


def test_where_no_run_is_nothing_verifies(repo: Scratch, scratch: Scratch) -> None:
    for place in (repo, Scratch(scratch.root / "plain")):
        place.root.mkdir(exist_ok=True)
        done = place.quire("verify", "--all", "--json")
        error = json.loads(done.stdout)["error"]
        assert done.returncode == 2
        assert "nothing to verify" in error["message"]
        assert "quire run" in error["hint"]
        done = place.quire("verify", "--all")
        assert (done.returncode, done.stdout) == (2, "")


def test_a_clone_without_the_archive_says_how_to_have_it(ws: Workspace, tmp_path: Path) -> None:
    archived(ws)
    there = Scratch(tmp_path / "clone")
    Scratch(tmp_path).git("clone", "--quiet", "--single-branch", "--branch=main",
                          ws.root.as_uri(), str(there.root))  # fmt: skip
    done = there.quire("verify", "--all")
    assert done.returncode == 2
    fetch = done.stderr.rpartition("git ")[2].split()
    assert fetch == ["fetch", "origin", "reports:reports"]
    there.git(*fetch)
    assert "1 run of git branch reports" in there.quire("verify", "--all").stdout


@pytest.mark.parametrize("books", [True, False], ids=["witness and runs", "witness alone"])
def test_an_archive_that_is_gone_does_not_verify(ws: Workspace, *, books: bool) -> None:
    landed(ws, 1) if books else archived(ws)
    Scratch(ws.root).git("branch", "-D", "reports")
    summary = verify_all(ws)
    assert not summary.ok
    assert any(
        "the branch reports is gone with all its runs" in one for one in said(summary.history)
    )
    if books:
        assert not verify_run(ws, "last").ok
    else:
        with pytest.raises(RunNotFound, match="the archive is empty"):
            verify_run(ws)


def test_a_chain_that_is_gone_does_not_verify(folder: Workspace) -> None:
    landed(folder, 1)
    (folder.root / ".quire/archive/chain.jsonl").unlink()
    assert not verify_all(folder).ok


# While others write


@pytest.fixture
def folder(scratch: Scratch, tmp_path: Path) -> Workspace:
    """An archive that is no branch."""
    env = {**os.environ, "QUIRE_KEYS": str(tmp_path / "own-keys")}
    return Workspace(scratch.root, cwd=scratch.root, env=env)


def landed(ws: Workspace, number: int) -> str:
    """A run of this workspace ends: it is archived, and then written down as archived."""
    run_id = f"2026-11-16-1556{number:02d}-report-{number:04x}"
    archived(ws, run_id)
    folder = ws.runs.root / run_id
    folder.mkdir(parents=True)
    told = {"archive": ws.archive.where, "place": ws.archive.path(run_id)}
    (folder / "archived.json").write_text(json.dumps(told))
    return run_id


@pytest.mark.parametrize("kind", ["ws", "folder"])
def test_a_run_that_ends_between_two_looks_is_no_forgery(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each look at what there is, one more run lands."""
    ws: Workspace = request.getfixturevalue(kind)
    first = landed(ws, 0)
    writing, count, most = False, 0, 20

    def then(look: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **how: Any) -> Any:
            nonlocal writing, count
            seen = look(*args, **how)
            if isinstance(seen, Iterator):
                seen = iter(list(seen))
            if not writing and count < most:
                writing = True
                count += 1
                landed(Workspace(ws.root, cwd=ws.root, env=ws.env), count)
                writing = False
            return seen

        return wrapped

    looks: list[tuple[type, str]] = [
        *((GitLog, name) for name in ("look", "tip")),
        *((GitArchive, name) for name in ("history", "ids", "files", "witness_problem")),
        *((FolderArchive, name) for name in ("_lines", "_known", "files", "witness_problem")),
        (Witness, "read"),
        (RunStore, "ids"),
        (RunFolder, "archived"),
    ]
    for owner, name in looks:
        monkeypatch.setattr(owner, name, then(getattr(owner, name)))
    summary = verify_all(ws)
    assert (said(summary.history), summary.ok) == ([], True)
    assert first in [verdict.run_id for verdict in summary.runs]
    assert count > 3
    most = count + 20
    for asked in (first, "last"):
        assert said(verify_run(ws, asked).findings) == []
    monkeypatch.undo()
    assert verify_all(ws).ok


@pytest.mark.parametrize("kind", ["ws", "folder"])
def test_everything_verifies_while_runs_are_archived(
    kind: str, request: pytest.FixtureRequest
) -> None:
    ws: Workspace = request.getfixturevalue(kind)
    landed(ws, 0)

    def write() -> None:
        for number in range(1, 16):
            landed(Workspace(ws.root, cwd=ws.root, env=ws.env), number)

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        done = False
        while not done:
            done = writer.done()
            summary = verify_all(ws)
            assert said(summary.history) == []
            assert summary.ok
        writer.result()
    assert len(summary.runs) == 16


def test_what_was_set_back_is_told_also_while_others_write(ws: Workspace) -> None:
    """What is added on top of a shortened branch is honest, and excuses nothing."""
    git = Scratch(ws.root).git
    for number in range(2):
        landed(ws, number)
    git("update-ref", "refs/heads/reports", "refs/heads/reports^")
    here = ws.archive.now()
    landed(ws, 2)
    for archive in (here, ws.archive.now()):
        assert "runs were removed" in str(archive.witness_problem())
    assert not verify_all(ws).ok


# What the history does not tell


def test_a_run_that_no_step_has_added(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies where runs lie; the step that brought it is one of another run."""
    archived(ws)
    git = Scratch(ws.root).git
    name = f"{run_folder(SECOND)}/deeper/record.json"
    blob = git("rev-parse", f"reports:{run_folder(FIRST)}/record.json")
    with monkeypatch.context() as forging:
        forging.setenv("GIT_INDEX_FILE", str(ws.root / ".git/forged"))
        git("read-tree", "reports")
        git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
        tree = git("write-tree")
    git("update-ref", "refs/heads/reports", git("commit-tree", tree, "-p", "reports", "-m", "Tidy"))
    summary = verify_all(ws)
    assert f"{SECOND}: no step of the history has added it" in said(summary.history)


def test_where_the_history_is_cut_the_runs_are_looked_at_themselves(
    ws: Workspace, tmp_path: Path
) -> None:
    """Which step has added them is not known; whether they are what was signed, is."""
    archived(ws, FIRST, BOB)
    archived(ws, SECOND)
    place = Scratch(tmp_path / "shallow")
    Scratch(tmp_path).git("clone", "--quiet", "--depth=1", "--branch=reports",
                          ws.root.as_uri(), str(place.root))  # fmt: skip
    clone = Workspace(place.root, cwd=place.root, env=ws.env)
    summary = verify_all(clone, trust=trust_of(ws))
    assert {one.run_id: one.ok for one in summary.runs} == {FIRST: False, SECOND: True}
    (cut,) = said(summary.history)
    assert "is where this shallow clone ends" in cut


def test_the_verdict_says_who_signed_and_who_says_so(ws: Workspace) -> None:
    archived(ws)
    verdict = verify_run(ws, FIRST)
    assert verdict.line == f"verified {FIRST}: signed by this machine ({ws.keys.own().id[:16]})"
    assert verdict.trust == "this machine's own keys: there is no .quire-keys"
    trusted(ws, None)
    assert verify_run(ws, FIRST).signer.startswith("ada@example.org (")
    assert verify_run(ws, FIRST).trust == LIST


def test_a_run_that_was_not_archived_cannot_be_verified(repo: Scratch) -> None:
    repo.write("quire.toml", "[archive]\nenabled = false\n")
    told = json.loads(repo.quire("run", "notebooks/sum.py", "--no-host", "--json").stdout)
    done = repo.quire("verify", told["run_id"])
    assert done.returncode == 2
    assert "is not archived" in done.stderr


def test_runs_of_an_earlier_archive_are_not_missed_in_this_one(scratch: Scratch) -> None:
    """They went to a folder before there was a repository."""
    scratch.write("a.py", "# %%\n1 + 1\n")
    assert scratch.quire("run", "a.py", "--no-host").returncode == 0
    assert scratch.quire("verify").returncode == 0
    scratch.git("init", "--quiet")
    assert scratch.quire("verify", "--all").returncode == 2
    assert scratch.quire("run", "a.py", "--no-host").returncode == 0
    assert scratch.quire("verify", "--all").returncode == 0


# Which list counts


def listed(ws: Workspace, *lines: str) -> None:
    ws.keys.list_path.write_text("".join(f"{line}\n" for line in lines))


def test_the_list_in_the_working_tree_another_file_or_another_revision(
    ws: Workspace, repo: Scratch
) -> None:
    archived(ws)
    archived(ws, SECOND, BOB)
    own, bob = f"ed25519 {ws.keys.own().public} ada", f"ed25519 {BOB.public} bob"

    def verified(**which: Any) -> list[bool]:
        return [verify_run(ws, run, trust=trust_of(ws, **which)).ok for run in (FIRST, SECOND)]

    assert verified() == [True, False]
    listed(ws, own, bob)
    repo.git("add", LIST)
    repo.git("commit", "--quiet", "-m", "Both")
    repo.git("tag", "both")
    assert verified() == [True, True]
    listed(ws, bob)
    assert verified() == [False, True]
    assert verified(revision="both") == [True, True]
    assert verified(revision="HEAD~1") == [True, False]  # without a list, one's own keys count
    repo.write("other-list", f"{own}\n")
    assert verified(file="other-list") == [True, False]


@pytest.mark.parametrize(
    ("which", "wanted"),
    [
        ({"file": "x", "revision": "main"}, "two lists"),
        ({"file": "a\0b"}, "cannot read the list"),
        ({"file": "nowhere"}, "there is no file nowhere"),
        ({"file": "notebooks"}, "is not a file"),
        ({"revision": "nowhere"}, "there is no revision 'nowhere'"),
        ({"revision": "--all"}, "there is no revision '--all'"),
        ({"file": "notebooks/sum.py"}, r"sum\.py:\d+: this is not a key"),
    ],
)
def test_a_list_that_is_none(ws: Workspace, which: dict[str, str], wanted: str) -> None:
    with pytest.raises(QuireError, match=wanted) as error:
        trust_of(ws, **which)
    assert error.value.hint


def test_trusting_somebody_does_not_end_the_trust_in_oneself(ws: Workspace) -> None:
    archived(ws)
    added = trusted(ws, BOB.public, name="bob", until="2027-01-31")
    assert [(key.name, key.until) for key in added] == [
        ("ada@example.org", ""),
        ("bob", "2027-02-01T00:00:00Z"),
    ]
    assert verify_run(ws, FIRST).ok
    with pytest.raises(UsageError, match="already has the key"):
        trusted(ws, BOB.public, name="bob")


@pytest.mark.parametrize(
    ("key", "how", "wanted"),
    [
        ("nowhere", {"name": "x"}, "neither a public key nor a file"),
        (BOB.public, {}, "whose key"),
        (BOB.public, {"name": "a b"}, "cannot be the name"),
        (BOB.public, {"name": "bob", "until": "soon"}, "'soon' is not a time"),
        (BOB.public, {"name": "bob", "until": "2027-02-30"}, "is not a time"),
        ("notebooks/sum.py", {"name": "x"}, "this is not a key"),
        ("quire.toml", {"name": "x"}, "holds no key"),
    ],
)
def test_what_cannot_be_trusted(
    ws: Workspace, repo: Scratch, key: str, how: dict[str, str], wanted: str
) -> None:
    repo.write("quire.toml", "")
    with pytest.raises(UsageError, match=wanted):
        trusted(ws, key, **how)
    assert not ws.keys.list_path.exists()


def test_a_key_from_a_file(ws: Workspace, repo: Scratch) -> None:
    repo.write("bob.pub", f"{BOB.public}\n")
    assert trusted(ws, "bob.pub", name="bob")[-1].public == BOB.public
    repo.write("carol.list", f"# hers\ned25519 {Key(b'c' * 32).public} carol\n")
    assert trusted(ws, "carol.list")[-1].name == "carol"


# The commands


def test_the_commands(repo: Scratch, tmp_path: Path) -> None:
    env = {"QUIRE_KEYS": str(tmp_path / "own-keys")}

    def quire(*args: str, code: int = 0) -> str:
        done = repo.quire(*args, env=env)
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout

    run = json.loads(quire("run", "notebooks/sum.py", "--no-host", "--json"))["run_id"]
    told = json.loads(quire("verify", run, "--json"))
    assert told["verified"] is True
    assert (told["run_id"], told["findings"], told["notes"]) == (run, [], [])
    shown = json.loads(quire("key", "show", "--json"))
    assert shown["id"] == told["key"]
    assert shown["trusted"] is True
    quire("key", "trust", "--name", "ada")
    assert json.loads(quire("verify", "--json"))["signer"] == f"ada ({told['key'][:16]})"
    new = json.loads(quire("key", "rotate", "--json"))
    assert new["ended"] == shown["id"]
    assert (new["name"], new["trusted"]) == ("ada", True)
    old, fresh = json.loads(quire("key", "list", "--json"))["keys"]
    assert (old["id"], fresh["id"], fresh["until"]) == (shown["id"], new["id"], "")
    assert old["until"]
    assert json.loads(quire("verify", "--json"))["verified"] is True
    quire("run", "notebooks/sum.py", "--no-host")
    summary = json.loads(quire("verify", "--all", "--json"))
    assert (summary["verified"], summary["checked"], summary["runs"]) == (True, 2, [])
    repo.write(LIST, f"ed25519 {BOB.public} bob\n")
    assert "NOT verified" in quire("verify", code=1)
    assert f"{run}: unknown key" not in quire("verify", "--all", code=1)
    assert "no: quire key trust adds it to the list (.quire-keys)" in quire("key", "show")
    quire("verify", run, "--all", code=2)
    quire("verify", "nowhere.ipynb", code=2)
    repo.write(LIST, "nonsense\n")
    done = repo.quire("verify", "--json", env=env)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["message"].startswith(f"{LIST}:1: ")


# Executed notebooks


def test_a_notebook_as_it_was_archived_is_covered(ws: Workspace, repo: Scratch) -> None:
    data = archived(ws)
    assert uncovered(ws, data) == []
    (repo.root / "a.ipynb").write_bytes(data)
    assert verify_notebook(ws, "a.ipynb").ok


def test_an_editor_may_write_it_in_its_own_way(ws: Workspace) -> None:
    """As Jupyter saves it: other spaces, other keys, texts cut into lines, new cell metadata."""
    nb = nbformat.reads(archived(ws).decode(), as_version=4)
    for cell in nb.cells:
        cell.metadata["collapsed"] = False
    nb.metadata.pop("quire")
    saved = nbformat.writes(nb).encode()
    assert json.loads(saved)["cells"][3]["outputs"][1]["data"]["text/plain"] == ["8"]
    assert uncovered(ws, saved) == []


def test_without_outputs_there_is_nothing_to_cover(ws: Workspace) -> None:
    def strip(nb: Any) -> None:
        for cell in code(nb):
            cell.update(outputs=[], execution_count=None)

    assert uncovered(ws, edited(archived(ws), strip)) == []


def test_counts_may_be_left_out_but_not_made_up(ws: Workspace) -> None:
    data = archived(ws)
    assert uncovered(ws, edited(data, lambda nb: code(nb)[0].update(execution_count=None))) == []
    (line,) = said(uncovered(ws, edited(data, lambda nb: code(nb)[0].update(execution_count=9))))
    assert line.endswith("the execution count is 9, not 1")


LIES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "another output": (
        lambda nb: code(nb)[2]["outputs"][0].update(text="total 5\n"),
        f"its outputs are not those of the run {FIRST}: output 0 differs",
    ),
    "an output less": (lambda nb: code(nb)[2]["outputs"].pop(), "1 and not 2 outputs"),
    "an output more": (
        lambda nb: code(nb)[3]["outputs"].append(code(nb)[2]["outputs"][0]),
        "1 and not 0 outputs",
    ),
    "other code": (
        lambda nb: code(nb)[3].update(source="m = n + 2"),
        f"the run {FIRST} had no such code",
    ),
    "a cell left out": (lambda nb: nb["cells"].remove(code(nb)[3]), "not all of them"),
    "another order": (lambda nb: nb["cells"].reverse(), "in another order"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_notebook_that_lies(ws: Workspace, name: str) -> None:
    lie, wanted = LIES[name]
    (line,) = said(uncovered(ws, edited(archived(ws), lie)))
    assert wanted in line


def test_cells_of_two_runs_are_no_run(ws: Workspace) -> None:
    """Each cell has an attested twin, and still no kernel has ever shown this."""
    first = archived(ws)
    second = archived(
        ws, SECOND, shown=(*SHOWN[:3], [{"output_type": "stream", "name": "stdout", "text": "5"}])
    )
    mixed = edited(
        first,
        lambda nb: (
            code(nb)[2]["outputs"].clear(),
            code(nb)[3].update(code(json.loads(second))[3]),
        ),
    )
    assert uncovered(ws, mixed)


def test_outputs_that_nobody_ran(ws: Workspace) -> None:
    archived(ws)
    cell = {"cell_type": "code", "id": "abc", "metadata": {}, "source": "1", "execution_count": 1}
    output = {"output_type": "stream", "name": "stdout", "text": "made up"}
    nb = {"cells": [{**cell, "outputs": [output]}], "metadata": {}, "nbformat": 4}
    assert said(uncovered(ws, json.dumps(nb).encode())) == [
        "cell abc: no archived run had this code with these outputs"
    ]


def test_a_run_that_does_not_verify_covers_nothing(ws: Workspace) -> None:
    data = archived(ws, key=BOB)
    (line,) = said(uncovered(ws, data))
    assert f"the run {FIRST} has these outputs and does not verify" in line
    assert "unknown key" in line
    trusted(ws, BOB.public, name="bob")
    assert uncovered(ws, data) == []


def test_a_large_output_is_covered_in_full_and_as_a_pointer(ws: Workspace) -> None:
    big = [{"output_type": "stream", "name": "stdout", "text": "row ü\n" * 1000}]
    data = archived(ws, shown=(*SHOWN[:2], big))
    assert uncovered(ws, data) == []

    def full(nb: Any) -> None:
        code(nb)[2]["outputs"] = big

    assert uncovered(ws, edited(data, full)) == []
    big[0]["text"] = "row ü\n" * 1001
    assert len(uncovered(ws, edited(data, full))) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"cells": 1}',
        b'{"cells": [1]}',
        b'{"cells": [{"cell_type": "code", "source": 1}]}',
        b'{"cells": [{"cell_type": "code", "source": "", "outputs": [1]}]}',
        b'{"cells": [], "cells": []}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_notebook_is_covered_by_nothing(ws: Workspace, data: bytes) -> None:
    (finding,) = uncovered(ws, data)
    assert finding.where == "notebook"


def test_many_notebooks_read_the_archive_once(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = edited(archived(ws), lambda nb: nb["metadata"].pop("quire"))
    asked: list[int] = []
    each = ws.archive.each

    def counted(ids: Any) -> Any:
        ids = list(ids)
        asked.append(len(ids))
        return each(ids)

    archived(ws, SECOND, source=TASK, parameters={"n": 7})
    monkeypatch.setattr(ws.archive, "each", counted)
    coverage = Coverage(ws)
    assert [coverage.uncovered(data) for _ in range(3)] == [[], [], []]
    assert asked.count(2) == 1
