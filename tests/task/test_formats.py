from __future__ import annotations

import pytest

from quire.errors import DocumentError
from quire.task import formats


def test_by_suffix():
    doc = formats.loads("# %%\nx = 1\n", ".py")
    text = formats.dumps(doc, ".ipynb")
    assert formats.loads(text, ".IPYNB").cells[0].source == "x = 1"
    assert formats.dumps(formats.loads(text, ".ipynb"), ".py") == "# %%\nx = 1\n"


@pytest.mark.parametrize("suffix", [".txt", "", ".rst"])
def test_unknown_suffix(suffix):
    with pytest.raises(DocumentError) as caught:
        formats.loads("", suffix)
    assert ".ipynb" in caught.value.hint
    with pytest.raises(DocumentError):
        formats.dumps(formats.loads("", ".py"), suffix)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        ("é".encode(), "é"),
        (b"\xef\xbb\xbfx = 1", "x = 1"),
        (b"# -*- coding: latin-1 -*-\n\xe9", "# -*- coding: latin-1 -*-\né"),
        (b"#!/x\n# coding: cp1252\n\x80", "#!/x\n# coding: cp1252\n€"),
        (b"x = 1\n# coding: latin-1\n", "x = 1\n# coding: latin-1\n"),
    ],
)
def test_decode(data, text):
    assert formats.decode(data, "task.py") == text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x7fELF\0\0", "NUL"),
        (b"x\n\xff\xfey", "line 2"),
        ("x".encode("utf-16"), "UTF-16"),
        (b"# coding: no-such-thing\n", "no-such-thing"),
        (b"# coding: hex\n61", "hex"),
        (b"# coding: ascii\n\xe9", "ascii"),
    ],
)
def test_what_is_not_text(data, said):
    with pytest.raises(DocumentError, match=said) as caught:
        formats.decode(data, "task.py")
    assert "task.py" in caught.value.message
    assert caught.value.hint


def test_an_encoding_line_means_nothing_in_a_notebook():
    with pytest.raises(DocumentError):
        formats.decode(b"# coding: latin-1\n\xe9", "task.ipynb")
