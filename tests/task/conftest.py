from __future__ import annotations

from hypothesis import settings

# Two shared cores: no deadline per example, the same examples in every run.
settings.register_profile("document", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("document")
