"""Parameters of a task: check given values against the declaration, inject them as a cell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain, count
from keyword import kwlist
from typing import Any
from unicodedata import normalize

from ..errors import DocumentError, ParameterError
from . import frontmatter, substitution
from .document import Cell, Document, digest_id
from .literals import literal
from .parameter_cell import INJECTED_TAG, Parameter, in_cell, parameters_cell
from .parameter_types import Given, Misfit, convert

__all__ = ["INJECTED_TAG", "Given", "Parameter", "parameters_cell"]  # beside what is here

_LONGEST = 80
_NO_NAMES = frozenset((*kwlist, "__debug__"))


@dataclass(frozen=True, slots=True)
class Lack:
    """A parameter without a value that can be used, and why."""

    parameter: Parameter
    problem: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """What is known of the values. `problems` are those that no answer to a question mends."""

    values: Mapping[str, Any]
    lacks: tuple[Lack, ...] = ()
    problems: tuple[str, ...] = ()


def declared(doc: Document) -> tuple[Parameter, ...]:
    """What the task takes: by its front matter, then by its cell tagged `parameters`."""
    front, cell = frontmatter.of(doc).parameters, in_cell(doc)
    if not front:
        return cell
    both = {parameter.name for parameter in front} & {parameter.name for parameter in cell}
    if both:
        raise DocumentError(
            f"{', '.join(sorted(both))} is declared in the front matter and in a cell",
            hint="keep one of them",
        )
    return (*front, *cell)


def resolve(doc: Document, given: Mapping[str, Given]) -> dict[str, Any]:
    """The given values in their declared types, in the order of the declaration.

    Every problem is found before the error is raised, so that one look is enough.
    """
    found = examine(doc, given)
    if found.lacks or found.problems:
        raise wrong(doc, found)
    return dict(found.values)


def examine(doc: Document, given: Mapping[str, Given]) -> Resolution:
    """As `resolve`, with what is wrong as data."""
    if parameters_cell(doc) is None and not frontmatter.of(doc).parameters:
        if not given:
            return Resolution({})
        front = "declare them in the front matter: `parameters:`"
        tag = 'tag the cell that sets the defaults: `# %% tags=["parameters"]`'
        raise ParameterError(
            f"the task declares no parameters, but was given {', '.join(given)}",
            hint=front if doc.format == "logbook" else tag,
        )
    known = {parameter.name: parameter for parameter in declared(doc)}
    problems = tuple(_unknown(name, known) for name in given if name not in known)
    values: dict[str, Any] = {}
    lacks: list[Lack] = []
    for name, parameter in known.items():
        if name in given:
            try:
                values[name] = convert(given[name], parameter.type)
            except Misfit as why:
                lacks.append(Lack(parameter, _misfit(parameter, given[name], str(why))))
        elif parameter.required:
            type_ = f" ({parameter.type})" if parameter.type else ""
            lacks.append(Lack(parameter, f"{name} is required{type_} and was not given"))
    return Resolution(values, tuple(lacks), problems)


def wrong(doc: Document, found: Resolution, more: Iterable[str] = ()) -> ParameterError:
    """One error for all that is wrong; `more` is what else a run lacks."""
    problems = [*found.problems, *(lack.problem for lack in found.lacks), *more]
    one = len(problems) == 1
    head = problems[0] if one else f"{len(problems)} problems with the parameters"
    rest = [] if one else [f"  - {problem}" for problem in problems]
    lines = [f"  {parameter}" for parameter in declared(doc)]
    listing = ["declared parameters:", *lines] if lines else ["the parameters cell declares none"]
    return ParameterError(
        "\n".join([head, *rest, *listing]),
        hint="give each parameter by its declared name with a value of its type",
    )


def filled(doc: Document, values: Mapping[str, Any]) -> Document:
    """The document as it runs with these values: in a logbook, also in the place of each `{name}`.

    A logbook's parameters are all set, those with a default too, so that the record has them.
    """
    front = frontmatter.of(doc).parameters
    doc = placed(doc, values)
    if front:
        names = {parameter.name for parameter in front}
        given = effective(doc, values)
        values = {name: given[name] for name in given if name in names or name in values}
    return inject(doc, values)


def placed(doc: Document, values: Mapping[str, Any]) -> Document:
    """A logbook with values in the place of each `{name}`; any other document as it is."""
    if doc.format != "logbook" or not frontmatter.of(doc).parameters:
        return doc
    return substitution.substituted(doc, effective(doc, values))


def typed(cell: Cell, doc: Document, values: Mapping[str, Any]) -> Cell:
    """A step that was typed in place of another, with values in it; unchanged where one does not
    fit there."""
    if doc.format != "logbook" or not frontmatter.of(doc).parameters:
        return cell
    with suppress(DocumentError):
        return substitution.in_step(cell, effective(doc, values))
    return cell


def effective(doc: Document, values: Mapping[str, Any]) -> dict[str, Any]:
    """Every declared value that is known: the given ones, and defaults for the rest."""
    defaults = {p.name: p.default for p in declared(doc) if p.has_default}
    order = [p.name for p in declared(doc)]
    known = {**defaults, **values}
    return {name: known[name] for name in order if name in known}


def _unknown(name: str, known: Mapping[str, Parameter]) -> str:
    folded = {other.lower(): other for other in known}
    near = [folded[other] for other in get_close_matches(name.lower(), folded, n=1)]
    return f"{name} is not a parameter" + (f"; did you mean {near[0]}?" if near else "")


def _misfit(parameter: Parameter, given: Given, why: str) -> str:
    shown = _shown(given.value)
    kind = "" if given.kind == "text" else f" ({type(given.value).__name__})"
    text = f"{parameter.name} expects {parameter.type}, got {shown}{kind}"
    return f"{text}: {why}" if why else text


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer beyond Python's limit for decimal text
        text = f"an integer of {value.bit_length()} bits"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def inject(doc: Document, values: Mapping[str, Any]) -> Document:
    """The document with a cell that sets the values, right after the one that declares them."""
    if not values:
        return doc
    earlier = [at for at, cell in enumerate(doc.cells) if INJECTED_TAG in cell.tags]
    cells = [cell for cell in doc.cells if INJECTED_TAG not in cell.tags]
    at = parameters_cell(replace(doc, cells=tuple(cells)))
    top = int(bool(cells) and cells[0].kind == "raw")  # front matter stays at the top
    place = at + 1 if at is not None else (earlier[0] if earlier else top)
    source = _source(values, doc.language)
    cells.insert(place, Cell("code", source, _free_id(source, cells), tags=(INJECTED_TAG,)))
    return replace(doc, cells=tuple(cells))


def _source(values: Mapping[str, Any], language: str) -> str:
    between = {"bash": "=", "r": " <- "}.get(language, " = ")
    lines = ["# Parameters"]
    for name, value in values.items():
        try:
            lines.append(f"{name}{between}{literal(value, language)}")
        except ParameterError as error:
            raise ParameterError(f"{name}: {error.message}", hint=error.hint) from error
    return "\n".join(lines)


def _free_id(source: str, cells: list[Cell]) -> str:
    taken = {cell.id for cell in cells}
    stem = digest_id("code", source)
    numbered = (f"{stem}-{n}" for n in count(2))
    return next(id_ for id_ in chain([stem], numbered) if id_ not in taken)


def parse_assignments(
    p: Iterable[tuple[str, str] | str] = (),
    r: Iterable[tuple[str, str] | str] = (),
    y: Iterable[str] = (),
    f: Iterable[tuple[str, str]] = (),
) -> dict[str, Given]:
    """What the command line gives. Later wins; files come first, then YAML, then `p`, then `r`.

    `p` and `r` hold pairs or `name=value` text, `y` YAML text, `f` pairs of file name and content.
    """
    found: dict[str, Given] = {}
    for name, text in f:
        found |= _mapping(text, name)
    for text in y:
        found |= _mapping(text, "the YAML given with -y")
    for kind, pairs in (("text", p), ("raw", r)):
        for pair in pairs:
            name, value = _pair(pair) if isinstance(pair, str) else pair
            checked = checked_name(name)
            found.pop(checked, None)
            found[checked] = Given(value, "raw" if kind == "raw" else "text")
    return found


def _pair(text: str) -> tuple[str, str]:
    name, equal, value = text.partition("=")
    if not equal:
        raise ParameterError(
            f"{text!r} is not an assignment", hint="write NAME VALUE or NAME=VALUE"
        )
    return name.strip(), value


def checked_name(name: Any) -> str:
    """The name as Python reads it, if it can be one."""
    name = normalize("NFKC", name) if isinstance(name, str) else name
    if not isinstance(name, str) or not name.isidentifier() or name in _NO_NAMES:
        raise ParameterError(
            f"{name!r} cannot be the name of a parameter",
            hint="a name has letters, digits and underscores and is no keyword",
        )
    return name


def _mapping(text: str, name: str) -> dict[str, Given]:
    data = _loaded(text, name)
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ParameterError(
            f"{name} holds no mapping but a {type(data).__name__}",
            hint="write one `name: value` per line",
        )
    return {checked_name(key): Given(value) for key, value in data.items()}


def _loaded(text: str, name: str) -> Any:
    kind = "JSON" if name.lower().endswith(".json") else "YAML"
    try:
        return json.loads(text.removeprefix("\ufeff")) if kind == "JSON" else _yaml(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ParameterError(
            f"{name} is not valid {kind}: {' '.join(str(error).split())}",
            hint="write `name: value`, quoted where needed" if kind == "YAML" else "correct it",
        ) from error


def _yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
