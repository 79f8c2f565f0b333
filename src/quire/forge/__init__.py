"""Where changes are put up for review: in the repository itself, on Gitea or on GitHub."""
