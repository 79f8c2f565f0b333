"""A failed run goes on where it failed, and its record says so."""

from __future__ import annotations

import json
import time
from pathlib import Path

import nbformat
import pytest
from live import Live

from quire.errors import UsageError
from quire.record.record import Record
from scratch import Scratch

COUNT = "open('ran.txt', 'a').write('{}\\n');"


def counted(root: Path) -> list[str]:
    """Which cells had their effect, in order."""
    return (root / "ran.txt").read_text().split()


def cell(word: str, code: str) -> str:
    return f"{COUNT.format(word)}\n{code}"


def states(record: Record) -> list[str]:
    return [one.status for one in record.cells]


def texts(record: Record) -> list[str]:
    return ["".join(out.get("text", "") for out in one.outputs) for one in record.cells]


# Going on


def test_it_goes_on_at_the_failed_cell_after_an_edit(live: Live) -> None:
    start = [
        cell("a", "import random, os\nxs = [random.random()]\nprint(xs)"),
        cell("b", "xs.append(2)\nos.environ['STEP'] = 'b'\nprint('b')"),
    ]
    live.write(*start, cell("c", "1 / 0"), cell("d", "print(xs, os.environ['STEP'])"))
    failed = live.run()
    assert states(failed) == ["ok", "ok", "failed", "not run"]
    live.write(*start, cell("c2", "xs.append(3)"), cell("d", "print(xs, os.environ['STEP'])"))
    record = live.run(resume="last")
    assert record.outcome == "ok"
    assert states(record) == ["carried", "carried", "ok", "ok"]
    # No earlier cell ran again, and what they showed is in the new record.
    assert counted(live.root) == ["a", "b", "c", "c2", "d"]
    assert texts(record)[:2] == texts(failed)[:2]
    number = texts(failed)[0].strip()[1:-1]
    assert texts(record)[3] == f"[{number}, 2, 3] b\n"
    assert record.plan["mode"] == "resumed"
    carried = [one.id for one in record.cells[:2]]
    assert record.plan["resumed"] == {"run": failed.run_id, "carried": carried}
    assert failed.plan["mode"] == "clean"
    assert [one.execution_count for one in record.cells] == [1, 2, 3, 4]


def test_results_of_carried_cells_are_in_the_record(live: Live) -> None:
    first = "from quire.runtime import glue\nglue('rows', 7)"
    live.write(first, "1 / 0")
    assert live.run().values == {"rows": 7}
    live.write(first, "glue('more', 8)")
    record = live.run(resume="last")
    assert record.values == {"rows": 7, "more": 8}


def test_the_next_command_can_be_said_as_it_is_printed(scratch: Scratch) -> None:
    scratch.write("my tasks/t 1.py", "# %%\n1 / 0\n")
    done = scratch.quire("run", "my tasks/t 1.py")
    assert "quire run 'my tasks/t 1.py' --resume last" in done.stdout


def test_as_a_user_does_it(scratch: Scratch) -> None:
    scratch.write("t.py", f"# %%\n{cell('a', 'n = 1')}\nprint('one')\n# %% bad\n1 / 0\n")
    done = scratch.quire("run", "t.py")
    assert done.returncode == 1
    assert "mend it, then go on from there: quire run t.py --resume" in done.stdout
    assert "(for 30 min)" in done.stdout
    scratch.write("t.py", f"# %%\n{cell('a', 'n = 1')}\nprint('one')\n# %% bad\nprint(n + 1)\n")
    done = scratch.quire("run", "t.py", "--resume", "last")
    assert done.returncode == 0, done.stderr
    assert "1 carried over from" in done.stdout
    shown = scratch.quire("show", "last").stdout
    assert "resumed: goes on with " in shown
    assert counted(scratch.root) == ["a"]
    told = json.loads(scratch.quire("show", "last", "--json").stdout)
    assert [c["status"] for c in told["cells"]] == ["carried", "ok"]
    nb = nbformat.read(told["notebook"], as_version=4)
    nbformat.validate(nb)
    assert [out["text"] for c in nb.cells for out in c.outputs] == ["one\n", "2\n"]


def test_only_a_run_from_a_clean_kernel_is_clean(scratch: Scratch) -> None:
    scratch.write("t.py", "# %%\nimport os\n# %%\nos.no_such\n")
    _, first = scratch.run("t.py")
    _, second = scratch.run("t.py", "--resume", "last")
    scratch.write("t.py", "# %%\nimport os\n# %%\nos.name\n")
    _, third = scratch.run("t.py", "--resume", "last")
    _, fourth = scratch.run("t.py")
    modes = []
    for told in (first, second, third, fourth):
        shown = json.loads(scratch.quire("show", told["run_id"], "--json").stdout)
        modes.append((shown["outcome"], shown["mode"]))
    assert modes == [
        ("failed", "clean"),
        ("failed", "resumed"),
        ("ok", "resumed"),
        ("ok", "clean"),
    ]


# Where it goes on


def three(*changed: str) -> list[str]:
    """A task of three cells that count themselves, of which the last fails."""
    made = [cell("a", "xs = [1]"), cell("b", "xs.append(2)"), cell("c", "print(xs)\n1 / 0")]
    for word in changed:
        at = "abc".index(word)
        made[at] = cell(word.upper(), ("xs = [10]", "xs.append(20)", "print(xs)")[at])
    return made


def test_from_an_earlier_cell(live: Live) -> None:
    live.write(*three())
    live.run()
    live.write(*three("c"))
    record = live.run(resume="last", from_cell="1")
    assert states(record) == ["carried", "ok", "ok"]
    assert counted(live.root) == ["a", "b", "c", "b", "C"]
    assert texts(record)[2] == "[1, 2]\n"


def test_from_the_very_first_cell(live: Live) -> None:
    live.write(*three())
    live.run()
    live.write(*three("c"))
    record = live.run(resume="last", from_cell="0")
    assert states(record) == ["ok", "ok", "ok"]
    assert texts(record)[2] == "[1, 2]\n"


def test_from_a_later_cell_is_refused(live: Live) -> None:
    live.write(*three(), "n = 3")
    live.run()
    with pytest.raises(UsageError, match=r"cannot be where the run goes on: .* changed or failed"):
        live.run(resume="last", from_cell="3")
    assert counted(live.root) == ["a", "b", "c"]


def test_a_changed_earlier_cell_is_gone_back_to(live: Live) -> None:
    live.write(*three())
    live.run()
    live.write(*three("b", "c"))
    record = live.run(resume="last")
    assert states(record) == ["carried", "ok", "ok"]
    assert counted(live.root) == ["a", "b", "c", "B", "C"]
    assert texts(record)[2] == "[1, 20]\n"


@pytest.mark.parametrize("change", ["inserted", "deleted", "moved"])
def test_cells_that_came_went_or_moved(live: Live, change: str) -> None:
    made = three()
    live.write(*made)
    live.run()
    made = {
        "inserted": [made[0], "xs.append('new')", made[1], "print(xs)"],
        "deleted": [made[0], "print(xs)"],
        "moved": ["xs = []", made[1], made[0], "print(xs)"],
    }[change]
    live.write(*made)
    record = live.run(resume="last")
    expected = {"inserted": "[1, 'new', 2]\n", "deleted": "[1]\n", "moved": "[1]\n"}
    assert record.outcome == "ok"
    assert texts(record)[-1] == expected[change]


def test_words_between_the_cells_do_not_count(live: Live) -> None:
    """Explaining what went wrong is no reason to run the cells above it again."""
    path = live.root / "t.py"
    text = "# %% [markdown]\n# {words}\n# %%\n" + cell("a", "n = 1") + "\n# %%\n{last}\n"
    path.write_text(text.format(words="first", last="1 / 0"))
    live.run()
    path.write_text("# %% [markdown]\n# more\n" + text.format(words="changed", last="print(n)"))
    record = live.run(resume="last")
    assert states(record)[2:] == ["carried", "ok"]
    assert texts(record)[-1] == "1\n"
    assert counted(live.root) == ["a"]


def test_a_cell_that_was_skipped_and_is_no_more(live: Live) -> None:
    path = live.root / "t.py"
    text = "# %%\nxs = [1]\n# %%{tags}\nxs.append(2)\n# %%\nprint(xs)\n{last}\n"
    path.write_text(text.format(tags=' tags=["skip-execution"]', last="1 / 0"))
    assert states(live.run()) == ["ok", "skipped", "failed"]
    path.write_text(text.format(tags="", last=""))
    record = live.run(resume="last")
    assert states(record) == ["carried", "ok", "ok"]
    assert texts(record)[-1] == "[1, 2]\n"


PARAMETERS = '# %% tags=["parameters"]\nsize = 1\n# %%\n{}\n# %%\nxs = [size]\n{}\n'


def test_other_parameters_go_back_to_where_they_are_set(live: Live) -> None:
    path = live.root / "t.py"
    path.write_text(PARAMETERS.format(cell("a", ""), "print(xs)\n1 / 0"))
    live.run(parameters={"size": 2})
    path.write_text(PARAMETERS.format(cell("a", ""), "print(xs)"))
    record = live.run(parameters={"size": 3}, resume="last")
    assert texts(record)[-1] == "[3]\n"
    assert states(record) == ["carried", "ok", "ok", "ok"]
    assert counted(live.root) == ["a", "a"]


def test_the_same_parameters_need_not_be_given_again(live: Live) -> None:
    path = live.root / "t.py"
    path.write_text(PARAMETERS.format(cell("a", ""), "print(xs)\n1 / 0"))
    live.run(parameters={"size": 2})
    path.write_text(PARAMETERS.format(cell("a", ""), "print(xs)"))
    for given in ({"size": 2}, None):
        record = live.run(parameters=given, resume=live.workspace.runs.find("last").run_id)
        assert texts(record)[-1] == "[2]\n"
        assert counted(live.root) == ["a"]
        break


def test_cells_that_only_bind_and_print_cost_no_state(live: Live) -> None:
    live.write("n = 1", "def double(x):\n    return 2 * x", "print(n)", "m = double(n)\n1 / 0")
    failed = live.run()
    kept = live.engine.kept[failed.run_id]
    assert not list(kept.marks)
    live.write("n = 1", "def double(x):\n    return 2 * x", "print(n)", "print(double(n))")
    record = live.run(resume="last")
    assert states(record) == ["carried"] * 3 + ["ok"]
    assert texts(record) == ["", "", "1\n", "2\n"]


# How often, how long, how it ended


def test_what_fails_again_can_be_resumed_again(live: Live) -> None:
    live.write(*three())
    live.run()
    live.write(*three()[:2], cell("c1", "2 / 0"))
    second = live.run(resume="last")
    assert states(second) == ["carried", "carried", "failed"]
    live.write(*three("c"))
    third = live.run(resume="last")
    assert third.outcome == "ok"
    assert third.plan["resumed"]["run"] == second.run_id
    assert counted(live.root) == ["a", "b", "c", "c1", "C"]


def test_also_at_an_earlier_cell(live: Live) -> None:
    """What the first run had set aside is not lost with the second."""
    live.write(*three())
    first = live.run()
    live.write(*three()[:2], cell("c1", "2 / 0"))
    live.run(resume="last")
    live.engine.kept.pop(first.run_id).drop()
    live.write(*three("b", "c"))
    record = live.run(resume="last")
    assert states(record) == ["carried", "ok", "ok"]
    assert texts(record)[2] == "[1, 20]\n"


def test_one_run_can_be_resumed_twice(live: Live) -> None:
    live.write(*three())
    first = live.run()
    for word in ("x", "y"):
        live.write(*three()[:2], f"xs.append({word!r}); print(xs)")
        record = live.run(resume=first.run_id)
        assert texts(record)[2] == f"[1, 2, {word!r}]\n"
    assert counted(live.root) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("last", "options", "outcome"),
    [
        ("while True: pass", {"cell_timeout": 0.3}, "timed_out"),
        ("import time; time.sleep(60)", {"timeout": 0.5}, "timed_out"),
        ("import os; os._exit(9)", {}, "died"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", {}, "died"),
        ("import sys; sys.exit(3)", {}, "failed"),
    ],
)
def test_however_it_ended(live: Live, last: str, options: dict[str, float], outcome: str) -> None:
    live.write(*three()[:2], last)
    failed = live.run(**options)
    assert failed.outcome == outcome
    live.write(*three("c"))
    record = live.run(resume="last")
    assert record.outcome == "ok"
    assert states(record) == ["carried", "carried", "ok"]
    assert counted(live.root) == ["a", "b", "C"]


def test_a_state_that_could_not_be_set_aside(live: Live) -> None:
    first = cell("a", "import threading, time\nn = 1")
    second = cell("b", "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()")
    live.write(first, second, "1 / 0")
    live.run()
    live.write(first, second, "print(n)")
    with pytest.raises(UsageError, match="threads are still running") as refused:
        live.run(resume="last")
    assert "run the task in full" in refused.value.hint
    record = live.run(resume="last", from_cell="1")
    assert states(record) == ["carried", "ok", "ok"]


def test_a_run_that_ended_well_or_was_of_another_task(live: Live) -> None:
    live.write("n = 1")
    live.run()
    with pytest.raises(UsageError, match="it ended well, it was too long ago, or its host ended"):
        live.run(resume="last")
    live.write("1 / 0", name="other.py")
    live.run("other.py")
    with pytest.raises(UsageError, match=r"was a run of other\.py, not of t\.py"):
        live.run(resume="last")
    with pytest.raises(UsageError, match="from needs resume"):
        live.run(from_cell="0")


def test_after_its_time_it_is_gone_and_the_full_run_is_offered(scratch: Scratch) -> None:
    scratch.write("quire.toml", "resume_for = 1\n")
    scratch.write("t.py", "# %%\nimport os\n# %%\n1 / 0\n")
    scratch.run("t.py")
    deadline = time.monotonic() + 15
    while True:
        done = scratch.quire("run", "t.py", "--resume", "last", "-q")
        if done.returncode == 2 or time.monotonic() > deadline:
            break
        time.sleep(1.1)  # each try that still finds it is a failed run that can be resumed
    assert done.returncode == 2
    assert "are gone" in done.stderr
    assert "run the task in full: quire run t.py" in done.stderr


def test_when_the_host_has_ended_the_full_run_is_offered(scratch: Scratch) -> None:
    scratch.write("t.py", "# %%\nimport os\n# %%\n1 / 0\n")
    scratch.run("t.py")
    scratch.quire("host", "stop")
    done = scratch.quire("run", "t.py", "--resume", "last")
    assert done.returncode == 2
    assert "are gone" in done.stderr
    assert "run the task in full: quire run t.py" in done.stderr
    scratch.write("my p.py", '# %% tags=["parameters"]\nn: int = 1\n# %%\n1 / 0\n')
    scratch.run("my p.py", "-p", "n", "5")
    scratch.quire("host", "stop")
    done = scratch.quire("run", "my p.py", "--resume", "last")
    assert "run the task in full: quire run 'my p.py' -p n 5" in done.stderr
    # Without a host nothing is set aside in the first place, and nothing is promised.
    done = scratch.quire("run", "t.py", "--no-host")
    assert done.returncode == 1
    assert "--resume" not in done.stdout


def test_states_of_runs_are_dropped_when_their_time_is_over(live: Live) -> None:
    live.write("import os", "1 / 0")
    record = live.run()
    kept = live.engine.kept[record.run_id]
    pids = [mark.snapshot.pid for mark in kept.marks if mark.snapshot]
    assert len(pids) == 1
    live.engine.tidy()
    assert record.run_id in live.engine.kept
    kept.expires = time.monotonic() - 1
    live.engine.tidy()
    deadline = time.monotonic() + 5
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    with pytest.raises(UsageError, match="are gone"):
        live.run(resume="last")


def test_secrets_of_the_first_run_stay_masked_in_the_second(live: Live) -> None:
    """The kernel goes on with the environment it had, whoever resumes it."""
    secret = "tok-" + "9876543210fedcba"
    live.env = {**live.env, "SERVICE_TOKEN": secret}
    live.write("import os\ntoken = os.environ['SERVICE_TOKEN']", "1 / 0")
    live.run()
    live.env = {key: value for key, value in live.env.items() if key != "SERVICE_TOKEN"}
    live.write("import os\ntoken = os.environ['SERVICE_TOKEN']", "print(token)")
    record = live.run(resume="last")
    assert texts(record)[1] == "[masked:SERVICE_TOKEN]\n"
    files = [path for path in (live.root / ".quire").rglob("*") if path.is_file()]
    assert not [path for path in files if secret.encode() in path.read_bytes()]
