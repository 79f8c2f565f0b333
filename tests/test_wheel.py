"""What is installed from a wheel: every file that the source has, and a command that finds them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The wheel, unpacked as an installer does."""
    from hatchling.build import build_wheel

    monkeypatch.chdir(ROOT)
    name = build_wheel(str(tmp_path))
    folder = tmp_path / "site"
    with zipfile.ZipFile(tmp_path / name) as wheel:
        wheel.extractall(folder)
    return folder


def test_a_wheel_has_every_file_and_init_finds_them(installed: Path, tmp_path: Path) -> None:
    source = ROOT / "src"
    want = {
        str(path.relative_to(source))
        for path in (source / "quire").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    got = {str(p.relative_to(installed)) for p in (installed / "quire").rglob("*") if p.is_file()}
    assert got == want
    assert "quire/shipped/NOTEBOOK_WORKFLOW.md" in got
    place = tmp_path / "place"
    place.mkdir()
    env = {**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    which = [sys.executable, "-P", "-c", "import quire; print(quire.__file__)"]
    where = subprocess.run(which, cwd=place, env=env, capture_output=True, text=True, check=True)
    assert where.stdout.startswith(str(installed)), "the copy is what runs"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "quire", "init", "--json"],
        cwd=place,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = {step["target"] for step in json.loads(done.stdout)["steps"]}
    for name in ("docs/NOTEBOOK_WORKFLOW.md", ".gitea/workflows/notebook-ci.yml"):
        assert name in written
        assert (place / name).read_bytes()
