from __future__ import annotations

from pathlib import Path

import pytest

from quire.agent.token_file import Tokens
from quire.errors import StorageError, UsageError


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path / ".quire")


def test_a_token_is_known_by_its_text_only(tokens: Tokens) -> None:
    made, text = tokens.create("nightly", ("read", "run"), "2026-11-16")
    other, _ = tokens.create("other", ("read",), "2026-11-16")
    assert tokens.check(text) == made
    for wrong in ("", made.id, made.digest, text.replace(made.id, other.id), text + "A"):
        assert tokens.check(wrong) is None
    assert tokens.all() == [made, other]


def test_another_process_takes_it_back(tokens: Tokens) -> None:
    made, text = tokens.create("nightly", ("run",), "2026-11-16")
    assert tokens.check(text) == made
    assert Tokens(tokens.folder).revoke(made.id) == made
    assert tokens.check(text) is None
    with pytest.raises(UsageError):
        tokens.revoke(made.id)


def test_nobody_comes_in_where_the_list_cannot_be_read(tokens: Tokens) -> None:
    _, text = tokens.create("nightly", ("run",), "2026-11-16")
    tokens.path.write_text('[{"id": 1}]')
    with pytest.raises(StorageError):
        tokens.check(text)
