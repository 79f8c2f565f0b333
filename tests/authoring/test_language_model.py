"""The client of the language model, against a stand-in on loopback."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest

from model_server import Said, standing_in
from quire.authoring.language_model import complete, endpoint
from quire.errors import ConfigError, ModelError, QuireError
from quire.workspace import Workspace

KEY = "sk-0123456789abcdef"


def workspace(root: Path, env: dict[str, str] | None = None, **settings: Any) -> Workspace:
    settings = {"model": "small", **settings}
    lines = [f"{k} = {v if isinstance(v, int | float) else repr(v)}" for k, v in settings.items()]
    (root / "quire.toml").write_text("\n".join(["[model]", *lines]))
    return Workspace(root, cwd=root, env=env or {})


def test_a_question_and_its_answer(tmp_path: Path) -> None:
    with standing_in(Said("Hello ✓")) as server:
        ws = workspace(tmp_path, {"MY_KEY": KEY}, url=server.url + "/", key_env="MY_KEY")
        assert complete(ws, "Be brief.", "Greet me.\n") == "Hello ✓"
    assert server.wrong == []
    assert server.keys == [f"Bearer {KEY}"]
    (asked,) = server.asked
    assert asked["model"] == "small"
    assert [m["content"] for m in asked["messages"]] == ["Be brief.", "Greet me.\n"]


def test_without_a_key_none_is_sent(tmp_path: Path) -> None:
    with standing_in(Said("x")) as server:
        assert complete(workspace(tmp_path, url=server.url), "a", "b") == "x"
    assert server.keys == [None]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Said(status=401, raw=b'{"error": {"message": "no\\u001b[31m such key"}}'), "no [31m such"),
        (Said(status=404, raw=b"<html>"), "refused: 404"),
        (Said(status=429, raw=b'{"error": "slow down"}'), "slow down"),
        (Said(status=500, raw=b""), "refused: 500"),
        (Said(status=302, raw=b"", headers={"Location": "http://127.0.0.1:1/"}), "refused: 302"),
        (Said(raw=b"<html>hello</html>"), "something else than a text"),
        (Said(raw=b"[" * 60_000), "something else than a text"),
        (Said(raw=b'{"choices": []}'), "something else than a text"),
        (Said(raw=b'{"choices": [{"message": {"content": null}}]}'), "something else than a text"),
        (Said(raw=b'{"choices": [{"message": {"content": ["x"]}}]}'), "something else than a text"),
        (Said("  \n"), "something else than a text"),
        (Said("half of i", finish="length"), "too long"),
        (Said("x" * 1001), "too long"),
        (Said(raw=b" " * 80_000), "more than"),
    ],
)
def test_answers_that_are_none(tmp_path: Path, said: Said, words: str) -> None:
    with standing_in(said) as server:
        ws = workspace(tmp_path, {"K": KEY}, url=server.url, key_env="K", max_size=1000)
        with pytest.raises(ModelError, match=words.replace("[", r"\[")) as caught:
            complete(ws, "a", "b")
    assert caught.value.hint
    assert "\x1b" not in str(caught.value)
    assert caught.value.retryable == (said.status in (429, 500))
    assert len(server.asked) == 1


def test_a_server_that_repeats_the_key_does_not_get_it_shown(tmp_path: Path) -> None:
    raw = f'{{"error": "bad key {KEY}"}}'.encode()
    with standing_in(Said(status=403, raw=raw)) as server:
        ws = workspace(tmp_path, {"K": KEY}, url=server.url, key_env="K")
        with pytest.raises(ModelError) as caught:
            complete(ws, "a", "b")
        assert KEY not in repr(endpoint(ws))
    assert KEY not in caught.value.message + caught.value.hint
    assert "bad key …" in caught.value.message


def test_nobody_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ModelError, match="could not be asked"):
        complete(workspace(tmp_path, url=f"http://127.0.0.1:{port}/v1"), "a", "b")


def test_somebody_who_says_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        ws = workspace(tmp_path, url=f"http://127.0.0.1:{port}/v1", timeout=0.2)
        with pytest.raises(ModelError, match="did not answer within") as caught:
            complete(ws, "a", "b")
    assert "model.timeout" in caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "example.org/v1",
        "ftp://example.org",
        "file:///etc/passwd",
        "http://",
        "https://ada:secret@example.org/v1",
        "https://example.org/v1?key=1",
        "https://example.org:x/v1",
        "https://exa mple.org/v1",
        "https://example.org/\u00fc",
    ],
)
def test_addresses_that_are_none(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="no address") as caught:
        endpoint(workspace(tmp_path, url=url))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("env", "url", "words"),
    [
        ({}, "http://127.0.0.1:1", "K is not set"),
        ({"K": "two words"}, "http://127.0.0.1:1", "characters that no key has"),
        ({"K": KEY}, "https://elsewhere.example/v1", "does not allow it"),
        (
            {"K": KEY, "QUIRE_MODEL_HOST": "other.example"},
            "https://elsewhere.example",
            "does not allow",
        ),
        (
            {"K": KEY, "QUIRE_MODEL_HOST": "elsewhere.example"},
            "http://elsewhere.example/v1",
            "anyone to read",
        ),
    ],
)
def test_a_key_goes_only_where_a_person_said(
    tmp_path: Path, env: dict[str, str], url: str, words: str
) -> None:
    """A configuration comes with a clone; the environment is the user's own."""

    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise AssertionError(f"asked {request.url}")

    ws = workspace(tmp_path, env, url=url, key_env="K")
    with pytest.raises(QuireError, match=words) as caught:
        complete(ws, "a", "b", transport=httpx2.MockTransport(refuse))
    assert caught.value.hint
    assert KEY not in str(caught.value)


def test_a_key_goes_where_a_person_said(tmp_path: Path) -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, content=Said("yes").body())

    env = {"K": KEY, "QUIRE_MODEL_HOST": "a.example, Elsewhere.example"}
    ws = workspace(tmp_path, env, url="https://elsewhere.example/v1", key_env="K")
    assert complete(ws, "a", "b", transport=httpx2.MockTransport(answer)) == "yes"
    assert str(seen[0].url) == "https://elsewhere.example/v1/chat/completions"
    assert seen[0].headers["authorization"] == f"Bearer {KEY}"


def test_not_configured(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no language model"):
        complete(Workspace(tmp_path, cwd=tmp_path, env={}), "a", "b")
    with pytest.raises(ConfigError, match=r"model\.model is not"):
        complete(workspace(tmp_path, url="http://127.0.0.1:1", model=""), "a", "b")
