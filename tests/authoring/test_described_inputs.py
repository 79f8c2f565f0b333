"""What is read out of descriptions, in several languages."""

from __future__ import annotations

import ast
import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.authoring.described_inputs import MOST, inferred
from quire.authoring.description import Input

# Each description, and the parameters it would have: `name: type = default`.
DESCRIPTIONS = {
    # limits and which side of them is meant
    "Alert when CPU is above 80%": ["threshold: float = 80.0 above"],
    "Alert when CPU is above 80% and memory above 90%": [
        "cpu_threshold: float = 80.0 above",
        "memory_threshold: float = 90.0 above",
    ],
    "Warn if free space drops below 5 GB": ["threshold: float = 5.0 below"],
    "Alert below -5 °C or above 35 °C": [
        "minimum: float = -5.0 below",
        "maximum: float = 35.0 above",
    ],
    "Check that the site answers in under 500 ms": ["threshold: float = 500.0 above or at"],
    "Make sure that at least 14 days are left": ["threshold: float = 14.0 below"],
    "Flag orders with at least 20 items": ["threshold: int = 20 above or at"],
    "Flag orders with 20 or more items": ["threshold: int = 20 above or at"],
    "Check that fewer than 5 jobs failed": ["threshold: int = 5 above or at"],
    "Find invoices over $1,500": ["threshold: float = 1500.0 above"],
    "Warn if spending exceeds €1,200.50": ["threshold: float = 1200.5 above"],
    "Fail if coverage < 85.5%": ["threshold: float = 85.5 below"],
    "Rows with score >= 0.75": ["threshold: float = 0.75 above or at"],
    "Alert when more than 3k users are online": ["threshold: int = 3000 above"],
    # periods and dates
    "Sales of the last 7 days": ["days: int = 7"],
    "Errors in the past 24 hours": ["hours: int = 24"],
    "What changed last month": ["months: int = 1"],
    "A weekly summary of incidents": ["days: int = 7"],
    "What happened yesterday": ["days: int = 1"],
    "Orders since 2026-01-01": ["since: date = date(2026, 1, 1)"],
    "Orders until 2026-03-31": ["until: date = date(2026, 3, 31)"],
    "Prices from 2026-01-01 to 2026-03-31": [
        "since: date = date(2026, 1, 1)",
        "until: date = date(2026, 3, 31)",
    ],
    "Report on 2026-02-28": ["day: date = date(2026, 2, 28)"],
    "Nothing happened on 2026-02-30": [],
    "Revenue in Q3 2026": ["quarter: str = 'Q3 2026'"],
    "Rainfall in March 2026": ["month: str = 'March 2026'"],
    "Totals of 2025": ["year: int = 2025"],
    "Send it at 09:30": ["at: str = '09:30'"],
    "Delete files older than 30 days": ["older_than_days: int = 30 above"],
    "Poll the queue every 5 minutes": ["every_minutes: int = 5"],
    "Fetch it with a timeout of 30 seconds": ["timeout_seconds: int = 30"],
    # limits of number
    "Show the top 10 customers": ["limit: int = 10 most"],
    "List the 5 slowest queries": ["limit: int = 5 most"],
    "Show at most 1,000 rows": ["limit: int = 1000 most"],
    # places
    "Read https://api.example.com/v1/health?x=1": [
        "url: str = 'https://api.example.com/v1/health?x=1'"
    ],
    "Compare https://a.example.org/ and https://b.example.org/.": [
        "urls: list[str] = ['https://a.example.org/', 'https://b.example.org/']"
    ],
    "Ping db1.example.org": ["host: str = 'db1.example.org'"],
    "Ping 10.0.0.5 and localhost:8080": ["hosts: list[str] = ['10.0.0.5', 'localhost:8080']"],
    "Sum up data/orders.csv": ["path: str = 'data/orders.csv' file"],
    "Count words in ~/notes/today": ["path: str = '~/notes/today'"],
    "Tidy /srv/uploads/": ["folder: str = '/srv/uploads/'"],
    "Count the lines of src/**/*.py": ["pattern: str = 'src/**/*.py'"],
    "Mail it to ada@example.org": ["recipient: str = 'ada@example.org'"],
    "Mail it to ada@example.org and bob@example.org": [
        "recipients: list[str] = ['ada@example.org', 'bob@example.org']"
    ],
    "Post it to #ops": ["channel: str = '#ops'"],
    "Instances in eu-west-1": ["region: str = 'eu-west-1'"],
    "The weather in Berlin": ["place: str = 'Berlin'"],
    # words
    'Find lines containing "ERROR: disk"': ["pattern: str = 'ERROR: disk'"],
    "Issues labelled 'needs work'": ["label: str = 'needs work'"],
    "Rows of region “north”": ["region: str = 'north'"],
    "A report for Contoso Ltd": ["name: str = 'Contoso Ltd'"],
    "Invoices of customer ACME-7": ["customer: str = 'ACME-7'"],
    "Open issues of repo octo/hello": ["repository: str = 'octo/hello'"],
    # numbers that count or set something
    "Download 3 images": ["images: int = 3"],
    "Resize to width 800": ["width: int = 800"],
    "Train with batch size 32 and seed 42": ["batch_size: int = 32", "seed: int = 42"],
    "The p95 of the latency": ["percentile: float = 95.0"],
    "Split $250 among friends": ["amount: float = 250.0"],
    "Flag reviews with a score threshold of 0.8": ["threshold: float = 0.8 above"],
    "Alert when it drops below the threshold of 5": ["threshold: int = 5 below"],
    "Keep backups for 14 days": ["days: int = 14"],
    "Retry with a backoff of 1.5 seconds": ["seconds: float = 1.5"],
    "Ping hosts web01, web02 and db01": ["hosts: list[str] = ['web01', 'web02', 'db01']"],
    "Sales of the regions eu, us and apac": ["regions: list[str] = ['eu', 'us', 'apac']"],
    "Weather in Berlin, Paris and New York": [
        "places: list[str] = ['Berlin', 'Paris', 'New York']"
    ],
    "Count customers who complain and leave": [],
    "Find regions that grow and shrink": [],
    "Generate at temperature 0.7": ["temperature: float = 0.7"],
    # switches
    "Remove stale branches, dry run": ["dry_run: bool = True dry"],
    "Search recursively and ignore case": ["recursive: bool = True", "ignore_case: bool = True"],
    # between two of them
    "Salaries between 40,000 and 60,000 EUR": [
        "minimum: float = 40000.0 from",
        "maximum: float = 60000.0 to",
    ],
    "Temperatures between -5 and 35": ["minimum: int = -5 from", "maximum: int = 35 to"],
    "Umsatz zwischen 1.000 und 2.500 €": [
        "minimum: float = 1000.0 from",
        "maximum: float = 2500.0 to",
    ],
    "Servers with load > 0.7 and < 0.9": ["minimum: float = 0.7 from", "maximum: float = 0.9 to"],
    "CPU above 80% or below 90%": [
        "cpu_threshold: float = 80.0 above",
        "minimum: float = 90.0 below",
    ],
    "Prices from 2020 to 2024": ["first_year: int = 2020", "last_year: int = 2024"],
    "Kunden mit Umsatz über 1.000 €": ["threshold: float = 1000.0 above"],
    "Customers who paid more than 1.000 kg": ["threshold: float = 1.0 above"],
    "Hosts above 80% for more than 5 minutes": [
        "threshold: float = 80.0 above",
        "lasting_minutes: int = 5",
    ],
    "Bill customers 17, 23 and 42": ["customers: list[int] = [17, 23, 42]"],
    "Try it 3 times, from 2 in the morning": ["times: int = 3"],
    "The 2nd report of 5/6/2026 or 1/2": [],
    # other languages
    "Prüfe, ob die Last in den letzten 24 Stunden über 85 % lag": [
        "hours: int = 24",
        "threshold: float = 85.0 above",
    ],
    "Umsatz mehr als 1.500,50 € für Kunde Müller": [
        "threshold: float = 1500.5 above",
        "customer: str = 'Müller'",
    ],
    "Alerter si l'espace est inférieur à 10 %": ["threshold: float = 10.0 below"],
    "Informe de los últimos 30 días del cliente Acme": [
        "days: int = 30",
        "customer: str = 'Acme'",
    ],
    "过去7天CPU使用率高于80%的主机": ["days: int = 7", "threshold: float = 80.0 above"],
    "直近30日の売上上位5件": ["days: int = 30", "limit: int = 5 most"],
    # periods, with the word for last before the number, behind it, or behind the unit
    "Clients actifs des 30 derniers jours": ["days: int = 30"],
    "Erreurs des 24 dernières heures": ["hours: int = 24"],
    "Ventes des 3 derniers mois": ["months: int = 3"],
    "Ventes des derniers 3 mois": ["months: int = 3"],
    "Commandes au-dessus de 100 euros sur les 30 derniers jours": [
        "threshold: float = 100.0 above",
        "days: int = 30",
    ],
    "Les 10 dernières commandes des 7 derniers jours": ["limit: int = 10 most", "days: int = 7"],
    "Factures des 100 derniers clients": ["limit: int = 100 most"],
    "Commandes passées sur les 30 jours passés": ["days: int = 30"],
    "Ventes du mois dernier": ["months: int = 1"],
    "Nouveaux clients sur 30 jours": ["days: int = 30"],
    "Fichiers plus anciens que 30 jours": ["older_than_days: int = 30 above"],
    "Umsatz der letzten 30 Tage": ["days: int = 30"],
    "Umsatz der 30 letzten Tage": ["days: int = 30"],
    "Fehler letzte 24 Stunden": ["hours: int = 24"],
    "Rechnungen des letzten Jahres": ["years: int = 1"],
    "Bestellungen über 100 letzten Monat": ["threshold: int = 100 above", "months: int = 1"],
    "Ventas de los 30 últimos días": ["days: int = 30"],
    "Clientes de los 12 meses anteriores": ["months: int = 12"],
    "Ventas de la semana pasada": ["weeks: int = 1"],
    "Show orders of the 3 last weeks": ["weeks: int = 3"],
    "Orders above 100 last month": ["threshold: int = 100 above", "months: int = 1"],
    "Top 10 last week": ["limit: int = 10 most", "weeks: int = 1"],
    # a number with a space for its thousands, which may be one that does not break
    "Ventes supérieures à 1000 €": ["threshold: float = 1000.0 above"],
    "Ventes supérieures à 1 000 €": ["threshold: float = 1000.0 above"],
    "Ventes supérieures à 1\u00a0000\u00a0€": ["threshold: float = 1000.0 above"],
    "Ventes supérieures à 1\u202f234\u202f567,50 €": ["threshold: float = 1234567.5 above"],
    "Scores inférieurs à 50": ["threshold: int = 50 below"],
    "Prix dépassant 2 000 euros": ["threshold: float = 2000.0 above"],
    "Factures entre 1 000 et 2 500 €": [
        "minimum: float = 1000.0 from",
        "maximum: float = 2500.0 to",
    ],
    "Les 1 000 premiers clients": ["limit: int = 1000 most"],
    "Un virement de 1 000 €": ["amount: float = 1000.0"],
    "Umsatz über 10 000 €": ["threshold: float = 10000.0 above"],
    "Ventas superiores a 1 000 €": ["threshold: float = 1000.0 above"],
    "Show 1 000 orders": ["orders: int = 1000"],
    # the limit itself, too
    "Flag orders with at least 3 items": ["threshold: int = 3 above or at"],
    "Find customers with 20 or more orders": ["threshold: int = 20 above or at"],
    "Alert when the disk is 90% or more": ["threshold: float = 90.0 above or at"],
    "Find orders with no less than 3 items": ["threshold: int = 3 above or at"],
    "Find orders with at most 3 items": ["threshold: int = 3 below or at"],
    "Find orders of 3 items or less": ["threshold: int = 3 below or at"],
    "List files up to 5 MB": ["threshold: float = 5.0 below or at"],
    "Find users with 3+ logins": ["threshold: int = 3 above or at"],
    "Alert if at most 3 hosts are up": ["threshold: int = 3 below or at"],
    "Customers who bought at least 3 items": ["threshold: int = 3 above or at"],
    "Orders of at least $50": ["threshold: float = 50.0 above or at"],
    "Rows with score >= 0.75 and <= 0.9": ["minimum: float = 0.75 from", "maximum: float = 0.9 to"],
    "Commandes d'au moins 3 articles": ["threshold: int = 3 above or at"],
    "Commandes de 100 euros ou plus": ["threshold: float = 100.0 above or at"],
    "Montant supérieur ou égal à 1 000 €": ["threshold: float = 1000.0 above or at"],
    "Kunden, die mindestens 3 Bestellungen haben": ["threshold: int = 3 above or at"],
    "Bestellungen mit höchstens 3 Artikeln": ["threshold: int = 3 below or at"],
    "Bestellungen von 100 € oder mehr": ["threshold: float = 100.0 above or at"],
    "Clientes con al menos 3 pedidos": ["threshold: int = 3 above or at"],
    "Pedidos de como máximo 100 euros": ["threshold: float = 100.0 below or at"],
    "Show up to 20 rows": ["limit: int = 20 most"],
    "Zeige höchstens 20 Zeilen": ["limit: int = 20 most"],
    # what is demanded is looked for on the other side, with the limit on the other side, too
    "The score must be at least 3": ["threshold: int = 3 below"],
    "The score must be above 3": ["threshold: int = 3 below or at"],
    "The score must be at most 3": ["threshold: int = 3 above"],
    "The score must be below 3": ["threshold: int = 3 above or at"],
    "The score must not exceed 80": ["threshold: int = 80 above"],
    "CPU should never drop below 10%": ["threshold: float = 10.0 below"],
    "Make sure no order is above 100": ["threshold: int = 100 above"],
    "Check that at most 5 jobs failed": ["threshold: int = 5 above"],
    "Alert unless at least 3 hosts are up": ["threshold: int = 3 below"],
    "Alert if not above 80": ["threshold: int = 80 below or at"],
    "Make sure the load is between 18 and 25": [
        "minimum: int = 18 below",
        "maximum: int = 25 above",
    ],
    "Die CPU darf 80 % nicht überschreiten": ["threshold: float = 80.0 above"],
    "Prüfe, dass mindestens 3 Server laufen": ["threshold: int = 3 below"],
    "Vérifier que la latence ne dépasse pas 500 ms": ["threshold: float = 500.0 above"],
    # two limits: on two subjects, on the same, and a further condition
    "Alert when cpu is at least 80% or memory above 90%": [
        "cpu_threshold: float = 80.0 above or at",
        "memory_threshold: float = 90.0 above",
    ],
    "Alert when latency is above 500 ms or the error rate above 5%": [
        "latency_threshold: float = 500.0 above",
        "error_threshold: float = 5.0 above",
    ],
    "Alert if cpu below 10% or cpu above 90%": [
        "minimum: float = 10.0 below",
        "maximum: float = 90.0 above",
    ],
    "Avisar cuando la CPU supere 80% o la memoria supere 90%": [
        "cpu_threshold: float = 80.0 above",
        "memoria_threshold: float = 90.0 above",
    ],
    "Keep at most 5 backups": ["limit: int = 5 most"],
    "Rows where price > 5 and price < 30": ["minimum: int = 5 from", "maximum: int = 30 to"],
    "Prices between 10 and 20 or above 50": [
        "minimum: int = 10 from",
        "maximum: int = 20 to",
        "threshold: int = 50 above",
    ],
    "List files over 10 MB older than 30 days": [
        "threshold: float = 10.0 above",
        "older_than_days: int = 30 aside",
    ],
    "Report invoices between $1,500 and $2,000 older than 90 days": [
        "minimum: float = 1500.0 from",
        "maximum: float = 2000.0 to",
        "older_than_days: int = 90 aside",
    ],
    "List orders over $100 with more than 5 items": [
        "threshold: float = 100.0 above",
        "items_threshold: int = 5 aside",
    ],
    "Invoices overdue by more than 90 days over $1,500": [
        "overdue_threshold: float = 90.0 aside",
        "threshold: float = 1500.0 above",
    ],
    "Dateien über 10 MB älter als 30 Tage": [
        "threshold: float = 10.0 above",
        "older_than_days: int = 30 aside",
    ],
    "Fichiers de plus de 10 Mo datant de plus de 30 jours": [
        "threshold: float = 10.0 above",
        "older_than_days: int = 30 aside",
    ],
    "Archivos de más de 10 MB más antiguos que 30 días": [
        "threshold: float = 10.0 above",
        "older_than_days: int = 30 aside",
    ],
    # lists of names, and what only looks like one
    "Sales of the regions eu and us": ["regions: list[str] = ['eu', 'us']"],
    "Compare regions north and south": ["regions: list[str] = ['north', 'south']"],
    "Regions (north, south, east)": ["regions: list[str] = ['north', 'south', 'east']"],
    'Rows of regions "north" and "south"': ["regions: list[str] = ['north', 'south']"],
    "Sales in countries de, fr and it": ["countries: list[str] = ['de', 'fr', 'it']"],
    "Instances across regions eu-west-1 and us-east-1": [
        "regions: list[str] = ['eu-west-1', 'us-east-1']"
    ],
    "Instances in eu-west-1 and us-east-1": ["regions: list[str] = ['eu-west-1', 'us-east-1']"],
    "Copy from us-east-1 to eu-west-1": [
        "region: str = 'us-east-1'",
        "region_2: str = 'eu-west-1'",
    ],
    "Prüfe die Server db01 und db02": ["servers: list[str] = ['db01', 'db02']"],
    "Umsatz der Regionen Nord und Süd": ["regions: list[str] = ['Nord', 'Süd']"],
    "Ventes des régions nord et sud": ["regions: list[str] = ['nord', 'sud']"],
    "Vérifie les serveurs web01 et web02": ["servers: list[str] = ['web01', 'web02']"],
    "Ventas de las regiones norte y sur": ["regions: list[str] = ['norte', 'sur']"],
    "Météo à Paris et Lyon": ["places: list[str] = ['Paris', 'Lyon']"],
    "Rechnungen der Kunden 17, 23 und 42": ["kunden: list[int] = [17, 23, 42]"],
    "Revenue of customer ACME and Contoso": ["customers: list[str] = ['ACME', 'Contoso']"],
    "Ping hosts web01, web02, then restart them": ["hosts: list[str] = ['web01', 'web02']"],
    "Orders with statuses pending and failed": ["statuses: list[str] = ['pending', 'failed']"],
    "Clean the tables orders, customers and order_items": [
        "tables: list[str] = ['orders', 'customers', 'order_items']"
    ],
    "Prüfe Server db01 und Datenbank pg1": ["server: str = 'db01'", "database: str = 'pg1'"],
    "Umsatz für Kunde Müller und Rechnungen": ["customer: str = 'Müller'"],
    "Report on customer ACME and send it": ["customer: str = 'ACME'"],
    "Compare orders and returns": [],
    "Move files and folders": [],
    "Count users, orders and returns": [],
    "Delete tags added and removed": [],
    "List branches merged and deleted": [],
    "Alert when servers crash and restart": [],
    "Alert for hosts up and down": [],
    "Users come and go": [],
    "Countries in and around Europe": [],
    # nothing to see
    "Report the health of this machine": [],
    "Compare v1.2.3 to v1.3.0 of the S3 client for Python 3": [],
    "検査": [],
    "-rf /": [],
}


@pytest.mark.parametrize(("description", "want"), DESCRIPTIONS.items(), ids=list(DESCRIPTIONS))
def test_inputs_of_a_description(description: str, want: list[str]) -> None:
    found = inferred(description)
    assert [
        f"{item.name}: {item.type} = {_plain(item.source)} {_role(item)}".strip() for item in found
    ] == want
    for item in found:
        assert item.said in " ".join(description.split())


def _role(item: Input) -> str:
    return f"{item.role} or at" if item.edge and item.role in ("above", "below") else item.role


def _plain(source: str) -> str:
    return source if source.startswith("date(") else repr(ast.literal_eval(source))


def test_they_come_in_the_order_of_the_description() -> None:
    text = (
        "For Ada: the top 3 files over 10 MB in /srv/x/ of the last 2 days, sent to a@example.org"
    )
    assert [item.name for item in inferred(text)] == [
        "name",
        "limit",
        "threshold",
        "folder",
        "days",
        "recipient",
    ]


def test_the_same_said_twice_is_one_and_two_things_are_two() -> None:
    twice = inferred("Look at the last 7 days, and again at the last 7 days")
    assert [item.name for item in twice] == ["days"]
    two = inferred("Compare the last 7 days with the previous 14 days")
    assert [(item.name, item.source) for item in two] == [("days", "7"), ("days_2", "14")]


def test_names_that_mean_something_else_are_not_taken() -> None:
    assert [item.name for item in inferred("Get 5 items", frozenset({"items"}))] == ["items_count"]
    for text in ("Try 3 lambda and 4 print", "Use 2 class"):
        for item in inferred(text):
            assert not keyword.iskeyword(item.name)
            assert item.name not in ("print", "lambda", "class")


def test_there_are_never_too_many() -> None:
    names = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay", "kea", "lark")
    text = ", ".join(f"{n} {name}s" for n, name in enumerate(names * 3, 2))
    assert len(inferred(text)) == MOST


@given(st.text(max_size=400))
def test_any_text_gives_a_cell_that_python_can_read(text: str) -> None:
    line = " ".join(text.split())
    for item in inferred(line):
        (statement,) = ast.parse(item.line).body
        assert isinstance(statement, ast.AnnAssign)
        assert item.name.isidentifier()
        assert item.name.isascii()


PIECES = """above at least 80% 7 days last "x" /a/b.csv a@b.de in for Ada 2026-01-01 to top 5 $ 1,5
    über GB https://x.de dry run 天 高于 10 - . , : p95 region #ops"""
WORDS = st.sampled_from(PIECES.split())


@given(st.lists(WORDS, max_size=30).map(" ".join))
def test_any_mixture_of_words_does(line: str) -> None:
    found = inferred(line)
    assert len({item.name for item in found}) == len(found)
    for item in found:
        ast.parse(item.line)


@pytest.mark.parametrize(
    "part",
    [
        "1,",
        "a.",
        "/a",
        "for A",
        "1 000 ",
        "3 a or ",
        "regions a, ",
        "not be ",
        '"',
        "above 1",
        "2026-01-01 to ",
        "9",
    ],
)
def test_long_texts_take_no_longer_than_they_must(part: str) -> None:
    """Nothing here backtracks: this would not end otherwise."""
    assert len(inferred(part * 100_000)) <= MOST
