"""Named results: what a cell glued, found among its outputs.

Both our own and scrapbook's MIME types are read, so notebooks written for `sb.glue` work as is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .events import OutputAdded, ResultGlued

QUIRE_MIME = "application/vnd.quire.result+json"
SCRAPBOOK_PREFIX = "application/scrapbook.scrap."
PAPERMILL_PREFIX = "application/papermill.record"


def glued(event: OutputAdded) -> list[ResultGlued]:
    """The results that one output carries; usually none."""
    output = event.output
    if output["output_type"] not in ("display_data", "execute_result"):
        return []
    found: list[ResultGlued] = []
    data: Mapping[str, Any] = output["data"]
    for mime, payload in data.items():
        if not isinstance(payload, Mapping):
            continue
        if mime == QUIRE_MIME and "name" in payload:
            kind = payload.get("kind")
            if kind in ("json", "table", "display"):
                value = _bundle(data) if kind == "display" else payload.get("value")
                found.append(ResultGlued(event.cell, str(payload["name"]), kind, value))
        elif mime.startswith(SCRAPBOOK_PREFIX) and "name" in payload:
            name = str(payload["name"])
            found.append(ResultGlued(event.cell, name, "json", payload.get("data")))
        elif mime.startswith(PAPERMILL_PREFIX):
            found += [ResultGlued(event.cell, str(k), "json", v) for k, v in payload.items()]
    found += _shown_by_scrapbook(event, data, already={r.name for r in found})
    return found


def _shown_by_scrapbook(
    event: OutputAdded, data: Mapping[str, Any], already: set[str]
) -> list[ResultGlued]:
    """`sb.glue(name, figure, display=True)`: an ordinary display named in its metadata."""
    scrap = (event.output.get("metadata") or {}).get("scrapbook")
    if not isinstance(scrap, Mapping) or not scrap.get("display") or scrap.get("data"):
        return []
    name = str(scrap.get("name", ""))
    if not name or name in already:
        return []
    return [ResultGlued(event.cell, name, "display", _bundle(data))]


def _bundle(data: Mapping[str, Any]) -> dict[str, Any]:
    return {mime: value for mime, value in data.items() if mime != QUIRE_MIME}
