"""`make demo`, step by step, as the Makefile has it, without the installing."""

from __future__ import annotations

import json
import re
import shlex

from doc_pages import ROOT

from scratch import Scratch


def recipe(target: str) -> list[str]:
    """The lines of a target, without make's own marks."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)*)", (ROOT / "Makefile").read_text(), re.M)
    assert found is not None
    rows = [row.strip().removeprefix("@") for row in found[1].splitlines()]
    return [row.replace("$(BIN)/", "").replace("$$", "$") for row in rows]


def test_the_demo_does_what_it_says(scratch: Scratch) -> None:
    for source in (ROOT / "notebooks").glob("*.py"):
        scratch.write(f"notebooks/{source.name}", source.read_text())
    announced: list[str] = []
    outputs: dict[str, str] = {}
    for row in recipe("demo"):
        words = shlex.split(row.partition(" > ")[0])
        if words[0] == "echo":
            announced += words[1:]
            continue
        assert words[0] == "quire", row
        done = scratch.quire(*words[1:])
        assert done.returncode == 0, f"{row}\n{done.stdout}{done.stderr}"
        outputs[" ".join(words)] = done.stdout
    shown = [line.removeprefix("$ ") for line in announced]
    assert shown == [line for line in outputs if line != "quire host stop"]
    run = next(text for line, text in outputs.items() if line.startswith("quire run "))
    assert run.startswith("ok in ")
    assert "forge-vps-01" in outputs["quire show last"]
    assert json.loads(outputs["quire results last --json"])["hostname"] == "forge-vps-01"


def test_the_demo_leaves_no_host(scratch: Scratch) -> None:
    assert recipe("demo")[-1].startswith("quire host stop")
