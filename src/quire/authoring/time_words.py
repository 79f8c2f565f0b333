"""The words by which people say dates, periods and spans of time. A table, as `words`."""

# Tables of words as people write them: long lines, and signs of other scripts that are meant.
# ruff: noqa: E501, RUF001

from __future__ import annotations

import re

from .place_words import MONTHS, folded

_I = re.IGNORECASE

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
CALENDAR = (
    (
        re.compile(r"\b(?P<value>Q[1-4][ /-]?\d{4}|\d{4}[ /-]?Q[1-4]|Q[1-4])\b"),
        "quarter",
        "quarter",
    ),
    (
        re.compile(
            rf"\b(?P<value>(?:{MONTHS})\s+(?:of\s+|de\s+)?\d{{4}}|\d{{4}}-(?:0[1-9]|1[0-2]))(?![\w-])",
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
    "hours": "hours hour hrs h std stunden stunde heures heure horas hora ore 小时 小時 時間",
    "days": "days day d tage tagen tag jours jour j dias dia giorni giorno dagen 天 日 日間",
    "weeks": "weeks week wochen woche semaines semaine semanas semana settimane 周 週間",
    "months": "months month monate monaten monat monats mois meses mes mesi 个月 個月 か月 ヶ月",
    "quarters": "quarters quarter quartale quartal trimestres trimestre",
    "years": "years year jahre jahren jahr jahres ans annees annee anos ano anni 年",
}
_UNIT_OF = {word: unit for unit, known in _UNIT_STEMS.items() for word in known.split()}


def unit_of_time(word: str) -> str | None:
    return _UNIT_OF.get(folded(word).strip("."))


_UNIT_WORD = r"(?P<unit>[^\W\d_]{1,12})"
# 过去7天: what counts comes at once behind the number.
_CJK_UNIT = r"(?P<unit>[秒分小時时天日周週月年个個か月ヶ钟鐘間]{1,3})"
# Of several: these may stand behind the number. 30 derniers jours
_BACK_MANY = (
    r"last|past|previous|preceding|trailing|next|coming|recent|"
    r"letzten|letzte|vergangenen|vergangene|vorigen|nächsten|nächste|kommenden|"
    r"derniers|dernières|précédents|précédentes|prochains|prochaines|"
    r"últimos|últimas|ultimos|ultimas|próximos|próximas|ultimi|ultime|afgelopen|laatste"
)
_BACK = (
    rf"{_BACK_MANY}|letzter|letztes|letztem|vergangener|vergangenes|voriger|voriges|nächster|"
    r"nächstes|dernier|dernière|prochain|prochaine|último|última|próximo|próxima|ultimo|ultima"
)
# Les 30 jours passés, la semana pasada
_BACK_AFTER = (
    r"derniers?|dernières?|passée?s?|précédente?s?|écoulée?s?|prochaine?s?|"
    r"pasad[oa]s?|anterior(?:es)?|próxim[oa]s?"
)
# One of a unit is counted by no number before it: "above 100 last month".
_ONE = (
    r"second|minute|hour|day|week|month|quarter|year|Sekunde|Stunde|Tag|Woche|Monat|Quartal|Jahr|"
    r"seconde|heure|jour|semaine|trimestre|an|année|segundo|minuto|hora|día|semana|mes|año"
)
PERIODS = (
    re.compile(
        rf"\b(?P<number>\d{{1,6}})\s+(?:{_BACK_MANY})\s+(?!(?:{_ONE})(?!\w)){_UNIT_WORD}(?!\w)", _I
    ),
    re.compile(rf"\b(?:{_BACK})\s+(?:(?P<number>\d{{1,6}})[\s-]*)?{_UNIT_WORD}(?!\w)", _I),
    re.compile(
        rf"\b(?:(?P<number>\d{{1,6}})\s+(?!(?:{_ONE})(?!\w)))?{_UNIT_WORD}\s+"
        rf"(?:{_BACK_AFTER})(?!\w)",
        _I,
    ),
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
        re.compile(
            rf"\b(?:within|innerhalb von|binnen|en moins de|dentro de|en menos de)\s+{_SPAN_UNIT}",
            _I,
        ),
        "within",
        "time",
    ),
    (
        re.compile(
            rf"\b(?:older than|ältere?[rns]? als|(?:datant|vieux|vieilles?|âgée?s?) de plus de|"
            rf"plus (?:vieux|vieilles?|anciens?|anciennes?|âgée?s?) (?:que|de)|"
            rf"(?:con )?más (?:antigu|viej)[oa]s? (?:que|de))\s+{_SPAN_UNIT}",
            _I,
        ),
        "older_than",
        "age",
    ),
    (
        re.compile(
            rf"\b(?:for\s+(?:more than|at least|longer than|over)|seit\s+(?:mehr als|über)|"
            rf"(?:depuis|pendant)\s+plus\s+de|(?:durante|desde hace)\s+más\s+de)\s+{_SPAN_UNIT}",
            _I,
        ),
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
