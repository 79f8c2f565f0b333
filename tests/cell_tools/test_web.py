from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from quire.cell_tools.fetch import answer, fetch
from quire.cell_tools.web import Web
from quire.cell_tools.web_addresses import is_public, target
from quire.config import Tools
from quire.errors import Refused, ToolError
from web_server import Server


def never() -> bool:
    return False


def web(tmp_path: Path, called_off: Any = never, **settings: Any) -> Web:
    env = {"PATH": os.environ["PATH"]}
    return Web(Tools(**{"seconds": 20.0, **settings}), str(tmp_path), env, called_off)


RESULTS = {
    "query": "quire",
    "results": [
        {"title": "One", "url": "http://a.example/", "content": "the first", "score": 1},
        {"title": "Two", "url": "http://b.example/", "content": "the second"},
        {"title": "Three", "url": "http://c.example/"},
        "no result",
    ],
}


def test_search_by_searxng(tmp_path: Path, server: Server) -> None:
    server.page("/search", json.dumps(RESULTS), "application/json")
    found = web(tmp_path, search_url=f"{server.url}/").search({"query": "a b&c", "limit": 2})
    assert server.asked == ["/search?q=a%20b%26c&format=json"]
    assert found["results"] == [
        {"title": "One", "url": "http://a.example/", "description": "the first"},
        {"title": "Two", "url": "http://b.example/", "description": "the second"},
    ]


def test_search_by_another_address(tmp_path: Path, server: Server) -> None:
    server.page("/find", json.dumps({"data": {"web": RESULTS["results"]}}), "application/json")
    found = web(tmp_path, search_url=f"{server.url}/find?for={{query}}").search({"query": "x/y"})
    assert server.asked == ["/find?for=x%2Fy"]
    assert [one["title"] for one in found["results"]] == ["One", "Two", "Three"]


def test_search_by_a_command(tmp_path: Path) -> None:
    """Each word is one argument, and what begins with a dash is no option."""
    script = tmp_path / "find"
    script.write_text('#!/bin/sh\nprintf \'[{"title": "%s", "url": "%s"}]\' "$1" "$2"\n')
    script.chmod(0o755)
    tools = web(tmp_path, search_command=f"{script} {{query}} n={{limit}}")
    found = tools.search({"query": "$(id); 'x", "limit": 3})
    assert found["results"] == [{"title": "$(id); 'x", "url": "n=3", "description": ""}]
    assert tools.search({"query": "--help"})["results"][0]["title"] == " --help"


def test_search_that_is_not_set_up_says_how(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as told:
        web(tmp_path).search({"query": "x"})
    assert "search_url" in told.value.hint
    assert "search_command" in told.value.hint


def test_what_a_search_command_warns_of_is_no_result(tmp_path: Path) -> None:
    command = "sh -c 'echo careful >&2; echo []'"
    assert web(tmp_path, search_command=command).search({"query": "x"})["results"] == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<html>", "did not answer in JSON"),
        ('{"x": 1}', "no list"),
        ('["x"]', "no list"),
        ("[" * 9_999, "JSON"),
    ],
)
def test_a_search_that_makes_no_sense(tmp_path: Path, server: Server, body: str, said: str) -> None:
    server.page("/search", body, "application/json")
    with pytest.raises(ToolError, match=said) as told:
        web(tmp_path, search_url=server.url).search({"query": "x"})
    assert body[:100] in told.value.hint


def test_a_search_that_answers_too_much_says_so(tmp_path: Path, server: Server) -> None:
    server.page("/search", json.dumps(RESULTS), "application/json")
    with pytest.raises(ToolError, match="more than 50 bytes"):
        web(tmp_path, search_url=server.url, page_limit=50).search({"query": "x"})
    with pytest.raises(ToolError, match="more than 50 bytes"):
        web(tmp_path, search_command="seq 100", page_limit=50).search({"query": "x"})


def test_a_search_command_that_fails(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="it ended with 3") as told:
        web(tmp_path, search_command="sh -c 'echo no key >&2; exit 3'").search({"query": "x"})
    assert told.value.hint == "no key"


PAGE = """<!doctype html><html><head><title> A  page </title><style>p {}</style></head><body>
<nav>menu <a href="/x">x</a></nav>
<h1>Top</h1><p>One <b>two</b> &amp; <a href="/y?z=1">three</a>.</p>
<script>steal()</script><ul><li>first</li><li>second<ul><li>inner</li></ul></li></ul>
<pre>  x = 1
  y = 2</pre><table><tr><td>a</td><td>b</td></tr></table></body></html>"""


def test_a_page_becomes_text(tmp_path: Path, server: Server) -> None:
    url = server.page("/page", PAGE)
    tools = web(tmp_path, private_hosts=("127.0.0.1",))
    (found,) = tools.extract({"urls": [url]})["results"]
    assert (found["url"], found["title"], found["error"]) == (url, "A page", None)
    text = found["content"]
    assert f"One **two** & [three]({server.url}/y?z=1)." in text
    assert "- first" in text
    assert "  - inner" in text
    assert "x = 1\n  y = 2" in text
    assert "| a | b" in text
    for gone in ("menu", "steal", "p {}"):
        assert gone not in text
    assert server.headers[0]["Host"] == f"127.0.0.1:{server.port}"


@pytest.mark.parametrize(
    ("html", "title", "text"),
    [
        ("<title>T</title><h1>Sheets</h1><p>of paper</p>", "T", "# Sheets\n\nof paper"),
        ("<p>" + "<div>" * 100 + "deep", "", "deep"),
        ("<title>x</title><p>a<b>b</p></i><li>c</zzz>", "x", "b"),
        ("<!-- nothing -->", "", ""),
        ("", "", ""),
    ],
)
def test_short_and_broken_pages(server: Server, html: str, title: str, text: str) -> None:
    found = asked(server, server.page("/a", html))
    assert (found["title"], text in found["text"]) == (title, True)


def test_without_a_library_a_page_says_how_to_set_it_up(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    told = asked(server, server.page("/a", PAGE))
    assert "not set up" in told["error"]
    assert "trafilatura" in told["hint"]
    assert "extract_command" in told["hint"]
    assert asked(server, server.page("/b", "plain", "text/plain"))["text"] == "plain"


def asked(server: Server, url: str) -> dict[str, Any]:
    """In this process, what the worker does in its own."""
    private = [f"127.0.0.1:{server.port}"]
    given = {"url": url, "private": private, "addresses": {}, "read": True}
    return answer({**given, "limit": 100_000, "seconds": 20.0})


def test_several_pages_of_which_one_fails(tmp_path: Path, server: Server) -> None:
    url = server.page("/a", "plain", "text/plain")
    tools = web(tmp_path, private_hosts=(f"127.0.0.1:{server.port}",))
    found = tools.extract({"urls": [url, f"{server.url}/gone", "http://10.0.0.1/"]})["results"]
    assert found[0]["content"] == "plain"
    assert "404" in found[1]["error"]
    assert "not on the public internet" in found[2]["error"]


def test_a_long_page_is_cut(tmp_path: Path, server: Server) -> None:
    url = server.page("/a", "x" * 50_000 + "end", "text/plain")
    tools = web(tmp_path, private_hosts=("127.0.0.1",))
    (found,) = tools.extract({"urls": [url], "char_limit": 1_000})["results"]
    assert "[quire: 49,003 characters were cut here]" in found["content"]
    assert found["content"].endswith("end")


def test_a_page_over_the_limit_says_so(tmp_path: Path, server: Server) -> None:
    url = server.page("/a", "<p>" + "word " * 10_000 + "</p>end")
    tools = web(tmp_path, private_hosts=("127.0.0.1",), page_limit=40_000)
    (found,) = tools.extract({"urls": [url], "char_limit": 50_000})["results"]
    assert found["content"].startswith("word word")
    assert found["content"].endswith("\n[quire: only 40,000 bytes of the page were read]")


def test_another_service_reads_the_page(tmp_path: Path, server: Server) -> None:
    server.page("/read", "# read", "text/markdown")
    tools = web(tmp_path, extract_url=f"{server.url}/read?page={{url}}")
    with pytest.raises(Refused, match="public internet"):
        tools.extract({"urls": ["http://127.0.0.1:9/"]})
    public = Web(tools.settings, tools.folder, tools.env, never, lookup=known)
    (found,) = public.extract({"urls": ["https://example.org/a?b"]})["results"]
    assert found["content"] == "# read"
    assert server.asked == ["/read?page=https%3A%2F%2Fexample.org%2Fa%3Fb"]


def known(host: str, port: int) -> list[str]:
    return ["127.0.0.1"] if host == "127.0.0.1" else ["93.184.216.34"]


# Where one may not go


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "198.18.0.1",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "64:ff9b::a00:1",
        "2002:a00:1::",
        "2001:0:a00:1::",
        "nonsense",
    ],
)
def test_what_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"])
def test_what_is_public(address: str) -> None:
    assert is_public(address)


def test_every_address_of_a_name_counts() -> None:
    with pytest.raises(Refused, match=r"two\.example is 10\.0\.0\.1"):
        target("http://two.example/", (), lambda *_: ["93.184.216.34", "10.0.0.1"])


@pytest.mark.parametrize("named", ["[::1]:8080", "::1", "[::1]", "LOCALHOST6"])
def test_a_private_host_is_named_as_in_a_url(named: str) -> None:
    host = "localhost6" if named.isupper() else "[::1]"
    assert target(f"http://{host}:8080/", [named], lambda *_: ["::1"]).port == 8080


def test_a_private_port_is_not_another_one() -> None:
    for named in ("[::1]:80", "[::2]:8080"):
        with pytest.raises(Refused, match="public internet"):
            target("http://[::1]:8080/", [named], lambda *_: ["::1"])


def get(server: Server, url: str, **more: Any) -> str:
    private = (f"127.0.0.1:{server.port}", "private.example")
    return str(fetch(url, private, **{"limit": 10_000, "seconds": 20.0, **more})["text"])


def test_a_wait_without_end_can_be_declared(tmp_path: Path, server: Server) -> None:
    url = server.page("/a", "there", "text/plain")
    tools = web(tmp_path, private_hosts=("127.0.0.1",), seconds=float("inf"))
    assert tools.extract({"urls": [url]})["results"][0]["content"] == "there"


def test_a_name_is_looked_up_once(tmp_path: Path, server: Server) -> None:
    """A name that answers differently the second time gains nothing."""
    url = server.page("/", "reached", "text/plain").replace("127.0.0.1", "private.example")
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    tools = web(tmp_path, private_hosts=("private.example",))
    tools = Web(tools.settings, tools.folder, tools.env, never, lambda *_: next(answers))
    (found,) = tools.extract({"urls": [url]})["results"]
    assert found["content"] == "reached"
    assert server.headers[0]["Host"] == f"private.example:{server.port}"


def test_a_refusal_needs_no_time(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="public internet"):
        web(tmp_path, seconds=0.001).extract({"urls": ["http://10.0.0.1/"]})


def test_the_next_address_is_tried(server: Server) -> None:
    server.page("/", "reached", "text/plain")
    both = ["127.0.0.2", "127.0.0.1"]  # the server is at the second one
    assert (
        get(server, f"http://private.example:{server.port}/", lookup=lambda *_: both) == "reached"
    )


def test_a_certificate_is_that_of_the_name_and_not_of_the_address(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ssl

    told: list[Any] = []

    def wrapped(self: Any, sock: Any, **more: Any) -> Any:
        told.append((more["server_hostname"], self.check_hostname, self.verify_mode))
        raise ssl.SSLError("far enough")

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", wrapped)
    url = f"https://private.example:{server.port}/"
    with pytest.raises(ToolError, match="far enough"):
        get(server, url, lookup=lambda *_: ["127.0.0.1"])
    assert told == [("private.example", True, ssl.CERT_REQUIRED)]


def test_no_proxy_is_used(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert get(server, server.page("/a", "there", "text/plain")) == "there"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ("<meta charset='iso-8859-1'><p>été</p>".encode("latin-1"), "text/html"),
        (
            '<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">été'.encode(
                "cp1252"
            ),
            "text/html",
        ),
        ("<meta charset=no-such><p>été".encode(), "text/html"),
        ("<meta charset=punycode><p>été".encode(), "text/html"),
        ("<meta charset=utf-7><p>été".encode(), "text/html"),
        ("<p>été".encode(), "text/html" + ";" * 30_000),
        ("<meta charset=iso-8859-1><p>été".encode(), "text/html; charset=utf-8"),
        ("\ufeffété".encode(), "text/plain"),
        ("été".encode("utf-16"), "text/html"),
        ("été".encode("utf-16"), "text/plain; charset=utf-8"),
        ("été".encode("latin-1"), "text/plain; charset=latin-1"),
    ],
)
def test_the_encoding_of_a_page(server: Server, data: bytes, kind: str) -> None:
    text = get(server, server.page("/a", data, kind))
    assert "été" in text
    assert not text.startswith("\ufeff")


def test_a_page_that_does_not_say_what_it_is(server: Server) -> None:
    def page(body: bytes) -> Any:
        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(200)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)

        server.pages["/a"] = answer
        return fetch(f"{server.url}/a", ["127.0.0.1"], 10_000, 20.0)["kind"]

    assert page(b"\n<!DOCTYPE html><p>x") == "text/html"
    assert page(b"a < b") == "text/plain"
    with pytest.raises(ToolError, match="is not a text"):
        page(b"\x7fELF\0\0")


def test_redirects_that_are_badly_written(server: Server) -> None:
    server.page("/caf%C3%A9%20x?y=%20", "there", "text/plain")
    server.pages["/caf%C3%A9%20x"] = server.pages["/caf%C3%A9%20x?y=%20"]
    raw = "/café x?y=%20".encode().decode("latin-1")
    assert get(server, server.moved("/raw", raw)) == "there"
    assert server.asked[-1] == "/caf%C3%A9%20x?y=%20"
    with pytest.raises(ToolError, match="no URL"):
        get(server, server.moved("/bad", "http://[::1"))


def test_redirects_are_judged_again(server: Server) -> None:
    server.page("/end", "the end", "text/plain")
    assert get(server, server.moved("/good", "/end")) == "the end"
    for place in (
        "http://169.254.169.254/",
        "http://127.0.0.1:1/",
        "file:///etc/passwd",
        "//[::1]/",
    ):
        with pytest.raises(Refused):
            get(server, server.moved("/bad", place))
    with pytest.raises(Refused, match="more than 5 times"):
        get(server, server.moved("/round", "/round"))


def test_a_page_larger_than_the_limit_is_cut(server: Server) -> None:
    assert get(server, server.page("/a", "x" * 500_000, "text/plain"), limit=100) == "x" * 100


@pytest.mark.parametrize("kind", ["image/png", "application/octet-stream", "application/pdf"])
def test_what_is_no_text_is_not_read(server: Server, kind: str) -> None:
    with pytest.raises(ToolError, match="not a text"):
        get(server, server.page("/a", b"\0\1", kind))


def endless(first: bytes) -> Any:
    """Answers, and then keeps the connection open."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(first)
        request.wfile.flush()
        request.connection.settimeout(30)
        try:
            while request.connection.recv(1):
                pass
        except OSError:
            pass

    return answer


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        # It ends where the connection does, and that is us: half a page is not a page.
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>half",
    ],
)
def test_a_server_that_never_ends_is_left(tmp_path: Path, server: Server, first: bytes) -> None:
    server.pages["/slow"] = endless(first)
    tools = web(tmp_path, private_hosts=("127.0.0.1",), seconds=0.5)
    with pytest.raises(ToolError, match="took too long"):
        tools.extract({"urls": [f"{server.url}/slow"]})
    gone = threading.Event()
    gone.set()
    tools = web(tmp_path, gone.is_set, private_hosts=("127.0.0.1",))
    with pytest.raises(ToolError, match="called off"):
        tools.extract({"urls": [f"{server.url}/slow"]})
