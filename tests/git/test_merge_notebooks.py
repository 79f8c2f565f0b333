"""`quire merge`: two versions of a notebook become one, and no side loses anything."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import nbformat
import pytest

from quire.errors import UsageError
from quire.git import merge_documents
from quire.git.merge_notebooks import Merged, merge_files
from quire.workspace import Workspace
from scratch import Scratch

Cell = dict[str, Any]


def code(source: str, *outputs: Cell, id: str = "", **metadata: Any) -> Cell:
    cell = {"cell_type": "code", "metadata": metadata, "source": source}
    return cell | {"outputs": list(outputs), "execution_count": None, "id": id or _id(source)}


def text(source: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": source, "id": _id(source)}


def _id(source: str) -> str:
    """A digest, as the notebooks have that Quire writes."""
    from quire.task.document import digest_id

    return digest_id("code", source)


def printed(text: str) -> Cell:
    return {"output_type": "stream", "name": "stdout", "text": text}


def notebook(*cells: Cell, minor: int = 5, **metadata: Any) -> bytes:
    nb = {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}
    return json.dumps(nb).encode()


def sources(merged: Merged) -> list[str]:
    nb = json.loads(merged.data)
    nbformat.validate(nb)
    return ["".join(cell["source"]) for cell in nb["cells"]]


LOAD = "import os\nimport sys\n\nrows = load()\ncount = len(rows)"
SHOW = "print(rows)\nprint(count)"
BASE = notebook(code(LOAD), code(SHOW), text("# End"))


@pytest.fixture
def ws(tmp_path: Path, nbdime: Path) -> Workspace:
    return Workspace(tmp_path, cwd=tmp_path)


def test_both_edit_other_lines_of_one_cell(ws: Workspace) -> None:
    """The ids change with the text on both sides: that is no conflict."""
    ours = notebook(code("import re\n" + LOAD), code(SHOW), text("# End"))
    theirs = notebook(code(LOAD.replace("len(rows)", "len(rows) + 1")), code(SHOW), text("# End"))
    merged = merge_files(BASE, ours, theirs, workspace=ws)
    assert merged.conflicts == 0
    assert sources(merged)[0] == "import re\n" + LOAD.replace("len(rows)", "len(rows) + 1")


def test_both_add_cells_in_other_places(ws: Workspace) -> None:
    ours = notebook(text("# Start of it all"), code(LOAD), code(SHOW), text("# End"))
    theirs = notebook(code(LOAD), code(SHOW), text("# End"), code("tidy_up(rows)\nclose()"))
    merged = merge_files(BASE, ours, theirs, workspace=ws)
    assert merged.conflicts == 0
    assert sources(merged) == ["# Start of it all", LOAD, SHOW, "# End", "tidy_up(rows)\nclose()"]


def test_both_edit_the_same_line(ws: Workspace) -> None:
    ours = notebook(code(LOAD.replace("load()", "load(1)")), code(SHOW), text("# End"))
    theirs = notebook(code(LOAD.replace("load()", "load(2)")), code(SHOW), text("# End"))
    merged = merge_files(BASE, ours, theirs, workspace=ws)
    assert merged.conflicts == 1
    first = sources(merged)[0]
    assert "<<<<<<< local\nrows = load(1)\n=======\nrows = load(2)\n>>>>>>> remote" in first
    assert sources(merged)[1:] == [SHOW, "# End"]


def test_one_deletes_what_the_other_edits(ws: Workspace) -> None:
    ours = notebook(code(LOAD), text("# End"))
    theirs = notebook(code(LOAD), code(SHOW + "\nprint(1)"), text("# End"))
    merged = merge_files(BASE, ours, theirs, workspace=ws)
    assert merged.conflicts == 1
    assert "print(1)" in sources(merged)[1]
    assert "<<<<<<<" in sources(merged)[1]


def test_one_deletes_what_the_other_tags(ws: Workspace) -> None:
    """nbdime forgets the tag without a mark: then both stand there."""
    ours = notebook(code(LOAD), text("# End"))
    theirs = notebook(code(LOAD), code(SHOW, tags=["volatile"]), text("# End"))
    merged = merge_files(BASE, ours, theirs, workspace=ws)
    assert merged.conflicts == 1
    assert merged.note
    assert "volatile" in merged.data.decode()
    assert sources(merged).count(LOAD) == 1


def test_both_add_nearly_the_same_cell(ws: Workspace) -> None:
    """nbdime breaks on it where cells have ids, and drops the outputs where they have none."""
    added = "total = sum(rows)\nprint(total)"
    cells = (code(LOAD), code(SHOW), text("# End"))
    ours = notebook(*cells, code(added, printed("5\n"), tags=["a"]))
    theirs = notebook(*cells, code(added + "\nprint(2)", printed("6\n"), tags=["b"]))
    merged = merge_files(BASE, ours, theirs, workspace=ws)
    assert merged.conflicts
    nb = json.loads(merged.data)
    nbformat.validate(nb)
    assert {"5\n", "6\n"} <= {
        "".join(output["text"]) for cell in nb["cells"] for output in cell.get("outputs", ())
    }
    assert '"a"' in merged.data.decode()
    assert '"b"' in merged.data.decode()


def test_outputs_are_taken_or_marked_but_never_mixed(ws: Workspace) -> None:
    def version(output: str) -> bytes:
        return notebook(code(LOAD, printed(output)), code(SHOW))

    lines = [f"line {n}\n" for n in range(20)]
    base = version("".join(lines))
    ours = version("".join(["ours\n", *lines[1:]]))
    theirs = version("".join([*lines[:-1], "theirs\n"]))
    merged = json.loads(merge_files(base, ours, theirs, workspace=ws).data)
    shown = ["".join(output["text"]) for output in merged["cells"][0]["outputs"]]
    assert shown[1].startswith("ours\n")
    assert shown[3].endswith("theirs\n")
    assert not any(one.startswith("ours\n") and one.endswith("theirs\n") for one in shown)
    assert merge_files(base, ours, theirs, workspace=ws).conflicts == 1
    added = notebook(code(LOAD, printed("".join(lines))), code(SHOW), text("more of it"))
    one_side = merge_files(base, ours, added, workspace=ws)
    assert one_side.conflicts == 0
    outputs = json.loads(one_side.data)["cells"][0]["outputs"]
    assert "".join(outputs[0]["text"]) == "".join(["ours\n", *lines[1:]])


def test_both_add_the_notebook(ws: Workspace) -> None:
    ours = notebook(code("first = 1\nx = first + 1"), code(LOAD))
    theirs = notebook(code("import pandas as pd\ndf = pd.DataFrame()"), code(LOAD))
    for base in (b"", b"  \n"):
        merged = merge_files(base, ours, theirs, workspace=ws)
        assert merged.conflicts
        assert sources(merged).count(LOAD) == 1
        assert "first = 1\nx = first + 1" in sources(merged)
        assert "import pandas as pd\ndf = pd.DataFrame()" in sources(merged)
    assert merge_files(b"", ours, ours, workspace=ws) == (ours, 0, "")


def test_one_side_alone_needs_no_tool_and_keeps_every_byte(tmp_path: Path) -> None:
    nowhere = {"PATH": "/nowhere", "XDG_DATA_HOME": str(tmp_path)}
    ws = Workspace(tmp_path, cwd=tmp_path, env=nowhere)
    other = b"  " + notebook(code("x = 1"))
    assert merge_files(BASE, BASE, other, workspace=ws).data == other
    assert merge_files(BASE, other, BASE, workspace=ws).data == other
    with pytest.raises(UsageError, match="needs nbdime"):
        merge_files(BASE, other, notebook(code("x = 2")), workspace=ws)


def test_what_a_run_left_behind_is_no_conflict_and_no_certificate(ws: Workspace) -> None:
    def executed(source: str, seconds: float) -> bytes:
        told = {"papermill": {"duration": seconds}, "quire": {"status": "ok"}}
        metadata = {**told, "language_info": {"name": "python", "version": str(seconds)}}
        return notebook(code(source, **told), code(SHOW, **told), **metadata)

    merged = merge_files(
        executed(LOAD, 1),
        executed("import re\n" + LOAD, 2),
        executed(LOAD + "\nmore = 1", 3),
        workspace=ws,
    )
    assert merged.conflicts == 0
    nb = json.loads(merged.data)
    assert "papermill" not in merged.data.decode()
    assert "quire" not in nb["metadata"]
    assert nb["metadata"]["language_info"]["version"] == "2"


def test_ids_of_others_stay_where_they_are(ws: Workspace) -> None:
    base = notebook(code(LOAD, id="one"), code(SHOW, id="two"))
    ours = notebook(code(LOAD, id="one"), code(SHOW, id="two"), code("ours = 1\na()", id="three"))
    theirs = notebook(text("Something new") | {"id": "zero"}, *json.loads(base)["cells"])
    merged = merge_files(base, ours, theirs, workspace=ws)
    ids = [cell["id"] for cell in json.loads(merged.data)["cells"]]
    assert ids == ["zero", "one", "two", "three"]


def test_a_notebook_without_ids_gets_none(ws: Workspace) -> None:
    def old(*cells: str) -> bytes:
        bare = [{k: v for k, v in code(cell).items() if k != "id"} for cell in cells]
        return notebook(*bare, minor=4)

    ours, theirs = old("first()\nmore()", LOAD, SHOW), old(LOAD, SHOW, "last()\nend()")
    merged = merge_files(old(LOAD, SHOW), ours, theirs, workspace=ws)
    nb = json.loads(merged.data)
    nbformat.validate(nb)
    assert nb["nbformat_minor"] == 4
    assert not any("id" in cell for cell in nb["cells"])


WORDS = ["alpha", "beta", "gamma", "delta", "eps", "zeta", "eta", "theta"]


def some_cell(luck: random.Random) -> Cell:
    rows = [f"{luck.choice(WORDS)} = {luck.choice(WORDS)}({luck.randrange(9)})" for _ in range(3)]
    source = "\n".join(rows[: luck.randrange(1, 4)])
    if luck.random() < 0.3:
        return text(source)
    outputs = [printed(f"{luck.randrange(99)}\n")] if luck.random() < 0.5 else []
    return code(source, *outputs, **({"tags": [luck.choice(WORDS)]} if luck.random() < 0.2 else {}))


def edited(cells: list[Cell], luck: random.Random) -> list[Cell]:
    cells = json.loads(json.dumps(cells))
    for _ in range(luck.randrange(1, 5)):
        at = luck.randrange(len(cells) + 1)
        match luck.choice(["insert", "delete", "edit", "edit", "output", "tag", "move"]):
            case "insert":
                cells.insert(at, some_cell(luck))
            case _ if at == len(cells):
                continue
            case "delete":
                del cells[at]
            case "move":
                cells.insert(luck.randrange(len(cells)), cells.pop(at))
            case "tag":
                cells[at]["metadata"] = {"tags": [luck.choice(WORDS)]}
            case "output" if cells[at]["cell_type"] == "code":
                cells[at]["outputs"] = [printed(f"{luck.randrange(99)}\n")]
            case _:
                rows = cells[at]["source"].split("\n")
                rows[luck.randrange(len(rows))] = f"{luck.choice(WORDS)}({luck.randrange(99)})"
                cells[at] |= {"source": "\n".join(rows), "id": f"e{luck.getrandbits(32):x}"}
    return cells


@pytest.mark.parametrize("seed", range(24))
def test_no_side_loses_anything(ws: Workspace, seed: int) -> None:
    luck = random.Random(seed)
    base = [some_cell(luck) for _ in range(luck.randrange(6))]
    ours, theirs = edited(base, luck), edited(base, luck)
    merged = merge_files(notebook(*base), notebook(*ours), notebook(*theirs), workspace=ws)
    nb = json.loads(merged.data)
    nbformat.validate(nb)
    assert len({cell["id"] for cell in nb["cells"]}) == len(nb["cells"])
    kept = merge_documents.Kept()
    sides = (json.loads(notebook(*side)) for side in (base, ours, theirs))
    prepared = [merge_documents.prepared(side, kept) for side in (*sides, nb)]
    assert not merge_documents.lost(*prepared)
    there = {row for cell in nb["cells"] for row in "".join(cell["source"]).split("\n")}
    known = {row for cell in base for row in cell["source"].split("\n")}
    added = {row for cell in (*ours, *theirs) for row in cell["source"].split("\n")} - known
    assert added <= there
    if not merged.conflicts:
        assert "<<<<<<<" not in merged.data.decode()


def test_what_is_lost_is_noticed() -> None:
    def nb(*lines: str) -> dict[str, Any]:
        return json.loads(notebook(code("\n".join(lines))))

    base, ours, theirs = nb("a", "b"), nb("a", "b", "mine"), nb("a", "yours")
    assert merge_documents.lost(base, ours, theirs, nb("a", "mine", "yours")) == []
    assert merge_documents.lost(base, ours, theirs, nb("a", "yours")) == ["mine"]
    assert merge_documents.lost(base, ours, theirs, nb("mine", "yours")) == []  # nobody added `a`
    assert merge_documents.lost(nb(), nb("x", "x"), nb("x"), nb("x")) == ["x"]


# The command.


def test_the_command_writes_a_file_or_prints(scratch: Scratch, nbdime: Path) -> None:
    (scratch.root / "base.ipynb").write_bytes(BASE)
    ours = notebook(code("import re\n" + LOAD), code(SHOW), text("# End"))
    (scratch.root / "ours.ipynb").write_bytes(ours)
    theirs = notebook(code(LOAD), code(SHOW), text("# The end"))
    (scratch.root / "theirs.ipynb").write_bytes(theirs)
    three = ("base.ipynb", "ours.ipynb", "theirs.ipynb")
    done = scratch.quire("merge", *three)
    assert (done.returncode, done.stderr) == (0, "")
    printed_one = json.loads(done.stdout)
    assert (scratch.root / "ours.ipynb").read_bytes() == ours
    done = scratch.quire("merge", *three, "-o", "ours.ipynb", "--json")
    assert json.loads(done.stdout) == {"conflicts": 0, "output": "ours.ipynb", "note": ""}
    assert json.loads((scratch.root / "ours.ipynb").read_bytes()) == printed_one
    told = json.loads(scratch.quire("merge", *three, "--json").stdout)
    assert told["notebook"]["cells"]


def test_conflicts_have_an_exit_status_of_their_own(scratch: Scratch, nbdime: Path) -> None:
    (scratch.root / "base.ipynb").write_bytes(BASE)
    for name in ("ours", "theirs"):
        nb = notebook(code(LOAD.replace("load()", f"load({name})")), code(SHOW), text("# End"))
        (scratch.root / f"{name}.ipynb").write_bytes(nb)
    done = scratch.quire("merge", "base.ipynb", "ours.ipynb", "theirs.ipynb", "-o", "out.ipynb")
    assert done.returncode == 1
    assert "1 conflict: look for <<<<<<<" in done.stderr
    assert "load(ours)" in (scratch.root / "out.ipynb").read_text()
    assert "load(theirs)" in (scratch.root / "out.ipynb").read_text()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("a.py", "a.py", "a.py"), "git merges"),
        (("a.ipynb", "a.ipynb", "nothing.ipynb"), "cannot read 'nothing.ipynb'"),
        (("a.ipynb", "a.ipynb", "bad.ipynb"), "not valid JSON"),
        (("a.ipynb", "bad.ipynb", "a.ipynb"), "not valid JSON"),
        (("bad.ipynb", "a.ipynb", "a.ipynb"), "not valid JSON"),
        (("a.ipynb", "a.ipynb", "empty.ipynb"), "not valid JSON"),
        (("a.ipynb", "a.ipynb", "a.ipynb", "-o", "out.txt"), "no name for a notebook"),
        (("a.ipynb", "a.ipynb", "a.ipynb", "-o", "no/out.ipynb"), "no folder"),
    ],
)
def test_what_cannot_be_merged(scratch: Scratch, args: tuple[str, ...], said: str) -> None:
    scratch.write("a.ipynb", BASE.decode())
    scratch.write("a.py", "# %%\n")
    scratch.write("bad.ipynb", "<<<<<<< ours")
    scratch.write("empty.ipynb", "")
    before = sorted(path.name for path in scratch.root.iterdir())
    done = scratch.quire("merge", *args)
    assert done.returncode == 2
    assert said in done.stderr
    assert "hint:" in done.stderr
    assert sorted(path.name for path in scratch.root.iterdir()) == before
