"""`glue`: a value of a cell becomes a named result of its run."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

TABLE_ROWS = 1_000
VALUE_LIMIT = 8_000_000

_MIME = "application/vnd.quire.result+json"
_SCRAP = "application/scrapbook.scrap.json+json"


def glue(name: str, value: Any, *, display: bool = False) -> None:
    """Give the run a named result: a JSON value, a data frame or a figure.

    `display=True` also shows the value in the notebook.
    """
    if not isinstance(name, str) or not name:
        raise TypeError("a result needs a name, a non-empty string")
    home = (getattr(sys.modules.get("_quire_inside"), "context", None) or {}).get("pid")
    if home not in (None, os.getpid()):
        raise RuntimeError(
            f"glue({name!r}) was called in a child process, where nobody hears it: "
            "return the value and glue it in the cell"
        )
    bundle, metadata = _bundle(name, value)
    from IPython.display import display as show

    show(bundle, raw=True, metadata=metadata)
    if display and "scrapbook" in metadata and metadata["scrapbook"]["data"]:
        show(value)


def _bundle(name: str, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    table = _table(value)
    if table is not None:
        text = f"{name}: {table['kept']:,} of {table['total']:,} rows"
        payload: dict[str, Any] = {"name": name, "kind": "table", "value": table}
        return {_MIME: payload, "text/plain": text}, {"scrapbook": _note(name, False)}
    plain = _plain(value)
    try:
        size = len(json.dumps(plain, allow_nan=True))
    except (TypeError, ValueError):
        return _picture(name, value)
    if size > VALUE_LIMIT:
        raise ValueError(
            f"the result {name!r} is {size:,} bytes of JSON; at most {VALUE_LIMIT:,} are kept. "
            "Write it to a file and glue the path."
        )
    payload = {"name": name, "data": plain, "encoder": "json", "version": 1}
    return {_SCRAP: payload}, {"scrapbook": _note(name, True)}


def _note(name: str, data: bool) -> dict[str, Any]:
    return {"name": name, "data": data, "display": not data}


def _plain(value: Any) -> Any:
    """Numbers of numpy and the like as Python's own; containers of them too."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return [_plain(item) for item in sorted(value, key=repr)]
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if hasattr(value, "tolist") and type(value).__module__.split(".")[0] == "numpy":
        return _plain(value.tolist())
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value


def _table(value: Any) -> dict[str, Any] | None:
    """A data frame of pandas or polars as columns, types and a bounded number of rows."""
    if type(value).__name__ == "Series" and hasattr(value, "to_frame"):
        value = value.to_frame()
    if type(value).__name__ != "DataFrame" or not hasattr(value, "columns"):
        return None
    total = len(value)
    head = _with_index(value.head(TABLE_ROWS))
    if hasattr(head, "to_dicts"):  # polars
        rows = [list(row.values()) for row in head.to_dicts()]
        types = [str(kind) for kind in head.dtypes]
    else:
        rows = json.loads(head.to_json(orient="values", date_format="iso", default_handler=str))
        types = [str(kind) for kind in head.dtypes]
    columns = [str(column) for column in head.columns]
    table: dict[str, Any] = {
        "columns": columns,
        "types": types,
        "rows": rows,
        "total": total,
        "kept": len(rows),
    }
    plain: dict[str, Any] = json.loads(json.dumps(table, default=str))
    return plain


def _with_index(frame: Any) -> Any:
    """The labels of the rows as columns, where they say more than the number of the row."""
    index = getattr(frame, "index", None)
    if index is None or not hasattr(frame, "reset_index"):
        return frame  # polars has none
    plain = type(index).__name__ == "RangeIndex" and index.name is None
    if plain and index.start == 0 and index.step == 1:
        return frame
    names = [
        str(name) if name is not None and name not in frame.columns else f"index_{level}"
        for level, name in enumerate(index.names)
    ]
    return frame.reset_index(names=names if len(names) > 1 else names[0])


def _picture(name: str, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Anything IPython can show: a figure, an image, an object with rich representations."""
    from IPython import get_ipython

    shell = get_ipython()
    data, metadata = shell.display_formatter.format(value) if shell else ({}, {})
    if set(data) <= {"text/plain"}:
        raise TypeError(
            f"cannot glue {name!r}: a {type(value).__name__} is neither JSON, a data frame nor "
            "something with a picture. Glue the parts that matter."
        ) from None
    figure = sys.modules.get("matplotlib.pyplot")
    if figure is not None and type(value).__name__ == "Figure":
        figure.close(value)  # it has been shown; the end of the cell must not show it again
    from base64 import b64encode

    data = {m: b64encode(v).decode() if isinstance(v, bytes) else v for m, v in data.items()}
    data[_MIME] = {"name": name, "kind": "display"}
    return data, {**metadata, "scrapbook": _note(name, False)}
