from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def tools(request: pytest.FixtureRequest) -> None:
    """What a page needs besides Quire."""
    if "comparing.md" in request.node.name and "happens" in request.node.name:
        request.getfixturevalue("nbdime")
