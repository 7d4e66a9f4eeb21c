"""Show what changed between two runs, grouped by file and definition.

    GET /diff                         choose two runs
    GET /diff?a=20260501T12&b=20260502T08&repo=shop&kind=FUNCTION

`query.diff.run_diff` finds the changes. The id of an element has the key of the definition that contains it
(`codeanatomy.node_ids`), which is how elements are grouped. Names lead to their pages in either run.

Tests: `tests/unit/serve/test_run_pages.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from starlette.responses import Response

from codeanatomy.errors import UsageError
from codeanatomy.node_ids import KEY_CHARS
from codeanatomy.query.diff.run_diff import ElementChange, KindCount, RunDiff, diff_runs
from codeanatomy.query.status.run_reports import published_runs
from codeanatomy.serve.explorer import links
from codeanatomy.serve.explorer.runs.plots import share_bar
from codeanatomy.serve.explorer.runs.shared_work import SharedWork
from codeanatomy.serve.explorer.visit import Page, Visit

# Elements that are listed: by default, and at most.
LISTED = 500
MAX_LISTED = 10_000
# Runs to choose from.
CHOICES = 200
# Characters of a value.
VALUE_CHARS = 300
DEFINITIONS = frozenset(("MODULE", "CLASS", "FUNCTION", "TYPE_ALIAS"))
# Seconds that a page waits for a comparison.
WAIT_SECONDS = 8.0
# Lake, both runs, kind, repository and limit; two published runs never change.
Comparison: TypeAlias = tuple[str, str, str, str | None, str | None, int]


class DefinitionChanges(Struct):
    """A definition, if it is in the list itself, and the changes inside of it."""

    own: ElementChange | None
    inside: list[ElementChange]


class FileChanges(Struct):
    """The changes in a file; path is None for elements that are in no file."""

    repo_id: str
    path: str | None
    # The change of the file itself.
    own: ElementChange | None
    definitions: list[DefinitionChanges]

    @property
    def total(self) -> int:
        """The number of changes that are listed."""
        inside = sum(len(each.inside) + (each.own is not None) for each in self.definitions)
        return inside + (self.own is not None)


def diff_page(visit: Visit) -> Response:
    """Compare two runs, or show the form that chooses them."""
    root = visit.lake.snapshot.root
    published = published_runs(root, CHOICES)
    a, b = visit.text("a"), visit.text("b")
    repo_id, kind = visit.text("repo") or None, visit.text("kind") or None
    limit = visit.number("limit", LISTED, 1, MAX_LISTED)
    if bool(a) != bool(b):
        raise UsageError("a comparison needs two runs", "choose both runs on the page /diff")
    diff, pair = None, _newest_two([each.run_id for each in published])
    if a and b:
        pair = visit.lakes.at(a).snapshot.run_id, visit.lakes.at(b).snapshot.run_id
        diff = COMPARISONS.result((root, *pair, kind, repo_id, limit), WAIT_SECONDS)
    return visit.page(
        "diff.html",
        diff=diff,
        files=group_changes(diff.rows) if diff else (),
        runs=published,
        chosen=pair,
        waits=bool(a) and diff is None,
        seconds=WAIT_SECONDS,
        again=visit.page_link("/diff", a=a, b=b, repo=repo_id, kind=kind, limit=limit),
        repo_id=repo_id,
        kind=kind,
        repositories=sorted(visit.lake.snapshot.repositories),
        limit=limit,
        max_limit=MAX_LISTED,
        share=_share,
        value_text=value_text,
        run_of=lambda change: pair[0] if change.change == "removed" else pair[1],
        file_link=links.file_link,
        symbol_link=links.symbol_link,
        is_definition=is_definition,
    )


def compare(question: Comparison) -> RunDiff:
    """Compare two runs."""
    root, a, b, kind, repo_id, limit = question
    return diff_runs(root, a, b, kinds=[kind] if kind else (), repo_id=repo_id, limit=limit)


COMPARISONS = SharedWork(compare)


def _newest_two(run_ids: list[str]) -> tuple[str, str]:
    """Return the runs that the form proposes: the newest and the one before it."""
    return run_ids[min(1, len(run_ids) - 1)], run_ids[0]


def group_changes(rows: Iterable[ElementChange]) -> list[FileChanges]:
    """Group changes by file and by the definition that contains them, in the order of the source."""
    groups: dict[tuple[str, str | None], dict[str | None, DefinitionChanges]] = {}
    files: dict[tuple[str, str | None], ElementChange] = {}
    for change in rows:
        if change.element == "node" and change.kind == "FILE":
            files[change.repo_id, change.path] = change
            groups.setdefault((change.repo_id, change.path), {})
            continue
        definitions = groups.setdefault((change.repo_id, change.path), {})
        group = definitions.setdefault(definition_key_of(change.id), DefinitionChanges(None, []))
        if is_definition(change) and group.own is None:
            group.own = change
        else:
            group.inside.append(change)
    return [
        FileChanges(*place, files.get(place), sorted(definitions.values(), key=_first_line))
        for place, definitions in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    ]


def definition_key_of(entity_id: str) -> str | None:
    """Return the key in the id of a node, or of the source of an edge; None if it is in no definition.

    >>> definition_key_of("CALLS;callsite:-Ypa08bsXihimzV9.000003;qname:shop:builtins.sum")
    '-Ypa08bsXihimzV9'
    >>> definition_key_of("qname:shop:builtins.sum") is None
    True
    """
    node = entity_id.split(";")[1] if ";" in entity_id else entity_id
    key = node.partition(":")[2].partition(".")[0]
    return key if len(key) == KEY_CHARS and ":" not in key else None


def is_definition(change: ElementChange) -> bool:
    """Whether a change is of a definition, which has a page of its own."""
    return change.element == "node" and change.kind in DEFINITIONS


def _first_line(group: DefinitionChanges) -> int:
    lines = [each.line for each in (group.own, *group.inside) if each is not None and each.line is not None]
    return min(lines, default=0)


def _share(count: KindCount) -> Any:
    """Draw the parts of a kind that were added, removed and changed."""
    return share_bar(
        [
            (name, f"{getattr(count, name):,} {name}", getattr(count, name))
            for name in ("added", "removed", "changed")
        ]
    )


def value_text(value: Any) -> str:
    """Format a value before or after; a long one is cut.

    >>> value_text(None), value_text("a"), value_text([1])
    ('-', 'a', '[1]')
    """
    if value is None:
        return "-"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_CHARS else f"{text[:VALUE_CHARS]}... ({len(text):,} characters)"


PAGES: tuple[tuple[str, Page], ...] = (("/diff", diff_page),)
FORMS: tuple[tuple[str, Page], ...] = ()
