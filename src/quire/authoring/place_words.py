"""The words by which people say places and names. A table, no logic to speak of.

English in full; for other languages the words that stand around numbers. Nothing here may take
longer than linear time on any text: no repetition within a repetition.
"""

# Tables of words as people write them: long lines, and signs of other scripts that are meant.
# ruff: noqa: E501, RUF001, SIM905

from __future__ import annotations

import re
import unicodedata

_I = re.IGNORECASE


def folded(word: str) -> str:
    """Lower case, without accents."""
    plain = unicodedata.normalize("NFKD", word.lower().replace("ß", "ss"))
    return "".join(c for c in plain if not unicodedata.combining(c))


# Places

URL = re.compile(
    r"\b(?:https?|ftp|s3|gs|postgres(?:ql)?|mysql|redis|amqp|ssh)://[^\s\"'<>()、。，]{1,500}", _I
)
EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}")
_SUFFIXES = (
    "csv|tsv|json|jsonl|ndjson|ya?ml|toml|ini|cfg|conf|log|txt|md|rst|xlsx?|parquet|feather|arrow|"
    "db|sqlite3?|sql|py|ipynb|r|js|ts|go|rs|java|sh|html?|xml|pdf|png|jpe?g|svg|gz|zip|tar|bz2|zst|"
    "pickle|pkl|npy|npz|h5|hdf5|nc|tiff?|wav|mp3|mp4|env|lock|pem|crt|key|eml|geojson"
)
PATH = re.compile(
    r"(?<![\w/.:@~*-])(?:"
    r"(?:~|\.{1,2})?/[\w.*+@%~-][\w.*+@%~/-]{0,200}"
    r"|[\w*][\w.*+-]{0,80}/[\w.*+/-]{0,200}"
    rf"|[\w*][\w.*+-]{{0,80}}\.(?:{_SUFFIXES})(?![\w-]|\.\w)"
    r")",
    _I,
)
HOST = re.compile(
    r"(?<![\w.@/-])(?:"
    r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?(?::\d{2,5})?"
    r"|localhost(?::\d{2,5})?"
    r"|(?:[a-z0-9][a-z0-9-]{0,62}\.){1,8}(?:com|org|net|io|dev|de|eu|uk|fr|es|it|nl|ch|at|jp|cn|in|"
    r"br|us|ca|au|edu|gov|int|info|app|cloud|ai|co|me|local|internal|lan|example|test)(?::\d{2,5})?"
    r")(?![\w-])",
    _I,
)

# Words

QUOTED = re.compile(
    r"\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”|„([^“”\n]{1,200})[“”]|«\s?([^»\n]{1,200}?)\s?»|"
    r"「([^」\n]{1,200})」|『([^』\n]{1,200})』|(?<![\w])'([^'\n]{1,200})'(?!\w)|‘([^’\n]{1,200})’|`([^`\n]{1,200})`"
)
NOUNS = frozenset(
    """region zone branch tag label keyword table database schema column customer client user username
    account team project repository repo service namespace cluster bucket queue topic environment env
    product category city country language currency ticker symbol model dataset index channel department
    office site store warehouse server host host_name machine device sensor station subject title name
    status format suffix prefix pattern query owner author role campaign experiment job pod container
    image workspace group org organisation organization domain metric field key kunde kunden benutzer
    projekt stadt land tabelle datenbank cliente usuario proyecto ciudad client projet ville""".split()
)
NOUNS_TO = {
    "env": "environment", "repo": "repository", "kunde": "customer", "kunden": "customer",
    "benutzer": "user", "projekt": "project", "stadt": "city", "land": "country",
    "tabelle": "table", "datenbank": "database", "cliente": "customer", "usuario": "user",
    "proyecto": "project", "ciudad": "city", "projet": "project", "ville": "city",
    "org": "organisation", "username": "user",
}  # fmt: skip
NAMED_BY = {
    **NOUNS_TO,
    "containing": "pattern", "contains": "pattern", "contain": "pattern", "matching": "pattern",
    "match": "pattern", "matches": "pattern", "grep": "pattern", "regex": "pattern",
    "for": "query", "about": "query", "mention": "query", "mentioning": "query",
    "mentions": "query", "called": "name", "named": "name", "tagged": "tag", "labelled": "label",
    "labeled": "label", "nach": "query", "enthalt": "pattern", "enthalten": "pattern",
}  # fmt: skip
REGION = re.compile(r"(?<![\w-])(?:us|eu|ap|ca|sa|me|af|il)-(?:gov-)?[a-z]{4,9}-\d(?![\w-])")
CHANNEL = re.compile(r"(?<![\w/#&])(?P<value>#[a-z][\w-]{1,60})(?![\w#])")
NOUN = re.compile(
    rf"\b(?P<noun>{'|'.join(sorted(NOUNS - {'machine', 'image', 'name', 'key', 'field', 'title', 'subject'}, key=len, reverse=True))})"
    r"\s*(?:=|:|\s)\s*(?P<value>(?-i:[A-Z][\w./-]{0,60}|[a-z]\w*(?=[-/_\d])[\w./-]{1,60}|\d+[A-Za-z-][\w-]{0,30}))",
    _I,
)
AND = r"(?:,?\s+(?:and|or|und|oder|sowie|et|ou|y|o|e|as well as)\s+|\s*&\s*)"


def listed(values: str) -> list[str]:
    """`a, b and c`, one by one."""
    return re.split(rf"{AND}|\s*,\s*", values)


FOR = re.compile(
    r"\b(?i:for)\s+(?:(?i:the)\s+)?(?P<value>[A-Z][\w&'’.-]{0,40}(?:\s+(?!(?:And|Or|In|At|On)\b)[A-Z][\w&'’.-]{0,40}){0,3})"
)
_CITY = r"(?-i:[A-Z][a-zà-ÿ]{2,30}(?:[ -][A-Z][a-zà-ÿ]{2,30}){0,2})"
PLACES = re.compile(rf"\b(?:in|à|en)\s+(?P<values>{_CITY}(?:,\s+{_CITY}){{0,20}}{AND}{_CITY})")
PLACE = re.compile(
    r"\bin\s+(?P<value>(?-i:[A-Z][a-zà-ÿ]{2,30}(?:[ -][A-Z][a-zà-ÿ]{2,30}){0,2}))(?=\s*(?:[.,;:!?)]|$|and\b|for\b|over\b|at\b))",
    re.MULTILINE,
)
MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|"
    "januar|februar|märz|mai|juni|juli|oktober|dezember|janvier|février|mars|avril|juin|juillet|"
    "août|septembre|octobre|novembre|décembre|enero|febrero|marzo|abril|mayo|junio|julio|agosto|"
    "septiembre|octubre|noviembre|diciembre"
)
_DAYS = "monday tuesday wednesday thursday friday saturday sunday mondays fridays"
NOT_NAMES = frozenset(
    f"""{_DAYS} {MONTHS.replace("|", " ")} i a an the each every all any it this that these those
    http https cpu ram api url sql csv json html pdf python git github gitlab linux macos windows docker
    kubernetes ci pr prs todo todos markdown excel slack jira jupyter grafana prometheus postgres
    english german french spanish""".split()
)
SMALL = frozenset(
    """alert warn warning flag notify if check ensure sure make only be me us when find show list that
    a an the is are was were be been of in on at to for from by with and or not no than as it its
    that this these those if when where which who what all any each every more less most least last past
    first next previous over under above below usage utilisation utilization use used value values level
    rate has have had goes go gets get falls fall drops drop rises rise stays stay per about around only
    und oder der die das den dem ist sind von mit bei zu im am auf als wenn et ou le la les de du des est
    y o el los las un una en con es que ueber uber ago hace old alt free of-the time times date dates and-the percent""".split()
)
SWITCHES = (
    (
        re.compile(r"\bdry[ -]?run\b|\bProbelauf\b|\bTrockenlauf\b|\bà blanc\b|\bsimulacro\b", _I),
        "dry_run",
        "only say what would be done",
    ),
    (
        re.compile(r"\brecursive(?:ly)?\b|\brekursiv\b|\bincluding subfolders\b", _I),
        "recursive",
        "look into folders below, too",
    ),
    (
        re.compile(r"\bcase[ -]insensitive(?:ly)?\b|\bignor(?:e|ing) (?:the )?case\b", _I),
        "ignore_case",
        "take large and small letters as the same",
    ),
    (re.compile(r"\bverbose(?:ly)?\b", _I), "verbose", "say more"),
)
_HELPS = {
    "text": "text",
    "pattern": "what to look for",
    "query": "what to look for",
    "user": "which user",
}


def help_of(name: str) -> str:
    return _HELPS.get(name, f"which {name.replace('_', ' ')}" if name != "text" else "text")
