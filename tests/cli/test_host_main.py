"""What a host says to a client where Quire itself is at fault."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from quire.cli.host_main import served
from quire.host.host_server import Request
from quire.workspace import Engine


@pytest.mark.parametrize("as_json", [True, False])
def test_a_program_that_asked_for_json_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    (tmp_path / "t.py").write_text("# %%\n1\n")

    def wrong(*_: Any, **__: Any) -> None:
        raise TypeError("nobody thought of that")

    monkeypatch.setattr("quire.engine.run.NotebookExecutor", wrong)
    (out, told), (err, said) = os.pipe(), os.pipe()
    argv = ["run", "t.py", *(["--json"] if as_json else [])]
    engine = Engine(outlives=True)
    code = served(Request(argv, str(tmp_path), dict(os.environ), 80, {}, (0, told, said)), engine)
    engine.close()
    os.close(told)
    os.close(said)
    with os.fdopen(out) as stdout, os.fdopen(err) as stderr:
        on_stdout, on_stderr = stdout.read(), stderr.read()
    assert code == 2
    assert "TypeError: nobody thought of that" in on_stderr
    assert "Traceback" not in on_stderr
    if as_json:
        answer = json.loads(on_stdout)
        assert (answer["outcome"], answer["error"]["code"]) == ("error", "internal")
    else:
        assert on_stdout == ""
