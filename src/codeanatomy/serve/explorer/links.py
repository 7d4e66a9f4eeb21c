"""Build the addresses of pages; a name from a repository is always quoted.

>>> file_link("flask", "src/flask/app.py", line=1129)
'/r/flask/f/src/flask/app.py#L1129'
>>> file_link("flask", "src/flask/big.py", line=5000)
'/r/flask/f/src/flask/big.py?line=5000#L5000'
>>> symbol_link("flask", "flask.app.Flask.make_response", as_of="20260501T12")
'/r/flask/s/flask.app.Flask.make_response?as-of=20260501T12'
>>> repository_link("flask", "picture/calls", symbol="flask.app.Flask")
'/r/flask/picture/calls?symbol=flask.app.Flask'
>>> page_link("/search", q="a b", repo=None)
'/search?q=a+b'

Tests: `tests/unit/serve/test_links.py`.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

# Lines of a file that its page shows at once.
PART_LINES = 2_000


def page_link(page: str, **values: str | int | None) -> str:
    """Return the address of a page with these query values, without those that are None."""
    given = {name.replace("_", "-"): value for name, value in values.items() if value is not None}
    return f"{page}?{urlencode(given)}" if given else page


def repository_link(repo_id: str, page: str = "", **values: str | int | None) -> str:
    """Return the address of a repository, or of one of its pages, such as `flow`."""
    return page_link(f"/r/{quote(repo_id, safe='')}/{page}", **values)


def run_link(run_id: str, as_of: str | None = None) -> str:
    """Return the address of a run."""
    return page_link(f"/runs/{quote(run_id, safe='')}", as_of=as_of)


def file_link(repo_id: str, path: str, line: int | None = None, as_of: str | None = None) -> str:
    """Return the address of a file or folder, at a line; the server does not see what is after `#`."""
    part = line if line is not None and line > PART_LINES else None
    page = repository_link(repo_id, f"f/{quote(path)}", line=part, as_of=as_of)
    return page if line is None else f"{page}#L{line}"


def symbol_link(repo_id: str, symbol: str, as_of: str | None = None) -> str:
    """Return the address of a symbol."""
    return repository_link(repo_id, f"s/{quote(symbol, safe='')}", as_of=as_of)
