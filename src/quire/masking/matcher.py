"""The texts to look for, and one automaton that finds them.

Of every text (a variant of a secret, the literal of a shape) a short anchor goes into one
Aho-Corasick automaton. Anchors are cut so that they begin with few different characters, because
the automaton's speed on ordinary text depends on how many ways lead out of its root. What an anchor
points at is then compared in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

import ahocorasick

from .secrets import Secret, Variant, variants
from .token_patterns import SHAPES, Shape

_ANCHOR = 8
_SHORTEST_ANCHOR = 3
# Each literal of a shape has one of them where an anchor can begin, and most values have. In order
# of preference: the more seldom in ordinary text, the fewer false starts.
_ROOTS = "GA2x:phlse"
# What else to begin with, characters that are seldom in ordinary text first.
_SELDOM = "QZXJKqYVWjHUz7G~94863$N5BOPFLMRDCSEkTIA%vx2+&0@1bw/:y_gm-cfuphdlraosinte\\ "


class Key(NamedTuple):
    """A text to look for. With a shape, its literal: the pattern then decides."""

    text: str
    label: str
    lead: int
    trail: int
    shape: Shape | None
    guarded: bool = False  # also a part of some marker, where it must stay


# Where an anchor ended, and the keys it stands for with its end in them.
Hit = tuple[int, list[tuple[Key, int]]]


class Heads:
    """Beginnings of texts to look for, to tell whether the end of a text may become one."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._by_two: dict[str, list[Key]] = {}
        self._by_one: dict[str, list[Key]] = {}
        self._longest = 0
        for key in keys:
            self._by_two.setdefault(key.text[:2], []).append(key)
            self._by_one.setdefault(key.text[0], []).append(key)
            self._longest = max(self._longest, len(key.text))

    def __bool__(self) -> bool:
        return bool(self._by_two)

    def begun(self, text: str, start: int, masked_at: Callable[[int], bool]) -> int:
        """Where the longest end of `text` that is the beginning of a key starts."""
        size, by_two = len(text), self._by_two

        def viable(keys: list[Key], at: int) -> bool:
            rest = text[at:]
            return any(
                len(key.text) > len(rest)
                and key.text.startswith(rest)
                and (key.shape is None or masked_at(at) or key.shape.may_start(text, at))
                for key in keys
            )

        for at in range(max(start, size - self._longest + 1), size - 1):
            keys = by_two.get(text[at : at + 2])
            if keys is not None and viable(keys, at):
                return at
        if start < size and viable(self._by_one.get(text[-1], []), size - 1):
            return size - 1
        return size


def keys_of(secrets: Iterable[Secret]) -> list[Key]:
    secrets = list(secrets)
    names = "\0".join({*(secret.name for secret in secrets), *_LABELS})
    markers = "\0".join(f"[masked:{name}]" for name in names.split("\0"))
    keys: dict[str, Key] = {}
    for secret in secrets:
        for text, lead, trail in ((v.key, v.lead, v.trail) for v in _variants(secret.value)):
            guarded = text in names
            # A part of every marker, such as "masked", cannot be hidden by one.
            if text not in keys and (guarded or text not in markers):
                keys[text] = Key(text, secret.name, lead, trail, None, guarded)
    return [*_LITERALS, *keys.values()]


@lru_cache(1024)
def _variants(value: str) -> tuple[Variant, ...]:
    """Each run of a host has the same secrets as the last one."""
    return tuple(variants(value))


def automaton_of(keys: list[Key]) -> ahocorasick.Automaton:
    anchors: dict[str, list[tuple[Key, int]]] = {}
    roots = _ROOTS
    # Those with the least choice choose first.
    for key in sorted(keys, key=lambda k: len(k.text)):
        text = key.text
        choice = text[: max(1, len(text) - (_SHORTEST_ANCHOR if key.shape else _ANCHOR) + 1)]
        root = next((c for c in roots if c in choice), "")
        if not root:
            root = next((c for c in _SELDOM if c in choice), choice[0])
            roots += root
        at = choice.index(root)
        anchor = text[at : at + _ANCHOR]
        anchors.setdefault(anchor, []).append((key, at + len(anchor) - 1))
    automaton = ahocorasick.Automaton()
    # The ways out of the root are tried in the order they were added: common letters first.
    for anchor, found in sorted(anchors.items(), key=lambda item: -roots.index(item[0][0])):
        automaton.add_word(anchor, found)
    automaton.make_automaton()
    return automaton


_LABELS = tuple(shape.label for shape in SHAPES)
_LITERALS = [Key(x, shape.label, 0, 0, shape) for shape in SHAPES for x in shape.literals]
