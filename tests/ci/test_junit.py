"""JUnit XML that CI servers read, whatever tasks put into it."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from made_gates import FAILED, GATE, HOSTILE, OK, hostile
from quire.ci.gate_report import GateResult
from quire.ci.junit import TEXT_LIMIT, junit

# What the schema of Jenkins (junit-10.xsd), the strictest in use, allows in each element.
ALLOWED = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
        {"testcase"},
    ),
    "testcase": ({"name", "classname", "time"}, {"failure", "error", "system-out"}),
    "failure": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "system-out": (set(), set()),
}
REQUIRED = {"testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}}


def read(result: GateResult) -> ET.Element:
    """The document, checked against the schema."""
    data = junit(result)
    data.decode("utf-8")
    top = ET.fromstring(data)
    assert top.tag == "testsuites"
    for element in top.iter():
        attributes, children = ALLOWED[element.tag]
        assert set(element.attrib) <= attributes
        assert set(element.attrib) >= REQUIRED.get(element.tag, set())
        assert {child.tag for child in element} <= children
        if "time" in element.attrib:
            assert re.fullmatch(r"\d+\.\d{3}", element.attrib["time"])
    suite = top[0]
    assert suite.attrib["tests"] == str(len(suite))
    for kind in ("failure", "error"):
        assert suite.attrib[f"{kind}s"] == str(len(suite.findall(f"testcase/{kind}")))
    return top


def test_a_case_for_each_task() -> None:
    ok, failed, refused = read(GATE)[0]
    assert ok.attrib == {
        "name": "notebooks/sub/sum.py",
        "classname": "quire.notebooks.sub",
        "time": "0.500",
    }
    assert [child.tag for child in ok] == ["system-out"]
    out = ok.findtext("system-out") or ""
    assert "[1/2] ok" in out
    assert "[2/2] ok" in out
    assert "load" in out
    assert "total = 6" in out
    assert OK.run_id in out
    failure = failed.find("failure")
    assert failure is not None
    assert failure.attrib == {
        "message": "ZeroDivisionError: division by zero",
        "type": "ZeroDivisionError",
    }
    assert "cell c1 (divide)" in (failure.text or "")
    assert "----> 1 1 / 0" in (failure.text or "")
    error = refused.find("error")
    assert error is not None, "what could not be run is no failure of the task"
    assert "give it values" in (error.text or "")


def test_the_suite_counts_and_says_when() -> None:
    suite = read(GATE)[0]
    assert suite.attrib == {
        "name": "quire",
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
        "time": "0.750",
        "timestamp": "2026-11-16T15:55:01",
    }


def test_nothing_ran_is_a_valid_file_too() -> None:
    assert len(read(GateResult())[0]) == 0


@pytest.mark.parametrize("text", HOSTILE)
def test_a_strangers_text_stays_text(text: str) -> None:
    result = hostile()
    place = HOSTILE.index(text)
    top = read(result)
    assert len(top[0]) == len(HOSTILE)
    case = top[0][place]
    # What XML cannot hold and what a terminal obeys is gone; the rest is there.
    for letters in re.findall(r"[a-z]{3,}", text.replace("[31m", "").replace("[0m", "")):
        assert letters in case.attrib["name"]


def test_no_character_that_xml_cannot_hold() -> None:
    every = "".join(map(chr, range(0x110000)))
    result = GateResult((replace(FAILED, traceback=every, task=every[:0xD900]),))
    text = junit(result).decode("utf-8")
    assert not re.search("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    read(result)


def test_an_endless_text_is_cut() -> None:
    long = GateResult((replace(FAILED, traceback="x" * 1_000_000),))
    failure = read(long).find(".//failure")
    assert failure is not None
    assert len(failure.text or "") < TEXT_LIMIT + 100
    assert "more characters" in (failure.text or "")
