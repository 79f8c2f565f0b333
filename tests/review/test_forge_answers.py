"""What a server may answer instead of the truth. A real one on loopback, real HTTP."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from forges.bad_server import Asked, BadServer, Reply, bad_server
from quire.errors import ForgeError, UsageError
from quire.review.forge_address import Address
from quire.review.gitea import gitea
from quire.review.github import github
from quire.review.protocol import Check
from quire.review.pull_requests import Pulls

TOKEN = "s3cret-t0ken-of-mine"
PULL: dict[str, Any] = {
    "number": 3,
    "title": "T",
    "body": "B",
    "state": "open",
    "user": {"login": "ada"},
    "created_at": "2026-01-01T00:00:00Z",
    "html_url": "https://x.test/ada/tasks/pulls/3",
    "head": {"ref": "add", "sha": "a" * 40},
    "base": {"ref": "main", "sha": "b" * 40},
    "merged_at": None,
    "merge_commit_sha": None,
}


@contextmanager
def served(
    reply: Reply | Callable[[Asked], Reply], kind: str = "gitea", answer: float = 30.0
) -> Iterator[tuple[Pulls, BadServer]]:
    with bad_server(reply if callable(reply) else lambda _: reply) as server:
        yield forge_at(server.url, kind, answer), server


def forge_at(url: str, kind: str = "gitea", answer: float = 30.0) -> Pulls:
    make = {"gitea": gitea, "github": github}[kind]
    forge = make(Address(url, "ada", "tasks"), {f"QUIRE_{kind.upper()}_TOKEN": TOKEN})
    forge.rest.pause = lambda _: None
    forge.rest._answer = answer
    return forge


def error_of(reply: Reply, kind: str = "gitea") -> ForgeError:
    with served(reply, kind) as (forge, _), pytest.raises(ForgeError) as caught:
        forge.proposals()
    told = f"{caught.value.message} {caught.value.hint}"
    assert TOKEN not in told
    assert caught.value.hint
    assert "\n" not in told
    return caught.value


@pytest.mark.parametrize("kind", ["gitea", "github"])
@pytest.mark.parametrize(
    ("status", "hint", "retryable"),
    [
        (400, "log", False),
        (401, "_TOKEN", False),
        (403, "it needs", False),
        (404, "check the number", False),
        (409, "quire proposals", False),
        (422, "mend what it complains of", False),
        (429, "fewer questions", True),
        (500, "the fault is", True),
        (503, "the fault is", True),
    ],
)
def test_statuses(kind: str, status: int, hint: str, retryable: bool) -> None:
    error = error_of(Reply(status, b'{"message": "no such luck"}'), kind)
    name = {"gitea": "Gitea", "github": "GitHub"}[kind]
    assert error.message == (
        f"{name} at 127.0.0.1 refused to list the proposals of ada/tasks: {status} no such luck"
    )
    assert hint in error.hint
    assert error.retryable is retryable


def test_the_scope_and_the_variable_are_named() -> None:
    assert "write:repository" in error_of(Reply(403)).hint
    assert "QUIRE_GITEA_TOKEN" in error_of(Reply(401)).hint
    assert "pull requests" in error_of(Reply(403), "github").hint


def test_what_is_not_there_is_a_500_on_gitea() -> None:
    """As 1.27.3 answers a comment on a proposal that it has not."""
    error = error_of(Reply(500, b'{"message": "issue does not exist [id: 0, index: 7]"}'))
    assert "500 issue does not exist" in error.message
    assert error.hint.startswith("check the number and the name")
    assert not error.retryable


def test_githubs_rate_limit_is_a_403() -> None:
    reply = Reply(403, b'{"message": "API rate limit exceeded"}', {"x-ratelimit-remaining": "0"})
    assert "fewer questions" in error_of(reply, "github").hint


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(200, b"<html>Sign in</html>", {"content-type": "text/html"}), "with a web page"),
        (Reply(200, b"  <!doctype html>"), "with a web page"),
        (Reply(200, b""), "with nothing"),
        (Reply(200, b"\n"), "with nothing"),
        (Reply(204, b""), "with nothing"),
        (Reply(200, b'[{"number": 3, "ti'), "with broken JSON"),
        (Reply(200, b"[" * 100_000), "with broken JSON"),
        (Reply(200, b"\xff\xfe\x00"), "with broken JSON"),
        (Reply(200, b'{"number": 3}'), "with something else than a list"),
        (Reply(200, b"[3]"), "the proposal is not an object"),
        (Reply(200, b"[]", claim=5000), "broke off its answer"),
        (Reply(500, b"<h1>Oops</h1>"), "refused to list the proposals of ada/tasks: 500"),
        (Reply(422, b"[1, 2]"), "422"),
        (Reply(422, b'{"message": {"a": 1}, "errors": 7}'), "422"),
    ],
)
def test_what_is_not_an_answer(reply: Reply, message: str) -> None:
    assert message in error_of(reply).message


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"number": "3"}, "no number in 'number'"),
        ({"number": True}, "no number in 'number'"),
        ({"title": 7}, "no text in 'title'"),
        ({"head": None}, "head is not an object"),
        ({"head": {"ref": ""}}, "lacks 'ref'"),
        ({"base": []}, "base is not an object"),
        ({"user": {"login": None}}, "lacks 'login'"),
        ({"user": "ada"}, "user is not an object"),
        ({"state": 1}, "no text in 'state'"),
    ],
)
def test_wrong_types_are_named(change: dict[str, Any], wrong: str) -> None:
    error = error_of(Reply(200, json.dumps([PULL | change]).encode()))
    assert error.message.startswith("Gitea's answer is not understood: the proposal")
    assert wrong in error.message


def test_an_account_that_is_gone() -> None:
    with served(Reply(200, json.dumps([PULL | {"user": None}]).encode())) as (forge, _):
        assert forge.proposals()[0].author == "ghost"


def test_words_of_a_server_are_one_line_without_the_token() -> None:
    said = f"bad \x1b[31m token\n{TOKEN}\nfor you " + "x" * 1000
    error = error_of(Reply(401, json.dumps({"message": said}).encode()))
    assert "\x1b" not in error.message
    assert "bad [31m token … for you" in error.message
    assert len(error.message) < 450


def test_a_server_that_says_nothing() -> None:
    with served(Reply(hang=True), answer=0.2) as (forge, server):
        with pytest.raises(ForgeError, match="did not answer in time when asked to list") as caught:
            forge.proposals()
        assert caught.value.retryable
        with pytest.raises(ForgeError, match="comment on proposal 3") as caught:
            forge.comment(3, "words")
        assert "may have been done all the same" in caught.value.hint
        assert [a.method for a in server.asked] == ["GET", "POST"]


def test_nobody_is_there() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with pytest.raises(ForgeError, match=r"Gitea at 127\.0\.0\.1 could not be reached") as caught:
        forge_at(f"http://127.0.0.1:{port}").proposals()
    assert "git remote -v" in caught.value.hint


def test_no_tls_where_some_was_promised() -> None:
    with served(Reply()) as (_, server), pytest.raises(ForgeError, match="no TLS") as caught:
        forge_at(server.url.replace("http:", "https:")).proposals()
    assert "SSL_CERT_FILE" in caught.value.hint
    assert server.asked == []


def test_only_questions_are_asked_again() -> None:
    answers = iter([Reply(503), Reply(429, headers={"retry-after": "1"}), Reply(200, b"[]")])
    with served(lambda _: next(answers)) as (forge, server):
        waits: list[float] = []
        forge.rest.pause = waits.append
        assert forge.proposals() == []
        assert len(server.asked) == 3
        assert waits == [0.2, 1.0]
    with served(Reply(503)) as (forge, server):
        for call in (
            lambda: forge.comment(3, "x"),
            lambda: forge.set_check("a" * 40, Check("quire/ci", "success")),
            lambda: forge.review(3, "approve", ""),
            lambda: forge.update(3, title="x"),
        ):
            server.asked.clear()
            with pytest.raises(ForgeError, match="503"):
                call()
            assert len(server.asked) == 1
    with served(Reply(429, headers={"retry-after": "3600"})) as (forge, server):
        with pytest.raises(ForgeError) as caught:
            forge.proposals()
        assert "in 3600 s" in caught.value.hint
        assert len(server.asked) == 1


def test_the_token_goes_nowhere_else() -> None:
    with (
        served(Reply(200, b"[]")) as (_, other),
        served(lambda _: Reply(307, headers={"location": f"{other.url}/api/v1/x"})) as (forge, own),
    ):
        with pytest.raises(ForgeError, match="belongs to another address") as caught:
            forge.proposals()
        assert other.asked == []
        assert own.asked[0].authorization == f"token {TOKEN}"
        assert "git remote set-url" in caught.value.hint
        assert TOKEN not in caught.value.message


def test_a_redirect_on_the_same_server_is_followed_for_questions() -> None:
    def reply(asked: Asked) -> Reply:
        if "/moved/" in asked.path:
            return Reply(200, b"[]")
        return Reply(301, headers={"location": "/moved/pulls"})

    with served(reply) as (forge, server):
        assert forge.proposals() == []
        with pytest.raises(ForgeError, match="another address"):
            forge.comment(3, "x")
        assert [a.method for a in server.asked] == ["GET", "GET", "POST"]


def test_redirects_without_an_end() -> None:
    with (
        served(Reply(302, headers={"location": "/again"})) as (forge, _),
        pytest.raises(ForgeError, match="one redirect after another"),
    ):
        forge.proposals()


@pytest.mark.parametrize("way", ["link", "x-total-count"])
def test_all_pages_are_read(way: str) -> None:
    """No address of the server's is followed: the next page is counted."""
    pulls = [PULL | {"number": n} for n in range(1, 121)]

    def reply(asked: Asked) -> Reply:
        page = int(asked.path.split("page=")[-1])
        part = pulls[50 * (page - 1) : 50 * page]
        more = '<http://elsewhere.test/?page=9>; rel="next"' if page < 3 else ""
        headers = {"link": more} if way == "link" else {"x-total-count": "120"}
        return Reply(200, json.dumps(part).encode(), headers)

    with served(reply) as (forge, server):
        assert [p.number for p in forge.proposals()] == list(range(120, 0, -1))
        assert [a.path.split("?")[1] for a in server.asked] == [
            f"state=open&limit=50&page={n}" for n in (1, 2, 3)
        ]


def test_a_list_that_never_ends_is_left() -> None:
    headers = {"link": '<x>; rel="next"'}
    with (
        served(Reply(200, json.dumps([PULL]).encode(), headers)) as (forge, server),
        pytest.raises(ForgeError, match="more than 200 pages"),
    ):
        forge.proposals()
    assert len(server.asked) == 200


def test_an_answer_that_never_ends_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.review.forge_http.MOST", 10_000)
    with (
        served(Reply(200, b"[" + b" " * 100_000 + b"]")) as (forge, _),
        pytest.raises(ForgeError, match="an answer without an end"),
    ):
        forge.proposals()


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "ümlaut", "x" * 1001, "\x1b[0m"])
def test_a_token_that_is_none_is_named_but_not_shown(token: str) -> None:
    with pytest.raises(ForgeError, match="QUIRE_GITEA_TOKEN") as caught:
        gitea(Address("https://x.test", "a", "b"), {"QUIRE_GITEA_TOKEN": token}).proposals()
    assert token not in caught.value.message + caught.value.hint


def test_which_variable_counts() -> None:
    place = Address("https://x.test", "a", "b")
    assert gitea(place, {"GITEA_TOKEN": "g"}).rest.token.variable == "GITEA_TOKEN"
    both = {"GITEA_TOKEN": "g", "QUIRE_GITEA_TOKEN": "q"}
    assert gitea(place, both).rest.token.value == "q"
    place = Address("https://github.com", "a", "b")
    assert github(place, {"GH_TOKEN": "g"}).rest.token.variable == "GH_TOKEN"
    both = {"GH_TOKEN": "g", "GITHUB_TOKEN": "a"}
    assert github(place, both).rest.token.value == "a"
    with pytest.raises(ForgeError, match="no token for GitHub") as caught:
        github(place, {"GITEA_TOKEN": "g", "GITHUB_TOKEN": " "}).proposals()
    assert "QUIRE_GITHUB_TOKEN" in caught.value.hint
    assert "secret" not in repr(gitea(place, {"GITEA_TOKEN": "secret"}).rest.token)


def test_a_token_of_github_com_is_for_nobody_else() -> None:
    place = Address("https://github.com.evil.test", "a", "b")
    with pytest.raises(ForgeError, match="no token for GitHub") as caught:
        github(place, {"GITHUB_TOKEN": "t", "GH_TOKEN": "t"}).proposals()
    assert caught.value.hint.endswith("set QUIRE_GITHUB_TOKEN")
    assert github(place, {"QUIRE_GITHUB_TOKEN": "t"}).rest.token.value == "t"
    # A workflow on a server of one's own says where its token is from.
    env = {"GITHUB_TOKEN": "t", "GITHUB_SERVER_URL": "https://github.acme.test"}
    assert github(Address("https://github.acme.test", "a", "b"), env).rest.token.value == "t"


def test_nothing_unfit_is_sent() -> None:
    with served(Reply()) as (forge, server):
        for call in (
            lambda: forge.open(branch="--force", base="main", title="x", body=""),
            lambda: forge.open(branch="a..b", base="main", title="x", body=""),
            lambda: forge.open(branch="a", base="b c", title="x", body=""),
            lambda: forge.comment(3, "nul\0"),
            lambda: forge.review(3, "request_changes", " "),
            lambda: forge.review(3, "shout", "x"),  # type: ignore[arg-type]
            lambda: forge.comment(3, "x" * 65_001),
            lambda: forge.set_check("main", Check("quire/ci", "success")),
            lambda: forge.set_check("a" * 40, Check("two\nlines", "success")),
        ):
            with pytest.raises(UsageError):
                call()
        assert server.asked == []


def test_reviews_that_were_set_aside_do_not_stop_a_merge() -> None:
    def review(who: str, state: str, dismissed: bool) -> dict[str, Any]:
        at = "2026-01-01T00:00:00Z"
        user = {"login": who}
        return {
            "user": user,
            "state": state,
            "dismissed": dismissed,
            "submitted_at": at,
            "body": "",
        }

    said = [
        review("bob", "REQUEST_CHANGES", True),
        review("eve", "REQUEST_CHANGES", True),
        review("eve", "APPROVED", False),
        review("kim", "REQUEST_REVIEW", False),
        review("kim", "PENDING", False),
    ]

    def reply(asked: Asked) -> Reply:
        path = asked.path.split("?")[0]
        last = path.rsplit("/", 1)[1]
        value = {"3": PULL, "reviews": said}.get(last, [])
        return Reply(200, json.dumps(value).encode())

    with served(reply) as (forge, _):
        found = forge.proposal(3).comments
    assert [(c.author, c.verdict) for c in found] == [
        ("bob", "comment"),
        ("eve", "request_changes"),
        ("eve", "approve"),
    ]


def test_a_tape_that_was_never_recorded_fails(tmp_path: Path) -> None:
    from forges.tape import Player, Tape

    with pytest.raises(AssertionError, match="never recorded"):
        Tape.load(tmp_path / "none.json")
    one = {"as": "ada", "method": "GET", "query": {}, "body": None, "path": "/api/v1/a"}
    path = tmp_path / "one.json"
    answer = {"status": 200, "headers": {}, "answer": []}
    path.write_text(json.dumps({"about": {}, "exchanges": [one | answer]}))
    tape = Tape.load(path)
    place = Address("https://x.test", "ada", "tasks")
    forge = gitea(place, {"GITEA_TOKEN": "ada-token"}, Player(tape, "ada"))
    with pytest.raises(AssertionError, match="another request than number 0"):
        forge.proposals()
    with pytest.raises(AssertionError, match="1 requests were not made"):
        tape.finish()
