from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers of these tests are on loopback, whatever the network of whoever runs them."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
