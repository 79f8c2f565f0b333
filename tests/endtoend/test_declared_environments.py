"""Tasks that declare what they need, from the command to the record. The wheels are local."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import wheelhouse
from scratch import Scratch, stdout_of

TASK = """# /// script
# dependencies = ["six=={version}"]
# ///

# %%
import six
print("six", six.__version__)
"""
OLD, NEW = TASK.format(version="1.16.0"), TASK.format(version="1.17.0")


class Place(Scratch):
    """A workspace whose commands find the wheels; environments are shared among tests."""

    own: dict[str, str]

    def environment(self, env: Any = None) -> dict[str, str]:
        return super().environment({**self.own, **(env or {})})

    def shown(self, told: dict[str, Any]) -> str:
        return stdout_of(self.notebook(told)).strip()

    def record(self, run: str = "last") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.quire("show", run, "--json").stdout)
        return found


@pytest.fixture
def place(scratch: Scratch) -> Place:
    here = Place(scratch.root)
    here.own = wheelhouse.environment()
    return here


@pytest.fixture
def cold(place: Place, tmp_path: Path) -> Place:
    """Nothing has been made yet."""
    place.own = wheelhouse.environment(tmp_path / "cache")
    return place


def test_two_tasks_have_the_versions_they_want_side_by_side(cold: Place) -> None:
    """Four commands at once in a fresh folder: no host is there yet, and no environment."""
    place = cold
    place.write("old.py", OLD)
    place.write("new.py", NEW)
    with ThreadPoolExecutor(4) as pool:
        names = ["old.py", "new.py"] * 2
        answers = list(pool.map(place.run, names))
    assert [code for code, _ in answers] == [0] * 4
    shown = [place.shown(told) for _, told in answers]
    assert shown == ["six 1.16.0", "six 1.17.0"] * 2
    told = [answer["environment"] for _, answer in answers]
    assert told[0] == told[2] != told[1] == told[3]
    record = place.record(answers[0][1]["run_id"])
    assert record["environment"]["dependencies"] == ["six==1.16.0"]
    assert record["environment"]["declared_by"] == "task"
    assert len(record["environment"]["lock"]) == 64
    packages = record["origin"]["environment"]["packages"]
    assert packages["six"] == "1.16.0"
    assert "ipykernel" in packages
    assert "click" not in packages, "what Quire itself needs is not there"
    assert record["warnings"] == []


def test_in_this_process_and_in_a_host_and_in_a_session_it_is_the_same(place: Place) -> None:
    place.write("old.py", OLD)
    code, told = place.run("old.py", "--no-host")
    assert (code, place.shown(told)) == (0, "six 1.16.0")
    code, told = place.run("old.py", "--kernel", "python3")
    assert (code, place.shown(told)) == (0, "six 1.16.0")
    assert place.quire("session", "open", "old.py").returncode == 0
    done = place.quire("exec", "old", "all")
    assert "six 1.16.0" in done.stdout
    done = place.quire("replay", "last", "--json")
    assert json.loads(done.stdout)["verdict"] == "equal", done.stdout


def test_programs_of_the_environment_are_found_first(place: Place) -> None:
    source = OLD.replace('"six==1.16.0"', '"quire-tests-tool"').replace(
        'import six\nprint("six", six.__version__)',
        "!quire-tests-tool\n!python -c 'import quire_tests_tool, sys; print(sys.prefix)'\n"
        "import sys; print(sys.prefix)",
    )
    place.write("tool.py", source)
    code, told = place.run("tool.py")
    lines = place.shown(told).splitlines()
    assert code == 0
    assert lines[0] == "the tool of the environment"
    assert lines[1] == lines[2] != sys.prefix


PARENT = OLD + 'from quire.runtime import run\nprint(run("child.py"))\n'
CHILD = """# %%
!echo $PATH
from importlib.util import find_spec
print(find_spec("six") is not None)
"""


def test_a_task_that_another_runs_has_its_own_environment(place: Place) -> None:
    place.write("parent.py", PARENT)
    place.write("child.py", NEW)
    code, _ = place.run("parent.py")
    assert code == 0
    runs = json.loads(place.quire("runs", "--json").stdout)
    child = next(run["run_id"] for run in runs if run["task"] == "child.py")
    assert place.record(child)["origin"]["environment"]["packages"]["six"] == "1.17.0"
    place.write("child.py", CHILD)
    place.run("parent.py")
    runs = json.loads(place.quire("runs", "--json").stdout)
    child = next(run["run_id"] for run in runs if run["task"] == "child.py")
    record = place.record(child)
    assert record["environment"] is None
    text = "".join(output["text"] for cell in record["cells"] for output in cell["outputs"])
    assert place.own["QUIRE_CACHE"] not in text
    assert text.splitlines()[-1] == "False"


def test_a_logbook_or_a_header_says_it_in_front_matter(place: Place) -> None:
    place.write("front.py", "# ---\n# dependencies: [six<1.17]\n# ---\n\n# %%\nimport six\nsix\n")
    code, told = place.run("front.py")
    assert code == 0
    assert told["environment"]["dependencies"] == ["six<1.17"]


def test_the_workspace_speaks_for_tasks_that_say_nothing(place: Place) -> None:
    place.write("quire.toml", 'dependencies = ["six==1.16.0"]\n')
    place.write("silent.py", "# %%\nimport six\nprint(six.__version__)\n")
    place.write("new.py", NEW)
    code, told = place.run("silent.py")
    assert (code, place.shown(told)) == (0, "1.16.0")
    assert told["environment"]["declared_by"] == "workspace"
    code, told = place.run("new.py")
    assert (code, place.shown(told)) == (0, "six 1.17.0")
    place.write("quire.toml", 'dependencies = ["-e ."]\n')
    code, told = place.run("silent.py")
    assert (code, told["error"]["code"]) == (2, "config")


def test_an_interpreter_that_is_asked_for_goes_first_and_the_record_says_so(place: Place) -> None:
    place.write("old.py", OLD)
    code, told = place.run("old.py", "--python", sys.executable)
    assert code == 1
    assert told["error"]["name"] == "ModuleNotFoundError"
    assert told["environment"]["lock"] is None
    (warning,) = place.record()["warnings"]
    assert sys.executable in warning
    assert "not installed" in warning


def test_an_environment_other_than_that_of_the_last_run_is_reported(place: Place) -> None:
    place.write("task.py", OLD)
    _, first = place.run("task.py")
    place.run("task.py")
    assert place.record()["warnings"] == []
    place.write("task.py", NEW)
    _, last = place.run("task.py")
    (warning,) = place.record()["warnings"]
    assert warning.endswith(": changed: six 1.16.0 → 1.17.0")
    assert first["run_id"] not in warning, "the last one is meant"
    place.run("task.py")
    assert place.record()["warnings"] == []
    # In a fresh clone there is only the archive.
    for note in (place.root / ".quire" / "environments").iterdir():
        note.unlink()
    place.write("task.py", OLD)
    place.run("task.py")
    (warning,) = place.record()["warnings"]
    assert warning.endswith(": changed: six 1.17.0 → 1.16.0")
    assert last["run_id"][:11] in warning


BAD = [
    ('["nosuch-package"]', "dependency", "nosuch-package"),
    ('["six==1.16.0", "six==1.17.0"]', "dependency", "six==1.16.0 and six==1.17.0"),
    ('["six==1.17.0", "quire-tests-user"]', "dependency", "quire-tests-user"),
    ('["six=<2"]', "document", "'six=<2'"),
    ('["six @ https://x.example/six.whl"]', "document", "addresses"),
    ('["six"', "document", "TOML"),
    ('["six"]\n# requires-python = ">=3.99"', "dependency", ">=3.99"),
    ('["six"]\n# requires-python = "new"', "document", "'new'"),
]


def test_what_cannot_be_had_is_said_before_anything_runs(place: Place) -> None:
    for text, code, said in BAD:
        place.write("bad.py", f"# /// script\n# dependencies = {text}\n# ///\n# %%\nprint(1)\n")
        status, told = place.run("bad.py", "--no-host")
        assert (status, told["outcome"], told["error"]["code"]) == (2, "error", code), text
        assert said in told["error"]["message"]
        assert told["error"]["hint"]
    assert not list(place.root.glob(".quire/runs/*"))


def test_without_a_network_what_is_made_works_and_the_rest_says_why(cold: Place) -> None:
    cold.write("old.py", OLD)
    assert cold.run("old.py", "--no-host")[0] == 0
    cold.own |= {"UV_FIND_LINKS": str(cold.root), "UV_CACHE_DIR": str(cold.root / "empty")}
    code, told = cold.run("old.py", "--no-host")
    assert (code, cold.shown(told)) == (0, "six 1.16.0")
    cold.write("new.py", NEW)
    code, told = cold.run("new.py", "--no-host")
    assert code == 2
    assert told["error"]["code"] == "dependency"
    assert told["error"]["retryable"]
    assert "network" in told["error"]["hint"]


def test_versions_stay_until_they_are_asked_to_move(cold: Place) -> None:
    wheels = cold.root / "wheels"
    wheels.mkdir()
    for wheel in Path(cold.own["UV_FIND_LINKS"]).iterdir():
        (wheels / wheel.name).symlink_to(wheel)
    newest = next(wheels.glob("six-1.17*")).rename(cold.root / "later.whl")
    cold.own["UV_FIND_LINKS"] = str(wheels)
    cold.write("any.py", OLD.replace("six==1.16.0", "six"))
    _, told = cold.run("any.py", "--no-host")
    assert cold.shown(told) == "six 1.16.0"
    newest.rename(wheels / "six-1.17.0-py3-none-any.whl")
    _, told = cold.run("any.py", "--no-host")
    assert cold.shown(told) == "six 1.16.0"
    cold.own["UV_CACHE_DIR"] = str(cold.root / "uv")  # the other remembers the folder
    done = cold.quire("env", "build", "any.py", "--upgrade")
    assert done.returncode == 0, done.stderr
    assert "six 1.17.0" in done.stdout
    _, told = cold.run("any.py", "--no-host")
    assert cold.shown(told) == "six 1.17.0"


def test_a_lock_beside_the_task_fixes_them_for_everybody(place: Place) -> None:
    task = place.write("any.py", OLD.replace("six==1.16.0", "six"))
    done = place.quire("env", "lock", "any.py")
    assert (done.returncode, done.stdout) == (0, "any.lock.txt\n"), done.stderr
    lock = task.with_suffix(".lock.txt")
    text = lock.read_text()
    assert "\nsix==1.17.0 \\\n    --hash=sha256:" in text
    assert "://" not in text
    code, told = place.run("any.py", "--no-host")
    assert (code, place.shown(told)) == (0, "six 1.17.0")
    assert told["environment"]["lock_file"] == "any.lock.txt"
    lock.write_text(text.replace("six==1.17.0", "six==1.16.0"))
    code, told = place.run("any.py", "--no-host")
    assert (code, told["error"]["code"]) == (2, "dependency"), "the digest is of another version"
    lock.write_text(text + "--index-url https://x.example\n")
    code, told = place.run("any.py", "--no-host")
    assert (code, told["error"]["code"]) == (2, "document")
    lock.write_text(text)
    place.write("any.py", OLD.replace("six==1.16.0", "six<1.17"))
    code, told = place.run("any.py", "--no-host")
    assert (code, told["error"]["code"]) == (2, "dependency")
    assert "any.lock.txt" in told["error"]["message"]
    assert place.quire("env", "lock", "any.py").returncode == 0
    code, told = place.run("any.py", "--no-host")
    assert (code, place.shown(told)) == (0, "six 1.16.0")
    done = place.quire("env", "build", "any.py", "--upgrade")
    assert done.returncode == 2
    assert "quire env lock TASK --upgrade" in done.stderr


def test_a_build_that_is_killed_half_way_is_not_used(cold: Place) -> None:
    cold.write("old.py", OLD)
    made = Path(cold.own["QUIRE_CACHE"]) / "environments" / "made"
    running = cold.start("run", "old.py", "--no-host")
    deadline = time.monotonic() + 60
    while not list(made.glob("*/venv")):
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.001)  # to look again; nothing depends on how long
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    code, told = cold.run("old.py", "--no-host")
    assert (code, cold.shown(told)) == (0, "six 1.16.0")
    (folder,) = made.iterdir()
    assert (folder / "environment.json").exists()


def test_several_runs_at_once_make_it_once_and_clean_removes_it(cold: Place) -> None:
    cold.write("old.py", OLD)
    running = [cold.start("run", "old.py", "--no-host") for _ in range(3)]
    said = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert "".join(said).count("making an environment") == 1
    (one,) = json.loads(cold.quire("env", "list", "--json").stdout)
    assert (one["state"], one["packages"]["six"]) == ("ready", "1.16.0")
    assert json.loads(cold.quire("env", "clean", "--json").stdout)["removed"] == []
    told = json.loads(cold.quire("env", "clean", "--all", "--json").stdout)
    assert told["removed"] == [one["environment"]]
    assert json.loads(cold.quire("env", "list", "--json").stdout) == []
    code, told = cold.run("old.py", "--no-host")
    assert (code, cold.shown(told)) == (0, "six 1.16.0")


def test_show_says_what_a_task_gets_and_makes_nothing(cold: Place) -> None:
    cold.write("old.py", OLD)
    told = json.loads(cold.quire("env", "show", "old.py", "--json").stdout)
    assert (told["ready"], told["dependencies"]) == (False, ["six==1.16.0"])
    assert json.loads(cold.quire("env", "list", "--json").stdout) == []
    cold.write("plain.py", "# %%\n1\n")
    for name, hint in (("plain.py", "# /// script"), ("none.py", "check the path")):
        done = cold.quire("env", "show", name)
        assert done.returncode == 2
        assert hint in done.stderr
    assert cold.quire("env", "show").returncode == 2


def test_a_session_outlives_its_host_and_gets_its_environment_again(cold: Place) -> None:
    cold.write("old.py", OLD)
    assert cold.quire("session", "open", "old.py").returncode == 0
    assert cold.quire("host", "stop").returncode == 0
    told = json.loads(cold.quire("env", "clean", "--all", "--json").stdout)
    assert len(told["removed"]) == 1
    done = cold.quire("exec", "old", "all")
    assert "six 1.16.0" in done.stdout, done.stderr


def test_a_failed_run_is_not_resumed_with_other_packages(place: Place) -> None:
    header = "# ---\n# dependencies: [{}]\n# ---\n\n# %%\nimport six\n\n# %%\n"
    place.write("front.py", header.format("six<1.17") + "1 / 0\n")
    assert place.run("front.py")[0] == 1
    place.write("front.py", header.format("six>=1.17") + "print(six.__version__)\n")
    code, told = place.run("front.py", "--resume", "last")
    assert (code, told["error"]["code"]) == (2, "usage")
    assert "other packages" in told["error"]["message"]
    place.write("front.py", header.format("six<1.17") + "print(six.__version__)\n")
    code, told = place.run("front.py", "--resume", "last")
    assert (code, place.shown(told)) == (0, "1.16.0")


def test_looking_at_the_workspace_makes_nothing(cold: Place) -> None:
    cold.write("quire.toml", 'dependencies = ["six==1.16.0"]\n')
    cold.quire("doctor")
    assert json.loads(cold.quire("env", "show", "--json").stdout)["ready"] is False
    assert json.loads(cold.quire("env", "list", "--json").stdout) == []


@pytest.mark.torture
def test_the_same_with_packages_from_an_index(scratch: Scratch, tmp_path: Path) -> None:
    """Needs a network: two versions of a real package side by side."""
    scratch.write("old.py", OLD)
    scratch.write("new.py", NEW)
    env = {"QUIRE_CACHE": str(tmp_path / "cache")}
    answers = [scratch.run(name, env=env) for name in ("old.py", "new.py")]
    assert [code for code, _ in answers] == [0, 0]
    shown = [stdout_of(scratch.notebook(told)).strip() for _, told in answers]
    assert shown == ["six 1.16.0", "six 1.17.0"]
