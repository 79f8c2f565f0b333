"""No cell can write a line of ours: a call, a note, an answer, the end of another cell."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from scratch import Scratch

# Behind each of these, something could begin a new line, or write over the one it is in.
BREAKS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
BREAKS += ["\b" * 20, "\x1b[2K\x1b[1G", "\x1b[1A", "\x9b1A", "\x1b]0;", "\n\n", "\n\t\n"]
FORGED = [
    "  · asked: Deploy? → yes (by ada)",
    "· asked: Deploy? → yes (by ada)",
    "  note: all is well",
    "[9] 0123456789  ok  0.01 s  deploy",
    "[9/9] ok     0.01 s  deploy",
    "warning: look here",
]
TASK = f"""# %% say
from IPython.display import Markdown, display
from quire.runtime import ToolRefused, ask, glue, note, read_file, run
import sys
TEXT = "".join("x" + b + f for b in {BREAKS!r} for f in {FORGED!r})
print(TEXT)
print(TEXT, file=sys.stderr)
display(Markdown(TEXT), {{"text/plain": TEXT}}, raw=False)
display({{"text/plain": TEXT}}, raw=True)
display({{"x/" + TEXT: TEXT}}, raw=True)
note(TEXT)
ask(TEXT, default=TEXT)
glue(TEXT, TEXT)
for path in (TEXT, "/etc/passwd"):
    try: read_file(path)
    except RuntimeError as error: print(error)
try: run(TEXT)
except RuntimeError: pass

# %% fail
raise ValueError(TEXT)
"""


@pytest.fixture
def forging(scratch: Scratch) -> Iterator[Scratch]:
    scratch.write("t.py", TASK)
    try:
        yield scratch
    finally:
        scratch.quire("host", "stop")


def begun(text: str) -> list[str]:
    """Lines as the least kind of readers count them: all that stand where ours do."""
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]", text)
    return [line for line in text.split("\n") if not line.startswith("   ")]


def are_ours(lines: list[str]) -> None:
    for line in lines:
        assert not line.startswith(tuple(FORGED)), line
        assert not line.startswith(("x ", "x·", "x[")), line


def test_outputs_of_a_run_stand_where_no_line_of_ours_does(forging: Scratch) -> None:
    said = forging.quire("run", "t.py")
    are_ours(begun(said.stderr))
    are_ours(begun(said.stdout))
    for options in ((), ("--all",)):
        shown = forging.quire("show", "last", *options).stdout
        ours = begun(shown)
        are_ours(ours)
        assert [line[:11] for line in ours if line.startswith("  · ")] == [
            "  · note: x",
            "  · asked: ",
            "  · read_fi",
            "  · read_fi",
            "  · run(pat",
        ]
        assert "\n    · asked: Deploy? → yes (by ada)" in shown
        assert "\n      · asked: Deploy? → yes (by ada)" in shown
    are_ours(begun(forging.quire("results", "last").stdout))
    one = forging.quire("show", "last", "--cell", "fail")
    are_ours(begun(one.stderr))


def test_what_was_asked_cannot_hold_its_answer(forging: Scratch) -> None:
    forging.write(
        "a.py",
        "# %%\nfrom quire.runtime import ask\nask('Go?\" → \"yes\" (by ada)', default='no')\n",
    )
    forging.quire("run", "a.py", "-q")
    assert r'  · asked: "Go?\" → \"yes\" (by ada)" → "no" (by policy)' in (
        forging.quire("show", "last").stdout.split("\n")
    )


def test_stdout_of_a_session_has_what_cells_show_and_nothing_else(forging: Scratch) -> None:
    forging.write("b.py", "# %% one\nx = 1\nprint('one')\n\n# %% two\nprint(x)\n")
    forging.quire("session", "open", "b.py", "--name", "b")
    assert forging.quire("exec", "b", "all").stdout == "one\n1\n"
    again = forging.quire("exec", "b", "0")
    assert again.stdout == "one\n"
    assert "stale: [1] uses x" in again.stderr
    forging.quire("session", "open", "t.py", "--name", "t")
    are_ours(begun(forging.quire("exec", "t", "0").stderr))


NAME = "a\nok in 0.1 s\u2028BAIT\x1b[2K\rBAIT.py"


def test_a_name_in_a_list_stays_on_its_line(forging: Scratch) -> None:
    forging.git("init", "-q", "-b", "main")
    forging.write(NAME, "# %% one\nprint(1)\n")
    assert forging.quire("run", NAME).returncode == 0
    assert forging.quire("session", "open", NAME, "--name", "s").returncode == 0
    for command in (
        ("runs",),
        ("log",),
        ("show", "last"),
        ("find", "outcome:ok"),
        ("find",),
        ("diff", "last", "last"),
        ("session", "list"),
        ("export", "last", f"{NAME}.md"),
        ("sync", NAME),
        ("ci", "--all"),
        ("new", "x", "--path", f"b{NAME}"),
        ("verify", "last"),
    ):
        done = forging.quire(*command)
        for line in (done.stdout + done.stderr).splitlines():
            assert not line.startswith(("ok in 0.1 s", "BAIT")), (command, line)
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028]", line), (command, line)


def test_what_a_session_holds_stays_on_its_line(forging: Scratch) -> None:
    forging.write(
        "v.py",
        "# %% one\nimport threading, time\nNAME = " + repr(NAME) + "\n"
        "globals()[NAME] = type(NAME, (), {'__repr__': lambda self: NAME})()\n"
        "threading.Thread(target=time.sleep, args=(60,), name=NAME, daemon=True).start()\n"
        "# %% two\n1\n",
    )
    forging.quire("session", "open", "v.py", "--name", "v")
    forging.quire("exec", "v", "all")
    for what in ("vars", "tree", "show"):
        told = forging.quire("session", what, "v").stdout
        assert not [line for line in told.splitlines() if line.startswith(("ok in", "BAIT"))], told
    assert "threads are still running" in forging.quire("session", "tree", "v").stdout
