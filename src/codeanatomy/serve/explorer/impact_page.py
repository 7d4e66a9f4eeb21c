"""Show what a change affects: symbols and tests as a tree, with places.

    GET  /impact                                          choose a change
    GET  /impact?repo=shop&symbols=shop.money.Price       of named symbols
    GET  /impact?repo=shop&diff=main..topic               of a git range of the source folder
    GET  /impact?repo=shop&a=20260501T12&b=latest         of what differs between two runs
    POST /impact with the fields repo and patch           of a pasted diff

A branch of the tree is a user of the symbol above it; each symbol is listed once, at its nearest place. The
number of symbols, and of users below one symbol, is bounded, and the page reports what it leaves out.

Tests: `tests/unit/serve/test_impact_page.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from codeanatomy.errors import UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.ask import resolve_request
from codeanatomy.query.diff.changed_between_runs import changed_between_runs
from codeanatomy.query.diff.patch_text import patched_symbols
from codeanatomy.query.engines.statements import RepositoryReader
from codeanatomy.query.lake import Lake
from codeanatomy.query.status.run_reports import published_runs
from codeanatomy.query.verbs.impact import impact
from codeanatomy.query.verbs.result import VerbResult
from codeanatomy.serve.explorer import links
from codeanatomy.serve.explorer.visit import Page, Visit, parse_number

DEPTH, MAX_DEPTH = 3, 10
MAX_SYMBOLS = 50
# Affected symbols that are read, nearest first.
MAX_ROWS = 2_000
# Changed symbols, users below one symbol, and tests that are shown.
MAX_ROOTS, MAX_USERS, MAX_TESTS = 100, 40, 200
# Runs to choose from.
CHOICES = 200
SEPARATOR = re.compile(r"[\s,]+")


class Branch(Struct):
    """A symbol, the symbols that use it, and the number of those that are not shown."""

    symbol: str
    row: dict[str, Any] | None
    users: list[Branch]
    more: int = 0
    # Symbols below it, and those of them that are tests.
    total: int = 0
    tests: int = 0


class Affected(Struct):
    """What a set of symbols of one run affects."""

    title: str
    # The run that its links lead to; None is the run of the page.
    as_of: str | None
    symbols: tuple[Symbol, ...]
    notes: tuple[str, ...]
    tree: list[Branch]
    # Changed symbols that nothing uses, and the number of trees that are not shown.
    unused: list[Symbol]
    more: int
    tests: list[dict[str, Any]]
    total: int
    total_tests: int
    # Rows beyond MAX_ROWS.
    cut: int


def impact_page(visit: Visit) -> Response:
    """Show what a change affects, or the forms that choose one."""
    fields = visit.fields() if visit.request.method == "POST" else dict(visit.request.query_params)
    chosen = {
        name: fields.get(name, "").strip() for name in ("repo", "symbols", "diff", "a", "b", "patch", "depth")
    }
    depth = parse_number("depth", chosen["depth"], DEPTH, 1, MAX_DEPTH)
    repositories = list(visit.lake.snapshot.repositories)
    if chosen["repo"]:
        visit.lake.snapshot.select_repositories(chosen["repo"])
    given = [name for name in ("symbols", "diff", "a", "patch") if chosen[name]]
    if len(given) > 1:
        raise UsageError("the page shows one change", "name symbols, a range, two runs or a diff")
    affected = _affected(visit, given[0], chosen, depth) if given else []
    return visit.page(
        "impact.html",
        affected=affected,
        chosen=chosen,
        given=given[0] if given else None,
        depth=depth,
        max_depth=MAX_DEPTH,
        repositories=repositories,
        runs=published_runs(visit.lake.snapshot.root, CHOICES),
        links=links,
    )


def _affected(visit: Visit, given: str, chosen: dict[str, str], depth: int) -> list[Affected]:
    if given == "symbols":
        names = list(dict.fromkeys(SEPARATOR.split(chosen["symbols"])))
        if len(names) > MAX_SYMBOLS:
            raise UsageError(f"{len(names):,} symbols, the maximum is {MAX_SYMBOLS}", "name fewer symbols")
        request = resolve_request(visit.lake.reader, "impact", names, chosen["repo"] or None, depth=depth)
        return [_arranged(visit.lake, "Affected", None, request.symbols, request.result)]
    repo_id = _one_repository(visit, chosen["repo"])
    if given == "diff":
        request = resolve_request(visit.lake.reader, "impact", (), repo_id, depth=depth, diff=chosen["diff"])
        return [_arranged(visit.lake, "Affected", None, request.symbols, request.result)]
    if given == "patch":
        changes = patched_symbols(visit.lake.reader, repo_id, chosen["patch"])
        return [_of_symbols(visit.lake, "Affected", None, repo_id, changes.symbols, changes.notes, depth)]
    if not chosen["b"]:
        raise UsageError("a comparison needs two runs", "choose both runs")
    first, second = visit.lakes.at(chosen["a"]), visit.lakes.at(chosen["b"])
    for lake in (first, second):
        lake.snapshot.select_repositories(repo_id)
    differing = changed_between_runs(first.reader, second.reader, repo_id)
    notes = (f"from run {first.snapshot.run_id} to run {second.snapshot.run_id}", *differing.after.notes)
    sides = [(second, "Affected by what was changed or added", differing.after.symbols, notes)]
    if differing.before.symbols:
        sides.append((first, "Affected by what was removed, before that", differing.before.symbols, ()))
    return [
        _of_symbols(lake, title, lake.snapshot.run_id, repo_id, symbols, texts, depth)
        for lake, title, symbols, texts in sides
    ]


def _one_repository(visit: Visit, repo_id: str) -> str:
    """Return the chosen repository, or the only one."""
    repositories = visit.lake.snapshot.select_repositories(repo_id or None)
    if len(repositories) != 1:
        raise UsageError("the lake has several repositories", "choose the one that the change is in")
    return next(iter(repositories))


def _of_symbols(
    lake: Lake,
    title: str,
    as_of: str | None,
    repo_id: str,
    symbols: Sequence[Symbol],
    notes: Sequence[str],
    depth: int,
) -> Affected:
    reader = RepositoryReader(lake.reader, (repo_id,))
    return _arranged(lake, title, as_of, symbols, impact(reader, symbols, depth=depth, notes=notes))


def _arranged(
    lake: Lake, title: str, as_of: str | None, symbols: Sequence[Symbol], result: VerbResult
) -> Affected:
    rows = [
        dict(zip((*result.columns, "total"), row, strict=True))
        for row in lake.reader.rows(result.query, MAX_ROWS)
    ]
    total = rows[0]["total"] if rows else 0
    tree = impact_tree(rows)
    # With the names around them: a class that is changed stands for its contents, which are the roots then.
    used = {name for branch in tree for name in names_around(branch.symbol)}
    tests = [row for row in rows if is_test_function(row)]
    unused = [each for each in symbols if each.symbol not in used]
    return Affected(
        title,
        as_of,
        tuple(symbols),
        result.notes,
        tree[:MAX_ROOTS],
        unused[:MAX_ROOTS],
        max(len(tree) - MAX_ROOTS, 0),
        tests[:MAX_TESTS],
        total,
        len(tests),
        total - len(rows),
    )


def names_around(symbol: str) -> list[str]:
    """Return a qualified name and those of what is around it.

    >>> names_around("shop.cart.Cart")
    ['shop.cart.Cart', 'shop.cart', 'shop']
    """
    parts = symbol.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 0, -1)]


def is_test_function(row: dict[str, Any]) -> bool:
    """Whether a row is a test that can be run."""
    name = row["symbol"].rpartition(".")[2]
    return bool(row["test"]) and row["kind"] == "FUNCTION" and name.startswith("test")


def impact_tree(rows: Sequence[dict[str, Any]]) -> list[Branch]:
    """Arrange rows of `impact`, nearest first, by the symbol that each of them uses.

    >>> row = {"path": "m.py", "line": 1, "test": False, "kind": "FUNCTION", "depth": 1}
    >>> (root,) = impact_tree([row | {"symbol": "m.f", "via": "m.x"}])
    >>> root.symbol, [user.symbol for user in root.users], root.total
    ('m.x', ['m.f'], 1)
    """
    branches: dict[str, Branch] = {}
    roots: list[Branch] = []
    parents: dict[int, Branch] = {}
    for row in rows:
        above = branches.get(row["via"])
        if above is None:
            above = branches[row["via"]] = Branch(row["via"], None, [])
            roots.append(above)
        branch = Branch(row["symbol"], row, [])
        above.users.append(branch)
        parents[id(branch)] = above
        branches.setdefault(row["symbol"], branch)
    # From the leaves up: a row comes after the one that it uses.
    for branch in reversed([each for each in _all(roots) if each.row is not None]):
        above = parents[id(branch)]
        above.total += 1 + branch.total
        above.tests += is_test_function(branch.row or {}) + branch.tests
    for branch in _all(roots):
        branch.more = max(len(branch.users) - MAX_USERS, 0)
        del branch.users[MAX_USERS:]
    roots.sort(key=lambda root: (-root.total, root.symbol))
    return roots


def _all(roots: Sequence[Branch]) -> list[Branch]:
    """Return all branches, each before its users."""
    branches = list(roots)
    for branch in branches:
        branches += branch.users
    return branches


PAGES: tuple[tuple[str, Page], ...] = ()
FORMS: tuple[tuple[str, Page], ...] = (("/impact", impact_page),)
