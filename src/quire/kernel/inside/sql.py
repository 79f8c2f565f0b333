"""SQL steps: the text of a `%%sql` cell, run on the database that `QUIRE_SQL` names.

An address such as `sqlite:///data.db`, `sqlite://` (in memory) or `postgresql://…`: SQLite is part
of Python; for any other the module of that database (DB-API) has to be installed where tasks run.
"""

from __future__ import annotations

import importlib
import os
import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

ROWS = 1_000  # rows of a result that are shown
# Which module speaks to a database, and whether it takes the address as it is.
_MODULES = {
    "postgresql": (("psycopg", "psycopg2"), True),
    "postgres": (("psycopg", "psycopg2"), True),
    "mysql": (("pymysql", "MySQLdb"), False),
    "mariadb": (("pymysql", "MySQLdb"), False),
    "duckdb": (("duckdb",), False),
}
# Connections of this process, by their address: a temporary table is there in the next step too.
_open: dict[str, Any] = {}
_own: set[str] = set()  # those for which something is set that only they have
# What a statement may set for its connection alone, which nothing tells of afterwards.
_SETS = re.compile(r"\bpragma\b", re.IGNORECASE)


class Rows(list[dict[str, Any]]):
    """The rows of a result, each by its columns; shown as a table."""

    columns: list[str]

    def _repr_markdown_(self) -> str:
        shown = [[_cell(row[name]) for name in self.columns] for row in self[:ROWS]]
        lines = [[_cell(name) for name in self.columns], ["---"] * len(self.columns), *shown]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def __repr__(self) -> str:
        return f"{len(self):,} rows of {', '.join(self.columns)}"


def _cell(value: Any) -> str:
    text = "" if value is None else " ".join(str(value).split())
    for mark in "\\`*_[]<>|#~":
        text = text.replace(mark, "\\" + mark)
    return text or " "


def install(shell: Any) -> None:
    def sql(line: str, cell: str) -> Any:
        """Run SQL; `%%sql NAME` keeps the rows of the last statement under a name."""
        name = line.strip()
        found = run(cell)
        if name:
            if not name.isidentifier():
                raise ValueError(f"{name!r} cannot be the name of a result")
            shell.user_ns[name] = found
        return found

    shell.register_magic_function(sql, "cell", "sql")


def run(text: str) -> Rows | None:
    """Every statement in order, in one transaction; the rows of the last one that has any."""
    import sqlite3

    key, connection = _connection()
    cursor = connection.cursor()
    found: Rows | None = None
    try:
        for statement in _statements(text, sqlite3.complete_statement):
            cursor.execute(statement)
            if cursor.description:
                found = Rows()
                found.columns = [str(column[0]) for column in cursor.description]
                rows = cursor.fetchall()
                found.extend(dict(zip(found.columns, row, strict=True)) for row in rows)
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    finally:
        cursor.close()
        if isinstance(connection, sqlite3.Connection):
            _let_go(key, connection, text)
    return found


def _let_go(key: str, connection: Any, text: str) -> None:
    """Close a file of SQLite, unless the connection holds what the file does not: while it is open
    for writing, there is no way back to before a step and none on with it."""
    if _SETS.search(text):
        _own.add(key)
    if key in _own or connection.execute("select 1 from sqlite_temp_master").fetchone():
        return
    found = list(connection.execute("pragma database_list"))
    files = {name: file for _, name, file in found if name != "temp"}
    if files.get("main") and len(files) == 1:
        _open.pop(key).close()


def _statements(text: str, complete: Any) -> list[str]:
    """The text at each `;` that ends a statement: not inside quotes, comments or a trigger."""
    out: list[str] = []
    current = ""
    for piece in text.split(";"):
        current += piece + ";"
        if complete(current):
            out.append(current.rstrip(";"))
            current = ""
    rest = current.removesuffix(";")
    return [part for part in (*out, rest) if _says(part)]


def _says(statement: str) -> bool:
    lines = (line.partition("--")[0].strip() for line in statement.split("\n"))
    return any(lines)


def _connection() -> tuple[str, Any]:
    address = os.environ.get("QUIRE_SQL", "")
    if not address:
        raise RuntimeError(
            "there is no database for SQL steps: set `sql` in quire.toml, or QUIRE_SQL, "
            "to an address such as sqlite:///data.db"
        )
    key = f"{os.getpid()} {address}"
    if key not in _open:
        _open[key] = _connected(address)
    return key, _open[key]


def _connected(address: str) -> Any:
    scheme = address.partition(":")[0].partition("+")[0].lower()
    if scheme == "sqlite":
        import sqlite3

        path = unquote(address.partition("://")[2]).removeprefix("/").partition("?")[0]
        return sqlite3.connect(path or ":memory:")
    if scheme not in _MODULES:
        known = ", ".join(["sqlite", *_MODULES])
        raise RuntimeError(f"no database is known by {scheme}://; known are {known}")
    names, whole = _MODULES[scheme]
    module = _module(names)
    plain = f"{scheme}:{address.partition(':')[2]}"
    if whole:
        return module.connect(plain)
    parts = urlsplit(plain)
    if scheme == "duckdb":
        return module.connect(parts.path.removeprefix("/") or ":memory:")
    wanted: dict[str, Any] = dict(parse_qsl(parts.query))
    wanted.update(host=parts.hostname or "localhost", database=parts.path.strip("/"))
    if parts.username:
        wanted.update(user=unquote(parts.username), password=unquote(parts.password or ""))
    if parts.port:
        wanted["port"] = parts.port
    return module.connect(**wanted)


def _module(names: tuple[str, ...]) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise RuntimeError(f"install {names[0]} where tasks run, to talk to this database")
