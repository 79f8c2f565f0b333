"""Texts as they are compared: no accents, and scripts without spaces by the letter. Pure."""

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
# What makes another sound of a kana is no accent.
_VOICED = "\u3099\u309a"


def is_unspaced(text: str) -> bool:
    return not text.isascii() and _UNSPACED.search(text) is not None


def searched(text: str) -> str:
    """As the index takes it: no accents, which its own tokenizer knows of Latin letters only, and
    each letter of such a script as a word, so that a phrase of them is found inside others."""
    text = bare(text)
    return text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text)


def bare(text: str) -> str:
    if not text.isascii():
        # A long text has few letters that are not bare, though it may have each of them often.
        for letter in set(text):
            if letter > "\x7f" and (without := _bare(letter)) != letter:
                text = text.replace(letter, without)
    return text


def bare_with_places(text: str) -> tuple[str, Sequence[int]]:
    """And where in the text each of its characters was."""
    if text.isascii():
        return text, range(len(text) + 1)
    parts = [_bare(letter) for letter in text]
    places = [at for at, part in enumerate(parts) for _ in part]
    return "".join(parts), [*places, len(text)]


@lru_cache(4_096)
def _bare(letter: str) -> str:
    """An accent by itself is nothing: texts from some systems have it behind its letter."""
    apart = unicodedata.normalize("NFD", letter.casefold() if letter > "\x7f" else letter)
    kept = "".join(one for one in apart if one in _VOICED or not unicodedata.combining(one))
    return unicodedata.normalize("NFC", kept)
