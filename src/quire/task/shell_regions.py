"""The places of a shell script: quotes inside `$(…)` inside quotes, and the documents in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .code_regions import Place

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_]\w*)\1")
_BACKTICKS = "backticks, where nothing can be escaped with certainty; write $(…)"


@dataclass(slots=True)
class _Inside:
    """What was opened and not closed yet: a quote, a document, `$(`, a backtick, or the script."""

    what: str  # one of ' " $' << $( ` # and empty for the script itself
    depth: int = 0  # parentheses within it

    @property
    def is_code(self) -> bool:
        return self.what in ("", "$(", "`")

    @property
    def expands(self) -> bool:
        return self.what in ('"', "<<")


def shell_places(source: str) -> list[Place]:
    """The place of every character, and the one after the last. Never fails."""
    return _Scan(source).places()


class _Scan:
    def __init__(self, source: str) -> None:
        self.source = source
        self.out: list[Place] = []
        self.stack = [_Inside("")]
        self.heredocs: list[re.Match[str]] = []

    def places(self) -> list[Place]:
        while len(self.out) < len(self.source):
            self._step()
        return [*self.out, self._place()]

    def _step(self) -> None:
        source, at, top = self.source, len(self.out), self.stack[-1]
        char = source[at]
        if top.what == "#":
            if char == "\n":
                self.stack.pop()
                self._newline()
                return
        elif top.what == "'":
            if char == "'":
                self.stack.pop()
        elif char == "\\" and at + 1 < len(source):
            self._take(2)
            return
        elif top.what == "$'":
            if char == "'":
                self.stack.pop()
        elif self._opens_or_closes(char, top):
            return
        self._take(1)
        if char == "\n" and top.is_code:
            self._documents()

    def _opens_or_closes(self, char: str, top: _Inside) -> bool:
        """In code, in double quotes and in a document. True where all is done."""
        source, at = self.source, len(self.out)
        if source.startswith("$(", at):
            self._take(2)
            self.stack.append(_Inside("$("))
            return True
        if char == "`":
            self._take(1)
            if top.what == "`":
                self.stack.pop()
            else:
                self.stack.append(_Inside("`"))
            return True
        if char == '"' and top.what != "<<":
            self._take(1)
            if top.what == '"':
                self.stack.pop()
            else:
                self.stack.append(_Inside('"'))
            return True
        return top.is_code and self._in_code(char, top)

    def _in_code(self, char: str, top: _Inside) -> bool:
        source, at = self.source, len(self.out)
        if source.startswith("$'", at) or char == "'":
            quote = char if char == "'" else "$'"
            self._take(len(quote))
            self.stack.append(_Inside(quote))
            return True
        if char == "#" and (at == 0 or source[at - 1].isspace()):
            self.stack.append(_Inside("#"))
        elif char == "(":
            top.depth += 1
        elif char == ")" and top.what == "$(":
            top.depth -= 1
            if top.depth < 0:
                self._take(1)
                self.stack.pop()
                return True
        elif char == "<" and (found := _HEREDOC.match(source, at)):
            if source[at - 1 : at] != "<":  # with a third one it is a word, not a document
                self.heredocs.append(found)
            self._take(found.end() - at)
            return True
        return False

    def _newline(self) -> None:
        self._take(1)
        self._documents()

    def _documents(self) -> None:
        """The text of documents that the last line announced."""
        found, self.heredocs = self.heredocs, []
        for one in found:
            end = re.compile(rf"^\t*{one[2]}$", re.MULTILINE).search(self.source, len(self.out))
            if end is None:  # `<<` of a sum
                continue
            stop = end.end()
            if one[1]:
                self.out += [Place("shell", raw=True)] * (stop - len(self.out))
                continue
            before = len(self.stack)
            self.stack.append(_Inside("<<"))
            while len(self.out) < stop:
                self._step()
            del self.stack[before:]

    def _take(self, count: int) -> None:
        """They are in the place that we are in now."""
        self.out += [self._place()] * count

    def _place(self) -> Place:
        top = self.stack[-1]
        if top.what == "#":
            return Place("shell", comment=True)
        fixed = _BACKTICKS if any(one.what == "`" for one in self.stack) else ""
        quote = top.what if top.what in ("'", '"', "$'") else ""
        return Place("shell", quote, expands=top.what == "<<", fixed=fixed)
