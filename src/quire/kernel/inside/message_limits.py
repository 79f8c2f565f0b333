"""How much one message of a kernel may be, on both sides of its wire.

An honest display that is too much is cut here, before it is sent, and says so. What comes over the
wire all the same is from nobody who keeps to the rules.
"""

from __future__ import annotations

from typing import Any

LONGEST = 64 << 20  # bytes of one message
MANY = 4_000_000  # values in it: each takes far more memory than what it is written with
DEEPEST = 100  # lists and objects in each other
TEXT = 10_000  # characters of a text that are left of a message that was too much
ITEMS = 100  # and items of a list
PART = 1 << 20  # characters of a display's text that is kept beside what is too much


def is_too_much(size: int, message: Any) -> bool:
    """`size` is that of the message as it is written."""
    return size > LONGEST or is_deep_or_many(message)


def is_large(line: bytes, opened: int) -> bool:
    """Told by how it is written, before it is read: `opened` brackets, and what parts values."""
    if len(line) <= MANY:
        return False
    return len(line) > LONGEST or opened + line.count(b",") > MANY


def brackets(line: bytes) -> int:
    return line.count(b"[") + line.count(b"{")


def is_deep_or_many(message: Any) -> bool:
    """Looked at level by level: a function that calls itself would be too deep as well."""
    level, values = [message], 0
    for _ in range(DEEPEST):
        values += sum(map(len, level))
        level = [inner for one in level for inner in _inside(one)]
        if not level or values > MANY:
            return values > MANY
    return True


def _inside(one: Any) -> list[Any]:
    items = one.values() if isinstance(one, dict) else one
    return [item for item in items if isinstance(item, (dict, list, tuple))]


def cut(message: dict[str, Any], size: int) -> dict[str, Any]:
    """The same message with less in it."""
    content = message.get("content")
    if not isinstance(content, dict) or not isinstance(content.get("data"), dict):
        return {key: _shorter(value) for key, value in message.items()}
    most = f"{LONGEST:,} bytes, {MANY:,} values and {DEEPEST} levels"
    note = f"[quire: a display of {size:,} bytes was cut: one may have {most}]"
    shown = {**content, "data": _smaller(content["data"], note), "metadata": {}}
    return {**message, "content": shown}


def _smaller(data: dict[str, Any], note: str) -> dict[str, Any]:
    """What a person can read of it, and the note for the rest."""
    texts = {kind: text for kind, text in data.items() if isinstance(text, str)}
    kept = [
        (kind, text)
        for kind, text in texts.items()
        if len(text) <= PART and kind.startswith("text/")
    ]
    begun = texts.get("text/plain", "")
    plain = begun if len(begun) <= PART else begun[:TEXT]
    return {**dict(kept[:4]), "text/plain": f"{plain}\n{note}" if plain else note}


def _shorter(value: Any, deep: int = 4) -> Any:
    if isinstance(value, str) and len(value) > TEXT:
        return f"{value[:TEXT]}\n[quire: {len(value) - TEXT:,} characters were cut here]"
    if isinstance(value, (list, tuple)):
        return [_shorter(one, deep - 1) for one in value[:ITEMS]] if deep else []
    if isinstance(value, dict):
        some = list(value.items())[:ITEMS] if deep else []
        return {key: _shorter(one, deep - 1) for key, one in some}
    return value
