"""Ordinary text that looks a little like secrets, from a fixed seed: about 3 MB in a dozen files."""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
import zlib
from pathlib import Path

_WORDS = (
    "lorem ipsum dolor sit amet task risk disk desk mask-free risk-free-rate task-based sk-learn"
    " scikit-learn ask-me-anything bearer Bearer authorization token secret key password begin BEGIN"
    " private public certificate session eyJust hf_hub npm_config github_actions ghost_writer ASIA"
    " AKIAK glow-worm x-ox xoxo xapp pypi-server ya29 live_update authority Authorization required"
).split()


def generate(folder: Path) -> list[Path]:
    """Write the files and name them."""
    rng = random.Random(7)
    written = []
    for make in (
        _git_log, _digests, _uuids, _images, _minified, _freeze, _csv, _prose, _pods, _sri,
        _ssh_public, _certificates, _html, _json_lines, _hexdump, _urls, _source_map,
    ):
        path = folder / f"{make.__name__.lstrip('_')}.txt"
        path.write_text(make(rng), encoding="utf-8")
        written.append(path)
    return written


def _sentence(rng: random.Random, size: int) -> str:
    return " ".join(rng.choices(_WORDS, k=size))


def _b64(rng: random.Random, size: int) -> str:
    return base64.b64encode(rng.randbytes(size)).decode()


def _name(rng: random.Random, size: int = 8) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=size))


def _git_log(rng: random.Random) -> str:
    return "".join(
        f"commit {rng.randbytes(20).hex()}\nAuthor: A B <{_name(rng)}@example.org>\n"
        f"Date:   Mon Jan {n % 28 + 1} 10:{n % 60:02}:00 2024 +0100\n\n    {_sentence(rng, 8)}\n\n"
        for n in range(1200)
    )


def _digests(rng: random.Random) -> str:
    return "".join(
        f"{rng.randbytes(32).hex()}  dist/{_name(rng)}-1.{n}.tar.gz\n"
        f"sha512-{rng.randbytes(64).hex().upper()}\ndocker://{_name(rng)}:3.{n}@sha256:{rng.randbytes(32).hex()}\n"
        for n in range(800)
    )


def _uuids(rng: random.Random) -> str:
    return "".join(f"{uuid.UUID(bytes=rng.randbytes(16))} {rng.random()}\n" for _ in range(2500))


def _images(rng: random.Random) -> str:
    lines = []
    for _ in range(12):
        png = b"\x89PNG\r\n\x1a\n" + zlib.compress(rng.randbytes(30000))
        lines.append('{"image/png": "' + base64.b64encode(png).decode() + '"}')
        lines.append(base64.encodebytes(png).decode())
    return "\n".join(lines)


def _minified(rng: random.Random) -> str:
    out = []
    for _ in range(6000):
        a, b, c = (rng.choice(string.ascii_letters) for _ in range(3))
        out.append(f'function {a}{b}({c}){{return {c}.sk-{a}_{b}?{b}("{_name(rng, 5)}"):{a}[{rng.random()}]}};')
    return "".join(out)


def _freeze(rng: random.Random) -> str:
    return "".join(
        f"{rng.choice(_WORDS)}-{_name(rng)}=={rng.randrange(9)}.{n} --hash=sha256:{rng.randbytes(32).hex()}\n"
        for n in range(1200)
    )


def _csv(rng: random.Random) -> str:
    rows = (
        f"{n},{rng.gauss(0, 1)},{rng.randrange(10**16)},{_name(rng).upper()},2024-01-{n % 28 + 1:02}T00:00:00Z"
        for n in range(3500)
    )
    return "id,value,account,KEY,at\n" + "\n".join(rows)


def _prose(rng: random.Random) -> str:
    return "".join(_sentence(rng, rng.randrange(4, 18)).capitalize() + ".\n" for _ in range(3500))


def _pods(rng: random.Random) -> str:
    hexes = "bcdfghjklmnpqrstvwxz2456789"
    return "".join(
        f"sk-{_name(rng, 5)}-{_name(rng)}-{''.join(rng.choices(hexes, k=10))}-{''.join(rng.choices(hexes, k=5))}"
        f"   1/1  Running  ip-10-{n % 256}-0-{n % 200}.eu-west-1.compute.internal\n"
        f"task-{_name(rng)}-{rng.randbytes(8).hex()}.risk-{_name(rng)}.svc.cluster.local:8{n % 1000:03}\n"
        for n in range(1500)
    )


def _sri(rng: random.Random) -> str:
    return "".join(
        f'"node_modules/{_name(rng)}": {{"version": "1.{n}.0", "resolved": "https://registry.example.org/'
        f'{_name(rng)}/-/x-1.{n}.0.tgz", "integrity": "sha512-{_b64(rng, 64)}"}},\n'
        for n in range(1200)
    )


def _ssh_public(rng: random.Random) -> str:
    return "".join(
        f"ssh-rsa AAAAB3NzaC1yc2E{_b64(rng, 260)} {_name(rng)}@host-{n}\n"
        f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5{_b64(rng, 36)} {_name(rng)}\nSHA256:{_b64(rng, 32)[:43]} x (RSA)\n"
        for n in range(300)
    )


def _certificates(rng: random.Random) -> str:
    out = []
    for kind in ("CERTIFICATE", "PUBLIC KEY", "CERTIFICATE REQUEST", "PGP PUBLIC KEY BLOCK") * 40:
        body = base64.encodebytes(rng.randbytes(700)).decode()
        out.append(f"-----BEGIN {kind}-----\n{body}-----END {kind}-----\n")
    return "".join(out)


def _html(rng: random.Random) -> str:
    return "".join(
        f'<div class="sk-{_name(rng)} sk-container-id-{n}" id="sk-estimator-id-{n}">{_sentence(rng, 5)}'
        f'<img src="data:image/png;base64,{_b64(rng, 200)}"/><a href="https://example.org:8443/'
        f'{_name(rng)}?next=%2Fhome%2F{n}#eyJ">.</a></div>\n'
        for n in range(700)
    )


def _json_lines(rng: random.Random) -> str:
    return "".join(
        json.dumps({"id": rng.randbytes(12).hex(), "key": _name(rng), "n": rng.random(), "msg": _sentence(rng, 6)})
        + "\n"
        for _ in range(1500)
    )


def _hexdump(rng: random.Random) -> str:
    return "".join(f"{n * 16:08x}  {rng.randbytes(16).hex(' ')}  |{_name(rng, 16)}|\n" for n in range(2500))


def _urls(rng: random.Random) -> str:
    return "".join(
        f"GET http://{_name(rng)}.example.org:80{n % 90 + 10}/{_name(rng)}@{n}/x?mail=a:b@c.de HTTP/1.1 200\n"
        f"git clone ssh://git@example.org:22/{_name(rng)}.git; s3://bucket/{uuid.UUID(bytes=rng.randbytes(16))}\n"
        for n in range(1500)
    )


def _source_map(rng: random.Random) -> str:
    mapping = json.dumps({"version": 3, "sources": [_name(rng) for _ in range(9000)]})
    return "//# sourceMappingURL=data:application/json;base64," + base64.b64encode(mapping.encode()).decode()
