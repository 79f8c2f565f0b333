"""After a run: have the index and the digest brought up to date by a host, in the background.

A process that ends with its run leaves that to the next search.
"""

from __future__ import annotations

from ..record.listener import Finisher, Scene
from ..record.record import Record
from ..workspace import Workspace

DIGEST_EVERY = 600.0  # seconds: each is a step of the archive's history, and there shall be few


class _Indexer(Finisher):
    def released(self, record: Record) -> None:
        ws = self.scene.ws
        if self.scene.archived is None or record.parent:
            return
        ws.engine.later(f"index of {ws.root}", lambda: _catch_up(ws))
        if ws.config.archive.digest:
            after = min(DIGEST_EVERY, ws.config.host_idle / 2)  # else the host may be gone by then
            ws.engine.later(f"digest of {ws.root}", lambda: _write_digest(ws), after=after)


def listen(scene: Scene) -> _Indexer | None:
    return _Indexer(scene) if scene.ws.engine.outlives else None


def _catch_up(ws: Workspace) -> None:
    """Only an index that is there is kept up: the first search makes one, and says so."""
    from .fill import catch_up, index_of  # no run waits for what they need

    if index_of(ws).path.exists():
        catch_up(ws)


def _write_digest(ws: Workspace) -> None:
    from .digest import digest

    digest(ws, write=True)
