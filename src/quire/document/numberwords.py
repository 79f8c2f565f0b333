"""The words and signs around numbers: units, limits, what is counted. A table, as `words`."""

# Tables of words as people write them: long lines, and signs of other scripts that are meant.
# ruff: noqa: E501, RUF001, SIM905

from __future__ import annotations

import re

_I = re.IGNORECASE
_NUM = r"(?P<number>-?\d(?:[\d,.'\u00a0]{0,18}\d)?(?:[kKmM](?![a-zA-Z]))?)"

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
    r"Sekunden|Minuten|Stunden|Tage|"
    r"[KMGTP]i?B|bytes|[kM]bit/s|ms|µs|ns|[kM]?Hz|GHz|req/s|rps|kW|kWh|MW|km/h|km|cm|mm|kg|g|m|s|h|"
    r"degrees|°|pts)(?![\w]))"
)
_BARE = rf"(?P<sign>[$€£¥₹])?\s?{_NUM}(?:\s?{_UNIT})?"
# Words of languages without spaces may follow at once.
_AMOUNT = rf"{_BARE}(?![A-Za-z0-9_]|[.,:-]\d)"
_SPAN = r"-?\d(?:[\d,.'\u00a0]{0,18}\d)?(?:[kKmM](?![a-zA-Z]))?"
# Between two numbers, of which often only the second has a unit.
RANGE = re.compile(
    rf"\b(?:between|zwischen|entre|tra)\s+(?P<sign>[$€£¥₹])?\s?(?P<low>{_SPAN})"
    rf"(?:\s?{_UNIT.replace('unit', 'first', 1)})?\s+(?:and|und|et|y|e)\s+[$€£¥₹]?\s?"
    rf"(?P<high>{_SPAN})(?:\s?{_UNIT})?(?![A-Za-z0-9_]|[.,:-]\d)",
    _I,
)
YEARS = re.compile(
    r"\b(?:between|from|zwischen|von|entre|de)\s+(?P<low>(?:19|20)\d\d)\s+"
    r"(?:and|to|until|through|und|bis|et|y|à|a)\s+(?P<high>(?:19|20)\d\d)(?![\w%]|[.,:-]\d)",
    _I,
)
# Nothing but this between two limits: they are one thing's.
JOINED = re.compile(r"\s*(?:,|and|but|und|et|y)?\s*", _I)
CURRENCIES = frozenset({"EUR", "CHF"})  # whose people write 1.000 for a thousand
CONTINENTAL = re.compile(
    r"über|unter|mindestens|höchstens|mehr als|weniger als|(?:größer|kleiner|höher|länger) als|"
    r"plus de|moins de|au moins|au plus|más de|menos de|al menos|como máximo|più di|meno di|oltre|"
    r"meer dan|minder dan",
    _I,
)
_ABOVE = (
    r"above|over|at least|no less than|minimum of|more than|greater than|higher than|larger than|bigger than|longer than|exceeds?|"
    r"exceeding|exceeded|beyond|slower than|>=?|≥|"
    r"(?:threshold|cut-?off)(?:\s+(?:of|is|at|value of)|:|\s*=)?|Schwell(?:en)?wert(?:\s+von)?|seuil(?:\s+de)?|umbral(?:\s+de)?|"
    r"über|mindestens|mehr als|größer als|höher als|länger als|über|plus de|au moins|supérieure? à|au-dessus de|dépasse|"
    r"más de|al menos|superior a|mayor que|por encima de|supera|più di|oltre|meer dan|"
    r"至少|超过|超過|高于|高於|大于|大於|より大きい"
)
_BELOW = (
    r"below|under|less than|fewer than|lower than|smaller than|at most|no more than|maximum of|"
    r"drops? to|faster than|<=?|≤|"
    r"unter|weniger als|kleiner als|höchstens|moins de|inférieure? à|en dessous de|au plus|"
    r"menos de|inferior a|menor que|por debajo de|como máximo|meno di|sotto|minder dan|"
    r"低于|低於|小于|小於|少于|最多"
)
_BELOW_WORD = re.compile(rf"(?:{_BELOW})\s*$", _I)
COMPARED = re.compile(
    rf"(?<![A-Za-z])(?P<word>{_ABOVE}|{_BELOW})(?:\s+(?:a|the|einem|einer)\b)?"
    rf"(?:\s+(?:threshold|limit)(?:\s+of)?)?\s*{_AMOUNT}",
    _I,
)
COMPARED_AFTER = re.compile(
    rf"(?<![A-Za-z0-9_.,]){_BARE}\s*"
    r"(?P<word>or more|or higher|or above|and above|or less|or fewer|or lower|and below|を超え|以上|以下|未満|を下回)",
    _I,
)
_BELOW_AFTER = ("or less", "or fewer", "or lower", "and below", "以下", "未満", "を下回")


def is_below(word: str) -> bool:
    """Which side of the number the words mean."""
    return word.endswith(_BELOW_AFTER) or bool(_BELOW_WORD.fullmatch(word))


# "Alert above 80 %" looks for what is above, "make sure it is under 80 %" does too.
WANTED = re.compile(
    r"\b(?:(?:check|verify|confirm|validate|prove|assert|see|so) that|ensures?|make sure|must|should|has to|"
    r"have to|needs? to|stays?|keep|valid for|sicherstellen|stelle sicher|soll|muss|bleibt|s'assurer|vérifier que|"
    r"doit|asegurar|debe|确保|確保|保证)",
    _I,
)
LOOKED_FOR = re.compile(
    r"\b(?:alert|warn|flag|notify|report|if|when|whenever|find|list|show|delete|remove|count|fail|where|which|"
    r"with|whose|alarm|warne|melde|wenn|falls|ob|alerter|si|avertir|lorsque|avisar|alertar|cuando)\b"
    r"|如果|当|若|告警|报警",
    _I,
)
DEMANDS = ("at least", "at most", "no less than", "no more than", "mindestens", "höchstens",
           "au moins", "au plus", "al menos", "como máximo", "至少", "最多")  # fmt: skip


_COUNT = r"(?P<number>\d{1,3}(?:,\d{3})+|\d{1,9})(?![\w%％]|[.,:-]\d|\s?%)"
LIMITS = (
    re.compile(
        rf"\b(?:top|first|up to|at most|no more than|max(?:imum)?(?: of)?|limit(?:ed)? to|"
        rf"(?:die )?(?:ersten|obersten)|höchstens|maximal|les|los|las|i primi|au plus|como máximo)\s+{_COUNT}"
        r"(?!\s*(?:seconds?|minutes?|hours?|days?|weeks?|months?|ms|s|%|MB|GB|KB))",
        _I,
    ),
    re.compile(
        r"\b(?P<number>\d{1,6})(?=\s+(?:\w+\s+)?(?:most|largest|biggest|smallest|slowest|fastest|newest|"
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
    r"(?<![\w.,/:#+-])(?P<number>\d{1,3}(?:,\d{3})+|\d{1,9})\s+(?P<what>[^\W\d_][\w-]{1,30})(?!/)",
    _I,
)

# customers 17, 23 and 42
NUMBERED = re.compile(
    r"\b(?P<what>[a-z]{3,20}s)\s+(?P<values>\d{1,9}(?:\s?,\s?\d{1,9}){0,20},?\s+"
    r"(?:and|or|und|et|y)\s+\d{1,9})(?![\w%]|[.,:-]\d)",
    _I,
)
# What stands behind a number and is not counted by it.
NOT_COUNTED = frozenset(
    """and or with to in on at of for from by as than then per is are was were not no the a an
    und oder mit von bis zu ist sind et ou avec de des est y o con es""".split()
)
REPEATED = frozenset("time times mal fois veces volte".split())
