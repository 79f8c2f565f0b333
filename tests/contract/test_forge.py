"""What every forge does alike. On local, Gitea and GitHub; `tests/forges/worlds.py` says how."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from forges.worlds import KINDS, World, world
from quire.errors import ForgeError, UsageError
from quire.review.protocol import Check, Proposal

TITLE = 'Say "goodbye", naïve & <b>bold</b> $(date)'
BODY = "# What\n\nTwo lines, a | table | and ümlauts.\n\n```\ncode\n```"


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    test = request.node.originalname.removeprefix("test_")
    made = world(request.param, tmp_path / "repository", test)
    yield made
    made.close()


def opened(place: World, branch: str = "add-goodbye", title: str = TITLE) -> Proposal:
    place.branch(branch, {f"notebooks/{branch}.py": f"print({branch!r})\n"})
    return place.forge().open(branch=branch, base="main", title=title, body=BODY)


def test_open_and_read_back(place: World) -> None:
    made = opened(place)
    assert (made.title, made.body, made.branch, made.base) == (TITLE, BODY, "add-goodbye", "main")
    assert (made.state, made.merged, made.author) == ("open", None, "author")
    assert made.head == place.git("rev-parse", "add-goodbye")
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", made.at)
    assert made.url.startswith("http") == (place.kind != "local")
    again = place.forge().proposal(made.number)
    assert again == made
    assert [(p.number, p.title) for p in place.forge().proposals()] == [(made.number, TITLE)]


def test_open_twice_is_refused(place: World) -> None:
    opened(place)
    with pytest.raises(ForgeError, match="open proposal for add-goodbye already") as caught:
        place.forge().open(branch="add-goodbye", base="main", title="Again", body="")
    assert caught.value.hint


def test_open_without_the_branch_is_refused(place: World) -> None:
    with pytest.raises(ForgeError, match="nowhere") as caught:
        place.forge().open(branch="nowhere", base="main", title="Nothing", body="")
    assert "nowhere" in caught.value.hint


def test_open_with_nothing_to_propose_is_refused(place: World) -> None:
    place.git("branch", "same", "main")
    place.publish("same")
    with pytest.raises(
        ForgeError, match="nothing to propose: same has no commit that main has not"
    ):
        place.forge().open(branch="same", base="main", title="Nothing", body="")


@pytest.mark.parametrize(
    "title", ["", "  ", "two\nlines", "a\x00b", "a\x1b[31mb", "x" * 256, "\ud800"]
)
@pytest.mark.parametrize("place", ["local"], indirect=True)  # refused before anybody is asked
def test_titles_that_no_forge_takes(place: World, title: str) -> None:
    place.branch("add", {"a.py": "1\n"})
    with pytest.raises(UsageError, match="title"):
        place.forge().open(branch="add", base="main", title=title, body="")
    assert place.forge().proposals(None) == []


def test_update_changes_only_what_is_given(place: World) -> None:
    made = opened(place)
    assert place.forge().update(made.number, title="Another title").body == BODY
    after = place.forge().update(made.number, body="Another body")
    assert (after.title, after.body) == ("Another title", "Another body")


def test_new_commits_on_the_branch_move_the_head(place: World) -> None:
    made = opened(place)
    place.git("switch", "--quiet", "add-goodbye")
    newer = place.commit("add-goodbye", {"more.py": "2\n"})
    place.git("switch", "--quiet", "main")
    place.publish("add-goodbye")
    assert settled(place, made.number, newer).head == newer != made.head


def settled(place: World, number: int, head: str) -> Proposal:
    """A server learns of a push a moment later; a tape says so in its next answer."""
    import time

    for _ in range(50):
        found = place.forge().proposal(number)
        if found.head == head:
            break
        if place.seen:
            time.sleep(0.1)
    return found


def test_lists_are_by_state_and_newest_first(place: World) -> None:
    one, two, three = (opened(place, f"branch-{n}", f"Number {n}").number for n in "123")
    place.forge().close(two)
    place.forge().merge(one, "Merge one")

    def listed(state: str | None) -> list[int]:
        return [p.number for p in place.forge().proposals(state)]  # type: ignore[arg-type]

    assert listed("open") == [three]
    assert listed("closed") == [two]
    assert listed("merged") == [one]
    assert listed(None) == [three, two, one]


def test_comments_are_kept_in_order(place: World) -> None:
    number = opened(place).number
    place.forge().comment(number, "First, with ümlauts & <tags>\n\nand a second paragraph")
    place.forge("reviewer").comment(number, "Second")
    found = place.forge().proposal(number).comments
    assert [(c.author, c.text, c.verdict) for c in found] == [
        ("author", "First, with ümlauts & <tags>\n\nand a second paragraph", None),
        ("reviewer", "Second", None),
    ]
    assert found[0].at <= found[1].at


def test_reviews_carry_their_verdict(place: World) -> None:
    made = opened(place)
    number = made.number
    reviewer = place.forge("reviewer")
    reviewer.review(number, "comment", "Looks odd")
    reviewer.review(number, "request_changes", "Please mend it")
    reviewer.review(number, "approve", "Fine now")
    found = place.forge().proposal(number).comments
    assert sorted((c.author, c.text, c.verdict or "") for c in found) == [
        ("reviewer", "Fine now", "approve"),
        ("reviewer", "Looks odd", "comment"),
        ("reviewer", "Please mend it", "request_changes"),
    ]
    assert [c.commit for c in found] == [made.head] * 3


def test_nobody_approves_their_own_where_the_forge_says_so(place: World) -> None:
    number = opened(place).number
    if place.kind == "local":  # whoever works alone must be able to go on
        place.forge().review(number, "approve", "I looked twice")
        assert place.forge().proposal(number).comments[0].verdict == "approve"
        return
    with pytest.raises(ForgeError, match="lets nobody review their own proposal") as caught:
        place.forge().review(number, "approve", "I looked twice")
    assert "--comment" in caught.value.hint


def test_merge(place: World) -> None:
    number = opened(place).number
    commit = place.forge().merge(number, f"Merge proposal {number}\n\nWith a body")
    found = place.forge().proposal(number)
    assert (found.state, found.merged) == ("merged", commit)
    assert re.fullmatch(r"[0-9a-f]{40}", commit)
    if place.seen:
        assert place.tip("main") == commit
        assert place.show("main", "notebooks/add-goodbye.py") == "print('add-goodbye')"
        text = place.git("log", "-1", "--format=%B", commit)
        assert text == f"Merge proposal {number}\n\nWith a body"
        parents = place.git("log", "-1", "--format=%P", commit)
        assert parents == f"{place.main} {found.head}"


def test_merge_waits_for_requested_changes(place: World) -> None:
    number = opened(place).number
    reviewer = place.forge("reviewer")
    reviewer.review(number, "request_changes", "Please mend it")
    with pytest.raises(ForgeError, match=f"proposal {number} is not merged: reviewer asked for"):
        place.forge().merge(number, "Merge")
    assert place.forge().proposal(number).state == "open"
    if place.seen:
        assert place.tip("main") == place.main
    reviewer.review(number, "approve", "Fine now")
    assert place.forge().merge(number, "Merge")


def test_a_conflict_is_refused_and_nothing_changes(place: World) -> None:
    place.branch("ours", {"README": "Tasks of ours\n"})
    newer = place.on_main({"README": "Tasks of theirs\n"})
    made = place.forge().open(branch="ours", base="main", title="Conflict", body="")
    with pytest.raises(ForgeError, match=f"proposal {made.number} .*") as caught:
        place.forge().merge(made.number, "Merge")
    assert "git merge main" in caught.value.hint
    assert place.forge().proposal(made.number).state == "open"
    if place.seen:
        assert place.tip("main") == newer


def test_merged_is_merged(place: World) -> None:
    number = opened(place).number
    commit = place.forge().merge(number, "Merge")
    with pytest.raises(ForgeError, match=f"{number} cannot be merged: it is merged already"):
        place.forge().merge(number, "Merge")
    with pytest.raises(ForgeError, match=f"{number} cannot be closed: it is merged already"):
        place.forge().close(number)
    assert place.forge().proposal(number).merged == commit


def test_closed_is_closed(place: World) -> None:
    number = opened(place).number
    place.forge().close(number)
    found = place.forge().proposal(number)
    assert (found.state, found.merged) == ("closed", None)
    with pytest.raises(ForgeError, match=f"{number} cannot be merged: it is closed"):
        place.forge().merge(number, "Merge")
    with pytest.raises(ForgeError, match=f"{number} cannot be closed: it is closed"):
        place.forge().close(number)
    if place.seen:
        assert place.tip("main") == place.main


def test_the_newest_check_of_each_context_counts(place: World) -> None:
    made = opened(place)
    forge = place.forge()
    forge.set_check(made.head, Check("quire/ci", "pending", "3 tasks"))
    forge.set_check(made.head, Check("quire/lint", "failure", "2 lines", "https://ci.test/7"))
    forge.set_check(made.head, Check("quire/ci", "success", "3 of 3 tasks ok"))
    found = place.forge().proposal(made.number).checks
    assert [(c.context, c.state, c.description, c.url) for c in found] == [
        ("quire/ci", "success", "3 of 3 tasks ok", ""),
        ("quire/lint", "failure", "2 lines", "https://ci.test/7"),
    ]
    assert all(check.at for check in found)


def test_a_check_of_an_unknown_commit_is_refused(place: World) -> None:
    opened(place)
    with pytest.raises(ForgeError, match="012345678901"):
        place.forge().set_check("0123456789" * 4, Check("quire/ci", "success"))
    with pytest.raises(UsageError, match="not the full id of a commit"):
        place.forge().set_check("../../x", Check("quire/ci", "success"))


def test_files_are_kept_where_that_is_possible(place: World) -> None:
    number = opened(place).number
    address = place.forge().attach(number, "sum of all.ipynb", b'{"cells": []}')
    if place.kind == "github":
        assert address is None
    elif place.kind == "gitea":
        assert address is not None
        assert address.startswith("http")
    else:
        assert address is not None
        assert place.git("show", address) == '{"cells": []}'
    assert place.forge().proposal(number).state == "open"


def test_links_lead_to_a_file_of_a_commit(place: World) -> None:
    found = place.forge().link(place.main, "notebooks/a b?.py")
    if place.kind == "local":
        assert found is None
        return
    middle = {"gitea": "src/commit", "github": "blob"}[place.kind]
    assert found == f"{place.forge().where}/{middle}/{place.main}/notebooks/a%20b%3F.py"
    with pytest.raises(UsageError):
        place.forge().link("main", "x")


def test_a_number_that_is_not_there(place: World) -> None:
    for call in (
        lambda: place.forge().proposal(7),
        lambda: place.forge().update(7, title="x"),
        lambda: place.forge().comment(7, "x"),
        lambda: place.forge().review(7, "approve", ""),
        lambda: place.forge().merge(7, "x"),
        lambda: place.forge().close(7),
    ):
        with pytest.raises(ForgeError, match="proposal 7") as caught:
            call()
        assert caught.value.hint
    for number in (0, -1, True):
        with pytest.raises(UsageError, match="not the number of a proposal"):
            place.forge().proposal(number)
