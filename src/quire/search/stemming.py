"""What the index takes a word for: asked of SQLite itself, so that there is one opinion."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import lru_cache

from .schema import TOKENIZER


def stemmer() -> Callable[[str], str]:
    """Made when it is first needed: few searches do."""
    con: sqlite3.Connection | None = None

    @lru_cache(10_000)
    def stem(word: str) -> str:
        nonlocal con
        if con is None:
            con = sqlite3.connect(":memory:", isolation_level=None)
            con.execute(f"CREATE VIRTUAL TABLE one USING fts5(word, {TOKENIZER})")
            con.execute("CREATE VIRTUAL TABLE seen USING fts5vocab(one, 'row')")
        con.execute("DELETE FROM one")
        con.execute("INSERT INTO one VALUES(?)", (word.encode("utf-8", "replace").decode(),))
        return " ".join(term for (term,) in con.execute("SELECT term FROM seen"))

    return stem
