"""Stripping a notebook: what goes, and that every other byte stays."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.git.filters import serve, strip
from quire.task import ipynb

CORPUS = sorted((Path(__file__).parent.parent / "corpus").rglob("*.ipynb"))


def executed() -> dict[str, Any]:
    return {
        "cells": [
            {"cell_type": "markdown", "id": "m", "metadata": {}, "source": ["# é\n"]},
            {
                "cell_type": "code",
                "execution_count": 7,
                "id": "c",
                "metadata": {
                    "tags": ["keep"],
                    "execution": {"iopub.execute_input": "2026-01-01T00:00:00Z"},
                    "papermill": {"duration": 1.5},
                    "quire": {"status": "ok"},
                },
                "outputs": [{"name": "stdout", "output_type": "stream", "text": ["secret\n"]}],
                "source": ["1"],
            },
        ],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "name": "python3"},
            "papermill": {"parameters": {}},
            "quire": {"run_id": "r", "source_sha256": "s", "mine": 1},
            "widgets": {"state": {}},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def cleaned() -> dict[str, Any]:
    want = executed()
    want["cells"][1] |= {"execution_count": None, "outputs": [], "metadata": {"tags": ["keep"]}}
    want["metadata"] = {
        "kernelspec": want["metadata"]["kernelspec"],
        "quire": {"source_sha256": "s", "mine": 1},
    }
    return want


LAYOUTS: list[dict[str, Any]] = [
    {"indent": 1},
    {"indent": 4},
    {"indent": "\t"},
    {},
    {"separators": (",", ":")},
    {"indent": 1, "ensure_ascii": False},
    {"indent": 2, "sort_keys": True},
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"], ids=repr)
def test_only_outputs_and_traces_go(layout: dict[str, Any], end: str) -> None:
    made = strip((json.dumps(executed(), **layout) + end).encode())
    assert made.data.decode() == json.dumps(cleaned(), **layout) + end
    assert made.warning == ""
    assert strip(made.data).data == made.data


def test_windows_line_ends_stay() -> None:
    text = json.dumps(executed(), indent=1).replace("\n", "\r\n")
    want = json.dumps(cleaned(), indent=1).replace("\n", "\r\n")
    assert strip(text.encode()).data.decode() == want


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.name)
def test_every_notebook_of_the_corpus(path: Path) -> None:
    data = path.read_bytes()
    once = strip(data)
    assert strip(once.data).data == once.data
    try:
        doc = ipynb.loads(data.decode("utf-8-sig"))
    except Exception:  # noqa: BLE001 -- the corpus has broken ones; those pass as they are
        return
    if json.loads(data.decode("utf-8-sig"))["nbformat"] < 4:
        return
    left = ipynb.loads(once.data.decode("utf-8-sig"))
    assert [(c.kind, c.source, c.attachments) for c in left.cells] == [
        (c.kind, c.source, c.attachments) for c in doc.cells
    ]
    assert not any(c.outputs or c.execution_count for c in left.cells)


def test_numbers_escapes_and_keys_that_repeat_stay_as_they_were_written() -> None:
    text = (
        '{"nbformat": 4, "x": 1.500e+1, "x": "\\u00e9\\/", "big": 123456789012345678901234567890,'
        ' "cells": [{"outputs": [1], "y": -0.0}], "metadata": {"z": 1E5, "papermill": 1}}'
    )
    want = text.replace('"outputs": [1]', '"outputs": []').replace(', "papermill": 1', "")
    assert strip(text.encode()).data.decode() == want


def test_an_old_notebook_is_stripped_too() -> None:
    old = {
        "metadata": {},
        "nbformat": 3,
        "nbformat_minor": 0,
        "worksheets": [{"cells": [{"cell_type": "code", "outputs": [{}], "prompt_number": 3}]}],
    }
    told = json.loads(strip(json.dumps(old).encode()).data)
    assert told["worksheets"][0]["cells"][0] == {
        "cell_type": "code",
        "outputs": [],
        "prompt_number": None,
    }


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"\xff\xfe",
        b"<<<<<<< HEAD\n{}\n=======\n",
        b'{"cells": [], "nbformat": 4} more',
        b'{"cells": {}, "nbformat": 4}',
        b'{"cells": []}',
        b'{"cells": [], "nbformat": 4,}',
        b'{"cells": [{"outputs": [1}], "nbformat": 4}',
        b'{"cells": ' + b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=range(11),
)
def test_what_is_no_notebook_passes_with_a_warning(data: bytes) -> None:
    made = strip(data)
    assert made.data == data
    assert made.warning


def test_an_empty_file_passes_without_one() -> None:
    assert strip(b"") == (b"", "")
    assert strip(b"\n") == (b"\n", "")


@given(st.text(max_size=200))
def test_nothing_is_ever_lost(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    assert strip(data).data == data


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    metadata=st.dictionaries(
        st.sampled_from(["tags", "execution", "papermill", "quire", "a", "é"]), json_values
    ),
    outputs=st.lists(json_values, max_size=2),
    indent=st.sampled_from([None, 0, 1, "\t"]),
)
def test_the_rest_of_the_metadata_stays(
    metadata: dict[str, Any], outputs: list[Any], indent: Any
) -> None:
    nb = {
        "cells": [{"metadata": metadata, "outputs": outputs}],
        "metadata": metadata,
        "nbformat": 4,
    }
    made = strip(json.dumps(nb, indent=indent).encode())
    told = json.loads(made.data)
    assert strip(made.data).data == made.data
    cell = told["cells"][0]
    assert cell["outputs"] == []
    for key in ("tags", "a", "é"):
        assert cell["metadata"].get(key) == metadata.get(key)
        assert told["metadata"].get(key) == metadata.get(key)
    assert "execution" not in cell["metadata"]
    assert "papermill" not in told["metadata"]


# The protocol


def packet(text: bytes) -> bytes:
    return b"%04x%s" % (len(text) + 4, text)


HELLO = packet(b"git-filter-client\n") + packet(b"version=2\n") + b"0000"
ABLE = (
    packet(b"capability=clean\n") + packet(b"capability=smudge\n") + packet(b"capability=delay\n")
)


def asked(command: bytes, name: bytes, data: bytes) -> bytes:
    body = b"".join(packet(data[at : at + 65516]) for at in range(0, len(data), 65516))
    return (
        packet(b"command=" + command + b"\n")
        + packet(b"pathname=" + name + b"\n")
        + b"0000"
        + body
        + b"0000"
    )


def answers(*requests: bytes) -> tuple[bytes, list[str]]:
    out, told = io.BytesIO(), list[str]()
    serve(io.BytesIO(HELLO + ABLE + b"0000" + b"".join(requests)), out, told.append)
    hello = packet(b"git-filter-server\n") + packet(b"version=2\n") + b"0000"
    able = packet(b"capability=clean\n") + packet(b"capability=smudge\n") + b"0000"
    assert out.getvalue().startswith(hello + able)
    return out.getvalue()[len(hello + able) :], told


def success(data: bytes) -> bytes:
    body = b"".join(packet(data[at : at + 65516]) for at in range(0, len(data), 65516))
    return packet(b"status=success\n") + b"0000" + body + b"0000" + b"0000"


def test_one_process_answers_for_many_files() -> None:
    big = executed()
    big["cells"][0]["source"] = ["x" * 200_000]
    data = json.dumps(big).encode()
    bad = b"\x00\xff"
    said, told = answers(
        asked(b"clean", b"a=b.ipynb", data),
        asked(b"smudge", b"b.ipynb", data),
        asked(b"clean", b"c.ipynb", bad),
        asked(b"clean", b"d.ipynb", b""),
    )
    assert said == success(strip(data).data) + success(data) + success(bad) + success(b"")
    assert [line.partition(":")[0] for line in told] == ["c.ipynb"]


def test_what_it_cannot_do_it_says() -> None:
    said, _ = answers(asked(b"polish", b"a.ipynb", b"x"), asked(b"smudge", b"a.ipynb", b"y"))
    assert said == packet(b"status=error\n") + b"0000" + success(b"y")


def test_a_caller_that_is_not_git_is_turned_away() -> None:
    with pytest.raises(ValueError, match="not git"):
        serve(io.BytesIO(packet(b"hello\n") + b"0000"), io.BytesIO(), print)
