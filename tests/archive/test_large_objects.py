"""Large outputs by their digest, in a folder and behind a URL."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from quire.archive.large_objects import FolderObjects, Objects, RemoteObjects, objects
from quire.errors import ConfigError, StorageError


@pytest.fixture(params=["default", "folder", "file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    url = {
        "default": "",
        "folder": "large/outputs",
        "file": (tmp_path / "by-url").as_uri(),
        "memory": f"memory://{tmp_path.name}/large",
    }[request.param]
    if request.param == "memory":  # stands for what is not a folder; nobody can configure it
        return RemoteObjects(url)
    return objects(url, tmp_path / ".quire" / "objects", tmp_path)


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 5000])
def test_what_was_put_comes_back(store: Objects, data: bytes) -> None:
    digest = hashlib.sha256(data).hexdigest()
    assert store.get(digest) is None
    assert store.put(data) == digest
    assert store.put(data) == digest
    assert store.get(digest) == data
    assert store.where


@pytest.mark.parametrize(
    "digest", ["", "x", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"]
)
def test_digests_that_are_none(store: Objects, digest: str) -> None:
    assert store.get(digest) is None


def test_bytes_that_were_changed_are_not_given_out(tmp_path: Path) -> None:
    store = FolderObjects(tmp_path / "objects")
    digest = store.put(b"honest")
    path = tmp_path / "objects" / "sha256" / digest[:2] / digest[2:]
    path.write_bytes(b"forged")
    assert store.get(digest) is None
    # The next one who has the bytes mends it.
    store.put(b"honest")
    assert store.get(digest) == b"honest"


def test_where_they_lie(tmp_path: Path) -> None:
    default = objects("", tmp_path / ".quire" / "objects", tmp_path)
    digest = default.put(b"x")
    assert (tmp_path / ".quire" / "objects" / "sha256" / digest[:2] / digest[2:]).exists()
    assert objects("elsewhere", tmp_path, tmp_path).where == str(tmp_path / "elsewhere")
    assert objects("/elsewhere", tmp_path, tmp_path).where == "/elsewhere"


def test_a_url_without_fsspec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ConfigError, match="needs fsspec") as caught:
        objects("s3://bucket/x", tmp_path, tmp_path).put(b"x")
    assert "quire[objects]" in caught.value.hint


def test_a_url_that_nothing_speaks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nosuch") as caught:
        objects("nosuch://bucket/x", tmp_path, tmp_path).put(b"x")
    assert caught.value.hint


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for url in ("file", (tmp_path / "file").as_uri()):
        with pytest.raises(StorageError) as caught:
            objects(url, tmp_path, tmp_path).put(b"x")
        assert caught.value.hint


@pytest.mark.parametrize(
    "url", ["memory://x", "MEMORY://", "simplecache::memory://x", "memory::file:///x"]
)
def test_what_is_gone_with_the_process_is_no_place(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="only as long as the process") as caught:
        objects(url, tmp_path, tmp_path)
    assert "folder" in caught.value.hint
    assert objects("memory", tmp_path, tmp_path).where == str(tmp_path / "memory")
