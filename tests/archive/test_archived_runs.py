"""Runs land in the archive by themselves, and are read back from there."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from scratch import Scratch, stdout_of

BIG = """# %%
print("x" * 3000)
"""
CALLER = """# %%
from quire.runtime import run
told = run("notebooks/sum.py", n=3)
"""


def archived(repo: Scratch, branch: str = "reports") -> list[str]:
    listing = repo.git("ls-tree", "-r", "--name-only", branch, check=False).split("\n")
    return sorted({path.split("/")[4] for path in listing if path.startswith("runs/")})


def clone(repo: Scratch, remote: Path) -> Scratch:
    other = Scratch(repo.root.parent / "clone")
    repo.git("clone", "--quiet", str(remote), str(other.root))
    other.git("config", "user.name", "Bob")
    other.git("config", "user.email", "bob@example.org")
    return other


def with_remote(repo: Scratch) -> Path:
    remote = repo.root.parent / "remote.git"
    repo.git("init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    repo.git("remote", "add", "origin", str(remote))
    repo.git("push", "--quiet", "--set-upstream", "origin", "main")
    return remote


def test_a_run_is_on_the_branch_when_the_command_ends(repo: Scratch) -> None:
    before = repo.git("status", "--porcelain", "--branch"), repo.git("rev-parse", "HEAD")
    code, told = repo.run("notebooks/sum.py")
    assert code == 0
    assert told["archived"]["archive"] == "git branch reports"
    assert archived(repo) == [told["run_id"]]
    listed = repo.git("ls-tree", "-r", "--name-only", "reports", "--", "runs").split("\n")
    folder = "/".join(("runs", *told["run_id"][:10].split("-"), told["run_id"]))
    names = ("attestation.json", "notebook.ipynb", "record.json", "source.py")
    assert listed == [f"{folder}/{name}" for name in names]
    source = repo.git("show", f"reports:{folder}/source.py")
    assert source == (repo.root / "notebooks/sum.py").read_text().rstrip("\n")
    assert (repo.git("status", "--porcelain", "--branch"), repo.git("rev-parse", "HEAD")) == before
    assert repo.quire("verify", "last").returncode == 0


def test_failed_runs_and_runs_of_runs_are_archived_too(repo: Scratch) -> None:
    repo.write("notebooks/bad.py", "# %%\n1 / 0\n")
    repo.write("notebooks/caller.py", CALLER)
    code, bad = repo.run("notebooks/bad.py")
    assert code == 1
    code, caller = repo.run("notebooks/caller.py", "--no-host")
    assert code == 0
    listed = json.loads(repo.quire("log", "--json").stdout)
    assert {item["run_id"] for item in listed} == set(archived(repo))
    outcomes = {item["task"]: item["outcome"] for item in listed}
    assert outcomes == {
        "notebooks/bad.py": "failed",
        "notebooks/caller.py": "ok",
        "notebooks/sum.py": "ok",
    }
    assert "ZeroDivisionError" in next(i["error"] for i in listed if i["run_id"] == bad["run_id"])
    assert next(i["results"] for i in listed if i["task"] == "notebooks/sum.py") == {"total": 3}
    assert caller["archived"]


def test_without_a_repository_there_is_a_folder(scratch: Scratch) -> None:
    scratch.write("t.py", "# %%\nprint(1)\n")
    _, told = scratch.run("t.py")
    folder = scratch.root / ".quire/archive/runs" / "/".join(told["run_id"][:10].split("-"))
    assert (folder / told["run_id"] / "attestation.json").is_file()
    assert scratch.quire("verify", "--all").returncode == 0
    assert told["run_id"] in scratch.quire("log").stdout


def test_it_can_be_left_out(repo: Scratch) -> None:
    _, told = repo.run("notebooks/sum.py", "--no-archive")
    assert told["archived"] is None
    repo.write("quire.toml", "[archive]\nenabled = false\n")
    _, told = repo.run("notebooks/sum.py")
    assert told["archived"] is None
    assert archived(repo) == []
    assert repo.quire("show", "last").returncode == 0


def test_an_archive_that_says_no_does_not_spoil_a_run(repo: Scratch) -> None:
    repo.git("branch", "reports")  # somebody else's: it is no archive
    done = repo.quire("run", "notebooks/sum.py", "-q")
    assert done.returncode == 0
    assert "ok in" in done.stdout
    assert "warning: the record is not archived yet: " in done.stderr
    assert "archive.branch" in done.stderr
    repo.git("branch", "--delete", "--force", "reports")
    # It is caught up on as soon as that is possible.
    _, later = repo.run("notebooks/sum.py", "--no-host")
    assert len(archived(repo)) == 2
    remote = with_remote(repo)
    pushed = json.loads(repo.quire("push", "--json").stdout)
    assert (pushed["archived"], pushed["sent"]) == (0, 2)
    assert later["run_id"] in archived(Scratch(remote))


def test_a_run_says_that_earlier_ones_are_gone(repo: Scratch) -> None:
    repo.run("notebooks/sum.py", "--no-host")
    _, lost = repo.run("notebooks/sum.py", "--no-host")
    repo.git("update-ref", "refs/heads/reports", "reports~1")
    done = repo.quire("run", "notebooks/sum.py", "-q", "--no-host")
    assert done.returncode == 0
    assert "warning: the branch reports was at" in done.stderr
    assert f"runs were removed or changed: {lost['run_id']}; quire verify --all" in done.stderr
    gate = json.loads(repo.quire("ci", "--json", "--all").stdout)
    (task,) = gate["tasks"]
    assert any(lost["run_id"] in warning for warning in task["warnings"])
    assert task["archived"]


def test_pushed_without_anybody_remembering(repo: Scratch) -> None:
    remote = with_remote(repo)
    repo.write("quire.toml", "[archive]\npush = true\n")
    for _ in range(2):
        _, told = repo.run("notebooks/sum.py")
        assert told["run_id"] in archived(Scratch(remote))
    repo.git("remote", "set-url", "origin", str(remote.with_name("gone.git")))
    done = repo.quire("run", "notebooks/sum.py", "-q")
    assert done.returncode == 0
    assert "warning: the archive is not pushed yet: " in done.stderr
    repo.git("remote", "set-url", "origin", str(remote))
    assert "sent 1 run to origin" in repo.quire("push").stdout
    assert archived(Scratch(remote)) == archived(repo)


def test_another_clone_reads_runs_that_it_never_ran(repo: Scratch) -> None:
    remote = with_remote(repo)
    repo.write("quire.toml", "[archive]\nlarge = 1000\n")
    repo.write("notebooks/big.py", BIG)
    _, total = repo.run("notebooks/sum.py", "-p", "n", "5")
    _, big = repo.run("notebooks/big.py")
    assert repo.quire("push").returncode == 0
    other = clone(repo, remote)
    other.git("branch", "--quiet", "reports", "origin/reports")
    shown = other.quire("show", total["run_id"])
    assert shown.returncode == 0, shown.stderr
    assert "total 10" in shown.stdout
    assert "notebook: git branch reports: runs/" in shown.stdout
    assert json.loads(other.quire("results", total["run_id"], "--json").stdout) == {"total": 10}
    assert other.quire("export", total["run_id"], "out.ipynb").returncode == 0
    assert stdout_of(json.loads((other.root / "out.ipynb").read_text())) == "total 10\n"
    # What was too large for git is not here, and it says so; where it was run, it is.
    assert (
        "bytes of stream are kept outside git: sha256" in other.quire("show", big["run_id"]).stdout
    )
    (repo.root / ".quire/runs" / big["run_id"] / "events.jsonl").unlink()
    os.rename(repo.root / ".quire/runs", repo.root / ".quire/elsewhere")
    assert "xxxxxxxx" in repo.quire("show", big["run_id"]).stdout


def test_a_killed_run_is_archived_as_what_it_was(repo: Scratch) -> None:
    mark = repo.root / "mark"
    repo.write(
        "notebooks/slow.py",
        f"# %%\nimport time\nopen({str(mark)!r}, 'w').close()\ntime.sleep(60)\n",
    )
    process = repo.start("run", "notebooks/slow.py", "--no-host")
    deadline = time.monotonic() + 60
    while not mark.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    with_remote(repo)
    pushed = json.loads(repo.quire("push", "--json").stdout)
    assert pushed["archived"] == 1
    (item,) = json.loads(repo.quire("log", "--json").stdout)
    assert (item["outcome"], item["task"]) == ("died", "notebooks/slow.py")
    assert repo.quire("verify", "--all").returncode == 0


def test_what_is_shown_is_what_was_signed(repo: Scratch) -> None:
    """Anybody can write into the folder of a run."""
    _, told = repo.run("notebooks/sum.py")
    folder = repo.root / ".quire/runs" / told["run_id"]
    for name in ("events.jsonl", "notebook.ipynb"):
        text = (folder / name).read_text()
        assert "total 6" in text
        (folder / name).write_text(text.replace("total 6", "total 7").replace(": 6", ": 7"))
    assert "total 6" in repo.quire("show", "last").stdout
    assert json.loads(repo.quire("results", "last", "--json").stdout) == {"total": 6}
    repo.quire("export", "last", "out.md")
    assert "total 6" in (repo.root / "out.md").read_text()


def test_a_beginning_that_fits_several_archived_runs(repo: Scratch) -> None:
    ids = [repo.run("notebooks/sum.py")[1]["run_id"] for _ in range(3)]
    listed = [item["run_id"] for item in json.loads(repo.quire("log", "--json").stdout)]
    assert listed == ids[::-1]
    assert [i["run_id"] for i in json.loads(repo.quire("log", "-n", "2", "--json").stdout)] == ids[
        :0:-1
    ]
    os.rename(repo.root / ".quire/runs", repo.root / ".quire/elsewhere")
    done = repo.quire("show", ids[0][:4])
    assert done.returncode == 2
    assert "fits 3 runs" in done.stderr


def test_nobody_writes_lines_of_a_listing(repo: Scratch) -> None:
    fake = "me\n2026-01-01-000000-fake-0000  ok  0.00 s  fake.py  by boss"
    env = {"QUIRE_ACTOR": fake, "QUIRE_ON_BEHALF_OF": fake}
    repo.run("notebooks/sum.py", env=env)
    repo.write("notebooks/a\n2026-01-01-000000-fake-0000.py", "# %%\n1\n")
    repo.run("notebooks/a\n2026-01-01-000000-fake-0000.py")
    for command in ("log", "runs", "show"):
        lines = repo.quire(command).stdout.splitlines()
        assert not [line for line in lines if line.startswith("2026-01-01")], command


def test_a_remote_that_failed_is_told_of_each_time(repo: Scratch) -> None:
    repo.write("quire.toml", "[archive]\npush = true\n")
    repo.git("remote", "add", "origin", str(repo.root.parent / "gone.git"))
    for said in ("cannot fetch from origin", "failed a moment ago"):
        assert said in repo.quire("run", "notebooks/sum.py", "-q").stderr
