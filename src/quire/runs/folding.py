"""Texts as the index compares them: no accents, and scripts without spaces by the letter. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

# Thai to Khmer, kana, Han: no spaces tell words apart there.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)


def is_unspaced(text: str) -> bool:
    return not text.isascii() and _UNSPACED.search(text) is not None


def spaced(text: str) -> str:
    """Each letter of such a script as a word, so that a phrase of them is found inside others."""
    return text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text)


def bare(text: str) -> str:
    return text if text.isascii() else "".join(map(_bare, text))


def bare_with_places(text: str) -> tuple[str, Sequence[int]]:
    """And where in the text each of its characters was."""
    if text.isascii():
        return text, range(len(text) + 1)
    parts = [_bare(letter) for letter in text]
    places = [at for at, part in enumerate(parts) for _ in part]
    return "".join(parts), [*places, len(text)]


@lru_cache(4_096)
def _bare(letter: str) -> str:
    apart = unicodedata.normalize("NFD", letter)
    return "".join(one for one in apart if not unicodedata.combining(one))
