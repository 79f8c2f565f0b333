"""A secret a task knows is in no file and on no screen, whatever the task does with it."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from scratch import QUIRE, Scratch

SECRET = "s3cr3t/Value+with&more=9f8e7d6c5b4a"
HALF = len(SECRET) // 2

TASK = f"""# %% [markdown]
# # About {SECRET}

# %% tags=["parameters"]
given: str = "none"  # {SECRET}

# %% prints {SECRET}
import base64, json, os, sys, urllib.parse, warnings, subprocess
secret = os.environ["MY_API_TOKEN"]
print("plain", secret)
print("twice", secret, secret, file=sys.stderr)

# %% split over two writes
sys.stdout.write("split " + secret[:{HALF}]); sys.stdout.flush()
sys.stdout.write(secret[{HALF}:] + "\\n"); sys.stdout.flush()
for letter in secret:
    print(letter, end="", flush=True)
print()

# %% encoded
print(base64.b64encode(secret.encode()).decode())
print(base64.b64encode(("user:" + secret).encode()).decode())
print(base64.urlsafe_b64encode(("x" + secret).encode()).decode())
print(urllib.parse.quote(secret), urllib.parse.quote_plus(secret), secret.encode().hex())
print(json.dumps({{"token": secret}}), repr(secret))

# %% a child process, and the descriptor
subprocess.run(["sh", "-c", "echo child $MY_API_TOKEN; echo err $MY_API_TOKEN >&2"])
os.write(1, secret.encode() + b"\\n")

# %% displays
from IPython.display import HTML, JSON, display
display(HTML(f"<b>{{secret}}</b>"))
display(JSON({{secret: [secret]}}))
handle = display("x", display_id=secret)
display(secret, display_id="other").update("now " + secret)
warnings.warn("beware of " + secret)
secret

# %% results
from quire.runtime import glue, run
glue("mine", secret)
glue("deep", {{"a": [secret, {{secret: 1}}]}})
glue(secret, 1)
try:
    run("child.py", given=secret)
except Exception as error:
    print(error)

# %% a flood, so that some of it is spilled
for n in range(3000):
    print(n, secret)
for n in range(30):
    display(f"{{n}} {{secret}}")

# %% an error
class Wrong(Exception):
    pass
token = secret
raise Wrong(f"cannot log in with {{secret}}")
"""

CHILD = """# %% tags=["parameters"]
given: str = ""
# %%
print("child has", given)
raise ValueError(given)
"""


def encodings() -> list[bytes]:
    """None of these may be found anywhere. Base64 without the digits its neighbours share."""
    coded = [
        base64.b64encode(pad + SECRET.encode()).decode()[4:-4].encode()
        for pad in (b"", b"x", b"user:")
    ]
    return [
        SECRET.encode(),
        quote(SECRET).encode(),
        quote(SECRET, safe="").encode(),
        SECRET.encode().hex().encode(),
        json.dumps(SECRET)[1:-1].encode(),
        *coded,
    ]


def check(data: bytes, where: str) -> None:
    for text in encodings():
        assert text not in data, f"{text!r} is in {where}"


@pytest.mark.parametrize("host", [(), ("--no-host",)], ids=["host", "in-process"])
def test_it_is_nowhere(scratch: Scratch, host: tuple[str, ...]) -> None:
    (scratch.root / "quire.toml").write_text("stream_limit = 20000\ndisplay_limit = 20\n")
    scratch.write("t.py", TASK)
    scratch.write("child.py", CHILD)
    env = scratch.environment({"MY_API_TOKEN": SECRET})

    def quire(*args: str) -> bytes:
        done = subprocess.run(
            [*QUIRE, *args],
            cwd=scratch.root,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
        check(done.stdout, f"stdout of {args[0]}")
        check(done.stderr, f"stderr of {args[0]}")
        return done.stdout

    told = json.loads(quire("run", "t.py", "-p", "given", SECRET, "--json", *host))
    assert told["outcome"] == "failed"
    assert told["error"]["name"] == "Wrong"
    assert told["error"]["value"] == "cannot log in with [masked:MY_API_TOKEN]"
    assert told["results"]["mine"] == "[masked:MY_API_TOKEN]"
    ran = [cell["status"] for cell in told["cells"] if cell["kind"] == "code"]
    assert ran == ["ok"] * (len(ran) - 1) + ["failed"]
    quire("run", "t.py", "-p", "given", SECRET, *host)
    for args in (
        ("show",),
        ("show", "--all"),
        ("show", "--json"),
        ("runs",),
        ("runs", "--json"),
        ("results",),
        ("results", "--json"),
        ("export", "last", "out.html"),
        ("export", "last", "out.md"),
        ("export", "last", "out.ipynb"),
        ("host", "status", "--json"),
    ):
        quire(*args)
    files = [path for path in (scratch.root / ".quire").rglob("*") if path.is_file()]
    files += list(scratch.root.glob("out.*"))
    names = {path.name for path in files}
    assert {"events.jsonl", "notebook.ipynb", "summary.json", "source.py", "out.html"} <= names
    assert any("spill" in str(path) for path in files)
    for path in files:
        check(path.read_bytes(), path.name)
    shown = json.loads(Path(told["notebook"]).read_text())
    assert json.dumps(shown).count("[masked:MY_API_TOKEN]") > 20


def test_what_the_configuration_names_is_masked_too(scratch: Scratch) -> None:
    (scratch.root / "quire.toml").write_text('mask = ["HARMLESS_*"]\n')
    scratch.write(
        "t.py", "# %%\nimport os\nprint(os.environ['HARMLESS_NAME'], os.environ['OTHER'])\n"
    )
    env = {"HARMLESS_NAME": "violet-elephant", "OTHER": "grey-elephant"}
    done = scratch.quire("run", "t.py", "--no-host", env=env)
    assert done.returncode == 0
    shown = scratch.quire("show").stdout
    assert "[masked:HARMLESS_NAME] grey-elephant" in shown


def test_well_known_tokens_are_masked_without_being_named(scratch: Scratch) -> None:
    token = "ghp_" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3d"
    scratch.write("t.py", f"# %%\nt = 'ghp_' + {token[4:]!r}\nprint(t)\nraise ValueError(t)\n")
    done = scratch.quire("run", "t.py", "--no-host", "--json")
    assert token not in done.stdout + done.stderr
    assert "[masked:" in json.loads(done.stdout)["error"]["value"]
    for path in (scratch.root / ".quire").rglob("*"):
        if path.is_file():
            assert token.encode() not in path.read_bytes()
