"""Addresses of pages: names of repositories, files and symbols cannot leave their place in them."""

from __future__ import annotations

import doctest
from urllib.parse import unquote, urlsplit

import pytest

from codeanatomy.serve.explorer import links
from codeanatomy.serve.explorer.links import file_link, page_link, symbol_link

HOSTILE = ("a b", 'x"y', "//evil", "../..", "a?b#c", "ü/é.py", "javascript:alert(1)", "a%2fb", "<b>")


def test_examples() -> None:
    assert doctest.testmod(links).failed == 0


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_in_the_path(name: str) -> None:
    for link in (file_link(name, name, 3, name), symbol_link(name, name, name)):
        parts = urlsplit(link)
        assert parts.netloc == ""
        assert link.startswith("/r/")
        assert not set(link) & set(' "<>')
        assert unquote(parts.path).endswith(name)
    assert urlsplit(file_link("r", name, 3)).fragment == "L3"


def test_values_that_are_none_are_left_out() -> None:
    assert page_link("/sql", q=None, as_of="2026") == "/sql?as-of=2026"
