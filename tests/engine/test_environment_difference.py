"""What a reader is told when an environment is not the one of the last run."""

from __future__ import annotations

from typing import Any

from quire.engine.environment_difference import difference


def environment(python: str = "3.11.7", kind: str = "cpython", **packages: str) -> dict[str, Any]:
    interpreter = {"language": "python", "implementation": kind, "version": python}
    return {"interpreter": interpreter, "packages": packages}


def test_added_removed_and_changed_packages_are_named() -> None:
    old = environment(six="1.16.0", gone="1", same="2")
    new = environment("3.12.1", six="1.17.0", fresh="3", same="2")
    assert difference(old, new) == (
        "python 3.11.7 is now python 3.12.1; changed: six 1.16.0 → 1.17.0; added: fresh 3; "
        "removed: gone 1"
    )


def test_the_same_is_no_difference_whatever_the_kernel_calls_itself() -> None:
    assert difference(environment(six="1"), environment(kind="ipython", six="1")) == ""
    assert difference(environment(six="1"), {}) == "removed: six 1"
    assert difference({"packages": ["not", "ours"]}, environment()) == ""


def test_of_another_language_only_that_is_said() -> None:
    other = {"interpreter": {"language": "R", "version": "4.5"}, "packages": {}}
    assert difference(environment(six="1"), other) == "python 3.11.7 is now R 4.5"


def test_of_many_only_some_are_named() -> None:
    many = {f"p{number:02}": "1" for number in range(20)}
    said = difference(environment(), environment(**many))
    assert said == "added: p00 1, p01 1, p02 1, p03 1, p04 1, p05 1 and 14 more"
