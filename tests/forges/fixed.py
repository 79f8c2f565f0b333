"""Who commits in the tests of forges, and when."""

from __future__ import annotations

# So that the same files are the same commits, on every machine and at any time.
FIXED = {
    "GIT_AUTHOR_DATE": "1767225600 +0000",
    "GIT_COMMITTER_DATE": "1767225600 +0000",
    "GIT_AUTHOR_EMAIL": "author@example.org",
    "GIT_COMMITTER_EMAIL": "author@example.org",
    "GIT_COMMITTER_NAME": "author",
    "GIT_AUTHOR_NAME": "author",
}
