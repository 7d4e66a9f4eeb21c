"""The sources are data: pytest is not to import them for their docstrings."""

collect_ignore_glob = ["*/*"]
