"""The notebook shell where ipykernel is not installed: plain IPython, same messages."""

from __future__ import annotations

import sys
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Any as AnyTrait


class PlainHook(DisplayHook):  # type: ignore[misc]
    session = AnyTrait()
    pub_socket = AnyTrait()
    topic = b""

    def start_displayhook(self) -> None:
        self.msg = self.session.msg("execute_result", {"data": {}, "metadata": {}})

    def write_output_prompt(self) -> None:
        self.msg["content"]["execution_count"] = self.prompt_count

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        self.msg["content"]["data"] = format_dict
        self.msg["content"]["metadata"] = md_dict or {}

    def finish_displayhook(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        if self.msg["content"]["data"]:
            self.session.send(None, self.msg)
        self.msg = None


class PlainPublisher(DisplayPublisher):  # type: ignore[misc]
    session = AnyTrait()
    pub_socket = AnyTrait()

    def publish(
        self,
        data: Any,
        metadata: Any = None,
        *,
        transient: Any = None,
        update: bool = False,
        **_: Any,
    ) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        content = {
            "data": data,
            "metadata": metadata or {},
            "transient": transient or {},
        }
        self.session.send(None, "update_display_data" if update else "display_data", content)

    def clear_output(self, wait: bool = False) -> None:
        sys.stdout.flush()
        self.session.send(None, "clear_output", {"wait": wait})


class PlainShell(InteractiveShell):  # type: ignore[misc]
    kernel = AnyTrait()
    _last_traceback: Any = None

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._last_traceback = stb
        content = {"ename": etype.__name__, "evalue": str(evalue), "traceback": stb}
        self.displayhook.session.send(None, "error", content)
