from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

from quire.kernel.installed_packages import installed, search_path


def test_names_and_versions_are_those_of_the_metadata() -> None:
    found = installed(sys.path)
    for name in ("pytest", "ipykernel", "quire"):
        (version,) = {d.version for d in distributions(name=name)}
        assert found[name] == version


def test_another_interpreter_is_asked_where_it_looks() -> None:
    assert installed(search_path(sys.executable))["pytest"] == installed(sys.path)["pytest"]
    assert search_path("/no/such/python") == ()


def test_the_first_on_the_path_counts_and_changes_are_seen(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder, version in ((first, "1.0"), (second, "2.0")):
        (folder / f"Some_Thing-{version}.dist-info").mkdir(parents=True)
    (second / "old-3.1-py3.11.egg-info").mkdir()
    (second / "-1.dist-info").mkdir()
    path = [str(first), str(second), str(tmp_path / "none")]
    assert installed(path) == {"old": "3.1", "some-thing": "1.0"}
    (first / "new-0.1.dist-info").mkdir()
    assert installed(path)["new"] == "0.1"
