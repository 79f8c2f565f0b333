"""A real Gitea on loopback, made for one test run and gone afterwards.

    python tests/forges/gitea_server.py /path/to/gitea [/path/to/its/source] -- COMMAND …

starts it in a temporary folder with SQLite, makes an administrator and a token by its own command
line, runs COMMAND with QUIRE_TEST_GITEA_URL and QUIRE_TEST_GITEA_TOKEN set, and stops it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ADMIN = "author"
SETTINGS = """
APP_NAME = Quire tests
RUN_MODE = prod
WORK_PATH = {work}
[server]
PROTOCOL = http
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = http://127.0.0.1:{port}/
DISABLE_SSH = true
OFFLINE_MODE = true
STATIC_ROOT_PATH = {static}
[database]
DB_TYPE = sqlite3
PATH = {work}/gitea.db
[repository]
ROOT = {work}/repositories
DEFAULT_BRANCH = main
[security]
INSTALL_LOCK = true
SECRET_KEY = {secret}
[service]
DISABLE_REGISTRATION = true
[mailer]
ENABLED = false
[picture]
DISABLE_GRAVATAR = true
[cron]
ENABLED = false
[cron.update_checker]
ENABLED = false
[indexer]
REPO_INDEXER_ENABLED = false
[packages]
ENABLED = false
[actions]
ENABLED = false
[log]
LEVEL = Warn
ROOT_PATH = {work}/log
"""


@dataclass(frozen=True)
class Running:
    url: str
    token: str
    version: str


@contextlib.contextmanager
def gitea(binary: Path, static: Path | None = None) -> Iterator[Running]:
    """`static`: where its templates and options are, for a binary that has them not inside."""
    work = Path(tempfile.mkdtemp(prefix="quire-gitea-"))
    (work / "home").mkdir()
    port = free_port()
    config = work / "app.ini"
    config.write_text(
        SETTINGS.format(work=work, port=port, static=static or work, secret=secrets.token_hex(32))
    )
    # Nothing of the user's: no home, no git configuration, no other Gitea's settings.
    env = {"HOME": str(work / "home"), "PATH": os.environ["PATH"], "USER": account().pw_name}
    give(work)
    url = f"http://127.0.0.1:{port}"
    command = [str(binary), "--config", str(config), "--work-path", str(work)]
    try:
        run([*command, "migrate"], env)
        with open(work / "output.txt", "wb") as output:
            server = subprocess.Popen(
                [*command, "web"], env=env, stdout=output, stderr=output, cwd=work, **as_account()
            )
            try:
                wait_for(url, server, work / "output.txt")
                yield Running(url, token_of(command, env), version_of(url))
            finally:
                server.terminate()
                server.wait(30)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def token_of(command: list[str], env: dict[str, str]) -> str:
    user = ["--username", ADMIN, "--email", f"{ADMIN}@example.org", "--random-password"]
    run(
        [*command, "admin", "user", "create", "--admin", "--must-change-password=false", *user], env
    )
    token = ["--username", ADMIN, "--token-name", "tests", "--scopes", "all", "--raw"]
    said = run([*command, "admin", "user", "generate-access-token", *token], env)
    found = re.search(r"^[0-9a-f]{40}$", said, re.MULTILINE)
    assert found, "Gitea printed no token"
    return found[0]


def version_of(url: str) -> str:
    with urllib.request.urlopen(f"{url}/api/v1/version", timeout=10) as answer:
        return str(json.load(answer)["version"])


def run(command: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=120, cwd="/", **as_account()
    )
    assert done.returncode == 0, f"{command[0]} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def wait_for(url: str, server: subprocess.Popen[bytes], output: Path) -> None:
    """Until it answers: there is no event to wait for but its answer."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        assert server.poll() is None, output.read_text("utf-8", "replace")[-4000:]
        try:
            version_of(url)
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"Gitea did not answer: {output.read_text('utf-8', 'replace')[-4000:]}")


def account() -> pwd.struct_passwd:
    """Gitea does not run as root, and should not."""
    return pwd.getpwuid(os.getuid()) if os.getuid() else pwd.getpwnam("nobody")


def as_account() -> dict[str, Any]:
    who = account()
    own = who.pw_uid == os.getuid()
    return {} if own else {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}


def give(folder: Path) -> None:
    """To the account it runs as."""
    who = account()
    if who.pw_uid != os.getuid():
        for path in (folder, *folder.rglob("*")):
            os.chown(path, who.pw_uid, who.pw_gid)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def main(arguments: list[str]) -> int:
    if "--" not in arguments or not 1 <= arguments.index("--") <= 2:
        print(__doc__, file=sys.stderr)
        return 2
    split = arguments.index("--")
    static = Path(arguments[1]).resolve() if split == 2 else None
    with gitea(Path(arguments[0]).resolve(), static) as running:
        print(f"Gitea {running.version} at {running.url}", file=sys.stderr)
        env = {
            **os.environ,
            "QUIRE_TEST_GITEA_URL": running.url,
            "QUIRE_TEST_GITEA_TOKEN": running.token,
        }
        return subprocess.run(arguments[split + 1 :], env=env).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
