"""The command line, as people and programs meet it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pexpect
import pytest

import made_environments as environments
from quire import __version__
from scratch import QUIRE, Scratch

TASK = """# %% [markdown]
# # A small report

# %% tags=["parameters"]
who: str = "world"  # whom to greet

# %% greet
print(f"hello {who}")

# %% result
from quire.runtime import glue
glue("answer", 42)
glue("who", who)
"""

KEYS = ["run_id", "outcome", "results", "notebook", "duration", "cells", "error", "archived"]
KEYS += ["environment", "logbook", "recovered"]
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scratch]:
    """One workspace, and one warm host, for all the cases that do not mind each other."""
    root = tmp_path_factory.mktemp("place")
    (root / "quire.toml").write_text("")
    place = Scratch(root)
    place.write("t.py", TASK)
    place.write("fails.py", "# %%\nprint('before')\n# %% bad\n1 / 0\n# %%\nprint('after')\n")
    yield place
    place.quire("host", "stop")


def test_one_object_with_the_documented_keys(place: Scratch) -> None:
    done = place.quire("run", "t.py", "-p", "who", "you", "--json")
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    told = json.loads(done.stdout)
    assert list(told) == KEYS
    assert told["outcome"] == "ok"
    assert told["results"] == {"answer": 42, "who": "you"}
    assert told["error"] is None
    assert told["duration"] > 0
    assert Path(told["notebook"]).is_absolute()
    nbformat.validate(nbformat.read(told["notebook"], as_version=4))
    assert [list(cell) for cell in told["cells"]] == [["id", "kind", "status", "duration"]] * 5
    assert [c["status"] for c in told["cells"]] == ["text", "ok", "ok", "ok", "ok"]


def test_a_failure_is_told_with_all_that_is_needed(place: Scratch) -> None:
    code, told = place.run("fails.py")
    assert code == 1
    assert list(told) == KEYS
    assert [c["status"] for c in told["cells"]] == ["ok", "failed", "not run"]
    assert told["cells"][2]["duration"] is None
    assert list(told["error"]) == ["cell", "name", "value", "traceback"]
    assert told["error"]["cell"] == told["cells"][1]["id"]
    assert not CONTROL.search(told["error"]["traceback"])


def test_for_people_the_end_is_on_stdout_and_progress_on_stderr(place: Scratch) -> None:
    done = place.quire("run", "t.py")
    assert done.returncode == 0
    first, *results, notebook = done.stdout.splitlines()
    assert re.fullmatch(r"ok in [0-9.]+ s, 3 of 3 cells", first)
    assert results == ["  answer = 42", '  who = "world"']
    assert notebook.startswith("notebook: .quire/runs/")
    assert (place.root / notebook.removeprefix("notebook: ")).is_file()
    lines = done.stderr.splitlines()
    assert re.fullmatch(r"[0-9-]+-t-[0-9a-f]{4}  t\.py", lines[0])
    assert [line.split()[0] for line in lines[1:]] == ["[1/3]", "[2/3]", "[3/3]"]
    assert lines[2].endswith("greet")
    assert "hello" not in done.stdout
    assert not CONTROL.search(done.stdout + done.stderr)


def test_a_failure_for_people(place: Scratch) -> None:
    done = place.quire("run", "fails.py")
    assert done.returncode == 1
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert "(bad):" in done.stderr
    assert done.stdout.startswith("failed in ")
    assert "1 of 3 cells" in done.stdout
    assert not CONTROL.search(done.stdout + done.stderr)


def test_quiet_is_quiet(place: Scratch) -> None:
    assert place.quire("run", "t.py", "-q").stderr == ""
    assert place.quire("run", "t.py", "-q", "--json").stderr == ""


def test_looking_at_runs(place: Scratch) -> None:
    _, told = place.run("t.py", "-p", "who", "you")
    run = told["run_id"]
    shown = place.quire("show", run)
    assert shown.returncode == 0
    assert shown.stdout.startswith("A small report\n")
    for text in (run, '  who: "you"', "  answer = 42", "    hello you", "greet", "notebook: "):
        assert text in shown.stdout
    assert place.quire("show").stdout == shown.stdout
    assert place.quire("show", "last").stdout == shown.stdout
    listed = place.quire("runs", "-n", "1").stdout
    assert listed.split()[:2] == [run, "ok"]
    (item,) = json.loads(place.quire("runs", "-n", "1", "--json").stdout)
    assert (item["run_id"], item["outcome"], item["task"]) == (run, "ok", "t.py")
    record = json.loads(place.quire("show", run[:-2], "--json").stdout)
    assert record["parameters"] == {"who": "you"}
    assert record["results"] == {"answer": 42, "who": "you"}
    assert record["cells"][3]["outputs"][0]["text"] == "hello you\n"
    assert set(KEYS) <= set(record)
    assert place.quire("results", run).stdout == 'answer = 42\nwho = "you"\n'
    assert json.loads(place.quire("results", run, "--json").stdout) == told["results"]
    assert place.quire("results", run, "answer", "--json").stdout == "42\n"
    missing = place.quire("results", run, "nothing")
    assert (missing.returncode, "it has: answer, who" in missing.stderr) == (2, True)


def test_export_and_sync_and_params(place: Scratch) -> None:
    place.run("t.py")
    for suffix in ("ipynb", "html", "md"):
        done = place.quire("export", "last", f"out.{suffix}")
        assert (done.returncode, done.stdout) == (0, f"out.{suffix}\n"), done.stderr
        assert (place.root / f"out.{suffix}").stat().st_size > 100
    again = place.quire("export", "last", "out.md")
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    place.write("nb/a.py", "# %%\n1\n")
    done = place.quire("sync", "nb/")
    assert (done.returncode, (place.root / "nb" / "a.ipynb").is_file()) == (0, True)
    assert place.quire("sync", "nb/", "--check").returncode == 0
    done = place.quire("params", "t.py")
    assert re.fullmatch(r'who\s+str\s+= "world"\s+whom to greet\n', done.stdout)
    (parameter,) = json.loads(place.quire("params", "t.py", "--json").stdout)
    assert parameter == {
        "name": "who",
        "type": "str",
        "required": False,
        "default": "world",
        "choices": None,
        "help": "whom to greet",
    }
    assert "declares no parameters" in place.quire("params", "fails.py").stderr


def test_an_output_of_ones_own(place: Scratch) -> None:
    done = place.quire("run", "t.py", "-o", "mine.ipynb")
    assert done.stdout.splitlines()[-1] == "notebook: mine.ipynb"
    nb = nbformat.read(place.root / "mine.ipynb", as_version=4)
    nbformat.validate(nb)
    assert nb.metadata.papermill.output_path == str(place.root / "mine.ipynb")


def test_help_and_version(place: Scratch) -> None:
    done = place.quire("--version")
    assert (done.returncode, done.stdout) == (0, f"quire {__version__}\n")
    done = place.quire("--help")
    commands = ["completion", "export", "host", "params", "results", "run", "runs", "show", "sync"]
    for name in commands:
        assert re.search(rf"^  {name} ", done.stdout, re.MULTILINE)
        told = place.quire(name, "--help")
        assert (told.returncode, "Usage: quire" in told.stdout) == (0, True)
        assert "Example" in told.stdout
    assert place.quire("run", "-h").returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(place: Scratch, shell: str) -> None:
    done = place.quire("completion", shell)
    assert done.returncode == 0
    assert "_QUIRE_COMPLETE" in done.stdout


def test_completion_completes(place: Scratch) -> None:
    env = {"_QUIRE_COMPLETE": "bash_complete", "COMP_WORDS": "quire ru", "COMP_CWORD": "1"}
    done = place.quire(env=env)
    assert done.stdout.split() == ["plain,run", "plain,runs"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("rnu",), "Did you mean 'run'?"),
        (("xyzzy",), "There is no command 'xyzzy'."),
        (("run",), "Missing argument 'PATH'"),
        (("run", "t.py", "--nothing"), "--nothing"),
        (("run", "t.py", "--timeout", "soon"), "soon"),
        (("run", "t.py", "-p", "who"), "-p"),
        (("show", "2020"), "there is no run '2020'"),
        (("export", "last", "x.pdf"), ".ipynb, .html or .md"),
        (("host", "dance"), "dance"),
    ],
)
def test_a_wrong_command_says_what_to_do(place: Scratch, args: tuple[str, ...], said: str) -> None:
    done = place.quire(*args)
    assert done.returncode == 2
    assert said in done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_wrong_configuration_is_told(scratch: Scratch) -> None:
    (scratch.root / "quire.toml").write_text("timeout = 'soon'")
    scratch.write("t.py", TASK)
    for host in ((), ("--no-host",)):
        done = scratch.quire("run", "t.py", *host)
        assert (done.returncode, "timeout must be a positive number" in done.stderr) == (2, True)
        assert "Traceback" not in done.stderr


NASTY = "\\x1b]0;owned\\x07\\x1b[2J\\x1b[31mred\\x1b[0m\\x9b31m\\x08\\x1b]8;;http://x\\x1b\\\\link"


def test_what_a_notebook_prints_cannot_touch_the_terminal(place: Scratch) -> None:
    place.write(
        "nasty.py",
        f'# %%\nprint("{NASTY}")\n# %% ti\x1b[31mtle\nfrom quire.runtime import glue\n'
        f'glue("k\\x1b[2J", "{NASTY}")\n# %%\nraise ValueError("{NASTY}")\n',
    )
    ran = place.quire("run", "nasty.py")
    assert ran.returncode == 1
    outputs = [ran.stdout, ran.stderr]
    for args in (("show",), ("show", "--all"), ("results",), ("runs",), ("show", "--json")):
        outputs.append(place.quire(*args).stdout)
    for text in outputs:
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), text
    assert "red" in outputs[2]


def test_escape_sequences_stay_out_of_a_colour_terminal_too(place: Scratch) -> None:
    place.write("nasty.py", f'# %%\nprint("{NASTY}")\n')
    place.run("nasty.py")
    shown = on_a_terminal(place, "show")
    assert "\x1b]0" not in shown
    assert "\x1b[2J" not in shown
    assert "red" in shown


def test_a_reader_that_leaves_does_not_stop_a_run(place: Scratch) -> None:
    for host in ("", "--no-host"):
        command = f"{' '.join(QUIRE)} run t.py {host} | true; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=place.root,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout == "0\n", done.stderr
        assert json.loads(place.quire("runs", "-n", "1", "--json").stdout)[0]["outcome"] == "ok"
    full = subprocess.run(
        ["bash", "-c", f"{' '.join(QUIRE)} show --all | head -n 1"],
        cwd=place.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (full.stdout, full.stderr) == ("A small report\n", "")


def test_closed_standard_files(place: Scratch) -> None:
    for host in ("", "--no-host"):
        command = f"{' '.join(QUIRE)} run t.py {host} <&- >&- 2>&-"
        done = subprocess.run(["bash", "-c", command], cwd=place.root, timeout=60, check=False)
        assert done.returncode == 0
        assert json.loads(place.quire("runs", "-n", "1", "--json").stdout)[0]["outcome"] == "ok"


SLOW = "# %% first\nx = 1\n# %% second thing\nimport time; time.sleep(0.6)\n# %% last\nx = 2\n"


def on_a_terminal(place: Scratch, *args: str, **env: str) -> str:
    """What the command writes when a person looks: both streams on one terminal."""
    world = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    told = pexpect.run(
        " ".join([*QUIRE, *args]),
        cwd=str(place.root),
        env={**world, "TERM": "xterm-256color", **env},
        timeout=60,
    )
    return bytes(told).decode()


def test_a_bar_on_a_terminal(place: Scratch) -> None:
    place.write("slow.py", SLOW)
    for host in ((), ("--no-host",)):
        seen = on_a_terminal(place, "run", "slow.py", *host)
        assert "\r\x1b[K" in seen
        assert re.search("[█░]{20} cell 2 of 3  [0-9.]+ s  second thing", seen)
        assert "\x1b[32mok\x1b[0m in " in seen
        last = seen.rsplit("\x1b[K", 1)[1]
        assert "░" not in last


def test_no_colour_where_none_is_wanted(place: Scratch) -> None:
    place.write("slow.py", SLOW)
    seen = on_a_terminal(place, "run", "slow.py", NO_COLOR="1")
    assert "░" in seen
    assert not re.search(r"\x1b\[[0-9;]*m", seen)
    dumb = on_a_terminal(place, "run", "slow.py", TERM="dumb")
    assert "\x1b" not in dumb
    assert "[2/3] ok" in dumb


def test_a_narrow_terminal_is_not_overrun(place: Scratch) -> None:
    place.write("slow.py", SLOW.replace("second thing", "a title that is much too long " * 4))
    child = pexpect.spawn(
        QUIRE[0],
        [*QUIRE[1:], "run", "slow.py"],
        cwd=str(place.root),
        env={**os.environ, "TERM": "xterm"},  # type: ignore[arg-type]
        dimensions=(24, 40),
        timeout=60,
    )
    seen = child.read().decode()
    for line in re.split(r"[\r\n]+", seen):
        if "░" in line:
            assert len(line.replace("\x1b[K", "")) < 40


def test_ctrl_c_on_a_terminal(place: Scratch) -> None:
    place.write("waits.py", "# %%\nprint('x')\n# %%\nimport time; time.sleep(100)\n")
    child = pexpect.spawn(
        QUIRE[0],
        [*QUIRE[1:], "run", "waits.py"],
        cwd=str(place.root),
        env={**os.environ, "TERM": "xterm"},  # type: ignore[arg-type]
        timeout=30,
    )
    child.expect("cell 2 of 2")
    child.sendcontrol("c")
    child.expect("cancelled")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130


def test_an_interpreter_of_choice(place: Scratch, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("envs")
    plain = environments.make(folder / "plain", "ipython")
    bare = environments.make(folder / "bare")
    place.write(
        "where.py",
        "# %%\nimport sys\nfrom quire.runtime import glue\nglue('exe', sys.executable)\n",
    )
    code, told = place.run("where.py", "--python", str(plain))
    assert (code, told["results"]) == (0, {"exe": str(plain)})
    relative = os.path.relpath(plain, place.root)
    code, told = place.run("where.py", "--python", relative, "--no-host")
    assert code == 0, told
    for host in ((), ("--no-host",)):
        done = place.quire("run", "where.py", "--python", str(bare), *host)
        assert done.returncode == 2
        assert f"{bare} has no IPython" in done.stderr
        assert "pip install ipykernel" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_kernel_that_is_not_python(place: Scratch, tmp_path: Path) -> None:
    pytest.importorskip("bash_kernel")
    spec = tmp_path / "kernels" / "bash"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "bash_kernel", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": "Bash", "language": "bash"})
    )
    place.write("sh.py", "# %%\necho from $0 in bash\n# %%\nfalse || echo still here\n")
    code, told = place.run("sh.py", "--kernel", "bash", env={"JUPYTER_PATH": str(tmp_path)})
    assert code == 0, told
    from scratch import stdout_of

    text: Any = stdout_of(place.notebook(told))
    assert "in bash" in text
    assert "still here" in text


def test_a_title_is_one_line_wherever_it_is_shown(scratch: Scratch) -> None:
    scratch.write(
        "t.md", "---\nparameters:\n  who: ...\n---\n# Greet {who}\n\n```python\n1 / 0\n```\n"
    )
    done = scratch.quire("run", "t.md", "-p", "who", "Ada\nand Bob")
    assert "failed" in done.stdout
    assert " Greet Ada and Bob\n" in done.stderr
    assert "(Greet Ada and Bob):\n" in done.stderr
    assert "  Greet Ada and Bob\n" in scratch.quire("show", "last").stdout
