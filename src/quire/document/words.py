"""The words by which people say numbers, periods, places and names. A table, no logic to speak of.

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


_NUM = r"(?P<number>-?\d(?:[\d,.'\u00a0]{0,18}\d)?(?:[kKmM](?![a-zA-Z]))?)"

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

# Time

SINCE = {
    "since",
    "from",
    "after",
    "starting",
    "seit",
    "ab",
    "von",
    "depuis",
    "desde",
    "dal",
    "nach",
}
UNTIL = {"until", "till", "before", "by", "to", "through", "bis", "vor", "jusqu'au", "hasta"}
_DAY = r"\d{4}-\d\d-\d\d"
DATES = re.compile(
    rf"(?:\b(?P<bound>{'|'.join(sorted(SINCE | UNTIL | {'on', 'between', 'am', 'vom'}))})\s+)?"
    rf"(?<![\w-])(?P<day>{_DAY})(?![\w-])"
    rf"(?P<rest>\s*(?:to|until|till|and|through|bis|und|a|au|y|hasta|–|-|〜|～|到|至)\s*(?P<end>{_DAY})(?![\w-]))?",
    _I,
)
_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|"
    "januar|februar|märz|mai|juni|juli|oktober|dezember|janvier|février|mars|avril|juin|juillet|"
    "août|septembre|octobre|novembre|décembre|enero|febrero|marzo|abril|mayo|junio|julio|agosto|"
    "septiembre|octubre|noviembre|diciembre"
)
CALENDAR = (
    (
        re.compile(r"\b(?P<value>Q[1-4][ /-]?\d{4}|\d{4}[ /-]?Q[1-4]|Q[1-4])\b"),
        "quarter",
        "quarter",
    ),
    (
        re.compile(
            rf"\b(?P<value>(?:{_MONTHS})\s+(?:of\s+|de\s+)?\d{{4}}|\d{{4}}-(?:0[1-9]|1[0-2]))(?![\w-])",
            _I,
        ),
        "month",
        "month",
    ),
    (
        re.compile(
            r"\b(?:at|um|à|a las)\s+(?P<value>(?:[01]?\d|2[0-3]):[0-5]\d(?:\s?[ap]m)?|1?\d\s?[ap]m)\b",
            _I,
        ),
        "at",
        "time of day",
    ),
    (
        re.compile(
            r"\b(?:in|of|for|year|during|since|im Jahr|en)\s+(?P<value>(?:19|20)\d\d)(?![\w.,-]*\d)\b",
            _I,
        ),
        "year",
        "year",
    ),
)
_UNIT_STEMS = {
    "seconds": "seconds second sec secs s sekunden sekunde secondes seconde segundos segundo 秒 秒钟",
    "minutes": "minutes minute min mins minuten minutos minuto 分 分钟 分鐘 分間",
    "hours": "hours hour hrs h stunden stunde heures heure horas hora ore 小时 小時 時間",
    "days": "days day d tage tagen tag jours jour dias dia giorni giorno dagen 天 日 日間",
    "weeks": "weeks week wochen woche semaines semaine semanas semana settimane 周 週間",
    "months": "months month monate monaten monat mois meses mes mesi 个月 個月 か月 ヶ月",
    "quarters": "quarters quarter quartale quartal trimestres trimestre",
    "years": "years year jahre jahren jahr ans annees annee anos ano anni 年",
}
_UNIT_OF = {word: unit for unit, known in _UNIT_STEMS.items() for word in known.split()}


def unit_of_time(word: str) -> str | None:
    return _UNIT_OF.get(folded(word).strip("."))


_UNIT_WORD = r"(?P<unit>[^\W\d_]{1,12})"
# 过去7天: what counts comes at once behind the number.
_CJK_UNIT = r"(?P<unit>[秒分小時时天日周週月年个個か月ヶ钟鐘間]{1,3})"
_BACK = (
    r"last|past|previous|preceding|trailing|next|coming|recent|"
    r"letzten|letzte|letzter|vergangenen|nächsten|derniers|dernières|dernier|dernière|"
    r"últimos|últimas|último|última|ultimi|ultime|afgelopen"
)
PERIODS = (
    re.compile(rf"\b(?:{_BACK})\s+(?:(?P<number>\d{{1,6}})[\s-]*)?{_UNIT_WORD}(?!\w)", _I),
    re.compile(rf"\b(?P<number>\d{{1,6}})\s+(?:{_BACK})\s+{_UNIT_WORD}(?!\w)", _I),
    re.compile(
        rf"(?:过去|過去|最近|近|前|直近)\s*(?:の)?(?P<number>\d{{1,6}})\s*(?:の)?{_CJK_UNIT}"
    ),
)
_ALONE = {
    "today": 1, "daily": 1, "yesterday": 1, "weekly": 7, "fortnightly": 14, "monthly": 30,
    "quarterly": 90, "yearly": 365, "annual": 365, "heute": 1, "gestern": 1, "täglich": 1,
    "tägliche": 1, "täglichen": 1, "wöchentlich": 7, "wöchentliche": 7, "wöchentlichen": 7,
    "monatlich": 30, "monatliche": 30, "monatlichen": 30, "hier": 1, "quotidien": 1,
    "hebdomadaire": 7, "mensuel": 30, "ayer": 1, "diario": 1, "semanal": 7, "mensual": 30,
}  # fmt: skip
SINGLE = re.compile(rf"(?<![\w-])(?:{'|'.join(_ALONE)})(?![\w-])", _I)


def single_period(word: str) -> int:
    return _ALONE[word.lower()]


_SPAN_UNIT = rf"(?P<number>\d{{1,6}}(?:\.\d{{1,3}})?)\s*-?\s*{_UNIT_WORD}(?!\w)"
SPANS = (
    (
        re.compile(rf"\b(?:within|innerhalb von|en moins de)\s+{_SPAN_UNIT}", _I),
        "within",
        "time",
    ),
    (
        re.compile(rf"\b(?:older than|älter als|plus vieux que)\s+{_SPAN_UNIT}", _I),
        "older_than",
        "age",
    ),
    (
        re.compile(rf"\bfor\s+(?:more than|at least|longer than|over)\s+{_SPAN_UNIT}", _I),
        "lasting",
        "time",
    ),
    (
        re.compile(rf"\b(?:every|alle|toutes les|tous les|cada)\s+{_SPAN_UNIT}", _I),
        "every",
        "pause",
    ),
    (
        re.compile(rf"\btime-?out(?:\s+(?:of|after|is|:))?\s+{_SPAN_UNIT}", _I),
        "timeout",
        "time out",
    ),
)

# Numbers

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
        r"langsamsten|teuersten|plus)\b)",
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
_WORD = r"[^\W\d_][\w.-]{0,40}(?<![.-])"
REGION = re.compile(r"(?<![\w-])(?:us|eu|ap|ca|sa|me|af|il)-(?:gov-)?[a-z]{4,9}-\d(?![\w-])")
CHANNEL = re.compile(r"(?<![\w/#&])(?P<value>#[a-z][\w-]{1,60})(?![\w#])")
NOUN = re.compile(
    rf"\b(?P<noun>{'|'.join(sorted(NOUNS - {'machine', 'image', 'name', 'key', 'field', 'title', 'subject'}, key=len, reverse=True))})"
    r"\s*(?:=|:|\s)\s*(?P<value>(?-i:[A-Z][\w./-]{0,60}|[a-z]\w*(?=[-/_\d])[\w./-]{1,60}|\d+[A-Za-z-][\w-]{0,30}))",
    _I,
)
_PLURALS = "|".join(
    sorted(
        (re.sub("(?<![aeo])y$", "ie", noun) + "s" for noun in NOUNS | {"shop", "stock"}),
        key=len,
        reverse=True,
    )
)
_AND = r",?\s+(?:and|or|und|et|y)\s+"
# hosts web01, web02 and db01
LISTED = re.compile(
    rf"\b(?P<what>{_PLURALS})\s*:?\s+(?P<values>{_WORD}(?:\s?,\s?{_WORD}){{0,20}}{_AND}{_WORD})",
    _I,
)


def listed(values: str) -> list[str]:
    """`a, b and c`, one by one."""
    return re.split(rf"{_AND}|\s*,\s*", values)


FOR = re.compile(
    r"\b(?i:for)\s+(?:(?i:the)\s+)?(?P<value>[A-Z][\w&'’.-]{0,40}(?:\s+(?!(?:And|Or|In|At|On)\b)[A-Z][\w&'’.-]{0,40}){0,3})"
)
_CITY = r"(?-i:[A-Z][a-zà-ÿ]{2,30}(?:[ -][A-Z][a-zà-ÿ]{2,30}){0,2})"
PLACES = re.compile(rf"\bin\s+(?P<values>{_CITY}(?:,\s+{_CITY}){{0,20}}{_AND}{_CITY})")
PLACE = re.compile(
    r"\bin\s+(?P<value>(?-i:[A-Z][a-zà-ÿ]{2,30}(?:[ -][A-Z][a-zà-ÿ]{2,30}){0,2}))(?=\s*(?:[.,;:!?)]|$|and\b|for\b|over\b|at\b))",
    re.MULTILINE,
)
_DAYS = "monday tuesday wednesday thursday friday saturday sunday mondays fridays"
NOT_NAMES = frozenset(
    f"""{_DAYS} {_MONTHS.replace("|", " ")} i a an the each every all any it this that these those
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
    y o el los las un una en con es que ueber uber of-the time times date dates and-the percent""".split()
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
