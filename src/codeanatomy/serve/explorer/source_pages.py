"""Show files and folders of a repository.

Tests: `tests/unit/serve/test_pages.py`.
"""

from __future__ import annotations

from codeanatomy.serve.explorer.visit import Page

PAGES: tuple[tuple[str, Page], ...] = ()
FORMS: tuple[tuple[str, Page], ...] = ()
