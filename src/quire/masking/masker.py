"""Secrets leave a run only as `[masked:NAME]`. Stands between the kernel and every consumer.

What is hidden is the union of all matches. A stream gives out what no text to come can change.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from .invisible_text import undisguised
from .matcher import Heads, Hit, Key, automaton_of, keys_of
from .secrets import Secret, secrets_of
from .token_patterns import Shape

if TYPE_CHECKING:
    import ahocorasick

__all__ = ["Masker", "Secret", "StreamMasker", "secrets_of"]

_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
# Pictures and the like travel as base64, in which a token's look means nothing.
_BINARY = re.compile(r"(?:image/(?!svg)|audio/|video/|font/|application/(?:pdf|octet-stream))")
# How far back a judgement may look: the escape before a token, the beginning of a marker.
_LOOK_BEHIND = 96
FEW_STEPS = 1.0  # the automaton takes as long as about this many
# The text before it says that a name or label is being read, not a value that is the same word.
_IN_MARKER = re.compile(r"\[masked:[^\]\s]*\Z")


class _Span(NamedTuple):
    """A piece to hide. Ordered by what decides over the label where spans overlap."""

    start: int
    rank: int  # the name of a variable says more than the look of its value
    other_end: int  # negative, so that the longer comes first
    label: str


_NOWHERE = (0, 0, _Span(0, 0, 0, ""))


class Masker:
    """Hides the given secrets and every well-known token. Safe to share between threads."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._secrets = tuple(secrets)
        self._keys = keys_of(self._secrets)
        self._automaton = automaton_of(self._keys)
        self._values = [key for key in self._keys if key.shape is None]
        self._steps = sum(1 / len(key.text) for key in self._values)  # for one character
        self._encoded = any(key.lead for key in self._keys)
        self._heads = Heads(key for key in self._keys if "\n" not in key.text)
        self._value_heads = Heads(key for key in self._values if "\n" not in key.text)
        self._long_heads = Heads(key for key in self._keys if "\n" in key.text)

    @cached_property
    def _of_values(self) -> ahocorasick.Automaton:
        """Without the literals of shapes: in megabytes of base64 those turn up everywhere."""
        return automaton_of(self._values)

    def learn(self, secrets: Iterable[Secret]) -> None:
        """Hide these too, from the next text on; of a stream, from its next piece."""
        fresh = Masker((*self._secrets, *secrets))
        self.__dict__.update(vars(fresh) | {"_of_values": automaton_of(fresh._values)})

    def mask(self, text: str) -> str:
        """The text with every secret replaced."""
        return self._mask(text, True)

    def safe(self, text: str) -> str:
        """The same for a text that came as a whole, also where colour codes or other characters
        that nobody sees stand inside of a secret."""
        return undisguised(self._mask(text, True), self.mask)

    def mask_json(self, value: Any) -> Any:
        """That for a JSON value: strings at any depth and keys. Tuples become lists."""
        root: list[Any] = [None]
        todo: list[tuple[Any, Any, Any, bool]] = [(root, 0, value, True)]
        while todo:
            out, at, item, shapes = todo.pop()
            if isinstance(item, str):
                out[at] = self.safe(item) if shapes else self._mask(item, shapes)
            elif isinstance(item, Mapping):
                new: dict[Any, Any] = {}
                out[at] = new
                for key, inner in item.items():
                    masked = self._new_key(key, new)
                    new[masked] = inner
                    binary = isinstance(key, str) and _BINARY.match(key) is not None
                    todo.append((new, masked, inner, shapes and not binary))
            elif isinstance(item, list | tuple):
                lines = self._mask_lines(item, shapes)
                out[at] = lines or list(item)
                if lines is None:
                    todo.extend((out[at], i, inner, shapes) for i, inner in enumerate(item))
            else:
                out[at] = item
        return root[0]

    def may_begin(self, text: str) -> bool:
        """Whether its end may be the beginning of something to hide; of a shape, from its second
        letter on: any word may end like the first."""

        def begun(heads: Heads) -> int:
            return heads.begun(text, 0, lambda _: False)

        return begun(self._value_heads) < len(text) or begun(self._heads) < len(text) - 1

    def stream(self) -> StreamMasker:
        """A masker for text that comes in pieces. One for each stream."""
        return StreamMasker(self)

    def _mask(self, text: str, shapes: bool) -> str:
        if not shapes and self._free_of_values(text):
            return text
        hits = (self._automaton if shapes else self._of_values).iter(text)
        first = next(hits, None)
        if first is None:
            return text
        found = _Scan(self, text, chain((first,), hits), shapes=shapes).spans
        if not found:
            return text
        return "".join(_pieces(text, found, 0, len(text)))

    def _free_of_values(self, text: str) -> bool:
        """Of a picture's megabytes, where it can be told quicker than by the automaton: a text is
        looked for by itself in the fewer steps the longer it is."""
        if self._steps > FEW_STEPS:
            return False
        return not any(key.text in text for key in self._values)

    def _free(self, text: str) -> bool:
        """Whether nothing can begin in the last line, because there is none."""
        return text.endswith("\n") and not self._long_heads

    def _new_key(self, key: Any, taken: Mapping[Any, Any]) -> Any:
        if not isinstance(key, str):
            return key
        masked = self.safe(key)
        unique, n = masked, 1
        while unique in taken:
            n += 1
            unique = f"{masked}~{n}"
        return unique

    def _mask_lines(self, items: list[Any] | tuple[Any, ...], shapes: bool) -> list[str] | None:
        """nbformat writes a text as a list of lines; a key block spans several of them."""
        if len(items) < 2 or not all(isinstance(x, str) and x.endswith("\n") for x in items[:-1]):
            return None
        if not isinstance(items[-1], str):
            return None
        whole = "".join(items)
        masked = self.safe(whole) if shapes else self._mask(whole, shapes)
        return list(items) if masked == whole else masked.splitlines(keepends=True)


class StreamMasker:
    """Takes text in pieces, gives it out masked, and keeps back only what may become a secret.

    All that was given out, joined, is `mask` of all that was taken.
    """

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._seen = ""  # the last characters given out, for patterns that look back
        self._held = ""
        self._covered = 0  # how much of the held text a marker already stands for
        self._rest: re.Pattern[str] | None = None  # a token longer than its bound goes on

    def feed(self, chunk: str) -> str:
        """What can be given out now."""
        return self._advance(chunk, final=False)

    def flush(self) -> str:
        """What was kept back. The stream starts anew after it."""
        out = self._advance("", final=True)
        self._seen, self._held, self._covered, self._rest = "", "", 0, None
        return out

    def _advance(self, chunk: str, *, final: bool) -> str:
        if not chunk and not final:
            return ""
        text = self._seen + self._held + chunk
        base = len(self._seen)
        hits = self._masker._automaton.iter(text)
        first = next(hits, None)
        if first is None and self._masker._free(text) and not (self._held or self._rest):
            self._seen = text[-_LOOK_BEHIND:]
            return chunk
        covered = base + self._covered
        if self._rest is not None:
            going_on = self._rest.match(text, base + len(self._held))
            covered = max(covered, going_on.end()) if going_on else covered
            if covered < len(text):
                self._rest = None
        found = chain((first,), hits) if first else ()
        scan = _Scan(self._masker, text, found, base=base, covered=covered, final=final)
        hold = scan.hold()
        out = "".join(_pieces(text, scan.spans, base, hold))
        if scan.rest is not None and scan.spans[-1][0] < hold:
            self._rest = scan.rest
        # A span without a label is what an earlier marker covers.
        shown = (span for span in scan.spans if span[0] < hold or not span[2].label)
        reached = max((end for _, end, _ in shown), default=0)
        self._covered = max(0, reached - hold)
        # Behind something hidden a new word begins, as behind the marker that stands there now.
        self._seen = (
            "]" if reached >= hold and reached else text[max(0, hold - _LOOK_BEHIND) : hold]
        )
        self._held = text[hold:]
        return out


class _Scan:
    """All matches in one text. `base` characters were given out before, up to `covered` masked."""

    def __init__(
        self,
        masker: Masker,
        text: str,
        hits: Iterable[Hit],
        *,
        base: int = 0,
        covered: int = 0,
        final: bool = True,
        shapes: bool = True,
    ) -> None:
        self._masker = masker
        self._text = text
        self._base = base
        self._final = final
        self._pending = len(text)
        self._runs: dict[str, int] = {}
        # Disjoint and in order: start, end, and which span gives the label.
        self.spans: list[tuple[int, int, _Span]] = []
        self.rest: re.Pattern[str] | None = None
        if covered > base:
            self.spans.append((base, covered, _Span(-1, 0, 0, "")))
        for last, anchored in hits:
            for key, before in anchored:
                start = last - before
                if start >= base and text.startswith(key.text, start):
                    if key.shape is None:
                        self._value(key, start)
                    elif shapes:
                        self._shape(key.shape, start)

    def hold(self) -> int:
        """Where the text begins whose meaning depends on what comes next."""
        if self._final:
            return len(self._text)
        text, base, masker = self._text, self._base, self._masker
        line = max(base, text.rfind("\n", base) + 1)
        hold = min(self._pending, masker._heads.begun(text, line, self._masked_at))
        if masker._long_heads:
            hold = min(hold, masker._long_heads.begun(text, base, self._masked_at))
        if masker._encoded and hold > base and text[hold - 1] in _BASE64:
            hold -= 1
        return hold

    def _masked_at(self, at: int) -> bool:
        """Whether the character before `at` is hidden: no part of the word that follows it."""
        before = bisect_left(self.spans, (at,)) - 1
        return before >= 0 and self.spans[before][1] >= at

    def _value(self, key: Key, start: int) -> None:
        text, end = self._text, start + len(key.text)
        if key.guarded and _IN_MARKER.search(text, max(0, start - _LOOK_BEHIND), start):
            return
        first = start
        if key.lead and start > self._base and text[start - 1] in _BASE64:
            first -= 1
        if key.trail:
            if end < len(text):
                end += text[end] in _BASE64
            elif not self._final:
                self._pending = min(self._pending, first)
        self._add(first, end, 0, key.label)

    def _shape(self, shape: Shape, at: int) -> None:
        text, limit = self._text, at + shape.bound
        first, covered, _ = self.spans[-1] if self.spans else _NOWHERE
        # A run that is hidden already is not judged again, or long ones would cost their square.
        if first <= at < covered and self._run_end(shape, at) <= covered:
            if not self._final and covered == len(text) < limit:
                self._pending = min(self._pending, at)
            return
        if not self._masked_at(at) and not shape.may_start(text, at):
            return
        if not self._final and len(text) < limit and self._run_end(shape, at) == len(text):
            self._pending = min(self._pending, at)
            return
        match = shape.pattern.match(text, at, limit)
        if match is None:
            return
        start, end = match.span("secret" if "secret" in match.re.groupindex else 0)
        if end == limit:
            beyond = shape.rest.match(text, end)
            end = beyond.end() if beyond else end
            if end == len(text):
                self.rest = shape.rest
        self._add(start, end, 1, shape.label)

    def _run_end(self, shape: Shape, at: int) -> int:
        end = self._runs.get(shape.run_source, 0)
        if at >= end or not shape.run_is_uniform:
            match = shape.run.match(self._text, at)
            end = self._runs[shape.run_source] = match.end() if match else at
        return end

    def _add(self, start: int, end: int, rank: int, label: str) -> None:
        spans = self.spans
        if spans and spans[-1][0] < start < spans[-1][1]:
            first, reached, best = spans[-1]
            if end > reached:
                spans[-1] = (first, end, best)
            return
        best = _Span(start, rank, -end, label)
        # What a shape hides may begin far behind its literal, and something be found in between.
        later = []
        while spans and spans[-1][0] >= end:
            later.append(spans.pop())
        while spans and spans[-1][1] > start:
            other = spans.pop()
            start, end = min(start, other[0]), max(end, other[1])
            best = min(best, other[2])
        spans.append((start, end, best))
        spans.extend(reversed(later))


def _pieces(text: str, spans: list[tuple[int, int, _Span]], start: int, stop: int) -> Iterator[str]:
    """The text from `start` to `stop` with a marker for each span that begins there."""
    for first, end, best in spans:
        if first >= stop:
            break
        yield text[start:first]
        if best.label:
            yield f"[masked:{best.label}]"
        start = end
    yield text[start:stop]
