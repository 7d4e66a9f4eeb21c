"""Explain why a file that was not edited is redone: what changed in the definitions it refers to.

    impact_of(refresh, relinked(before, now, owners), paths)
    # (Impact("app/b.py", "changed"), Impact("app/a.py", "resolved", "app.b.helper", 3))

    resolved      a name or call without a target has one now: something was added
    lost          its target is gone or no longer known
    star_import   what a star import brings has changed
    import        an import, or a re-export, leads elsewhere
    class         a base class, or a method that is overridden, is another one
    value         what is called or read follows from values that functions return, take or store
    moved         the same definition, by name, at another place of its file
    reference     anything else that leads elsewhere
    witness       none of these, but a SCIP index or a type checker reports other rows for the file

A file with several reasons gets the first in this list, with the number of its relations.
Tests: `tests/unit/pipeline/test_refresh_impact.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import to_python
from codeanatomy.pipeline.refresh.file_tables import by_owner
from codeanatomy.pipeline.refresh.refresh_state import Refresh, ids_of
from codeanatomy.pipeline.refresh.relink import Relinked
from codeanatomy.plan.changes import FILES, PROGRAM_TABLES, Impact
from codeanatomy.relate.relation_rows import RELATIONS

REASONS = ("resolved", "lost", "star_import", "import", "class", "value", "moved", "reference")
IMPORTS = frozenset({"IMPORTS_MODULE", "IMPORTS_NAME", "RE_EXPORTS"})
HIERARCHY = frozenset({"INHERITS", "OVERRIDES"})
BY_VALUES = frozenset({"values", "callback", "mro", "self", "annotation", "calls"})
# The kind of a call relation depends on its target; for the comparison all of them are calls.
CALLS = {"CALLS_NAME": "CALLS", "INSTANTIATES": "CALLS"}
# Targets outside of the repository.
OUTSIDE = frozenset({"QUALIFIED_NAME", "EXTERNAL_MODULE"})
COLUMNS = (
    "relation_kind",
    "src_id",
    "role",
    "ordinal",
    "dst_kind",
    "dst_id",
    "dst_qname",
    "resolution_method",
)


class RelationTarget(NamedTuple):
    """Where a relation leads to."""

    # None if the target is outside of the repository or unknown.
    node: str | None
    name: str | None
    method: str | None


# What identifies the origin of a relation: kind, source node, role and ordinal.
Source: TypeAlias = tuple[str, str, str | None, int | None]
Targets: TypeAlias = Mapping[Source, frozenset[RelationTarget]]


def impact_of(refresh: Refresh, links: Relinked, paths: Mapping[str, str]) -> tuple[Impact, ...]:
    """Return the reason for each file that is redone: edited files first, then the others by path."""
    before, now = (by_owner(catalog.table(RELATIONS), rows) for rows in (links.before, links.now))
    impact = [Impact(change.path, change.how) for change in refresh.changes]
    for owner, path in paths.items():
        was, becomes = (_targets(each.get(owner)) for each in (before, now))
        impact.append(_impact(path, was, becomes))
    impact += _by_witnesses(refresh, ids_of(refresh.changes).union(paths))
    return tuple(sorted(impact, key=lambda each: (each.relations > 0, each.path)))


def _by_witnesses(refresh: Refresh, explained: frozenset[str]) -> Iterator[Impact]:
    """Explain files whose whole-program evidence changed and that have no other reason."""
    files = sorted(refresh.touched_in(*PROGRAM_TABLES) - explained)
    rows = refresh.inputs.of_files(FILES, files, ("file_id", "path"))
    return (Impact(file.column("path")[0].as_py(), "witness") for file in rows.values())


def _targets(rows: pa.Table | None) -> Targets:
    targets_by_source: defaultdict[Source, set[RelationTarget]] = defaultdict(set)
    if rows is not None:
        columns = [to_python(rows.column(name).combine_chunks()) for name in COLUMNS]
        for kind, src, role, ordinal, end, node, name, method in zip(*columns, strict=True):
            source = CALLS.get(kind, kind), src, role, ordinal
            targets_by_source[source].add(RelationTarget(None if end in OUTSIDE else node, name, method))
    return {source: frozenset(targets) for source, targets in targets_by_source.items()}


def _impact(path: str, was: Targets, now: Targets) -> Impact:
    counts: Counter[str] = Counter()
    names: dict[str, str] = {}
    for source in sorted(was.keys() | now.keys(), key=str):
        old, new = was.get(source, frozenset()), now.get(source, frozenset())
        if old == new:
            continue
        reason = _reason(source[0], old, new)
        counts[reason] += 1
        names.setdefault(reason, min(_names((*(new - old), *(old - new))), default=""))
    # The target may be the same with another confidence or origin.
    first = next((reason for reason in REASONS if counts[reason]), "reference")
    return Impact(path, first, names.get(first) or None, max(counts[first], 1))


def _names(targets: Iterable[RelationTarget]) -> Iterator[str]:
    return (target.name for target in targets if target.name)


def _reason(kind: str, old: frozenset[RelationTarget], new: frozenset[RelationTarget]) -> str:
    had_target, has_target = (any(target.node is not None for target in targets) for targets in (old, new))
    if had_target != has_target:
        return "resolved" if has_target else "lost"
    methods = {target.method for target in old ^ new}
    if "star_import" in methods:
        return "star_import"
    if set(_names(old)) == set(_names(new)) and any(_names(old)):
        return "moved"
    if kind in IMPORTS:
        return "import"
    if kind in HIERARCHY:
        return "class"
    return "value" if methods & BY_VALUES else "reference"
