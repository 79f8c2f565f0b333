"""What a failed cell worked with: looked at without running anything of the task."""

from __future__ import annotations

import datetime
import types
from typing import Any

from quire.kernel.inside.used_values import MOST, used


def of(code: str, **namespace: Any) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in used(code, namespace, None)}


def test_names_types_sizes_and_a_look() -> None:
    found = of(
        "f(n, xs, d, when, s)",
        n=3,
        xs=[1, [2]],
        d={"a": (1,)},
        s="text",
        f=len,
        when=datetime.date(2026, 1, 2),
        other=1,
    )
    assert set(found) == {"n", "xs", "d", "when", "s"}
    assert found["n"] == {"name": "n", "type": "int", "value": "3"}
    assert found["xs"] == {"name": "xs", "type": "list", "size": "2", "value": "[1, [2]]"}
    assert found["d"]["value"] == "{'a': (1,)}"
    assert found["when"]["value"] == "datetime.date(2026, 1, 2)"
    assert found["when"]["type"] == "datetime.date"


def test_a_function_that_is_only_called_says_nothing_and_modules_never() -> None:
    def f() -> None: ...

    assert set(of("f()", f=f)) == set()
    assert set(of("f['x']", f=f)) == {"f"}
    assert set(of("m.x", m=types)) == set()


def test_frames_tell_their_columns_and_arrays_their_shape() -> None:
    import numpy
    import pandas

    found = of("df['x'] + a", df=pandas.DataFrame({"a": [1], "b": [2]}), a=numpy.zeros((2, 3)))
    assert found["df"]["size"] == "1 x 2"
    assert found["df"]["value"] == "columns a, b"
    assert found["a"]["size"] == "2 x 3"
    assert found["a"]["value"] == "dtype float64"


class Touchy:
    def __getattribute__(self, name: str) -> Any:
        raise AssertionError("it was touched")

    def __repr__(self) -> str:
        raise AssertionError("it was touched")

    __len__ = __iter__ = __hash__ = __repr__  # type: ignore[assignment]


class Listy(list):  # type: ignore[type-arg]
    def __len__(self) -> int:
        raise AssertionError("it was touched")


def test_nothing_of_the_task_is_called() -> None:
    found = of("t, xs, li", t=Touchy(), xs=[Touchy()], li=Listy())
    assert found["t"]["type"].endswith("Touchy")
    assert found["xs"]["value"] == "[<Touchy>]"
    assert "value" not in found["li"]


def test_what_refers_to_itself_ends() -> None:
    loop: list[Any] = []
    loop += [loop, loop]
    assert "…" in of("loop", loop=loop)["loop"]["value"]


def test_there_are_not_too_many_of_them() -> None:
    names = {f"n{k}": k for k in range(200)}
    assert len(of(" + ".join(names), **names)) == MOST
    assert len(of("x", x=list(range(10**6)))["x"]["value"]) < 500


def test_the_innermost_function_of_the_task_tells_its_own() -> None:
    namespace: dict[str, Any] = {}
    exec("def g(x):\n    inner = x + 1\n    return [].pop(x)\n", namespace)
    try:
        exec("g(2)", namespace)
    except IndexError as error:
        found = used("g(2)", namespace, error)
    assert [(one["name"], one["scope"], one["value"]) for one in found] == [
        ("x", "g", "2"),
        ("inner", "g", "3"),
    ]


def test_code_that_does_not_parse_uses_nothing() -> None:
    assert of("if x", x=1) == {}
