"""Reports on whole repositories: entry points, unused, cycles, unresolved; source text beside references."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from codeanatomy.query.lake import Lake
from codeanatomy.serve.explorer.runs.report_pages import REPORTS, read_report
from support.explorer import get_page


@pytest.mark.parametrize("verb", REPORTS)
def test_a_report_lists_what_the_command_does(client: TestClient, ask_lake: Path, verb: str) -> None:
    answer = read_report(Lake.open(ask_lake), verb, "shop", 200)
    assert answer.rows
    page = unescape(get_page(client, f"/reports/{verb}?repo=shop"))
    for row in answer.rows:
        assert f"{row['path']}:{row['line']}" in page
        assert row["source"] in page
        assert row["method"] in page
    for note in answer.notes:
        assert note in page


def test_the_first_page_links_to_every_report(client: TestClient) -> None:
    text = get_page(client, "/")
    for verb in REPORTS:
        assert f'href="/reports/{verb}"' in text
        get_page(client, f"/reports/{verb}")
    assert 'href="/errors"' in text


def test_rows_beyond_the_limit_are_counted(client: TestClient) -> None:
    page = get_page(client, "/reports/unresolved?repo=flask&limit=1")
    assert "more are not listed" in page
    assert "limit=" in page


@pytest.mark.parametrize(
    ("address", "status"),
    [("/reports/impact", 404), ("/reports/unused?repo=nope", 404), ("/reports/unused?limit=0", 400)],
)
def test_wrong_reports_are_refused(client: TestClient, address: str, status: int) -> None:
    get_page(client, address, status)


def test_references_and_callers_show_their_source(client: TestClient) -> None:
    page = get_page(client, "/r/shop/s/shop.cart.Cart.total")
    assert '<code class="text">charged = self.total()</code>' in page
    whole = get_page(client, "/r/shop/s/shop.cart.Cart.total?list=references")
    assert '<code class="text">charged = self.total()</code>' in whole
