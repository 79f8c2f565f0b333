"""`quire new`: drafts of our own and of a model, which is a stand-in on loopback here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from model_server import Said, StandIn, standing_in
from quire.authoring.create import new, slug
from quire.errors import UsageError
from quire.workspace import Workspace
from scratch import Scratch
from written import CELLS, written

GOOD = written("A better title", 70.0)
BAD = GOOD.replace("# %% check", "# %% other")


def configure(scratch: Scratch, server: StandIn) -> None:
    scratch.write("quire.toml", f'[model]\nurl = "{server.url}"\nmodel = "small"\n')


def created(scratch: Scratch, *args: str, stderr: str = "") -> dict[str, Any]:
    done = scratch.quire("new", *args, "--json")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ("Die größten Kunden", "die_grossten_kunden"),
        ("Ángel's café", "angel_s_cafe"),
        ("3 reports", "task_3_reports"),
        ("json", "task_json"),
        ("检查过去7天内超过100元的订单", "task_7_100_"),
        ("…", "task_"),
    ],
)
def test_the_name_of_a_file(description: str, name: str) -> None:
    found = slug(description)
    assert found.startswith(name)
    assert found.isidentifier()
    assert found == name or len(found) == len(name) + 8


def test_the_answer_says_what_waits(repo: Scratch) -> None:
    told = created(repo, "Alert when disks are above 90%")
    assert (told["drafted_by"], told["note"]) == ("built-in", "")
    assert told["parameters"] == [
        {
            "name": "threshold",
            "type": "float",
            "default": "90.0",
            "help": 'limit, from "above 90%"',
        }
    ]
    assert [cell["title"] for cell in told["waiting"]] == list(CELLS)
    for cell in told["waiting"]:
        # The id can be aimed at, as it is.
        done = repo.quire("edit", told["path"], cell["cell"], "--source", CELLS[cell["title"]])
        assert done.returncode == 0, done.stderr
    code, run = repo.run(told["path"])
    assert (code, run["results"]["status"]) == (0, "attention")
    code, run = repo.run(told["path"], "-p", "threshold", "96")
    assert run["results"]["status"] == "ok"


def test_declared_parameters(repo: Scratch) -> None:
    told = created(
        repo, "Alert above 90%", "-p", "limit: float = 80  # in percent", "--parameter", "who"
    )
    assert told["parameters"] == [
        {"name": "limit", "type": "float", "default": "80.0", "help": "in percent"},
        {"name": "who", "type": "str", "default": "", "help": ""},
    ]
    done = repo.quire("new", "Another", "-p", "limit: float = much")
    assert done.returncode == 2
    assert "limit expects float, not the default 'much'" in done.stderr
    assert not (repo.root / "notebooks/another.py").exists()


def test_a_model_keeps_the_declared_parameters(repo: Scratch) -> None:
    kept = GOOD.replace("threshold: float", "who: str\nthreshold: float")
    with standing_in(Said(GOOD), Said(kept)) as server:
        configure(repo, server)
        told = created(repo, "Alert above 90%", "-p", "who", "-p", "threshold: float = 70")
    assert "keep the parameter `who: str` as it is" in server.asked[1]["messages"][1]["content"]
    assert told["drafted_by"] == "model"
    assert [p["name"] for p in told["parameters"]] == ["who", "threshold"]


def test_a_person_is_told_too(repo: Scratch) -> None:
    done = repo.quire("new", "Alert when disks are above 90%")
    assert done.stdout == "notebooks/alert_when_disks_are_above_90.py\n"
    assert "takes threshold: float = 90.0" in done.stderr
    assert "waits: cell 2 (" in done.stderr


def test_the_model_drafts(repo: Scratch) -> None:
    with standing_in(Said(f"```python\n{GOOD}```")) as server:
        configure(repo, server)
        told = created(repo, "Alert when disks are above 90%")
    assert server.wrong == []
    assert told["drafted_by"] == "model"
    assert told["title"] == "A better title"
    # The name comes from the description, never from the model.
    assert told["path"] == str(repo.root / "notebooks/alert_when_disks_are_above_90.py")
    assert Path(told["path"]).read_text() == GOOD
    assert repo.run(told["path"])[0] == 0
    system, user = server.asked[0]["messages"]
    assert "percent format" in system["content"]
    assert "Alert when disks are above 90%" in user["content"]


def test_a_bad_draft_is_sent_back_once(repo: Scratch) -> None:
    with standing_in(Said(BAD), Said(GOOD)) as server:
        configure(repo, server)
        told = created(repo, "Alert when disks are above 90%")
    assert (told["drafted_by"], told["note"]) == ("model", "")
    again = server.asked[1]["messages"][1]["content"]
    assert "there is no code cell with the title check" in again
    assert BAD in again


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([Said(BAD), Said(BAD)], "does not pass"),
        ([Said("No."), Said("```\nNo.\n```")], "does not pass"),
        ([Said(BAD), Said(status=500, raw=b"")], "refused: 500"),
        ([Said(status=429, raw=b"")], "refused: 429"),
        ([Said("x" * 100_001)], "too long"),
    ],
)
def test_without_a_good_draft_there_is_our_own(
    repo: Scratch, answers: list[Said], words: str
) -> None:
    with standing_in(*answers) as server:
        configure(repo, server)
        told = created(repo, "Alert when disks are above 90%")
    assert server.answers == []
    assert told["drafted_by"] == "built-in"
    assert words in told["note"]
    assert [p["name"] for p in told["parameters"]] == ["threshold"]
    assert repo.run(told["path"])[1]["error"]["value"].startswith("cells wait: gather")


def test_why_the_model_did_not_is_told_to_people(repo: Scratch) -> None:
    repo.write("quire.toml", '[model]\nurl = "http://127.0.0.1:1/v1"\nmodel = "x"\n')
    done = repo.quire("new", "Alert above 5")
    assert done.returncode == 0
    assert "warning: the model at 127.0.0.1 could not be asked" in done.stderr


def test_no_model(repo: Scratch) -> None:
    with standing_in() as server:
        configure(repo, server)
        told = created(repo, "Alert when disks are above 90%", "--no-model")
    assert server.asked == []
    assert (told["drafted_by"], told["note"]) == ("built-in", "")


def test_what_cannot_be_is_refused_before_anybody_is_asked(repo: Scratch) -> None:
    repo.write("notebooks/again.py", "mine\n")
    with standing_in() as server:
        configure(repo, server)
        for args in (("Again",), ("x", "--path", "../x.py"), ("",)):
            assert repo.quire("new", *args).returncode == 2
    assert server.asked == []


def test_a_draft_is_not_run_when_it_is_made(repo: Scratch) -> None:
    there = repo.root / "there"
    line = f"# %% gather\nopen({str(there)!r}, 'w').close()"
    with standing_in(Said(GOOD.replace("# %% gather", line))) as server:
        configure(repo, server)
        assert created(repo, "Alert above 5")["drafted_by"] == "model"
    assert not there.exists()


def test_a_description_that_is_a_book(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="more than 20,000 characters"):
        new(Workspace(tmp_path, cwd=tmp_path), "a " * 15_000)
    assert list(tmp_path.iterdir()) == []
