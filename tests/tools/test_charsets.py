"""The names of encodings that a page may have, and what it may cost to find one."""

from __future__ import annotations

import codecs

import pytest

from quire.tools import charsets


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("utf-8", "utf-8"),
        (" UTF8 ", "utf-8"),
        ("ISO-8859-1", "cp1252"),
        ("shift_jis", "cp932"),
        ("gb2312", "gb18030"),
        ("utf-16le", "utf-16-le"),
        ("", "utf-8"),
        ("no-such", "utf-8"),
        # Python knows these, and browsers do not.
        ("punycode", "utf-8"),
        ("idna", "utf-8"),
        ("utf-7", "utf-8"),
        ("UTF7", "utf-8"),
        ("unicode_escape", "utf-8"),
        ("raw_unicode_escape", "utf-8"),
        ("utf_8_sig", "utf-8"),
        ("undefined", "utf-8"),
        ("base64", "utf-8"),
        ("mbcs", "utf-8"),
        ("cp037", "utf-8"),
    ],
)
def test_only_what_browsers_know_is_an_encoding(name: str, codec: str) -> None:
    assert charsets.codec(name) == codec


def test_all_of_them_are_there() -> None:
    for codec in set(charsets._BY_NAME.values()):
        assert codecs.lookup(codec)._is_text_encoding


def test_a_page_that_says_so_is_not_in_utf16() -> None:
    assert charsets.codec("utf-16", by_page=True) == "utf-8"
    assert charsets.codec("koi8-r", by_page=True) == "koi8-r"


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("text/html; charset=koi8-r", "koi8-r"),
        ('text/html;Charset="KOI8-R"; x=y', "KOI8-R"),
        ("text/html", ""),
        ("text/html; x=charset", ""),
        ("", ""),
        ("text/html" + ";" * 60_000 + "charset=koi8-r", ""),
        ("text/html; charset=" + "x" * 60_000, "x" * 40),
    ],
)
def test_what_a_server_says(header: str, name: str) -> None:
    assert charsets.named_by_server(header) == name
