"""Texts with a secret in them: name, text, and what of it must not be left.

All secrets are made here, by a seeded generator, in pieces: none was ever valid, and no scanner of
repositories takes this file for a leak.
"""

from __future__ import annotations

import base64
import html
import json
import random
import string
import urllib.parse

_random = random.Random(20240229)
_ALNUM = string.ascii_letters + string.digits


def _some(size: int, alphabet: str = _ALNUM) -> str:
    return "7" + "".join(_random.choices(alphabet, k=size - 2)) + "Q"


ENV = {
    "SERVICE_TOKEN": _some(36),
    "DB_PASSWORD": "p4ss w&rd/\"quo'te\"\\+ü%",
    "SIGNING_KEY": base64.b64encode(_random.randbytes(33)).decode(),
    "CLIENT_SECRET": "<tag>&'x'=" + _some(10),
    "DEPLOY_KEY": "\n".join(_some(64) for _ in range(4)),
    "DATABASE_URL": "postgresql://app:" + _some(14) + "@db.internal:5432/app",
    "PATH": "/usr/bin:/bin",
}
_token, _password = ENV["SERVICE_TOKEN"], ENV["DB_PASSWORD"]
_key, _client = ENV["SIGNING_KEY"], ENV["CLIENT_SECRET"]
_db = ENV["DATABASE_URL"].split(":")[2].split("@")[0]


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _url64(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _jwt() -> str:
    head = _url64(json.dumps({"alg": "HS256", "typ": "JWT"}))
    return ".".join((head, _url64(json.dumps({"sub": _some(12)})), _some(43)))


def _pem(kind: str = "RSA ", newline: str = "\n", fields: str = "") -> str:
    lines = [_some(64) for _ in range(5)] + [_some(20) + "=="]
    edge = f"{kind}PRIVATE KEY-----"
    return newline.join(("-----BEGIN " + edge, *([fields] if fields else ()), *lines, "-----END " + edge))


def _values() -> list[tuple[str, str, list[str]]]:
    found: list[tuple[str, str, list[str]]] = [
        ("plain", f"token is {_token}.", [_token]),
        ("in a word", f"xx{_token}yy", [_token]),
        ("password", f"login with {_password}!", [_password]),
        ("client", f"secret={_client};", [_client]),
        ("signing", f"sig {_key}\n", [_key]),
        ("two at once", f"{_token}{_key}", [_token, _key]),
        ("json", json.dumps({"p": _password}), [json.dumps(_password)[1:-1]]),
        ("json utf-8", json.dumps({"p": _password}, ensure_ascii=False), ["quo'te"]),
        ("json in json", json.dumps(json.dumps({"p": _password})), ["quo'te"]),
        ("json for html", json.dumps(_client).replace("<", "\\u003c").replace(">", "\\u003e")
         .replace("&", "\\u0026").replace("'", "\\u0027"), [_client[-10:]]),
        ("repr", repr([_password]), ["quo"]),
        ("repr of bytes", repr(_password.encode()), ["quo"]),
        ("html", f"<td>{html.escape(_client)}</td>", [_client[-10:]]),
        ("multi-line", f"key:\n{ENV['DEPLOY_KEY']}\n", ENV["DEPLOY_KEY"].split("\n")),
        ("one line of it", "> " + ENV["DEPLOY_KEY"].split("\n")[2], [ENV["DEPLOY_KEY"].split("\n")[2]]),
        ("multi-line json", json.dumps(ENV["DEPLOY_KEY"]), ENV["DEPLOY_KEY"].split("\n")),
        ("url of the database", f"connecting to {ENV['DATABASE_URL']}", [_db]),
        ("its password", f"PGPASSWORD={_db} psql", [_db]),
    ]
    for name, quoted in {
        "quote": urllib.parse.quote(_password),
        "quote all": urllib.parse.quote(_password, safe=""),
        "quote plus": urllib.parse.quote_plus(_password),
        "url of base64": urllib.parse.quote_plus(_key),
    }.items():
        found.append((name, f"https://example.org/?q={quoted}&r=1", [quoted]))
        low = "".join(c.lower() if "%" in quoted[max(0, i - 2) : i] else c for i, c in enumerate(quoted))
        found.append((name + " lower", f"https://example.org/?q={low}&r=1", [low]))
    for before in ("", "u", "us", "usr:"):
        for coded, name in ((_b64, "base64"), (_url64, "base64url")):
            blob = coded(f"{before}{_password}:rest")
            inner = _b64(" " * len(before) + _password)[len(before) * 4 // 3 + 2 : -5]
            found.append((f"{name} at {len(before)}", f"Basic {blob}\n", [inner, coded(inner)]))
        found.append((f"token at {len(before)}", _b64(before + _token + "\n"), [_token]))
    for separator in ("", ":", " ", "-"):
        spread = _token.encode().hex(separator) if separator else _token.encode().hex()
        found.append((f"hex {separator!r}", f"dump {spread}\n", [spread[6:-6]]))
        found.append((f"HEX {separator!r}", f"dump {spread.upper()}\n", [spread.upper()[6:-6]]))
    escaped = "".join(f"\\x{b:02x}" for b in _token.encode())
    found.append(("hex escapes", f'printf "{escaped}"', [escaped[8:-8]]))
    return found


def _shapes() -> list[tuple[str, str, list[str]]]:
    tokens = {
        "github classic": "ghp" + "_" + _some(36),
        "github oauth": "gho" + "_" + _some(36),
        "github user": "ghu" + "_" + _some(36),
        "github server": "ghs" + "_" + _some(36),
        "github refresh": "ghr" + "_" + _some(76),
        "github fine-grained": "github" + "_pat_" + _some(22) + "_" + _some(59),
        "gitlab": "glpat" + "-" + _some(20),
        "gitlab routable": "glpat" + "-" + _some(27) + ".01." + _some(9, "abc123"),
        "gitlab runner": "glrt" + "-" + _some(20),
        "gitlab deploy": "gldt" + "-" + _some(20),
        "aws id": "AK" + "IA" + _some(16, string.ascii_uppercase + "234567"),
        "aws temporary id": "AS" + "IA" + _some(16, string.ascii_uppercase + "234567"),
        "google api": "AI" + "za" + _some(35),
        "google oauth": "ya" + "29." + _some(60),
        "google client": "GOC" + "SPX-" + _some(28),
        "openai": "sk" + "-" + _some(48),
        "openai project": "sk" + "-proj-" + _some(60) + "-_" + _some(20),
        "anthropic-like": "sk" + "-ant-api03-" + _some(60) + "-" + _some(20) + "AA",
        "slack bot": "xox" + "b-123456789012-1234567890123-" + _some(24),
        "slack user": "xox" + "p-123456789012-123456789012-123456789012-" + _some(32, "abcdef0123"),
        "slack app": "xap" + "p-1-A012345-123456789-" + _some(40, "abcdef0123"),
        "npm": "npm" + "_" + _some(36),
        "pypi": "pypi" + "-AgEIcHlwaS5vcmc" + _some(120),
        "hugging face": "hf" + "_" + _some(34),
        "stripe": "sk" + "_live_" + _some(24),
        "stripe restricted": "rk" + "_live_" + _some(24),
        "jwt": _jwt(),
    }
    found = []
    for name, token in tokens.items():
        found.append((name, f"export X={token}\n", [token[6:]]))
        found.append((name + " coloured", f"\x1b[32m{token}\x1b[0m, then", [token[6:]]))
        found.append((name + " in repr", repr({"a": f"line\n{token}"}), [token[6:]]))
    aws = _some(40, _ALNUM + "/+")
    basic, bearer, password, hook = _b64("user:" + _some(10)), _some(30), _some(12), _some(24)
    found += [
        ("aws secret ini", f"aws_secret_access_key = {aws}\n", [aws]),
        ("aws secret env", f"AWS_SECRET_ACCESS_KEY={aws}\n", [aws]),
        ("aws secret json", json.dumps({"SecretAccessKey": aws}), [aws]),
        ("slack webhook", f"https://hooks.slack.com/services/T0{hook[:8]}/B0/{hook}", [hook]),
        ("header", f"> Authorization: Bearer {bearer}\r\n", [bearer]),
        ("header dict", repr({"Authorization": f"Bearer {bearer}"}), [bearer]),
        ("header json", json.dumps({"authorization": f"token {bearer}"}), [bearer]),
        ("header pair", repr(("authorization", f"Basic {basic}")), [basic]),
        ("bearer alone", f"Bearer {bearer}\n", [bearer]),
        ("url", f"clone https://bob:{password}@git.example.org/x.git\n", [password]),
        ("url no user", f"redis://:{password}@cache:6379/0", [password]),
        ("url with @", f"amqp://bob:{password}@{password}@mq/", [password]),
    ]
    for name, pem in {
        "rsa": _pem(),
        "pkcs8": _pem(""),
        "ec": _pem("EC "),
        "openssh": _pem("OPENSSH "),
        "encrypted": _pem(fields="Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n"),
        "windows": _pem(newline="\r\n"),
        "escaped": _pem(newline="\\n"),
        "list of lines": _pem(newline='\\n",\n "'),
    }.items():
        body = [line for line in pem.replace("\\n", "\n").splitlines() if "7" in line and len(line) > 24]
        found.append((f"pem {name}", f"key = '{pem}'\nrest", [x.strip(' ",') for x in body]))
        found.append((f"pem {name} cut", pem[: len(pem) // 2] + " ...", [body[1].strip(' ",')]))
    return found


LEAKS = [*_values(), *_shapes()]
