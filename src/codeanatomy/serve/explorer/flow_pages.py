"""Show where the value of a variable comes from and goes.

Tests: `tests/unit/serve/test_pages.py`.
"""

from __future__ import annotations

from codeanatomy.serve.explorer.visit import Page

PAGES: tuple[tuple[str, Page], ...] = ()
FORMS: tuple[tuple[str, Page], ...] = ()
