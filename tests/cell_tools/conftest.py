from __future__ import annotations

from collections.abc import Iterator

import pytest

from web_server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()
