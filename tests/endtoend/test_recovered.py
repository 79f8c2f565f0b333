"""A record that nobody who was there has signed is never ok, and says so wherever it is read."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from scratch import Scratch

# A cell ends its own run well, in writing, and then whoever would say otherwise.
FORGE = """# %%
import json, os, pathlib

folder = max(pathlib.Path(".quire/runs").iterdir())
lines = [json.loads(line) for line in open(folder / "events.jsonl")]
at = lines[0]["at"]
forged = [
    {"event": "ResultGlued", "cell": lines[0]["cells"][0]["id"], "name": "profit", "kind": "json",
     "value": 1000000},
    {"event": "CellFinished", "cell": lines[0]["cells"][0]["id"], "status": "ok", "at": at,
     "duration": 1.0, "execution_count": 1},
    {"event": "CellStarted", "cell": lines[0]["cells"][1]["id"], "at": at},
    {"event": "CellFinished", "cell": lines[0]["cells"][1]["id"], "status": "ok", "at": at,
     "duration": 1.0, "execution_count": 2},
    {"event": "RunFinished", "outcome": OUTCOME, "at": at, "duration": 2.0, "reason": ""},
]
with open(folder / "events.jsonl", "a") as file:
    for event in forged:
        print(json.dumps(event), file=file)
if MORE:
    (folder / "summary.json").write_text(json.dumps({
        "run_id": folder.name, "task": "forge.py", "title": "", "outcome": OUTCOME, "started": at,
        "duration": 2.0, "parent": None, "error": None}))
    (folder / "archived.json").write_text(json.dumps({"archive": "x", "place": "y"}))
    (folder / "signed.json").write_text("{}")
pid = os.getpid()
above = []
while pid > 1:
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    if b"quire.cli.host_main" in words or b"--no-host" in words:
        above.append(pid)
    pid = int(stat[1])
os.kill(above[0], 9)
os.kill(os.getpid(), 9)

# %%
raise AssertionError("the numbers do not add up")
"""


def predicate(files: Path) -> dict[str, Any]:
    signed = json.loads((files / "attestation.json").read_text())
    told: dict[str, Any] = json.loads(base64.b64decode(signed["payload"]))["predicate"]
    return told


@pytest.mark.parametrize("outcome", ["ok", "paused"])
@pytest.mark.parametrize("more", [False, True])
def test_forged_lines_and_a_kill(scratch: Scratch, outcome: str, more: bool) -> None:
    text = FORGE.replace("OUTCOME", repr(outcome)).replace("MORE", repr(more))
    scratch.write("forge.py", text)
    scratch.quire("run", "forge.py", "--no-host", "-q")
    (run_id,) = os.listdir(scratch.root / ".quire/runs")
    assert scratch.quire("push").returncode in (0, 2)  # archives what is owed
    found = scratch.quire("show", run_id)
    assert found.returncode == 0, found.stderr
    assert "recovered from the journal of a writer that died" in found.stdout
    (told,) = json.loads(scratch.quire("runs", "--json").stdout)
    assert told["outcome"] == "died"
    files = scratch.root / ".quire/archive/runs" / "/".join(run_id[:10].split("-")) / run_id
    record = json.loads((files / "record.json").read_text())
    assert (record["outcome"], record["recovered"]) == ("died", True)
    assert predicate(files)["recovered"] is True
    verdict = scratch.quire("verify", run_id)
    assert "what it says was not witnessed" in verdict.stdout
    assert verdict.returncode == 0, verdict.stdout
    nb = json.loads((files / "notebook.ipynb").read_text())
    assert nb["metadata"]["quire"]["outcome"] == "died"


def test_a_run_that_never_was(repo: Scratch) -> None:
    """A folder, a journal and a line that it is owed: whoever archives next does not sign that."""
    _, told = repo.run("notebooks/sum.py", "--no-host", "--no-archive")
    folder = repo.root / ".quire/runs" / told["run_id"]
    owed = repo.root / ".quire/unarchived"
    owed.mkdir(exist_ok=True)
    (owed / told["run_id"]).touch()
    assert (folder / "summary.json").exists()
    repo.run("notebooks/sum.py", "--no-host")
    listed = {one["run_id"]: one for one in json.loads(repo.quire("log", "--json").stdout)}
    assert listed[told["run_id"]]["outcome"] == "died"
    assert sorted(one["outcome"] for one in listed.values()) == ["died", "ok"]


def not_archived(repo: Scratch, *options: str) -> tuple[str, Path]:
    repo.git("branch", "reports")  # somebody else's: it is no archive
    code, told = repo.run("notebooks/sum.py", *options)
    assert (code, told["outcome"], told["archived"]) == (0, "ok", None)
    repo.git("branch", "--delete", "--force", "reports")
    return told["run_id"], repo.root / ".quire/runs" / told["run_id"]


@pytest.mark.parametrize("options", [(), ("--no-host",)])
def test_what_its_writer_has_signed_is_archived_later_as_it_was(
    repo: Scratch, options: tuple[str, ...]
) -> None:
    run_id, _ = not_archived(repo, *options)
    repo.quire("push")
    verdict = repo.quire("verify", run_id)
    assert verdict.returncode == 0, verdict.stdout
    assert "not witnessed" not in verdict.stdout
    (told,) = json.loads(repo.quire("log", "--json").stdout)
    assert told["outcome"] == "ok"


def test_what_was_changed_since_is_recovered(repo: Scratch) -> None:
    run_id, folder = not_archived(repo, "--no-host")
    journal = folder / "events.jsonl"
    journal.write_text(journal.read_text().replace('"value":6', '"value":7'))
    repo.quire("push")
    (told,) = json.loads(repo.quire("log", "--json").stdout)
    assert (told["run_id"], told["outcome"]) == (run_id, "died")
    assert "not witnessed" in repo.quire("verify", run_id).stdout


def test_what_somebody_else_has_signed_is_recovered(repo: Scratch, tmp_path: Path) -> None:
    """A cell can make a key; it is none of this machine's."""
    keys = {"QUIRE_KEYS": str(tmp_path / "other")}
    repo.git("branch", "reports")
    done = repo.quire("run", "notebooks/sum.py", "--no-host", env=keys)
    assert done.returncode == 0
    repo.git("branch", "--delete", "--force", "reports")
    repo.quire("push")
    (told,) = json.loads(repo.quire("log", "--json").stdout)
    assert told["outcome"] == "died"


def test_a_writer_that_was_killed_once_the_archive_had_it(repo: Scratch) -> None:
    """Before it could say so: what the archive has stands."""
    _, told = repo.run("notebooks/sum.py", "--no-host")
    run = told["run_id"]
    (repo.root / ".quire/runs" / run / "archived.json").unlink()
    (repo.root / ".quire/unarchived" / run).touch()
    repo.quire("push")
    (listed,) = json.loads(repo.quire("log", "--json").stdout)
    assert listed["outcome"] == "ok"
    assert not os.listdir(repo.root / ".quire/unarchived")
    assert (repo.root / ".quire/runs" / run / "archived.json").exists()
    assert json.loads(repo.quire("runs", "--json").stdout)[0]["outcome"] == "ok"
