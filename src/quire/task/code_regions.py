"""What a place in a piece of code is like."""

from __future__ import annotations

from typing import Literal, NamedTuple

Language = Literal["python", "shell", "sql", "other"]


class Place(NamedTuple):
    """`quote` is what would end the string the place is in; empty outside of one."""

    language: Language
    quote: str = ""
    raw: bool = False
    braces: bool = False  # an f-string: braces are doubled
    comment: bool = False
    expands: bool = False  # a shell would expand `$` and backticks here
    fixed: str = ""  # where nothing can be escaped: what the place is
