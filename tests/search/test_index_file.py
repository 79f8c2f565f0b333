"""The index stays of use whatever happens to its file, and whoever else is at it."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from made_records import made
from quire.errors import StorageError
from quire.record.record import Record
from quire.search.ask import EVERY, local, newest, search, total
from quire.search.index_file import BadIndex, Index
from quire.search.query import Query, Term, parse
from quire.search.schema import VERSION, Indexed, indexed


def run(number: int, text: str = "work()") -> Indexed:
    record: Record = made(source=text)
    return indexed(replace(record, run_id=f"2026-11-16-16{number:04d}-health-{number:04x}"))


def filled(folder: Path, runs: Iterable[Indexed]) -> Index:
    index = Index(folder)
    with index.rebuilding() as writer:
        writer.add(runs)
    return index


def found(index: Index, query: str) -> list[str]:
    with index.reading() as con:
        return [row.run_id for row in search(con, parse(query), EVERY, 50)]


def test_a_run_is_found_and_not_once_it_is_removed(tmp_path: Path) -> None:
    one, other = run(1, "alpha()"), run(2, "alpha(beta)")
    index = filled(tmp_path, [one, other])
    assert set(found(index, "alpha")) == {one.run_id, other.run_id}
    assert found(index, "beta")[0] == other.run_id
    with index.writing() as writer:
        assert writer is not None
        writer.remove([other.run_id])
    assert found(index, "alpha") == [one.run_id]


@pytest.mark.parametrize(("text", "query"), [
    ("# Πωλήσεις στην Αθήνα", "αθηνα"),
    ("# Отчёт", "отчет"),
    ("# Hauptstraße", "hauptstrasse"),
    ("# تَقرير", "تقرير"),
    ("# cafe\u0301 menu", "café"),
    ("depth = 4", "depth=4"),
    ("call(depth=4)", "depth = 4"),
    ("# deployed 9fceb02d0ae598e9", "9fceb02"),
    ("# 서울의 매출", "서울"),
    ("# claude-3-5-sonnet refuses", "claude 3.5 sonnet"),
    ("load(user_id)", "load order_id"),
])  # fmt: skip
def test_it_is_found_as_people_write_it(tmp_path: Path, text: str, query: str) -> None:
    index = filled(tmp_path, [run(1, text), run(2, "other()")])
    assert found(index, query) == [run(1).run_id]


@pytest.mark.parametrize(("text", "query"), [
    ("# かき", "がき"),  # no accent, but another word
    ("load(user_id)", '"order_id" load'),
    ("load(user_id)", "user.id"),
])  # fmt: skip
def test_what_is_another_word_is_not_found(tmp_path: Path, text: str, query: str) -> None:
    assert found(filled(tmp_path, [run(1, text)]), query) == []


def test_what_some_words_are_missing_of_says_so(tmp_path: Path) -> None:
    index = filled(tmp_path, [run(1, "claude-3-5-sonnet")])
    with index.reading() as con:
        (row,) = search(con, parse("claude 3.5 sonnet"), EVERY, 5)
    assert row.missing == ("3.5",)


def test_a_word_that_is_there_is_no_beginning(tmp_path: Path) -> None:
    index = filled(tmp_path, [run(1, "# load"), run(2, "# loader")])
    assert found(index, "load") == [run(1).run_id]


def test_the_same_run_is_added_once(tmp_path: Path) -> None:
    index = filled(tmp_path, [run(1)])
    with index.writing() as writer:
        assert writer is not None
        writer.add([run(1)])
    with index.reading() as con:
        assert (total(con), local(con)) == (1, 0)


def test_the_file_is_the_owner_s_only(tmp_path: Path) -> None:
    index = filled(tmp_path, [run(1)])
    assert index.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.unlink(), "not there"),
        (lambda path: path.write_bytes(b"no database at all" * 400), "damaged"),
        (lambda path: path.write_bytes(b""), "not one of Quire's"),
        (lambda path: _version(path, VERSION + 1), "newer"),
        (lambda path: _version(path, 0), "older"),
    ],
)
def test_what_is_of_no_use_is_said_and_set_aside(tmp_path: Path, spoil: object, said: str) -> None:
    index = filled(tmp_path, [run(1)])
    assert callable(spoil)
    spoil(index.path)
    with pytest.raises(BadIndex, match=said), index.reading():
        pass
    index.set_aside()
    assert not index.path.exists()
    assert found(filled(tmp_path, [run(1)]), "work") == [run(1).run_id]


def _version(path: Path, version: int) -> None:
    with sqlite3.connect(path) as con:
        con.execute(f"PRAGMA user_version = {version}")


def test_a_rebuild_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    index = filled(tmp_path, [run(1)])
    rebuilding = index.rebuilding()
    writer = rebuilding.__enter__()
    writer.add([run(2)])
    assert not rebuilding.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert found(index, "work") == [run(1).run_id]


def test_only_one_writes_at_a_time_and_readers_go_on(tmp_path: Path) -> None:
    index = filled(tmp_path, [run(1)])
    with index.writing() as writer:
        assert writer is not None
        writer.con.execute("BEGIN IMMEDIATE")
        writer.add([run(2)])
        with Index(tmp_path).writing(within=0.1) as other:
            assert other is None
        assert found(Index(tmp_path), "work") == [run(1).run_id]
        writer.con.execute("COMMIT")
    assert len(found(index, "work")) == 2


def _read_on(folder: Path, times: int, out: multiprocessing.Queue[str]) -> None:
    try:
        for _ in range(times):
            assert found(Index(folder), "work")
    except Exception as error:  # noqa: BLE001 - told to the test
        out.put(repr(error))
    else:
        out.put("")


def test_readers_find_something_while_it_is_rebuilt_again_and_again(tmp_path: Path) -> None:
    filled(tmp_path, [run(n) for n in range(5)])
    context = multiprocessing.get_context("fork")
    out: multiprocessing.Queue[str] = context.Queue()
    readers = [context.Process(target=_read_on, args=(tmp_path, 30, out)) for _ in range(2)]
    for reader in readers:
        reader.start()
    for n in range(8):
        filled(tmp_path, [run(m) for m in range(5 + n)])
    said = [out.get(timeout=60) for _ in readers]
    for reader in readers:
        reader.join()
    assert said == ["", ""]


def test_no_query_is_an_error_of_the_database(tmp_path: Path) -> None:
    index = filled(tmp_path, [run(1)])
    odd = ['a"b', "near(x", "{title}", "a:b", "^x", "x + y", "\x00", "NEAR/2", "(((", "'; DROP"]
    with index.reading() as con:
        for text in odd:
            for exact in (False, True):
                search(con, Query(((Term(text, exact=exact),),)), EVERY, 5)


def test_a_byte_that_was_turned_anywhere_is_damage_and_no_crash(tmp_path: Path) -> None:
    index = filled(tmp_path, [run(n, f"work({n}) + prüfen" * 20) for n in range(40)])
    whole = index.path.read_bytes()
    seen = set()
    for at in range(24, len(whole), 997):
        for length in (1, 8, 4096):
            cut = whole[at : at + length]
            data = whole[:at] + bytes(byte ^ 0xA5 for byte in cut) + whole[at + length :]
            index.path.write_bytes(data)
            try:
                with index.reading() as con:
                    for query in ("work", "prüfen", "note:x", ""):
                        search(con, parse(query), EVERY, 50)
                    list(newest(con, EVERY, 50))
            except BadIndex as error:
                seen.add(" ".join(str(error).split()[:3]))
    assert len(seen) > 1


def test_a_row_that_is_gone_is_damage(tmp_path: Path) -> None:
    index = filled(tmp_path, [run(1)])
    with sqlite3.connect(index.path) as con:
        con.execute("DELETE FROM docs")
    with pytest.raises(BadIndex, match="gone"):
        found(index, "work")


def test_half_of_one_does_not_stay_where_there_was_no_room(tmp_path: Path) -> None:
    index = Index(tmp_path)

    def build() -> None:
        with index.rebuilding() as writer:
            writer.con.execute("PRAGMA max_page_count = 60")
            writer.add(run(n, f"x{n} = {'y' * 300}{n}") for n in range(2_000))

    with pytest.raises(StorageError):
        build()
    assert not index.path.with_name("index.sqlite.new").exists()
    filled(tmp_path, [run(1)])
