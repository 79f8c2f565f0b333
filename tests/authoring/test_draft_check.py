"""What somebody else drafted is read and checked, and never run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quire.authoring.draft_check import cleaned, vet
from quire.task import formats
from quire.task.params import declared
from written import written

GOOD = written()


def without(title: str) -> str:
    doc = formats.loads(GOOD, ".py")
    kept = [cell for cell in doc.cells if cell.title != title]
    return formats.dumps(formats.Document(tuple(kept)), ".py")


def test_a_good_draft_passes() -> None:
    found, problems = vet(GOOD)
    assert problems == []
    assert found is not None
    assert found.title == "Alert when CPU is above 80%"
    assert [p.name for p in declared(found.document)] == ["threshold"]
    assert found.waiting == ()
    assert found.text == GOOD


@pytest.mark.parametrize(
    "wrapped",
    [
        f"```python\n{GOOD}```\n",
        f"Here is the task:\n\n```py\n{GOOD}```\n\nAnd a small one:\n\n```\nx\n```\nBye.",
        GOOD.replace("\n", "\r\n"),
        "<think>\nA title:\n```\n# %% [markdown]\n" + GOOD + GOOD + "```\n</think>\n\n" + GOOD,
        "\ufeff" + GOOD.replace("# %% decide", "# %% dec\u202eide\x00\x1b"),
    ],
)
def test_fences_and_characters_that_are_not_seen_are_taken_away(wrapped: str) -> None:
    assert cleaned(wrapped).strip() == GOOD.strip()
    assert vet(wrapped)[1] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "first cell"),
        ("I cannot help with that.", "first cell"),
        (without("parameters"), "# %% parameters"),
        *((without(name), f"title {name}") for name in ("gather", "decide", "report", "check")),
        (GOOD.replace("glue(", "print("), "no result has a name"),
        (GOOD.replace("assert ", "print; "), "asserts nothing"),
        (GOOD.replace("threshold: float = 80.0", "threshold: float"), "needs a type, a default"),
        (GOOD.replace("threshold: float = 80.0", "threshold = fetch()"), "needs a type"),
        (GOOD.replace("found = [", "found = [["), "was never closed"),
        (GOOD.replace("len(found)}", "len(finds)}"), "finds is not defined above"),
        (GOOD.replace("# %% decide", "# %% decide\n!rm -rf /"), "magic or a shell line"),
        (GOOD.replace("# %% decide", "# %% decide\nget_ipython().system('x')"), "magic"),
        (GOOD.replace("# %% decide", "# %% decide\nx = !id"), "magic"),
        (GOOD.replace("# %% decide", "# %% decide\nx = 1; get_ipython().system('x')"), "magic"),
        (GOOD.replace("80.0", "__import__('os').system('x')"), "the parameters cell computes"),
        (GOOD.replace("80.0", 'f"{open(0)}"'), "the parameters cell computes"),
        (GOOD.replace("threshold: float", "print(1)\nthreshold: float"), "cell computes"),
        (
            GOOD.replace("# %% decide", "# %% decide\n# /// script\n# dependencies = ['x']\n# ///"),
            "packages to be installed",
        ),
        (GOOD.replace("# %% decide", '# %% decide tags=["skip-execution"]'), "may be tagged"),
        (GOOD + "\n# %% [raw]\nx\n", "is raw"),
        ("# ---\n# jupyter:\n#   kernelspec:\n#     name: bash\n# ---\n\n" + GOOD, "header"),
        (GOOD + "\n# %%\nx = 1\n" * 60, "more than 60 cells"),
    ],
)
def test_what_is_wrong_is_said(text: str, problem: str) -> None:
    found, problems = vet(text)
    assert found is None
    assert any(problem in each for each in problems), problems


def test_nothing_of_it_is_run(tmp_path: Path) -> None:
    there = tmp_path / "there"
    bad = GOOD.replace("# %% gather", f"# %% gather\nopen({str(there)!r}, 'w').close()")
    assert vet(bad)[1] == []
    assert not there.exists()


def test_metadata_of_the_markers_is_left_out() -> None:
    found, problems = vet(GOOD.replace("# %% gather", '# %% gather name="x" quire={"kernel": "b"}'))
    assert problems == []
    assert found is not None
    assert "kernel" not in found.text
    assert "name=" not in found.text


def test_a_comment_that_looks_like_a_command_stays_one() -> None:
    found, problems = vet(GOOD.replace("# %% decide", "# %% decide\n# x = !id"))
    assert problems == []
    assert found is not None
    decide = next(cell for cell in found.document.cells if cell.title == "decide")
    assert decide.source.startswith("# x = !id\n")


def test_a_draft_that_is_not_done_waits() -> None:
    left = 'raise NotImplementedError("the real ones")\n'
    found, problems = vet(re.sub(r"(?<=# %% gather\n).*\n", left, GOOD))
    assert problems == []
    assert found is not None
    assert [(item.title, item.what) for item in found.waiting] == [("gather", "the real ones")]


@pytest.mark.parametrize("line", ["# TODO: the real ones", "..."])
def test_what_only_says_that_it_is_not_done_is_sent_back(line: str) -> None:
    """It would run, and look like work."""
    found, problems = vet(GOOD.replace("# %% gather", f"# %% gather\n{line}"))
    assert found is None
    assert "raise NotImplementedError" in problems[0]
