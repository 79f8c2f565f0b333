"""Outputs by digest: what a signature covers, and what lies behind a pointer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .finding import Finding
from .record_files import POINTER, ReadObject, canonical, pointer_of

_JSON = re.compile(r"application/(.+\+)?json\Z")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def output_digest(output: Mapping[str, Any]) -> str:
    """Of the output's canonical JSON. However a text is cut into lines, it is the same text."""
    return hashlib.sha256(canonical(settled(output))).hexdigest()


def settled(output: Mapping[str, Any]) -> dict[str, Any]:
    """nbformat lets a text be a string or a list of lines, and editors change one to the other."""
    if output.get("output_type") == "stream" and "text" in output:
        text = _joined(output["text"])
        lines = text.splitlines(keepends=True) if isinstance(text, str) else text
        return {**output, "text": lines}
    data = output.get("data")
    if not isinstance(data, Mapping):
        return dict(output)
    whole = {mime: v if _JSON.match(mime) else _joined(v) for mime, v in data.items()}
    return {**output, "data": whole}


def _joined(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "".join(value)
    return value


def pointer(output: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The pointer of an output that is nothing else. A task may show the like, for whatever use."""
    found = pointer_of(output)
    if found is None or output["data"].keys() != {POINTER, "text/plain"}:
        return None
    digest, size = found.get("sha256"), found.get("size")
    well = isinstance(digest, str) and _DIGEST.match(digest) and type(size) is int
    return found if well else None


def behind(
    nb: Mapping[str, Any], read_object: ReadObject | None, notes: list[str]
) -> Iterator[Finding]:
    """Check what is kept outside git, where it is at hand; `notes` says where it is not."""
    for cell in nb["cells"]:
        for at, output in enumerate(cell.get("outputs", ())):
            found = pointer(output)
            if found is None:
                continue
            where = f"cell {cell['id']} output {at}"
            data = read_object(found["sha256"]) if read_object is not None else None
            if data is None:
                what = f"its {found['size']:,} bytes are kept elsewhere and were not looked at"
                notes.append(f"{where}: {what}")
            elif hashlib.sha256(data).hexdigest() != found["sha256"] or len(data) != found["size"]:
                what = f"the object {found['sha256'][:16]} kept outside git is not what was run"
                yield Finding(where, what, "object")
