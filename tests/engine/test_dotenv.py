from __future__ import annotations

from pathlib import Path

import pytest

from quire.engine import dotenv
from quire.errors import ConfigError

TEXT = """# a comment
A=1
export B = two words # and a comment
C="x\\ny ${A}"
D='${A} # kept'
E=
F="over
lines"
G=a#b
"""


def test_what_common_tools_read() -> None:
    assert dotenv.parse(TEXT, {}) == {
        "A": "1",
        "B": "two words",
        "C": "x\ny 1",
        "D": "${A} # kept",
        "E": "",
        "F": "over\nlines",
        "G": "a#b",
    }


@pytest.mark.parametrize(("text", "line"), [("A=1\nsecret-line\n", "2"), ('\n\nA="x\n', "3")])
def test_a_broken_line_is_named_and_not_shown(text: str, line: str) -> None:
    with pytest.raises(ConfigError, match=f"line {line}") as caught:
        dotenv.parse(text, {})
    assert "secret" not in str(caught.value)


def test_no_file_is_no_variables(tmp_path: Path) -> None:
    assert dotenv.read(tmp_path, {}) == {}
    (tmp_path / ".env").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        dotenv.read(tmp_path, {})
