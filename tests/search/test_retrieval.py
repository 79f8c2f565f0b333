"""The right run is among the first three. See the head of the file with the questions."""

from __future__ import annotations

import pytest
import retrieval

from quire.search.ask import EVERY, search
from quire.search.index_file import Index
from quire.search.query import parse
from quire.search.schema import indexed


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    made = Index(tmp_path_factory.mktemp("index"))
    with made.rebuilding() as writer:
        writer.add(indexed(record) for record, _ in retrieval.runs())
    return made


def missed(index: Index, first: int) -> list[str]:
    """The questions of one half that are not answered among the first three."""
    asked = [(record.run_id, question) for record, question in retrieval.runs() if question]
    out = []
    with index.reading() as con:
        for run_id, question in asked[first::2]:
            found = [row.run_id for row in search(con, parse(question), EVERY, 3)]
            if run_id not in found:
                out.append(question)
    return out


def test_there_are_enough_of_both() -> None:
    runs = list(retrieval.runs())
    assert len(runs) >= 300
    assert sum(1 for _, question in runs if question) >= 60
    assert len({record.run_id for record, _ in runs}) == len(runs)


@pytest.mark.parametrize(("half", "first"), [("tuning", 0), ("held out", 1)])
def test_the_right_run_is_among_the_first_three(index: Index, half: str, first: int) -> None:
    questions = len(retrieval.told()) // 2
    wrong = missed(index, first)
    assert len(wrong) <= questions // 10, wrong
