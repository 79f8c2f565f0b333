"""A folder of wheels, so that environments can be made without a network.

What kernels need is packed from this environment. Beside it there are stand-ins: small packages
under the names that tests and docs use, and empty ones for what only other systems need.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
import zipfile
from functools import cache
from importlib import metadata
from importlib.util import cache_from_source, source_hash
from pathlib import Path

from packaging.requirements import Requirement

from made_environments import needed

STAND_INS = {
    ("six", "1.16.0"): {"six.py": "__version__ = '1.16.0'\n"},
    ("six", "1.17.0"): {"six.py": "__version__ = '1.17.0'\n"},
    ("quire-tests-tool", "1.0"): {
        "quire_tests_tool.py": "def main():\n    print('the tool of the environment')\n",
    },
    ("quire-tests-user", "2.0"): {"quire_tests_user.py": "import six\nfound = six.__version__\n"},
}
REQUIRES = {"quire-tests-user": ["six<1.17"]}
NOT_PACKED = {"debugpy"}  # large, and no task debugs
SCRIPTS = {"quire-tests-tool": "quire_tests_tool:main"}


@cache
def folder() -> Path:
    """The wheels; the workers of one test run share them."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    root = Path(tempfile.gettempdir()) / f"quire-test-wheels-{run}"
    root.mkdir(exist_ok=True)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        atexit.register(shutil.rmtree, root, ignore_errors=True)
    with open(root / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / "ready").exists():
            _fill(root / "wheels")
            (root / "ready").touch()
    return root


def environment(cache: Path | None = None) -> dict[str, str]:
    """Variables with which uv finds these wheels and nothing else. `cache`: not the shared one."""
    root = folder()
    return {
        "UV_FIND_LINKS": str(root / "wheels"),
        "UV_OFFLINE": "1",
        "UV_CACHE_DIR": str(root / "uv"),
        "QUIRE_CACHE": str(cache or root / "cache"),
    }


def _fill(wheels: Path) -> None:
    wheels.mkdir(exist_ok=True)
    for name, distribution in needed("ipykernel").items():
        if name not in NOT_PACKED:
            _pack(wheels, distribution)
    present = {path.name.split("-")[0].lower() for path in wheels.iterdir()}
    for distribution in needed("ipykernel").values():
        for text in distribution.requires or ():
            requirement = Requirement(text)
            if requirement.marker is not None and "extra" in str(requirement.marker):
                continue
            if _escaped(requirement.name) not in present:
                wheel(wheels, requirement.name, "900", {})
    for (name, version), files in STAND_INS.items():
        wheel(wheels, name, version, files)


def wheel(wheels: Path, name: str, version: str, files: dict[str, str]) -> Path:
    info = f"{_escaped(name)}-{version}.dist-info"
    about = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    about += [f"Requires-Dist: {one}" for one in REQUIRES.get(name, ())]
    content = dict(files)
    content[f"{info}/METADATA"] = "\n".join(about) + "\n"
    content[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if name in SCRIPTS:
        content[f"{info}/entry_points.txt"] = f"[console_scripts]\n{name} = {SCRIPTS[name]}\n"
    content[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in content)
    path = wheels / f"{_escaped(name)}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        for inside, text in content.items():
            file.writestr(inside, text)
    return path


def _pack(wheels: Path, distribution: metadata.Distribution) -> None:
    """An installed package as the wheel that it came from."""
    tags = [
        line.partition(": ")[2]
        for line in (distribution.read_text("WHEEL") or "").splitlines()
        if line.startswith("Tag: ")
    ]
    name = f"{_escaped(distribution.metadata['Name'])}-{distribution.version}"
    paths = [
        str(path)
        for path in distribution.files or ()
        if ".." not in path.parts and "__pycache__" not in path.parts and path.name != "RECORD"
    ]
    info = next(path.split("/")[0] for path in paths if ".dist-info/" in path)
    with zipfile.ZipFile(wheels / f"{name}-{_tag(tags)}.whl", "w") as file:
        for path in paths:
            source = Path(str(distribution.locate_file(path)))
            file.write(source, path)
            _add_compiled(file, source, path)
        file.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in paths))


def _add_compiled(file: zipfile.ZipFile, source: Path, path: str) -> None:
    """What is compiled already is not compiled again in every environment: with it comes the mark
    that says not to compare it with the source."""
    compiled = Path(cache_from_source(str(source))) if source.suffix == ".py" else source
    if compiled != source and compiled.is_file():
        data = compiled.read_bytes()
        inside = Path(path).parent / "__pycache__" / compiled.name
        file.writestr(str(inside), data[:4] + b"\1\0\0\0" + source_hash(b"") + data[16:])


def _tag(tags: list[str]) -> str:
    plain = [tag.split("-")[0] for tag in tags if tag.endswith("-none-any")]
    return f"{'.'.join(plain)}-none-any" if plain else tags[0]


def _escaped(name: str) -> str:
    return name.replace("-", "_").replace(".", "_").lower()
