"""What came to an archive since it was last looked at, on the branch and on the folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from made_archive import add, git, git_archive, problems, repository, run_files, run_id, seal
from quire.archive.folder_archive import FolderArchive
from quire.archive.layout import DIGEST, Archive

Open = Callable[[], Archive]


@pytest.fixture(params=["git", "folder"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "folder":
        return lambda: FolderArchive(tmp_path / "state" / "archive", seal)
    repository(tmp_path / "repo")
    return lambda: git_archive(tmp_path / "repo")


def test_news_are_what_is_new(opened: Open) -> None:
    archive = opened()
    assert archive.news("").added == ()
    first = add(archive, 1)
    news = archive.news("")
    assert [place.run_id for place in news.added] == [first]
    assert news.whole
    assert archive.news(news.state).added == ()
    second, third = add(archive, 2), add(opened(), 3)
    later = opened().news(news.state)
    assert [place.run_id for place in later.added] == [second, third]
    assert not later.whole
    assert opened().news("what is this").whole


def test_what_is_new_can_be_read(opened: Open) -> None:
    runs = [add(opened(), n) for n in range(1, 4)]
    archive = opened()
    read = dict(archive.read(archive.news("").added))
    wanted = {run: run_files(run) for run in runs}
    assert read == {
        run: {name: files[name] for name in ("record.json", "notebook.ipynb")}
        for run, files in wanted.items()
    }
    reading = archive.read(archive.news("").added)
    next(iter(reading))
    reading.close()  # whoever has read enough may leave


def test_a_digest_is_no_run_and_no_problem(opened: Open) -> None:
    run = add(opened(), 1)
    state = opened().news("").state
    place = opened().write_digest(b"# Digest\n")
    assert DIGEST in place
    assert opened().write_digest(b"# Digest\n") == place
    opened().write_digest(b"# Another\n")
    assert opened().news(state).added == ()
    second = add(opened(), 2)
    assert opened().ids() == [second, run]
    assert problems(opened()) == []


def test_a_digest_that_nobody_sealed_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    repository(folder)
    add(git_archive(folder), 1)
    git_archive(folder).write_digest(b"# Digest\n")
    sealed = [link for link in git_archive(folder).history() if not link.run_id]
    assert [link.seal for link in sealed] == [seal(link.sealed) for link in sealed]
    assert len(sealed) == 1
    for message in (b"Digest\n", b"Digest\n\nQuire-Digest: DIGEST.md\nQuire-Seal: test:ab\n"):
        stream = b"commit refs/heads/reports\ncommitter E <e@x> 1 +0000\ndata %d\n%b\n" % (
            len(message), message)  # fmt: skip
        stream += b"from refs/heads/reports^0\nM 100644 inline DIGEST.md\ndata 4\nlie\n\n"
        git(folder, "fast-import", "--quiet", given=stream)
    links = [link for link in git_archive(folder).history() if not link.run_id]
    assert links[1].problems
    assert links[2].seal != seal(links[2].sealed)


def test_a_digest_with_more_in_its_commit_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    repository(folder)
    add(git_archive(folder), 1)
    stream = (
        b"commit refs/heads/reports\ncommitter E <e@x> 1 +0000\ndata 7\nDigest\n\n"
        b"from refs/heads/reports^0\nM 100644 inline DIGEST.md\ndata 4\nlie\n\n"
        b"M 100644 inline other.md\ndata 4\nlie\n\n"
    )
    git(folder, "fast-import", "--quiet", given=stream)
    assert any("other.md" in problem for problem in problems(git_archive(folder)))


def test_digests_of_two_clones_do_not_stand_in_each_other_s_way(tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    repository(remote, "--bare")
    archives = []
    for name, number in (("a", 1), ("b", 2)):
        folder = tmp_path / name
        repository(folder)
        git(folder, "remote", "add", "origin", str(remote))
        archive = git_archive(folder)
        add(archive, number)
        archive.write_digest(f"# {name}\n".encode())
        archives.append(archive)
    archives[0].push("origin")
    archives[1].push("origin")
    archives[0].push("origin")
    assert archives[0].ids() == archives[1].ids() == [run_id(2), run_id(1)]
    assert problems(archives[0]) == []
    assert problems(archives[1]) == []
