"""What a cell gave out, in the form in which two runs of it can be compared."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..text import scrubbed, text_of
from .output_digests import pointer
from .plan import jsonable
from .record_files import POINTER
from .results import PAPERMILL_PREFIX, QUIRE_MIME, SCRAPBOOK_PREFIX

_BINARY = re.compile(r"(?:image/(?!svg)|audio/|video/|font/|application/(?:pdf|octet-stream))")

_WIDGET = "application/vnd.jupyter.widget-view+json"


@dataclass(frozen=True, slots=True)
class GivenOut:
    """`name` says what it is; `forms` has a text to compare for each MIME type."""

    name: str
    forms: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.name}\0{json.dumps(self.forms, sort_keys=True)}"


def given_out(outputs: Iterable[Mapping[str, Any]]) -> Iterator[GivenOut]:
    """Each stream as a whole, since how the two interleave is luck; then the rest in order."""
    streams: dict[str, list[str]] = {}
    rest: list[GivenOut] = []
    for output in outputs:
        kind = output.get("output_type")
        elsewhere = pointer(output)
        if elsewhere is not None:
            rest.append(GivenOut(named(output), {POINTER: told(elsewhere)}))
        elif kind == "stream":
            streams.setdefault(str(output.get("name")), []).append(text_of(output.get("text", "")))
        elif kind == "error":
            # The traceback has paths, addresses and colours in it: not what the cell did.
            said = f"{output.get('ename', '')}: {output.get('evalue', '')}"
            rest.append(GivenOut("error", {"text/plain": scrubbed(said)}))
        else:
            rest.append(_display(output))
    for name in sorted(streams, reverse=True):  # stdout, then stderr
        yield GivenOut(name, {"text/plain": scrubbed("".join(streams[name]))})
    yield from rest


def _display(output: Mapping[str, Any]) -> GivenOut:
    data = output.get("data")
    bundle = data if isinstance(data, Mapping) else {}
    forms = {str(mime): _form(str(mime), value) for mime, value in bundle.items()}
    return GivenOut(named(output), forms)


_NAMES = {"execute_result": "value", "error": "error"}


def named(output: Mapping[str, Any]) -> str:
    """What a reader knows it by."""
    elsewhere = pointer(output)
    if elsewhere is not None:
        kind = str(elsewhere.get("output_type"))
        return str(elsewhere.get("name") or _NAMES.get(kind, kind.removesuffix("_data")))
    if output.get("output_type") == "stream":
        return str(output.get("name"))
    name = _NAMES.get(str(output.get("output_type")), "display")
    data = output.get("data")
    for mime, value in data.items() if isinstance(data, Mapping) else ():
        if mime.startswith((QUIRE_MIME, SCRAPBOOK_PREFIX)) and isinstance(value, Mapping):
            name = f"result {value.get('name', '')}"
        elif mime.startswith(PAPERMILL_PREFIX) and isinstance(value, Mapping):
            name = f"result {', '.join(map(str, value))}"
    return name


def told(elsewhere: Mapping[str, Any]) -> str:
    """What is known of an output that is not at hand."""
    return f"{elsewhere['size']:,} bytes, sha256 {elsewhere['sha256']}"


def _form(mime: str, value: Any) -> str:
    if _BINARY.match(mime):
        data = _decoded(text_of(value))
        return f"{len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()}"
    if mime == _WIDGET and isinstance(value, Mapping):
        value = {key: part for key, part in value.items() if key != "model_id"}  # drawn by lot
    if mime.endswith(("/json", "+json")) and not isinstance(value, str):
        return scrubbed(json.dumps(jsonable(value), indent=1, sort_keys=True, ensure_ascii=False))
    return scrubbed(text_of(value))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return text.encode("utf-8", "surrogatepass")
