"""What a caller is told whose host went away in the middle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from quire.agent.call_client import Answer, ToolCall
from quire.host.host_calls import Lost


def left_in(
    root: Path, said: list[Mapping[str, Any]], next_host: Answer, meanwhile: Callable[[], object]
) -> Answer:
    """The answer to a promotion whose host says this, does that, and goes."""

    class Call(ToolCall):
        def _once(self, name: str, arguments: Mapping[str, Any]) -> Answer:
            if name == "run_wait":
                return next_host
            for one in said:
                self._hear(None, {"say": one})  # type: ignore[arg-type]
            meanwhile()
            raise Lost("gone")

    return Call(str(root), "notebook_session", {"action": "promote"}, {}).run()


RUN = {"run": "2026-11-16-171012-a-a9ad"}
AGAIN = {"session": "a", "to": "b c.py", "force": True}


@pytest.mark.parametrize("failed", [True, False])
def test_a_run_whose_host_left_failed_where_the_run_did(tmp_path: Path, failed: bool) -> None:
    """It may have ended well, and been on its way into the archive."""
    told = left_in(tmp_path, [RUN], Answer("ok in 1 s", failed=failed), lambda: None)
    assert told.failed == failed
    assert told.text.endswith("went away; this is what its record holds:\nok in 1 s")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (None, None, '"b c.py" was not written\nask again: '),
        ("x", None, '"b c.py" is as it was: nothing was written\nask again: '),
        (None, "y", '"b c.py" was written meanwhile, as it is where the clean run agreed\n'),
        ("x", "y", '"b c.py" was written meanwhile, as it is where the clean run agreed\n'),
    ],
)
def test_a_promotion_that_was_cut_off_says_whether_its_file_was_written(
    tmp_path: Path, before: str | None, after: str | None, said: str
) -> None:
    target = tmp_path / "b c.py"
    if before is not None:
        target.write_text(before)

    def write() -> None:
        if after is not None:  # as the engine does it: another file in its place
            (tmp_path / "new").write_text(after)
            (tmp_path / "new").replace(target)

    told = left_in(tmp_path, [RUN, {"promotes": AGAIN}], Answer("the run"), write)
    first, _, rest = told.text.partition(": ")
    assert first == "The host went away while it promoted session a"
    assert rest.startswith(said), told.text
    call = 'notebook_session(action="promote", session="a", to="b c.py", force=true)\n'
    assert (call in told.text) == (after is None)
    assert told.text.endswith("this is what its record holds:\nthe run")
    # However well the clean run ended, what was asked for is not there.
    assert told.failed == (after is None)
