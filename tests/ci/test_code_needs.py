"""What code names of the world around it, read from its text."""

from __future__ import annotations

from quire.ci.code_needs import Import, Needs, of_document, of_module
from quire.task import formats


def needs(*cells: str) -> Needs:
    text = "".join(f"# %%\n{cell}\n" for cell in cells)
    return of_document(formats.loads(text, ".py"))


def test_every_way_to_import_is_found() -> None:
    found = needs(
        "import a.b, c as d",
        "def later():\n    from .e import f\n    from ..g.h import (i, j)",
        "import importlib\nimportlib.import_module('k.l')\n__import__('.m')",
    )
    assert found.imports == {
        Import("a.b"),
        Import("c"),
        Import("e", ("f",), 1),
        Import("g.h", ("i", "j"), 2),
        Import("importlib"),
        Import("k.l"),
        Import("m", (), 1),
    }


def test_names_that_are_made_while_it_runs_are_not_guessed() -> None:
    assert not needs("__import__(name)\n__import__('a b')\n__import__()").imports


def test_strings_may_be_paths_but_not_long_texts() -> None:
    found = needs("open('data/x.csv')", 'f"out/{n}.txt"', '"""Two\nlines"""', f"'{'x' * 400}'")
    assert found.paths == {"data/x.csv", "out/", ".txt"}


def test_words_of_magics_shell_lines_and_other_languages_count() -> None:
    found = needs(
        "%run lib/steps\nx = 1", "!cat 'data/a b.txt' > out.txt", "%%bash\nsort data/c.csv"
    )
    assert {"lib/steps.py", "out.txt", "data/c.csv"} <= found.paths
    assert "x" not in found.paths, "the Python lines of such a cell have strings"


def test_a_cell_that_is_no_python_yet_gives_its_words() -> None:
    assert "data/x.csv" in needs("x = open('data/x.csv'").paths


def test_another_language_gives_its_words() -> None:
    header = "# ---\n# jupyter:\n#   kernelspec:\n#     name: ir\n#     language: R\n# ---\n"
    doc = formats.loads(f"{header}# %%\nread.csv('data/x.csv')\n", ".py")
    assert doc.language == "r"
    assert "data/x.csv" in of_document(doc).paths


def test_text_cells_name_nothing() -> None:
    doc = formats.loads("# %% [markdown]\n# See 'data/x.csv' and import a\n", ".py")
    assert of_document(doc) == Needs()


def test_a_module_is_read_as_one_text() -> None:
    found = of_module("from . import x\nPATH = 'a.csv'\n")
    assert found == Needs(frozenset({Import("", ("x",), 1)}), frozenset({"a.csv"}))
    assert "b.csv" in of_module("def broken(:\n 'b.csv'").paths
