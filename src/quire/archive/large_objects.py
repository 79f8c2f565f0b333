"""What is too large for an archive, by its digest: in a folder, or behind any fsspec URL.

sha256/ab/cdef…   64 hexadecimal digits in all
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any, Protocol

from ..errors import ConfigError, StorageError
from ..files import disk, sync_folder, write_atomic

_DIGEST = re.compile(r"[0-9a-f]{64}")
_FLEETING = re.compile(r"(^|::)memory(::|://)", re.IGNORECASE)
_URL = re.compile(r"[a-z][a-z0-9+.-]*(::|://)", re.IGNORECASE)


class Objects(Protocol):
    where: str  # for people

    def put(self, data: bytes) -> str:
        """Its digest. Kept for good when it returns."""
        ...

    def get(self, digest: str) -> bytes | None:
        """None where it is not here. Bytes of another digest are never returned."""
        ...

    def found(self, digest: str) -> bytes | None:
        """What lies in that place, whatever its digest is: for whoever checks it."""
        ...


def objects(url: str, folder: Path, root: Path) -> FolderObjects | RemoteObjects:
    """By the configuration: empty for `folder`, a path from `root`, or an fsspec URL."""
    if not url:
        return FolderObjects(folder)
    if _FLEETING.search(url):
        raise ConfigError(
            f"archive.objects = {url!r} keeps outputs only as long as the process that ran",
            hint="name a folder, or a URL that lasts, such as s3://bucket/folder",
        )
    if _URL.match(url):
        return RemoteObjects(url)
    return FolderObjects(root / Path(url).expanduser())


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def name_of(digest: str) -> str | None:
    return f"sha256/{digest[:2]}/{digest[2:]}" if _DIGEST.fullmatch(digest) else None


class FolderObjects:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.where = str(folder)

    def put(self, data: bytes) -> str:
        digest = digest_of(data)
        path = self.folder / str(name_of(digest))
        if self.get(digest) is not None:
            return digest
        made = [parent for parent in (path.parent, *path.parents) if not parent.exists()]
        with disk(str(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, data)
            for folder in dict.fromkeys(made):
                sync_folder(folder.parent)
        return digest

    def get(self, digest: str) -> bytes | None:
        data = self.found(digest)
        return data if data is not None and digest_of(data) == digest else None

    def found(self, digest: str) -> bytes | None:
        name = name_of(digest)
        try:
            return (self.folder / name).read_bytes() if name else None
        except OSError:
            return None


class RemoteObjects:
    """Through fsspec: `s3://bucket/folder`, `gs://…`, `file:///…`, and what else is installed."""

    def __init__(self, url: str) -> None:
        self.where = url
        self._url = url.rstrip("/")

    def put(self, data: bytes) -> str:
        digest = digest_of(data)
        system, path = self._at(digest)
        try:
            if system.exists(path) and system.size(path) == len(data):
                return digest
            system.makedirs(os.path.dirname(path), exist_ok=True)
            system.pipe_file(path, data)
        except Exception as error:  # each kind of storage raises errors of its own
            raise StorageError(
                f"cannot write to {self.where}: {type(error).__name__}: {error}",
                hint="check archive.objects, and the credentials it needs",
            ) from error
        return digest

    def get(self, digest: str) -> bytes | None:
        data = self.found(digest)
        return data if data is not None and digest_of(data) == digest else None

    def found(self, digest: str) -> bytes | None:
        if name_of(digest) is None:
            return None
        system, path = self._at(digest)
        try:
            data: bytes = system.cat_file(path)
        except FileNotFoundError:
            return None
        except Exception as error:  # each kind of storage raises errors of its own
            raise StorageError(
                f"cannot read from {self.where}: {type(error).__name__}: {error}",
                hint="check archive.objects, and the credentials it needs",
            ) from error
        return data

    def _at(self, digest: str) -> tuple[Any, str]:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise ConfigError(
                f"archive.objects = {self.where!r} needs fsspec",
                hint="pip install 'quire[objects]'",
            ) from error
        try:
            system, path = url_to_fs(f"{self._url}/{name_of(digest)}")
        except (ImportError, ValueError) as error:
            raise ConfigError(
                f"archive.objects = {self.where!r}: {error}",
                hint="install the package that speaks this protocol, or use a folder",
            ) from error
        return system, str(path)
