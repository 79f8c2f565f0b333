"""The words and signs around numbers: units, limits, what is counted. A table, as `words`."""

# Tables of words as people write them: long lines, and signs of other scripts that are meant.
# ruff: noqa: E501, RUF001, SIM905

from __future__ import annotations

import re
from typing import Literal

_I = re.IGNORECASE
# 1,500.50 and 1.500,50, and with a space, which may be one that does not break: 1 500,50
_SPACE = "[ \u00a0\u2009\u202f]"
_SPACED = rf"\d{{1,3}}(?:{_SPACE}\d{{3}}){{1,5}}(?!\d)"
_FIGURES = rf"-?(?:{_SPACED}(?:[.,]\d{{1,9}})?|\d(?:[\d,.']{{0,18}}\d)?)(?:[kKmM](?![a-zA-Z]))?"
_NUM = rf"(?P<number>{_FIGURES})"

SIGNS = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR"}
UNITS = {
    "%": "percent", "％": "percent", "percent": "percent", "per cent": "percent",
    "prozent": "percent", "pour cent": "percent", "por ciento": "percent",
    "€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY", "euro": "EUR", "euros": "EUR",
    "dollars": "USD", "usd": "USD", "eur": "EUR", "gbp": "GBP", "chf": "CHF", "jpy": "JPY",
}  # fmt: skip
_UNIT = (
    r"(?P<unit>%|％|€|\$|£|°[CF]|(?:percentage points|percent|per cent|Prozent|pour cent|por ciento|"
    r"euros?|dollars|USD|EUR|GBP|CHF|JPY|milliseconds?|seconds?|minutes?|hours?|days?|weeks?|"
    r"Sekunden|Minuten|Stunden|Tagen?|Wochen|Monaten?|Jahren?|secondes|heures?|jours?|semaines?|mois|"
    r"segundos|minutos|horas?|días?|semanas?|meses|años?|(?-i:[KMG]o)|"
    r"[KMGTP]i?B|bytes|[kM]bit/s|ms|µs|ns|[kM]?Hz|GHz|req/s|rps|kW|kWh|MW|km/h|km|cm|mm|kg|g|m|s|h|"
    r"degrees|°|pts)(?![\w]))"
)
_BARE = rf"(?P<sign>[$€£¥₹])?\s?{_NUM}(?:\s?{_UNIT})?"
# Words of languages without spaces may follow at once.
_AMOUNT = rf"{_BARE}(?![A-Za-z0-9_]|[.,:-]\d)"
# Between two numbers, of which often only the second has a unit.
RANGE = re.compile(
    rf"\b(?:between|zwischen|entre|tra)\s+(?P<sign>[$€£¥₹])?\s?(?P<low>{_FIGURES})"
    rf"(?:\s?{_UNIT.replace('unit', 'first', 1)})?\s+(?:and|und|et|y|e)\s+[$€£¥₹]?\s?"
    rf"(?P<high>{_FIGURES})(?:\s?{_UNIT})?(?![A-Za-z0-9_]|[.,:-]\d)",
    _I,
)
YEARS = re.compile(
    r"\b(?:between|from|zwischen|von|entre|de)\s+(?P<low>(?:19|20)\d\d)\s+"
    r"(?:and|to|until|through|und|bis|et|y|à|a)\s+(?P<high>(?:19|20)\d\d)(?![\w%]|[.,:-]\d)",
    _I,
)
# Nothing but this between two limits: they are one thing's.
JOINED = re.compile(r"\s*(?:,|and|but|und|aber|et|mais|y|pero)?\s*", _I)
# What joins two limits that are both the rule, rather than the second a further condition.
JOINT = re.compile(
    r"[,;.\n]|\b(?:and|or|but|while|whereas|und|oder|aber|während|et|ou|mais|tandis que|y|o|pero|mientras)\b"
    r"|[、，。和或]",
    _I,
)
CURRENCIES = frozenset({"EUR", "CHF"})  # whose people write 1.000 for a thousand
# What compares with a limit: beyond it, or up to it and the limit, too.
_MORE = (
    r"above|over|more than|greater than|higher than|larger than|bigger than|longer than|exceeds?|"
    r"exceeding|exceeded|beyond|slower than|>|(?:threshold|cut-?off)(?:\s+(?:of|is|at|value of)|:|\s*=)?"
)
_MORE_ABROAD = (
    r"Schwell(?:en)?wert(?:\s+von)?|seuil(?:\s+de)?|umbral(?:\s+de)?|"
    r"über|ueber|oberhalb von|mehr als|(?:größere?[rns]?|höhere?[rns]?|längere?[rns]?) als|"
    r"übersteig(?:t|en)|überschreite[nt]|"
    r"plus de|(?:plus (?:grand|haut|long|élevé)e?s?|supérieure?s?) (?:à|a|que)|au-dessus de|au-delà de|"
    r"(?:dépass|excèd)(?:e|ent|ant)(?: pas)?|"
    r"más de|superior(?:es)? a|mayor(?:es)? (?:que|de|a)|por encima de|super[ae]n?|exced[ae]n?|"
    r"più di|superior[ei] a|oltre|meer dan|超过|超過|高于|高於|大于|大於|より大きい"
)
_LEAST = (
    r"at least|at minimum|no(?:t)? less than|no(?:t)? fewer than|(?:a )?minimum of|reach(?:es|ing)?|>=|≥|"
    r"(?:greater|more|higher) than or equal to"
)
_LEAST_ABROAD = (
    r"mindestens|wenigstens|nicht weniger als|größer(?: oder)? gleich|au moins|pas moins de|"
    r"supérieure?s? ou égale?s? à|al menos|por lo menos|como mínimo|no menos de|"
    r"(?:mayor|superior)(?:es)? o igual(?:es)? (?:a|que)|almeno|至少|不低于|不低於|不少于|不少於"
)
_LESS = r"below|under|less than|fewer than|lower than|smaller than|drops? to|faster than|<"
_LESS_ABROAD = (
    r"unter|unterhalb von|weniger als|(?:kleinere?[rns]?|niedrigere?[rns]?|kürzere?[rns]?) als|"
    r"unterschreite[nt]|"
    r"moins de|(?:plus (?:petit|bas|court)e?s?|inférieure?s?) (?:à|a|que)|en[ -]dessous de|au-dessous de|"
    r"menos de|inferior(?:es)? a|menor(?:es)? (?:que|de|a)|por debajo de|"
    r"meno di|inferior[ei] a|sotto|minder dan|低于|低於|小于|小於|少于|少於"
)
# These are said of how many are shown, too.
_SHOWN_TO = r"up to|at most|no(?:t)? more than|max(?:imum)?(?: of)?"
_SHOWN_TO_ABROAD = (
    r"bis zu|höchstens|maximal|nicht mehr als|jusqu'à|jusqu’à|au plus|au maximum|pas plus de|"
    r"hasta|como máximo|a lo sumo|no más de"
)
_MOST = (
    rf"{_SHOWN_TO}|a maximum of|no(?:t)? (?:higher|longer|larger|greater|later) than|<=|≤|"
    r"(?:less|fewer|lower) than or equal to"
)
_MOST_ABROAD = (
    rf"{_SHOWN_TO_ABROAD}|kleiner(?: oder)? gleich|inférieure?s? ou égale?s? à|"
    r"(?:menor|inferior)(?:es)? o igual(?:es)? (?:a|que)|最多|至多|不超过|不超過|不高于|不高於"
)
_OR_MORE = r"or more|or higher|or above|or greater|or over|or longer|and above|and more|and up|以上"
_OR_MORE_ABROAD = r"(?:oder|und) (?:mehr|höher|länger|größer|darüber)|(?:ou|et) (?:plus|davantage|au-delà)|[oy] más"
_OR_LESS = r"or less|or fewer|or lower|or below|or under|or shorter|and below|and less|以下"
_OR_LESS_ABROAD = (
    r"(?:oder|und) (?:weniger|niedriger|kürzer|kleiner|darunter)|(?:ou|et) moins|[oy] menos"
)
_BEYOND = r"übersteig(?:t|en)|überschreite[nt]|unterschreite[nt]"
# What ends a condition, rather than going on with what is counted.
_CLOSED = (
    r"\s*(?:[.,;:!?)]|\Z|\n|\b(?:in|per|with|at|for|on|within|since|from|are|is|have|to|and|"
    r"in|pro|mit|seit|und|par|dans|avec|depuis|et|por|en|con|desde|y)\b)"
)
_SIDES: tuple[tuple[re.Pattern[str], Literal["above", "below"], bool], ...] = (
    (re.compile(rf"{_MORE}|{_MORE_ABROAD}|を超え", _I), "above", False),
    (re.compile(rf"{_LEAST}|{_LEAST_ABROAD}|{_OR_MORE}|{_OR_MORE_ABROAD}|\+", _I), "above", True),
    (re.compile(rf"{_LESS}|{_LESS_ABROAD}|未満|を下回", _I), "below", False),
    (re.compile(rf"{_MOST}|{_MOST_ABROAD}|{_OR_LESS}|{_OR_LESS_ABROAD}", _I), "below", True),
)
CONTINENTAL = re.compile(
    rf"{_MORE_ABROAD}|{_LEAST_ABROAD}|{_LESS_ABROAD}|{_MOST_ABROAD}|{_OR_MORE_ABROAD}|{_OR_LESS_ABROAD}",
    _I,
)
COMPARED = re.compile(
    rf"(?<![A-Za-zÀ-ÿ])(?P<word>{_LEAST}|{_LEAST_ABROAD}|{_MOST}|{_MOST_ABROAD}|"
    rf"{_MORE}|{_MORE_ABROAD}|{_LESS}|{_LESS_ABROAD})(?:\s+(?:a|the|einem|einer)\b)?"
    rf"(?:\s+(?:threshold|limit)(?:\s+of)?)?\s*{_AMOUNT}",
    _I,
)
_AFTER = rf"(?:{_OR_MORE}|{_OR_MORE_ABROAD}|{_OR_LESS}|{_OR_LESS_ABROAD})(?!\w)"
# 20 or more items, 3 items or less, 80 % nicht überschreiten
COMPARED_AFTER = re.compile(
    rf"(?<![A-Za-z0-9_.,]){_BARE}(?:\s+[^\W\d_][\w-]{{0,30}}(?=\s+(?:or|oder|ou|o)\s+[^\W\d_]+{_CLOSED}))?\s*"
    rf"(?P<not>nicht\s+)?(?P<word>{_AFTER}|{_BEYOND}|を超え|以上|以下|未満|を下回|\+(?![\w+]))",
    _I,
)


def side(word: str) -> tuple[Literal["above", "below"], bool]:
    """Which side of the number the words mean, and whether the number itself is meant, too."""
    return next((at, edge) for known, at, edge in _SIDES if known.fullmatch(word))


# "Alert above 80 %" looks for what is above, "make sure it is under 80 %" does too.
WANTED = re.compile(
    r"\b(?:(?:check|verify|confirm|validate|prove|assert|see|so) that|"
    r"(?:ensures?|make sure|must|should|shall|has to|have to|needs? to|cannot|can't|may not|stays?|keep|valid for)|"
    r"sicherstellen|stelle sicher|(?:über)?prüfe[n,]* dass|soll(?:en|te|ten)?|muss|müssen|darf|dürfen|bleib(?:t|en)|"
    r"s'assurer|assure[rz]?(?:-toi|-vous)?|vérifie[rz]? que|doi(?:t|vent)|devrai(?:t|ent)|"
    r"unless|außer wenn|es sei denn|sauf si|à moins que|a menos que|salvo que|"
    r"asegur(?:ar|arse|a|e|arse|ate|ese)|verificar? que|comprobar que|comprueba que|deben?|debería[n]?)"
    r"(?!\w)(?:,?\s+(?:de )?(?:that|dass|que)(?!\w))?|确保|確保|保证",
    _I,
)
LOOKED_FOR = re.compile(
    r"\b(?:alert|warn|flag|notify|report|if|when|whenever|find|list|show|delete|remove|count|fail|where|which|"
    r"with|having|whose|who|that (?:have|has|had|are|is|were|was|cost|use|need|take|took)|"
    r"alarm|warne|melde|wenn|falls|ob|finde|zeige|liste|suche|lösche|mit|deren|dessen|"
    r"alerter?|si|avertir|lorsque|quand|trouver?|lister?|afficher?|avec|ayant|dont|qui|"
    r"avisar?|alertar?|cuando|busca[r]?|muestra|mostrar|lista[r]?|encontrar|encuentra|con|cuy[oa]s?)\b"
    r"|(?<=, )(?:die|der|das) |如果|当|若|告警|报警",
    _I,
)
# At least 3: without another word it is demanded.
DEMANDS = re.compile(
    r"at least|at most|no less than|no more than|mindestens|höchstens|au moins|au plus|al menos|"
    r"como máximo|至少|最多",
    _I,
)
# Orders of at least 3 items are looked for.
OF = re.compile(r"(?:\b(?:of|de|von|for|over|worth)|\bd[’'])\s*$", _I)
# Must not be above 80: as if it said at most.
NEGATED = re.compile(
    r"(?:\b(?:not|never|cannot|nicht|nie|niemals|pas|jamais|nunca)|n[’']t|\bne)"
    r"(?:\s+(?:be|been|being|ever|is|are|go|goes|get|gets|have|has|cost|take|drop|drops|fall|falls|rise|rises|"
    r"ser|estar|ist|sind|être|tomber|descendre))*\s*$"
    r"|\b(?:no)(?:\s+(?:debe|ser|estar|sea|sean|es|son|está|están|debe ser))*\s*$",
    _I,
)
NOBODY = re.compile(
    r"\b(?:no|none|nobody|keine?[nr]?|aucune?|ningun[oa]?|ningún)\s+(?:[\w-]+\s+){0,3}$", _I
)


_COUNT = rf"(?P<number>\d{{1,3}}(?:,\d{{3}})+|{_SPACED}|\d{{1,9}})(?![\w%％]|[.,:-]\d|\s?%)"
_MEASURED = _UNIT.replace("?P<unit>", "?:")
# At most 20 rows. Orders of at most 20 items are no limit: see CONDITION.
AT_MOST = re.compile(
    rf"\b(?:{_SHOWN_TO}|{_SHOWN_TO_ABROAD})\s+{_COUNT}(?!\s?{_MEASURED})(?!\s*(?:ms|months?)\b)", _I
)
# What stands before a number that something has, rather than one of what is shown.
CONDITION = re.compile(
    r"(?:\b(?:with|have|has|had|having|is|are|was|were|be|been|costs?|if|when|where|whose|that|whether|"
    r"(?:who|that|which)\s+\w+|mit|haben|hat|hatten|ist|sind|deren|wenn|falls|ob|dass|"
    r"avec|ont|ayant|est|sont|dont|si|que|qui\s+\w+|coûte(?:nt)?|con|tienen?|tengan|es|son|cuestan?)"
    r"|\d[^\s]*\s+(?:and|or|but|und|oder|et|ou|y|o))\s*$",
    _I,
)
ROWS = re.compile(
    r"\s*(?:rows|results|entries|hits|matches|Zeilen|Ergebnisse|Treffer|Einträge|lignes|résultats|"
    r"filas|resultados)\b",
    _I,
)
LIMITS = (
    re.compile(
        rf"\b(?:top|first|limit(?:ed)? to|(?:die )?(?:ersten|obersten)|les|los|las|i primi)\s+{_COUNT}"
        rf"(?!\s?{_MEASURED})(?!\s*(?:ms|months?)\b)",
        _I,
    ),
    re.compile(
        r"\b(?P<number>\d{1,6})(?=\s+(?!(?:ou|et|o|y)\s)(?:\w+\s+)?(?:most|largest|biggest|smallest|slowest|fastest|newest|"
        r"oldest|latest|highest|lowest|best|worst|cheapest|recent|longest|shortest|größten|neuesten|"
        r"langsamsten|teuersten|letzten|ersten|plus|derniers|dernières|premiers|premières|últimos|"
        r"últimas|primeros|primeras)\b)",
        _I,
    ),
    re.compile(r"前(?P<number>\d{1,6})(?=[名个個位件])"),
    re.compile(r"上位(?P<number>\d{1,6})(?=[名件位])?"),
)
PERCENTILE = re.compile(r"(?:\bp(?P<number>50|75|9\d(?:\.\d{1,2})?|99)\b)(?!/)", _I)
LABELLED = re.compile(
    r"\b(?P<label>port|level|seed|batch size|page|issue|ticket|depth|width|height|status|version|"
    r"retries|workers|replicas|epochs|budget|window|interval|factor|ratio|rate|quantile|alpha|sample size|"
    r"tolerance|score|priority|temperature|confidence|quality|max tokens|k|n)\s+(?:of\s+|is\s+|=\s*|:\s*|#)?(?P<number>\d{1,9}(?:\.\d{1,6})?)(?![\w%]|[.,:-]\d)",
    _I,
)
MONEY = re.compile(rf"(?<![\w.,/:#-])(?P<sign>[$€£¥₹])\s?{_NUM}(?P<unit>(?!))?(?![\w]|[.,:-]\d)")
MEASURE = re.compile(rf"(?<![\w.,/:#-])(?P<sign>[$€£¥₹])?\s?{_NUM}\s?{_UNIT}", _I)
COUNTED = re.compile(
    rf"(?<![\w.,/:#+-])(?P<number>\d{{1,3}}(?:,\d{{3}})+|{_SPACED}|\d{{1,9}})\s+"
    r"(?P<what>[^\W\d_][\w-]{1,30})(?!/)",
    _I,
)

# customers 17, 23 and 42
NUMBERED = re.compile(
    r"\b(?P<what>[^\W\d_]{3,20}(?:s|en))\s+(?P<values>\d{1,9}(?:\s?,\s?\d{1,9}){0,20},?\s+"
    r"(?:and|or|und|oder|et|ou|y|o)\s+\d{1,9})(?![\w%]|[.,:-]\d)",
    _I,
)
# What stands behind a number and is not counted by it.
NOT_COUNTED = frozenset(
    """and or with to in on at of for from by as than then per is are was were not no the a an
    und oder mit von bis zu ist sind et ou avec de des est y o con es""".split()
)
REPEATED = frozenset("time times mal fois veces volte".split())
