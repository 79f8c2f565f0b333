"""IPython magics in a `.py`: commented there so that Python and its tools can read the file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

# Which commented lines were magics. A file written by a converter says so in its header: there
# `# %time`, `# !ls`, `# ls` and `# name?` were magics, and comments that look like one were
# escaped. Kernels of other languages know `%` alone ("foreign"), or none ("verbatim"). In a file
# that a person wrote a comment is a comment: `# !rm data.csv` must never run.
Reading = Literal["converted", "written", "foreign", "verbatim"]

_PERCENT = re.compile(r"\s*(?:# ?)*%{1,3}[a-zA-Z]")
_ESCAPE = re.compile(r"#\s*escape")
_NO_ESCAPE = re.compile(r"#\s*noescape")
_SHELL_OR_HELP = re.compile(r"\s*(?:(?:# ?)+\s*)?[?!]\s*[A-Za-z.~$\\/{}]")
_ASSIGNED = re.compile(r"(?:# ?)*\s*[a-zA-Z_][a-zA-Z_$0-9]*\s*=\s*(?:%{1,3}|!)[a-zA-Z]")
_TRAILING_HELP = re.compile(r"\s*(?:# )*\S*\?\s*$")
_COMMANDS = "cat|cd|copy|cp|ddir|echo|ldir|ls|mkdir|mv|ren|rmdir|rm"
_BARE_COMMAND = re.compile(rf"(?:# ?)*(?:{_COMMANDS})(?:$|\s$|\s[^=,])")
_CONTINUED = re.compile(r".*\\\s*$")
# Light-format cell starts; readers take one comment mark off an escaped one.
_ESCAPED_PLUS = re.compile(r"# ?(?:# ?)+\+")
_QUOTES = re.compile(r"[\"'#]")


def quote_after(line: str, triple: str, *, hash_comments: bool = True) -> str:
    """Which triple quote (`"`, `'` or none) is open after this line, given the one before it.

    Per line and without a tokenizer, as the readers of this format do it: a backslash hides the
    next quote, a single-quoted string ends with its line.
    """
    if not triple and hash_comments and line.lstrip().startswith("#"):
        return ""
    single = ""
    last = -1
    for match in _QUOTES.finditer(line):
        at, char = match.start(), match.group()
        if char == "#":
            if hash_comments and not single and not triple:
                break
        elif at and line[at - 1] == "\\":
            continue
        elif single:
            single = "" if single == char else single
        elif at >= max(2, last + 3) and line[at - 2 : at] == char * 2:
            if not triple:
                triple, last = char, at
            elif triple == char:
                triple, last = "", at
        elif not triple:
            single = char
    return triple


def has_triple(line: str) -> bool:
    return '"""' in line or "'''" in line


def is_magic(line: str, reading: Reading) -> bool:
    """Whether the line is a magic, commented or not."""
    if reading in ("verbatim", "written"):
        return False
    match = _PERCENT.match(line)
    if match:
        tail = line[match.end() :]
        return bool(_ESCAPE.search(tail)) or not _NO_ESCAPE.search(tail)
    if reading == "foreign":
        return False
    if _SHELL_OR_HELP.match(line) or _ASSIGNED.match(line):
        return True
    return bool(_TRAILING_HELP.match(line) or _BARE_COMMAND.match(line))


def has_any(lines: Iterable[str]) -> bool:
    """Whether it matters for these lines who wrote the file."""
    return any(is_magic(line, "converted") or _ESCAPED_PLUS.match(line) for line in lines)


def unquoted(lines: Iterable[str]) -> list[bool]:
    """For each line whether it starts outside of a triple-quoted string."""
    triple, out = "", []
    for line in lines:
        out.append(not triple)
        if has_triple(line):
            triple = quote_after(line, triple)
    return out


def uncomment(lines: list[str], reading: Reading) -> list[str]:
    """The cell as the kernel gets it."""
    marked = [line for line in lines if line.lstrip().startswith("#")]
    continuations = any(line.rstrip().endswith("\\") for line in lines)
    if not continuations and not any(is_magic(line, reading) for line in marked):
        return lines
    out = list(lines)
    continued = False
    for at, free in enumerate(unquoted(lines)):
        if free and (continued or is_magic(lines[at], reading)):
            out[at] = _bare(lines[at])
            continued = reading != "foreign" and bool(_CONTINUED.match(lines[at]))
    return out


def comment(lines: list[str], reading: Reading) -> list[str]:
    """The cell as the file shows it: `uncomment` and `plus_unescaped` give the lines back."""
    out = list(lines)
    continued = False
    for at, free in enumerate(unquoted(lines)):
        line = lines[at]
        if free and (continued or is_magic(line, reading)):
            # The lines that continue a magic keep their own indent behind the mark.
            out[at] = f"# {line}" if continued else _commented(line)
            continued = reading != "foreign" and bool(_CONTINUED.match(line))
        elif free and _ESCAPED_PLUS.match(line):
            out[at] = f"# {line}"
    return out


def plus_unescaped(lines: list[str]) -> list[str]:
    """Without the mark that keeps a comment from being a light-format cell start."""
    if not any(_ESCAPED_PLUS.match(line) for line in lines):
        return lines
    return [
        _bare(line) if free and _ESCAPED_PLUS.match(line) else line
        for line, free in zip(lines, unquoted(lines), strict=True)
    ]


def _bare(line: str) -> str:
    text = line.lstrip()
    indent = line[: len(line) - len(text)]
    if text.startswith("# "):
        return indent + text[2:]
    return indent + text[1:] if text.startswith("#") else line


def _commented(line: str) -> str:
    text = line.lstrip()
    return f"{line[: len(line) - len(text)]}# {text}"
