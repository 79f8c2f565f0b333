"""YAML between `---` lines at the top of a task: what it takes, and what it needs to be set.

    parameters:
      name: ...            required
      greeting: Hello      the default; its type is that of the value
      count:
        type: int
        default: 3
        help: how many
        choices: [1, 3, 5]
    env:
      API_KEY: the key of the service

The same in a logbook and, as comments, in a `.py` task.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Any

from ..errors import DocumentError
from .document import Document
from .parameter_cell import Parameter
from .parameter_types import NAMES, Given, Misfit, convert, is_known

MOST_NODES = 10_000
_OURS = re.compile(r"^(?:parameters|env|variables)[ \t]*:", re.MULTILINE)
_KEYS = frozenset({"type", "default", "help", "description", "choices", "required"})
# These mean something, here or in `dependencies`. Any other key is the task's own, but not one that
# is nearly one of them.
_SAID = ("parameters", "env", "variables", "dependencies", "requires-python")
_MEANT = {**dict(zip(_SAID, _SAID, strict=True)), "params": "parameters"}
_NEAR = 0.81
_TYPES = {
    "string": "str",
    "text": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "mapping": "dict",
    "path": "Path",
    "any": "",
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_REQUIRED = "..."
_BOOL, _INT, _FLOAT, _TEXT = (
    f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float", "str")
)
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|0b[01_]+)\Z")
_REAL = re.compile(
    r"[-+]?(?:(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+"
    r"|\.(?:inf|Inf|INF))\Z|\.(?:nan|NaN|NAN)\Z"
)


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable that has to be set."""

    name: str
    help: str = ""
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Front:
    values: Mapping[str, Any]
    parameters: tuple[Parameter, ...] = ()
    variables: tuple[Variable, ...] = ()


NOTHING = Front({})


def of(doc: Document) -> Front:
    """What stands at the top of a task. One that is not a logbook may have any other text there."""
    first = doc.cells[0] if doc.cells else None
    if first is None or first.kind != "raw" or not first.source.startswith("---"):
        return NOTHING
    if doc.format != "logbook" and not _OURS.search(first.source):
        return NOTHING
    return parse(first.source)


@lru_cache(maxsize=64)
def parse(text: str) -> Front:
    """The text with its two `---` lines. Raises for what cannot be meant, with the line."""
    import yaml

    body = "\n".join(["", *text.split("\n")[1:-1]])  # so that lines count from the first rule
    try:
        loader = _loader(yaml)(body)
        root = loader.get_single_node()
        _check(root, yaml)
        values = None if root is None else loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = mark.line + 1 if mark is not None else 1
        said = " ".join(str(error.problem or error.context or error).split())
        raise _wrong(where, f"it cannot be read: {said}") from error
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise _wrong(1, f"it cannot be read: {' '.join(str(error).split())}") from error
    if values is None:
        return NOTHING
    if not isinstance(values, dict) or root is None:
        raise _wrong(2, f"it is a {type(values).__name__}, not names with values")
    nodes = {key.value: (key, value) for key, value in root.value}
    _no_look_alike(nodes)
    parameters = tuple(_parameters(values.get("parameters"), nodes.get("parameters"), yaml))
    variables = tuple(_variables(values, nodes))
    return Front(values, parameters, variables)


@cache
def _loader(yaml: Any) -> Any:
    """Plain YAML, but for what YAML 1.1 makes of texts that nobody means as such: `12:30` is no
    number of seconds and `01234` not octal; `1e3` is a number."""
    loader: Any = type("FrontLoader", (yaml.SafeLoader,), {})
    kept = [
        (first, [(tag, pattern) for tag, pattern in found if tag not in (_INT, _FLOAT)])
        for first, found in loader.yaml_implicit_resolvers.items()
    ]
    loader.yaml_implicit_resolvers = dict(kept)
    loader.add_implicit_resolver(_INT, _INTEGER, list("-+0123456789"))
    loader.add_implicit_resolver(_FLOAT, _REAL, list("-+.0123456789"))
    return loader


def _wrong(line: int, what: str, hint: str = "") -> DocumentError:
    return DocumentError(
        f"line {line} of the front matter: {what}",
        hint=hint or "correct the lines between the two `---` lines at the top",
    )


def _check(root: Any, yaml: Any) -> None:
    """Refuse a name that is given twice, of which YAML silently takes the last, and aliases that
    multiply."""
    if root is None:
        return
    waiting, seen = [root], 0
    while waiting:
        node = waiting.pop()
        seen += 1
        if seen > MOST_NODES:
            raise _wrong(node.start_mark.line + 1, "it is too large")
        if isinstance(node, yaml.MappingNode):
            names: dict[str, int] = {}
            for key, value in node.value:
                line = key.start_mark.line + 1
                name = str(key.value)
                if key.tag == _BOOL:  # `no:` and `on:` are names here
                    key.tag = _TEXT
                if name in names:
                    raise _wrong(
                        line,
                        f"{name!r} is given twice; the first is on line {names[name]}",
                        "keep one of them",
                    )
                names[name] = line
                waiting += [key, value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value


def _no_look_alike(nodes: Mapping[str, Any]) -> None:
    """What nobody knows is left alone, but not what is meant to be known and would be missed."""
    given = {str(name).replace("_", "-") for name in nodes}
    for name, (key, _) in nodes.items():
        folded = str(name).lower().replace("_", "-")
        near = get_close_matches(folded, _MEANT, 1, _NEAR)
        if near and (meant := _MEANT[near[0]]) not in given:
            raise _wrong(
                key.start_mark.line + 1,
                f"`{name}` means nothing; is {meant} meant?",
                f"write {meant}, or another name if it is a key of your own",
            )


def _parameters(found: Any, nodes: Any, yaml: Any) -> Iterator[Parameter]:
    if found is None:
        return
    line = nodes[0].start_mark.line + 1
    if not isinstance(found, dict):
        raise _wrong(line, "`parameters` has no names with values", "write `  name: ...` below it")
    for key, node in nodes[1].value:
        at = key.start_mark.line + 1
        name, value = key.value, found.get(key.value, None)
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise _wrong(
                at,
                f"{name!r} cannot be the name of a parameter",
                "a name has letters, digits and underscores, and is no word of Python",
            )
        mapping = value if isinstance(value, dict) else {}
        described = set(mapping) & {"type", "default", "choices"} or set(mapping) <= _KEYS
        if mapping and described:
            yield _described(name, mapping, at)
        elif value == _REQUIRED or (value is None and node.value == ""):
            yield Parameter(name, required=True)
        else:
            yield _with_default(name, "", value, "", (), at)


def _described(name: str, told: Mapping[str, Any], line: int) -> Parameter:
    strange = sorted(set(map(str, told)) - _KEYS)
    if strange:
        raise _wrong(
            line,
            f"the parameter {name} has {', '.join(strange)}",
            f"it may have: {', '.join(sorted(_KEYS))}",
        )
    kind, choices = told.get("type"), told.get("choices") or ()
    if kind is not None and not isinstance(kind, str):
        raise _wrong(line, f"the type of {name} is {kind!r}, not the name of one", "type: int")
    if not isinstance(choices, list | tuple):
        raise _wrong(line, f"the choices of {name} are no list", "choices: [low, high]")
    said = str(told.get("help") or told.get("description") or "")
    kind = _TYPES.get((kind or "").strip().lower(), (kind or "").strip())
    if kind and not is_known(kind):
        raise _wrong(line, f"there is no type {kind}, which {name} shall have", f"{_hint(kind)}")
    choices = tuple(_choice(name, kind, choice, line) for choice in choices)
    shown = f"Literal[{', '.join(map(repr, choices))}]" if choices else kind
    default = told.get("default")
    optional = "None" in kind or "Optional" in kind or None in choices
    shown += " | None" if optional and choices and None not in choices else ""
    missing = default is None and not (optional and "default" in told)
    if told.get("required") is False and missing:
        missing, shown = False, f"{shown} | None" if shown else ""
    if default == _REQUIRED or missing or told.get("required") is True:
        return Parameter(name, type=shown, help=said, required=True, choices=choices)
    return _with_default(name, shown, default, said, choices, line)


def _hint(kind: str) -> str:
    near = get_close_matches(kind.lower(), [*NAMES, *_TYPES], 1)
    return f"type: {near[0]}" if near else f"one of {', '.join(NAMES)}, or list[…] of one"


def _choice(name: str, kind: str, value: Any, line: int) -> Any:
    try:
        return convert(Given(value), kind) if kind else value
    except Misfit as why:
        raise _wrong(line, f"{value!r} among the choices of {name} is no {kind}") from why


def _with_default(
    name: str, kind: str, value: Any, said: str, choices: tuple[Any, ...], line: int
) -> Parameter:
    if kind:
        try:
            value = convert(Given(value), kind)
        except Misfit as why:
            raise _wrong(
                line, f"the default of {name}, {value!r}, does not fit its type {kind}"
            ) from why
    shown = kind or ("" if value is None else type(value).__name__)
    return Parameter(
        name,
        type=shown,
        default=value,
        has_default=True,
        default_source=repr(value),
        help=said,
        choices=choices,
    )


def _variables(values: Mapping[str, Any], nodes: Mapping[str, Any]) -> Iterator[Variable]:
    seen: set[str] = set()
    for section in ("env", "variables"):
        found = values.get(section)
        if found is None:
            continue
        line = nodes[section][0].start_mark.line + 1
        if isinstance(found, list):
            found = dict.fromkeys(map(str, found))
        if not isinstance(found, dict):
            raise _wrong(line, f"`{section}` is no list of names", f"{section}: [API_URL]")
        for name, told in found.items():
            if not isinstance(name, str) or not _VARIABLE.match(name):
                raise _wrong(line, f"{name!r} cannot be the name of a variable")
            if name in seen:
                raise _wrong(line, f"the variable {name} is named twice", "keep one of them")
            seen.add(name)
            yield _variable(name, told, line)


def _variable(name: str, told: Any, line: int) -> Variable:
    if told is None or told == _REQUIRED:
        return Variable(name)
    if isinstance(told, str):
        return Variable(name, told)
    if isinstance(told, dict) and set(told) <= {"help", "description", "default"}:
        default = told.get("default")
        said = str(told.get("help") or told.get("description") or "")
        return Variable(name, said, None if default is None else str(default))
    raise _wrong(line, f"the variable {name} is described by {told!r}", f"{name}: what it is for")
