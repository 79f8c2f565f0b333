from __future__ import annotations

import math
import subprocess
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire.errors import ParameterError
from quire.task.literals import literal

any_text = st.text(st.characters(exclude_categories=[]), max_size=12)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.binary(max_size=8)
    | st.dates() | st.datetimes() | st.times() | st.decimals()
    | st.datetimes(timezones=st.just(UTC) | st.just(timezone(timedelta(hours=-3, minutes=-30))))
)  # fmt: skip
hashable = st.none() | st.booleans() | st.integers() | any_text | st.dates()
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(hashable, inner, max_size=4)
        | st.sets(hashable, max_size=4)
        | st.frozensets(hashable, max_size=3)
    ),
    max_leaves=10,
)


def same(a, b) -> bool:
    """Equal in value, type, sign of zero and nan, and order."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        both_nan = math.isnan(a) and math.isnan(b)
        return (a == b or both_nan) and math.copysign(1, a) == math.copysign(1, b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(map(same, a.items(), b.items()))
    if isinstance(a, set | frozenset):
        return same(sorted(a, key=repr), sorted(b, key=repr))
    if isinstance(a, Decimal):
        return str(a) == str(b)
    if isinstance(a, datetime | time):
        return (a.isoformat(), a.fold) == (b.isoformat(), b.fold)
    return a == b


@settings(max_examples=400)
@given(values)
def test_running_the_source_gives_the_value(value):
    source = literal(value)
    source.encode()
    assert "\n" not in source
    assert same(eval(compile(source, "cell", "eval"), {}), value)


@pytest.mark.parametrize(
    "value",
    [10**4299, 10**4300, -(10**5000), 7**9000, 0, -0.0, math.inf, -math.inf, 5e-324, 1e308,
     "\ud800", "a\0b", "'\"\\\n\r\t\u2028", "'''\"\"\"", "é🌍", (), (1,), set(), frozenset(),
     Path("a b/'c'"), date(2024, 1, 31), time(1, 2, 3, tzinfo=UTC), timedelta(days=-1, seconds=5),
     datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1), 1 + 2j],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_hard_values(value):
    assert same(eval(literal(value), {}), value)


def test_shadowed_names_do_not_matter():
    names = {"datetime": 1, "date": 2, "Decimal": 3, "Path": 4, "decimal": 5, "pathlib": 6}
    for value in (date(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), Decimal("1.0"), Path("x")):
        assert eval(literal(value), dict(names)) == value


def test_a_set_always_gives_the_same_source():
    assert literal({"b", "a", "c"}) == "{'a', 'b', 'c'}"


def test_a_value_without_source_is_refused():
    loop: list[object] = []
    loop.append(loop)
    for value in (object(), loop, [object()]):
        with pytest.raises(ParameterError) as caught:
            literal(value)
        assert caught.value.hint


@pytest.mark.parametrize(
    ("language", "value", "source"),
    [
        ("bash", "it's $HOME", "'it'\\''s $HOME'"),
        ("bash", [1, "a b"], "(1 'a b')"),
        ("bash", True, "true"),
        ("r", None, "NULL"),
        ("R", [1, True, 'a"b\\'], 'list(1L, TRUE, "a\\"b\\\\")'),
        ("r", {"a b": 1.5}, 'list("a b" = 1.5)'),
        ("r", 2**40, str(2**40)),
        ("julia", "cost $x", '"cost \\$x"'),
        ("julia", {"a": [1, None]}, 'Dict("a" => [1, nothing])'),
        ("julia", (1, -math.inf, math.nan), "[1, -Inf, NaN]"),
        ("julia", date(2024, 1, 2), '"2024-01-02"'),
        ("r", "a\n\u2028\x01", '"a\\n\\u2028\\u0001"'),
        ("r", 1e300, "1e300"),
    ],
)
def test_other_languages(language, value, source):
    assert literal(value, language) == source


@pytest.mark.parametrize(
    ("language", "value"),
    [("bash", {"a": 1}), ("bash", "a\0"), ("r", 2**60), ("r", "\ud800"), ("julia", {1: 2}),
     ("julia", object()), ("bash", [[1]]), ("javascript", 1), ("cobol", 1)],
)  # fmt: skip
def test_what_another_language_cannot_hold_is_refused(language, value):
    with pytest.raises(ParameterError) as caught:
        literal(value, language)
    assert caught.value.hint


def test_bash_reads_what_was_given():
    texts = ["", "it's", 'a "b" $HOME `ls` \\', "new\nline\n", "é🌍", "-n", "*"]
    lines = [f"printf '%s\\0' {literal(text, 'bash')}" for text in texts]
    done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == texts
