"""Lists of names in a description: hosts web01 and db01, regions north, south and east.

What stands behind the noun may as well be the rest of the sentence: users come and go. Names that
look like names are taken, plain words only where they can hardly be anything else.
"""

# Tables of words as people write them: long lines.
# ruff: noqa: E501, SIM905

from __future__ import annotations

import re
from collections.abc import Iterator

from . import place_words
from .description import Input, Text, listed, made, named, strings

_QUOTES = "\"'`“”„«»‘’ "  # noqa: RUF001 - as people write them
_ANY = re.compile(r"[\s\S]+")
_MOST = 20  # names in one list


def _plural(noun: str) -> str:
    if noun.endswith(("s", "x", "ch")):
        return f"{noun}es"
    return re.sub("(?<![aeo])y$", "ie", noun) + "s"


_ABROAD = {
    "regions": "regionen régions regiones", "zones": "zonen zonas", "customers": "kunden clientes",
    "users": "benutzer nutzer utilisateurs usuarios", "projects": "projekte projets proyectos",
    "cities": "städte villes ciudades", "countries": "länder pays países", "hosts": "hôtes rechner",
    "tables": "tabellen tablas", "databases": "datenbanken", "services": "dienste servicios",
    "servers": "serveurs servidores", "channels": "kanäle canaux canales", "teams": "équipes equipos",
    "departments": "abteilungen départements departamentos", "stores": "filialen magasins tiendas",
    "sites": "standorte", "columns": "spalten colonnes columnas", "models": "modelle modèles modelos",
    "products": "produkte produits productos", "categories": "kategorien catégories categorías",
    "languages": "sprachen langues idiomas", "currencies": "währungen devises monedas",
    "environments": "umgebungen environnements entornos", "devices": "geräte appareils",
    "sensors": "sensoren capteurs sensores", "accounts": "konten comptes cuentas",
}  # fmt: skip
_NAMES = {
    **{_plural(noun): _plural(noun) for noun in place_words.NOUNS | {"shop", "stock"}},
    **{word: name for name, known in _ABROAD.items() for word in known.split()},
}
_ONE = {
    noun: _plural(place_words.NOUNS_TO.get(noun, noun))
    for noun in place_words.NOUNS
    if noun not in _NAMES
}
_HEAD = re.compile(
    rf"(?<![\w-])(?P<what>{'|'.join(sorted({*_NAMES, *_ONE}, key=len, reverse=True))})"
    r"(?:\s*[:(]\s*|\s+)(?:(?:named|called|namens)\s+)?",
    re.IGNORECASE,
)
_VALUE = re.compile(r"(?=[\w./-]{0,40}[^\W\d_])[^\W_][\w./-]{0,60}(?<![./-])")
_BETWEEN = re.compile(rf"(?P<and>{place_words.AND})|\s*,\s*", re.IGNORECASE)
# What may follow plain words that are names; before anything else they are verbs or adjectives.
_ENDS = re.compile(
    r"\s*(?:[.,;:!?)]|\Z|\n|(?:in|for|of|from|with|on|at|by|per|over|above|below|under|since|until|during|"
    r"within|between|older|newer|last|past|this|where|that|which|whose|if|when|every|daily|weekly|today|"
    r"and|or|to|im|mit|von|vom|für|seit|über|unter|nach|pro|bei|der|die|des|den|letzte\w*|auf|aus|an|"
    r"de|des|du|dans|avec|par|sur|pour|depuis|en|au|aux|à|del|con|por|para|desde|últim\w+)(?!\w))|\s+[\d>≥<(]",
    re.IGNORECASE,
)
_GOES_ON = re.compile(rf"{_BETWEEN.pattern}|{_ENDS.pattern}", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(?:if|when|whenever|while|that|which|who|how|why|where|wenn|falls|ob|dass|si|quand|que|cuando)"
    r"\s+(?:the |any |all |die |les |las |los )?\Z",
    re.IGNORECASE,
)
# Of people, plain words rather say what they do.
_PEOPLE = frozenset("customers clients users usernames owners authors accounts teams roles".split())
# Whose names are adjectives and the like: pending and failed, staging and production.
_STATES = frozenset("statuses environments envs".split())
# Of countries and languages these are names.
_CODES = frozenset("us it de es".split())
_CODED = frozenset("regions countries languages zones".split())
_NO_VALUES = frozenset(
    """up down open closed new old active inactive stale idle busy free full dead alive online offline missing
    empty valid invalid healthy unhealthy ready available slow fast late low high big small large unused due come
    go grow shrink fail crash restart retry start stop run runs read write add delete remove send mail post report
    print save export email compare sum count plot sort group check return log sleep die leave join merge change
    differ drift lost sold made sent kept left gone then also too both same different other others rest send write
    sende schicke melde zeige prufe vergleiche berechne losche speichere envoie envoyer compare comparer envia
    enviar fallen steigen wachsen schrumpfen""".split()
)


def lists(text: Text) -> Iterator[Input]:
    for found in text.take(_HEAD):
        what = place_words.folded(found["what"])
        values, end = _values(text.left, found, what)
        names = list(dict.fromkeys(values))
        if len(names) < 2:
            continue
        span = _ANY.fullmatch(text.left, found.start(), end)
        if span is not None:
            text.read(span)
            name = named(_name(found["what"]))
            yield made(span, name, "list[str]", strings(names), f"which {name}")
    yield from _regions(text)


def _name(what: str) -> str:
    word = what.lower()
    return _NAMES.get(word) or _ONE.get(word) or word


def _values(left: str, head: re.Match[str], what: str) -> tuple[list[str], int]:
    """The names behind a noun, and where they end."""
    found: list[tuple[str, int]] = []
    joint: re.Match[str] | None = None
    joined, at = False, head.end()
    while len(found) < _MOST:
        value = _value(left, at)
        if value is None or not _fits(value[0], [known for known, _ in found], what, joint):
            break
        if found and place_words.folded(value[0]) in _NOUNS and not _GOES_ON.match(left, value[1]):
            break  # web01 and database pg1
        joined = joined or (joint is not None and joint["and"] is not None)
        found.append(value)
        joint = _BETWEEN.match(left, value[1])
        if joint is None:
            break
        at = joint.end()
    plain = [value for value, _ in found if _is_plain(value)]
    end = found[-1][1] if found else head.end()
    if plain and not _may_be_plain(left, head, plain, joined, end):
        return [], head.end()
    return [value.strip(_QUOTES) for value, _ in found], end


def _value(left: str, at: int) -> tuple[str, int] | None:
    """A name, with its quotes if it has any, and where it ends."""
    found = place_words.QUOTED.match(left, at) or _VALUE.match(left, at)
    return (found[0], found.end()) if found is not None else None


def _is_plain(value: str) -> bool:
    """A word as any other: not `web01`, `ACME`, `eu-west` or a quoted one."""
    return value.isalpha() and value.islower()


def _fits(value: str, before: list[str], what: str, joint: re.Match[str] | None) -> bool:
    """Whether a word goes on with a list."""
    word, name = place_words.folded(value), named(_name(what))
    code = word in _CODES and name in _CODED
    if word in place_words.SMALL and not (code or (value.isupper() and len(value) > 1)):
        return False
    if what in _ONE_FOLDED and not _is_code(value):
        # Kunde Müller und Rechnungen: where nouns are capitalised, only what no word looks like.
        english = joint is None or re.search(r"\b(?:and|or)\b|,", joint[0], re.IGNORECASE)
        known = word in place_words.NOT_NAMES or what not in _ENGLISH
        return bool(english) and not known and not _is_plain(value)
    if not _is_plain(value):
        return True
    if before and not _is_plain(before[0]):
        return False
    return name in _STATES or not (word in _NO_VALUES or word.endswith(("ed", "ing")))


_NOUNS = frozenset(place_words.folded(word) for word in {*_NAMES, *_ONE})
_ONE_FOLDED = frozenset(place_words.folded(word) for word in _ONE)
_ENGLISH = _ONE_FOLDED - place_words.NOUNS_TO.keys()


def _is_code(value: str) -> bool:
    return re.search(r"[\d_./\"'`“„«-]", value) is not None or (value.isupper() and len(value) > 1)


def _may_be_plain(left: str, head: re.Match[str], plain: list[str], joined: bool, end: int) -> bool:
    if named(_name(head["what"])) in _PEOPLE:
        return joined and len(plain) > 2 and all(len(value) <= 4 for value in plain)
    if _CLAUSE.search(left, max(0, head.start() - 20), head.start()):
        return False
    short = all(len(value) <= 3 for value in plain)
    marked = head[0].rstrip().endswith((":", "("))
    return (joined or short or marked) and _ENDS.match(left, end) is not None


def _regions(text: Text) -> Iterator[Input]:
    """In eu-west-1 and us-east-1: one list; from one to the other: two."""
    groups: list[list[re.Match[str]]] = []
    for found in text.take(place_words.REGION):
        last = groups[-1][-1] if groups else None
        if last is not None and _BETWEEN.fullmatch(text.whole, last.end(), found.start()):
            groups[-1].append(found)
        else:
            groups.append([found])
    for group in groups:
        for found in group:
            text.read(found)
        yield from listed(group, "region", "regions", "region")
