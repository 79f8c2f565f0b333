"""Nothing secret gets through, whole or in pieces, and ordinary text does."""

from __future__ import annotations

import base64
import importlib.util
import time
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quire.masking import invisible_text
from quire.masking import masker as masking
from quire.masking.masker import Masker, Secret, secrets_of

CORPUS = Path(__file__).parents[1] / "corpus" / "masking"
TOKEN = "gh" + "p_" + "a1B2c3D4e5F6" * 3
JWT = ".".join(("eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0NTYifQ", "c2lnbmF0dXJlLWhlcmU0Mg"))
PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + ("MIIEpAIB" * 8 + "\n") * 4
PEM += "AbCd==\n-----END RSA PRIVATE KEY-----"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"masking_{name}", CORPUS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LEAKS: ModuleType = load("leaks")
FROM_ENV = Masker(secrets_of(LEAKS.ENV))


def in_pieces(masker: Masker, chunks: list[str]) -> str:
    stream = masker.stream()
    return "".join([*map(stream.feed, chunks), stream.flush()])


def by_ones(masker: Masker, text: str) -> str:
    return in_pieces(masker, list(text))


# --- which variables


def names_of(env: dict[str, str], *named: str) -> dict[str, str]:
    return {secret.value: secret.name for secret in secrets_of(env, named)}


@pytest.mark.parametrize(
    "name",
    [
        *("A_TOKEN", "A_KEY", "A_SECRET", "A_PASSWORD", "A_PASSWD", "A_PAT", "A_CREDENTIALS"),
        *("A_API_KEY", "api_key", "TOKEN", "PASSWORD", "SECRET", "API_KEY", "OPENAI_APIKEY"),
    ],
)
def test_names_that_look_like_credentials(name: str) -> None:
    assert names_of({name: "s3cr3t-v4lue"}) == {"s3cr3t-v4lue": name}


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "PWD", "KEYBOARD", "TOKENIZERS_PARALLELISM", "KEY"]
)
def test_other_names_are_left_alone(name: str) -> None:
    assert names_of({name: "s3cr3t-v4lue"}) == {}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "short12",
        "true",
        "disabled",
        "1234567",
        "/home/u/.ssh/id_rsa",
        "~/.ssh/id",
        "./keys/a.pem",
    ],
)
def test_values_that_are_plainly_not_secret(value: str) -> None:
    assert names_of({"SSH_KEY": value}) == {}


def test_a_leading_slash_alone_is_no_path() -> None:
    assert names_of({"AWS_KEY": "/K7MDENG/bPxRfiCYzzz"}) == {"/K7MDENG/bPxRfiCYzzz": "AWS_KEY"}


def test_named_variables_may_be_short_and_named_by_pattern() -> None:
    env = {"PIN": "ab12", "X_USER": "robert", "Y": "abc", "FLAG": "true", "YEAR": "2024"}
    found = names_of(env, "PIN", "X_*", "Y", "FLAG", "YEAR")
    assert found == {"ab12": "PIN", "robert": "X_USER"}


def test_the_password_of_a_url_in_any_variable() -> None:
    env = {
        "DATABASE_URL": "postgres://app:tr0ub%40dor@db/x",
        "DEV_URL": "postgres://u:postgres@db/x",
    }
    assert names_of(env) == {"tr0ub%40dor": "DATABASE_URL", "tr0ub@dor": "DATABASE_URL"}


def test_a_named_variable_gives_the_label_of_a_shared_value() -> None:
    assert names_of({"A_TOKEN": "same-value", "B": "same-value"}, "B") == {"same-value": "B"}


# --- the corpus


@pytest.mark.parametrize(("name", "text", "hidden"), LEAKS.LEAKS, ids=[x[0] for x in LEAKS.LEAKS])
def test_every_leak_is_masked(name: str, text: str, hidden: list[str]) -> None:
    masked = FROM_ENV.mask(text)
    assert "[masked:" in masked
    for piece in hidden:
        assert piece not in masked, (name, masked)
    assert FROM_ENV.mask(masked) == masked
    assert by_ones(FROM_ENV, text) == masked
    cut = len(text) // 3
    assert in_pieces(FROM_ENV, [text[:cut], text[cut : 2 * cut], text[2 * cut :]]) == masked


def test_there_are_many_different_leaks() -> None:
    assert len(LEAKS.LEAKS) >= 60
    assert len({name for name, _, _ in LEAKS.LEAKS}) == len(LEAKS.LEAKS)


def test_no_false_positive_in_ordinary_text(tmp_path: Path) -> None:
    files = [*load("generate").generate(tmp_path), *sorted((CORPUS / "ordinary").iterdir())]
    size, changed = 0, []
    for path in files:
        text = path.read_text(encoding="utf-8")
        size += len(text)
        masked = FROM_ENV.mask(text)
        if masked != text:
            changed.append((path.name, masked.count("[masked:")))
        assert in_pieces(FROM_ENV, text.splitlines(keepends=True)) == masked
    assert changed == []
    assert size >= 2_000_000


# --- labels, overlaps, JSON


def test_labels_name_the_variable_or_the_shape() -> None:
    masker = Masker([Secret("MY_TOKEN", TOKEN)])
    assert masker.mask(f"<{TOKEN}>") == "<[masked:MY_TOKEN]>"
    assert Masker().mask(f"<{TOKEN}>") == "<[masked:github-token]>"
    assert Masker().mask("https://u:hunter22@h/") == "https://u:[masked:url-password]@h/"
    assert Masker().mask(f"a\n{PEM}\nb") == "a\n[masked:private-key]\nb"


def test_a_token_as_the_user_of_a_url_with_a_password() -> None:
    text = f"https://{TOKEN}:hunter22@host/"
    assert Masker().mask(text) == "https://[masked:github-token]:[masked:url-password]@host/"


def test_overlapping_matches_become_one() -> None:
    masker = Masker([Secret("A", "abcdefgh"), Secret("B", "efghijkl")])
    assert masker.mask("-abcdefghijkl-") == "-[masked:A]-"
    assert masker.mask("-abcdefghefghijkl-") == "-[masked:A][masked:B]-"
    assert Masker([Secret("A", "a" * 20)]).mask("x" + "a" * 500 + "y") == "x[masked:A]y"


def test_a_value_that_is_part_of_a_marker_does_not_break_markers() -> None:
    masker = Masker(
        [Secret("MY_TOKEN", "masked"), Secret("B", "MY_TOKEN"), Secret("C", "s3cr3t-x")]
    )
    once = masker.mask("s3cr3t-x masked MY_TOKEN")
    assert once == "[masked:C] masked [masked:B]"
    assert masker.mask("[masked:MY_TOKEN]") == "[masked:MY_TOKEN]"
    assert by_ones(masker, f"{once}[masked:MY_TOKEN]") == f"{once}[masked:MY_TOKEN]"


def test_a_value_that_is_a_common_word_of_a_label_is_hidden() -> None:
    masker = Masker([Secret("DB_PASSWORD", "password")])
    once = masker.mask("password, redis://:hunter22@h/")
    assert once == "[masked:DB_PASSWORD], redis://:[masked:url-password]@h/"
    assert masker.mask(once) == once


def test_base64_digits_that_share_bits_with_the_value_go_too() -> None:
    masker = Masker([Secret("A", "s3cr3tvalue")])
    for before in range(3):
        blob = base64.b64encode(b"." * before + b"s3cr3tvalue...").decode()
        head = before * 8 // 6
        tail = -(-(before + 11) * 8 // 6)
        assert masker.mask(blob) == blob[:head] + "[masked:A]" + blob[tail:]


def test_json_values_are_walked() -> None:
    masker = Masker([Secret("A", "s3cr3tvalue")])
    value = {"k": ["s3cr3tvalue", 1, None, {"s3cr3tvalue": 2.5}], "t": ("x", True), TOKEN: 1}
    assert masker.mask_json(value) == {
        "k": ["[masked:A]", 1, None, {"[masked:A]": 2.5}],
        "t": ["x", True],
        "[masked:github-token]": 1,
    }


def test_json_keys_that_become_equal_are_both_kept() -> None:
    other = TOKEN[:-1] + "z"
    masked = Masker().mask_json({TOKEN: 1, other: 2})
    assert masked == {"[masked:github-token]": 1, "[masked:github-token]~2": 2}


def test_pictures_are_searched_for_values_but_not_for_shapes() -> None:
    masker = Masker([Secret("A", "s3cr3tvalue")])
    blob = "iVBOR" + TOKEN
    bundle = {"image/png": blob, "text/plain": blob, "image/svg+xml": blob}
    masked = masker.mask_json({"data": bundle})["data"]
    assert masked["image/png"] == blob
    assert masked["text/plain"] == masked["image/svg+xml"] == "iVBOR[masked:github-token]"
    secret = base64.b64encode(b"s3cr3tvalue").decode()
    assert "[masked:A]" in masker.mask_json({"image/png": "AAAA" + secret})["image/png"]


def test_what_looks_like_a_token_by_chance_costs_nothing_in_a_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(masking, "_Scan", lambda *_, **__: pytest.fail("it was judged"))
    picture = {"image/png": "sk-ghp_AKIAxoxb-" * 100}
    assert Masker().mask_json(picture) == picture
    assert Masker([Secret("A", "hunter2-hunter2")]).mask_json(picture) == picture


@pytest.mark.parametrize("few_steps", [0.0, 100.0])
def test_both_ways_to_search_a_picture_find_the_same(
    few_steps: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masking, "FEW_STEPS", few_steps)
    masker = Masker([Secret("A", "hunter2-hunter2"), Secret("B", "s3cr3tvalue")])
    for free in ("", "hunter2-hunter", base64.b64encode(b"nothing at all" * 100).decode()):
        assert masker.mask_json({"image/png": free}) == {"image/png": free}
    for value in (b"..hunter2-hunter2", b".s3cr3tvalue..", b"s3cr3tvalue"):
        for held in (value.decode(), base64.b64encode(value).decode(), value.hex()):
            masked = masker.mask_json({"image/png": f"iVBORw0KGgo{held}AAAA"})["image/png"]
            assert "[masked:" in masked
            assert held not in masked


def test_a_key_block_in_a_list_of_lines() -> None:
    lines = f"before\n{PEM}\nafter".splitlines(keepends=True)
    assert Masker().mask_json({"source": lines}) == {
        "source": ["before\n", "[masked:private-key]\n", "after"]
    }
    assert Masker().mask_json(["a\n", "b"]) == ["a\n", "b"]


def test_deep_json_does_not_exhaust_the_stack() -> None:
    value: Any = TOKEN
    for _ in range(50_000):
        value = [value]
    masked = Masker().mask_json(value)
    while isinstance(masked, list):
        masked = masked[0]
    assert masked == "[masked:github-token]"


# --- streams


def test_ordinary_lines_are_given_out_at_once() -> None:
    stream = FROM_ENV.stream()
    for line in ("Epoch 1/10\n", "see https://example.org/\n", "-----\n", "task-3 done.\n", "50%|"):
        if line.endswith("\n"):
            assert Masker([Secret("A", "s3cr3tvalue")]).stream().feed(line) == line
        assert stream.feed(line).startswith(line[:-1]) or line.startswith("-")


def test_only_the_beginning_of_a_secret_is_kept_back() -> None:
    stream = Masker([Secret("A", "s3cr3tvalue")]).stream()
    assert stream.feed("say s3cr") == "say "
    assert stream.feed("et, no. ") == "s3cret, no. "
    assert stream.feed("s3cr3tvalu") == ""
    assert stream.feed("e!") == "[masked:A]!"
    assert stream.flush() == ""


def test_a_key_block_line_by_line_and_without_its_end() -> None:
    stream = Masker().stream()
    given_out = [stream.feed(line + "\n") for line in PEM.split("\n")]
    assert given_out == [""] * (len(given_out) - 1) + ["[masked:private-key]\n"]
    stream.feed(PEM[:200])
    assert stream.flush() == "[masked:private-key]"


def test_what_is_longer_than_its_bound_stays_hidden() -> None:
    endless = "-----BEGIN PRIVATE KEY-----\n" + ("MIIEpAIB" * 8 + "\n") * 2000
    for size in (1000, 65536):
        chunks = [endless[i : i + size] for i in range(0, len(endless), size)]
        stream = Masker().stream()
        out = [stream.feed(chunk) for chunk in chunks]
        assert out[17_000 // size + 1 :].count("") == len(out[17_000 // size + 1 :])
        assert "".join(out) + stream.feed("!") + stream.flush() == "[masked:private-key]!"
    token = "gh" + "p_" + "a1" * 5000
    assert in_pieces(
        Masker(), [token[:300], token[300:3000], token[3000:], "-end "]
    ) == Masker().mask(token + "-end ")


def test_a_stream_starts_anew_after_a_flush() -> None:
    stream = Masker([Secret("A", "s3cr3tvalue")]).stream()
    assert stream.feed("s3cr3t") + stream.flush() + stream.feed("value ") == "s3cr3tvalue "


FRAGMENTS = st.sampled_from(
    [
        TOKEN,
        TOKEN[:20],
        JWT,
        JWT[:30],
        PEM,
        PEM[:60],
        PEM[:120],
        PEM[-40:],
        "eyJ",
        "-----BEGIN ",
        "sk-",
        "sk-proj-",
        "a1" * 16,
        "s3cr3tvalue",
        "s3cr3tval",
        "alues3cr",
        "aaaaaaaa",
        "aaaa",
        base64.b64encode(b"s3cr3tvalue").decode(),
        base64.b64encode(b"xs3cr3tvaluex").decode(),
        base64.b64encode(b"xys3cr3tvaluexy").decode()[:-3],
        b"s3cr3tvalue".hex(":"),
        "https://",
        "u:pw",
        "@host/",
        "Authorization: Bearer ",
        "Bearer ",
        "AKIA",
        "ABCDEFGH12345678",
        "aws_secret_access_key = ",
        "\n",
        " ",
        "\\n",
        "\x1b[31m",
        ".",
        "x",
        "two\nlined",
        "Proc-Type: 4,X\n",
        "\ud800",
        "\0",
        "é",
        "[masked:A]",
        "xoxb-",
        "12345678901-",
        "hf_",
        "gl",
        "pat-",
    ]
)
TEXTS = st.lists(FRAGMENTS | st.text(max_size=5), max_size=14).map("".join)
SECRETS = [
    Secret("A", "s3cr3tvalue"),
    Secret("B", "valuealue"),
    Secret("C", "a" * 8),
    Secret("D", "two\nlined value"),
    Secret("E", "pw@host"),
]


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.lists(st.integers(0, 400), max_size=8))
@example(TOKEN + PEM, [3, 7])
@example(PEM[:60] + PEM, [71])
def test_any_split_gives_what_the_whole_gives(text: str, cuts: list[int]) -> None:
    masker = Masker(SECRETS)
    whole = masker.mask(text)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    chunks = [text[a:b] for a, b in pairwise(edges)]
    assert in_pieces(masker, chunks) == whole
    assert by_ones(masker, text) == whole


@settings(max_examples=300, deadline=None)
@given(TEXTS)
@example(f"https://{TOKEN}@host/ https://{TOKEN}:hunter22@host/")
def test_masking_is_idempotent(text: str) -> None:
    masker = Masker(SECRETS[:4])
    once = masker.mask(text)
    assert masker.mask(once) == once


@settings(max_examples=200, deadline=None)
@given(st.text(), st.lists(st.text(min_size=4), max_size=4), st.text())
def test_no_value_survives(before: str, values: list[str], after: str) -> None:
    masker = Masker([Secret(f"S{n}", value) for n, value in enumerate(values)])
    for value in values:
        text = before + value + after
        masked = masker.mask(text)
        assert by_ones(masker, text) == masked
        if value not in "masked" and not set(value) & set("[:]"):
            assert "[masked:" in masked


# --- cost


def seconds(masker: Masker, text: str) -> float:
    start = time.process_time()
    masker.mask(text)
    in_pieces(masker, [text[i : i + 65536] for i in range(0, len(text), 65536)])
    return time.process_time() - start


@pytest.mark.parametrize(
    "unit",
    [
        "eyJ",
        ".eyJ",
        "eyJaaaaaaaa.",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----\n",
        "a",
        "://a:",
        "sk-",
        "xoxb-",
        TOKEN[:4],
        "Bearer ",
        "Authorization: ",
        "Authorization",
        "aws_secret_access_key",
        "aws_secret_access_key=",
        "Proc-Type: ",
        PEM[:100],
        "\n",
        "@",
        "%41sk-",
        f"https://{TOKEN}:hunter22@host/ ",
    ],
)
def test_cost_grows_with_the_length_only(unit: str) -> None:
    masker = Masker([Secret("A", "a" * 20)])
    size = 100_000
    small = min(seconds(masker, unit * (size // len(unit))) for _ in range(2))
    # Four times the text: quadratic would be sixteen times the cost, each time it is measured. A
    # busy machine may make one measurement slow, not all.
    limit = 9 * small + 0.2
    assert any(seconds(masker, unit * (4 * size // len(unit))) < limit for _ in range(5))


# --- what nobody sees


@pytest.mark.parametrize(
    "between",
    [
        *("\x1b[1m", "\x1b]8;;\x07", "\x1b]0;x\x1b\\", "\x9b", "\x00", "\x01", "\x7f", "\r"),
        *("\b", "Z\b", "ZZ\b\b", "\x01Z\b", "\u200b", "\u00ad", "\u202e", "\ufeff"),
    ],
)
def test_what_nobody_sees_hides_no_secret(between: str) -> None:
    masker = Masker([Secret("A", "kQ7vZ2xR9tLw4mB8nHc3")])
    text = f"first\r\nit is kQ7vZ2{between}xR9tLw4mB8nHc3 now"
    assert masker.safe(text).splitlines() == ["first", "it is [masked:A] now"]
    told = masker.mask_json({"a": [text, 3], f"kQ7vZ2{between}xR9tLw4mB8nHc3": None})
    assert told == {"a": [masker.safe(text), 3], "[masked:A]": None}


@pytest.mark.parametrize(
    "text",
    ["10 %\r20 %\r", "\x1b[31mred\x1b[0m", "a\b_", "one\r\ntwo", "\u202eabc", "", "a\0b"],
)
def test_what_hides_nothing_stays(text: str) -> None:
    assert Masker([Secret("A", "kQ7vZ2xR9tLw4mB8nHc3")]).safe(text) == text


def test_many_backspaces_take_no_time() -> None:
    began = time.monotonic()
    Masker([Secret("A", "kQ7vZ2xR9tLw4mB8nHc3")]).safe("a" * 300_000 + "\b" * 300_000)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("char", [*map(chr, range(128)), "\u200b", "\ufe0f", "é", "漢"])
def test_long_and_short_texts_are_judged_alike(char: str) -> None:
    assert invisible_text._may_hide(char) == invisible_text._may_hide(
        "a" * invisible_text.LONG + char
    )
