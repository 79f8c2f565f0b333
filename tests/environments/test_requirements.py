"""What a task says that it needs is read as PEP 723 has it, and nothing else gets through."""

from __future__ import annotations

import pytest

from quire.environments.requirements import Dependencies, checked, declared, fits, pins
from quire.errors import DocumentError
from quire.task import formats
from quire.task.document import Cell, Document, identified

BLOCK = """# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "pandas>=2,<4",
#   "rich",
# ]
# ///
"""
WANTED = Dependencies(("pandas>=2,<4", "rich"), ">=3.11")


def of(text: str) -> Dependencies | None:
    return declared(formats.loads(text, ".py"))


@pytest.mark.parametrize(
    "text",
    [
        BLOCK + "\n# %%\nimport pandas\n",
        "# %%\n" + BLOCK + "import pandas\n",
        "#!/usr/bin/env quire\n" + BLOCK + "# %%\n1\n",
        "# ---\n# jupyter:\n#   kernelspec:\n#     name: python3\n# ---\n\n" + BLOCK + "# %%\n1\n",
        "# %% [markdown]\n# # Title\n\n# %% needs\n# Says what it needs.\n" + BLOCK,
        BLOCK.replace("\n", "\r\n") + "\r\n# %%\r\n1\r\n",
    ],
)
def test_a_block_is_found_where_people_put_it(text: str) -> None:
    assert of(text) == WANTED


def test_a_notebook_has_it_in_a_cell() -> None:
    cells = identified([Cell("markdown", "# Title"), Cell("code", BLOCK.rstrip("\n"))])
    assert declared(Document(cells, format="ipynb")) == WANTED
    again = formats.loads(formats.dumps(Document(cells), ".ipynb"), ".ipynb")
    assert declared(again) == WANTED


def test_front_matter_has_it_under_its_own_keys() -> None:
    front = '# ---\n# requires-python: ">=3.11"\n# dependencies:\n#   - pandas>=2,<4\n#   - rich\n'
    assert of(front + "# ---\n\n# %%\n1\n") == WANTED
    raw = "---\ntitle: Needs\ndependencies: [rich]\n---"
    book = Document(identified([Cell("raw", raw), Cell("code", "1")]), format="logbook")
    assert declared(book) == Dependencies(("rich",))


@pytest.mark.parametrize(
    "text",
    [
        "# %%\n1\n",
        "# %%\ntext = '''\n" + BLOCK + "'''\n",
        "# %% [markdown]\n" + BLOCK.replace("# ", "# # "),
        "# ---\n# title: The dependencies are none\n# ---\n\n# %%\n1\n",
    ],
)
def test_other_text_declares_nothing(text: str) -> None:
    assert of(text) is None


def test_another_language_declares_nothing() -> None:
    assert declared(Document(identified([Cell("code", BLOCK)]), language="r")) is None


def test_an_empty_list_is_a_declaration() -> None:
    assert of("# /// script\n# dependencies = []\n# ///\n# %%\n1\n") == Dependencies(())


def test_a_date_may_be_given_and_no_other_setting_of_uv() -> None:
    text = '# /// script\n# [tool.uv]\n# exclude-newer = "2026-01-31"\n# ///\n# %%\n1\n'
    assert of(text) == Dependencies((), newest="2026-01-31")
    with pytest.raises(DocumentError, match="not a date"):
        of(text.replace("2026-01-31", "--index-url=x"))
    with pytest.raises(DocumentError, match="index-url, which is not followed") as caught:
        of(text.replace("exclude-newer", "index-url"))
    assert "UV_INDEX" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('# /// script\n# dependencies = ["a"\n# ///\n', "not valid TOML"),
        ("# /// script\n# dependencies = []\n# %%\n1\n", "not closed"),
        ("# /// script\n# dependencies = []\nprint()\n# ///\n", "not closed"),
        (BLOCK + BLOCK, "more than one"),
        ("# %%\n" + BLOCK + "\n# %%\n" + BLOCK, "more than once"),
        ('# /// script\n# dependencies = "six"\n# ///\n', "no list of texts"),
        ("# /// script\n# dependencies = [1]\n# ///\n", "no list of texts"),
        ("# /// script\n# requires-python = 3.11\n# ///\n", "not a text"),
        ("# /// script\n# dependancies = []\n# ///\n", "dependancies"),
        ("# ---\n# dependencies: six\n# ---\n\n# %%\n1\n", "no list of texts"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, said: str) -> None:
    with pytest.raises(DocumentError, match=said) as caught:
        of(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "requirement",
    [
        "--index-url=https://x.example/simple",
        "-r other.txt",
        "-e .",
        "./folder",
        "../up/one.whl",
        "six @ https://x.example/six.whl",
        "six @ file:///six.whl",
        "git+https://x.example/six",
        "six\n--index-url=https://x.example",
        "six =< 2",
        "",
        "six==1.16.0 --hash=sha256:00",
        "six # comment",
        "s" * 600,
    ],
)
def test_only_names_with_versions_reach_the_installer(requirement: str) -> None:
    with pytest.raises(DocumentError) as caught:
        checked(Dependencies((requirement,)))
    assert caught.value.message.startswith("the dependency ")
    assert caught.value.hint


def test_what_is_good_reaches_it_in_one_form() -> None:
    wanted = Dependencies(("six", "pandas [excel]>= 2 ; python_version>'3'"), ">=3.11,<4")
    assert checked(wanted) == ["six", 'pandas[excel]>=2; python_version > "3"']
    with pytest.raises(DocumentError, match="names no versions"):
        checked(Dependencies((), "newest"))


def test_versions_of_python() -> None:
    assert fits(">=3.11", "3.11.7")
    assert fits("", "3.11.7")
    assert fits(">=3.14", "3.14.0rc1") is False
    assert not fits("<3.11", "3.11.7")


def test_the_digest_goes_by_what_is_meant() -> None:
    digest = Dependencies(("a", "b>=1")).digest("x")
    assert Dependencies(("b>=1", " a")).digest("x") == digest
    others = [
        Dependencies(("a", "b>=2")).digest("x"),
        Dependencies(("a", "b>=1"), ">=3.11").digest("x"),
        Dependencies(("a", "b>=1"), newest="2026-01-31").digest("x"),
        Dependencies(("a", "b>=1")).digest("y"),
    ]
    assert len({digest, *others}) == 5


HASH = "--hash=sha256:" + "0f" * 32


def test_a_lock_is_names_with_versions_and_digests() -> None:
    text = f"# head\nsix==1.16.0 \\\n    {HASH} \\\n    {HASH}\ncolorama==0.4 ; os_name == 'nt'\n"
    found = pins(text, "a.lock.txt")
    assert [(name, version) for name, version, _ in found] == [
        ("six", "1.16.0"),
        ("colorama", "0.4"),
    ]
    assert found[0][2] == f"six==1.16.0 \\\n    {HASH} \\\n    {HASH}"
    assert pins(text.replace("\n", "\r\n"), "a.lock.txt") == found


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://x.example",
        "-r other.txt",
        "six>=1",
        "six",
        "six @ https://x.example/six.whl",
        "six==1 --index-url=https://x.example",
        "six==1 \\\n    --index-url=https://x.example",
        f"six==1 \\\n    {HASH}x",
        "six==1 ; os_name == 'nt' \\\n  -e .",
        "six==1 ; os_name == 'nt' --index-url=https://x.example",
        "six==1 \\",
    ],
)
def test_nothing_else_passes_for_a_lock(line: str) -> None:
    with pytest.raises(DocumentError, match=r"a\.lock\.txt"):
        pins(f"colorama==0.4\n{line}\n", "a.lock.txt")
