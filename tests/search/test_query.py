from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.errors import UsageError
from quire.search.query import LONGEST, comparison, odd_fields, parse, since, until

NOW = datetime(2026, 11, 18, 12, 30, tzinfo=UTC)


def test_words_must_all_be_there_and_common_ones_need_not() -> None:
    asked = parse("why did the load fail")
    assert [group[0].text for group in asked.groups] == ["load", "fail"]
    assert [group[0].text for group in parse("the run").groups] == ["the", "run"]


def test_what_has_punctuation_inside_counts_to_the_letter() -> None:
    for text in ("user_id", "pandas.read_csv", "/etc/hosts", "203.0.113.77", "__init__"):
        (group,) = parse(text).groups
        assert group[0].exact, text
        assert group[0].text == text
    first, second = (group[0] for group in parse("KeyError: 'user_id'").groups)
    assert (first.text, first.exact) == ("KeyError", False)
    assert (second.text, second.exact) == ("user_id", True)


def test_phrases_fields_prefixes_and_what_must_not_be_there() -> None:
    asked = parse('note:"went down" wor* result:score -draft one OR two')
    phrase, prefix, result, either = asked.groups
    assert (phrase[0].field, phrase[0].text, phrase[0].exact) == ("note", "went down", True)
    assert (prefix[0].text, prefix[0].prefix) == ("wor", True)
    assert result[0].field == "result"
    assert [term.text for term in either] == ["one", "two"]
    assert [term.text for term in asked.excluded] == ["draft"]
    assert parse("https://example.org/x").groups[0][0].field == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("AND OR", "no words"),
        ('" " * -', "no words"),
        ("-only", "only says what it must not have"),
        ("x" * (LONGEST + 1), "1,001 characters"),
        ("a " * 40 + " ".join(f"w{n}" for n in range(40)), "words"),
        ('nothing:"x"', "no field"),
        ("a*", "too short"),
    ],
)
def test_what_cannot_be_asked_is_said_with_the_next_step(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        parse(text)
    assert caught.value.hint


@given(st.text(max_size=200))
def test_any_text_is_a_query_or_an_error_that_says_why(text: str) -> None:
    try:
        asked = parse(text)
    except UsageError:
        return
    assert all(term.words for term in (*asked.terms, *asked.excluded))


@pytest.mark.parametrize(
    ("text", "sign", "value"),
    [
        ("score>0.8", ">", 0.8),
        ("rows >= 10", ">=", 10),
        ("region=eu", "=", "eu"),
        ("region==eu", "=", "eu"),
        ("flag != true", "!=", True),
        ("version='3'", "=", "3"),
        ("day<2026-01-31", "<", "2026-01-31"),
        ("x=None", "=", None),
        ("huge=99999999999999999999", "=", 99999999999999999999),
    ],
)
def test_comparisons_are_typed(text: str, sign: str, value: object) -> None:
    found = comparison("result", text)
    assert (found.sign, found.value) == (sign, value)
    assert type(found.value) is type(value)


@pytest.mark.parametrize("text", ["score", ">3", "score>", "flag<true"])
def test_what_is_no_comparison_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        comparison("result", text)
    assert caught.value.hint


def test_times_are_dates_spans_and_words() -> None:
    assert since("2026-11-18", NOW) == datetime(2026, 11, 18, tzinfo=UTC).timestamp()
    assert until("9999-12-31", NOW) > since("9999-12-31", NOW)
    assert until("2026-11-18", NOW) == datetime(2026, 11, 19, tzinfo=UTC).timestamp()
    assert since("7d", NOW) == datetime(2026, 11, 11, 12, 30, tzinfo=UTC).timestamp()
    assert since("yesterday", NOW) == datetime(2026, 11, 17, tzinfo=UTC).timestamp()
    assert until("2026-11-18T10:00+02:00", NOW) == datetime(2026, 11, 18, 8, tzinfo=UTC).timestamp()
    for text in ("soon", "2026-13-01", "99999y"):
        with pytest.raises(UsageError):
            since(text, NOW)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("bogus:x", "fields: title"),
        ("host:8080", "fields: title"),
        ("titel:mould", "did you mean title:"),
        ("Note:mould", "did you mean note:"),
        ("notes:mould", "did you mean note:"),
        ("load -eror:x", "did you mean error:"),
        ("who:ada", "--who narrows"),
    ],
)
def test_a_word_before_a_colon_that_is_no_field_is_told(query: str, said: str) -> None:
    (told,) = odd_fields(parse(query), lambda _: True)
    assert said in told
    assert "there is no field" in told


def test_what_was_met_as_it_is_written_was_no_field_and_needs_no_word() -> None:
    assert odd_fields(parse("host:8080"), lambda _: False) == []
    for text in ("https://x.example/y", "KeyError:x", "C:\\x", "note:x"):
        assert odd_fields(parse(text), lambda _: True) == []
    assert odd_fields(parse("titel:x"), lambda _: False) != []
