"""The line that starts a percent cell: `# %% title [kind] key=value …`. Reading and writing it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

# `# %%%` needs something behind it to be a sub-cell; Spyder's and nbconvert's old marks count too.
MARKER = re.compile(r"\s*#\s*(?:%%(?:%*\s.*)?|<codecell>\s*|In\[[0-9 ]*\]:?\s*)$")
_BARE_KEY = re.compile(r"[a-zA-Z_.]+[a-zA-Z0-9_.]*$")
_KEY = re.compile(r"[a-zA-Z0-9_.@/-]+$")
_KINDS = ("markdown", "raw", "md")
UNREADABLE = "incorrectly_encoded_metadata"


def parse(line: str) -> dict[str, Any]:
    """The options of a marker line; `title`, `cell_type` and `cell_depth` are keys among them."""
    at = line.find("%%")
    options = line[at + 2 :].strip() if at >= 0 else ""
    if not options:
        return {}
    title, metadata = _split(options)
    for kind in _KINDS:
        if f"[{kind}]" in title:
            title = title.replace(f"[{kind}]", "").strip()
            metadata["cell_type"] = "markdown" if kind == "md" else kind
            if kind == "md":
                metadata["region_name"] = "md"
            break
    depth = len(title) - len(title.lstrip("%"))
    if depth:
        metadata["cell_depth"] = depth
        title = title[depth:].strip()
    if title:
        metadata["title"] = title
    return metadata


def _split(options: str) -> tuple[str, dict[str, Any]]:
    brace, equal = options.find("{"), options.find("=")
    if brace >= 0 and not 0 <= equal < brace:
        try:
            value = _value(options[brace:])
        except ValueError:
            value = None
        if not isinstance(value, dict):
            value = {UNREADABLE: options[brace:].strip()}
        return options[:brace].strip(), value
    words = options[:equal].rstrip(" ").split(" ")[:-1] if equal >= 0 else options.split(" ")
    # R Markdown style attributes (.class) are keys, not words of a title.
    while words and (not words[-1].strip() or words[-1].startswith(".")):
        words.pop()
    title = " ".join(words)
    return title, _pairs(options[len(title) :])


def _pairs(text: str) -> dict[str, Any]:
    """`a=1 b="x y" flag`, read from the right, where a value's end is known."""
    found: list[tuple[str, bool, Any]] = []
    metadata: dict[str, Any] = {}
    text = text.strip()
    while text:
        space = text.rfind(" ")
        if not text.startswith("--") and _BARE_KEY.match(text, space + 1):
            found.append((text[space + 1 :], False, None))
            text = text[: max(space, 0)].strip()
            continue
        pair = _last_pair(text)
        if pair is None:
            metadata[UNREADABLE] = text
            break
        key, value, text = pair
        found.append((key, True, value))
    for key, given, value in reversed(found):
        if given:
            metadata[key] = value
        else:
            metadata.setdefault(key, None)
    return metadata


def _last_pair(text: str) -> tuple[str, Any, str] | None:
    equal = text.rfind("=")
    while equal >= 0:
        before = text[:equal].rstrip().rfind(" ")
        key = text[before + 1 : equal].strip()
        if _KEY.match(key):
            try:
                return key, _value(text[equal + 1 :]), text[: max(before, 0)].strip()
            except ValueError:
                pass  # the value has an equal sign of its own: look further left
        equal = text.rfind("=", 0, equal)
    return None


def _value(text: str) -> Any:
    """JSON, or a Python literal. ValueError for anything else."""
    text = text.strip()
    try:
        return json.loads(text)
    except ValueError:
        pass
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    try:
        return plain(ast.literal_eval(text))
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError("not a literal") from error


def plain(value: Any) -> Any:
    """The value as JSON can hold it. YAML and Python literals know more types than a notebook."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=repr)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise ValueError(f"a notebook cannot hold a {type(value).__name__}")


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    return json.dumps(key) if key is None or isinstance(key, bool) else str(plain(key))


def is_key(name: str) -> bool:
    """Whether the percent format can write this metadata key."""
    return bool(_KEY.match(name)) and "\n" not in name


def json_text(value: Any, *, guard: bool = False) -> str:
    """JSON on one line. With `guard`, nothing inside can be taken for another `key=value`."""
    text = json.dumps(value, ensure_ascii=guard)
    if guard:
        # Outside of strings JSON has no equal sign.
        text = text.replace("=", "\\u003d")
    return text
