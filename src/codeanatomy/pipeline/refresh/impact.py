"""Explain why a file that was not edited is redone: where its relations lead to, before and now.

    impact_of(refresh, before, now)          # rows of relations_v1, by file
    # (Impact("app/b.py", "changed"), Impact("app/a.py", "resolved", "app.b.helper", 3))

    resolved      a name or call without a target has one now: something was added
    lost          its target is gone or no longer known
    star_import   what a star import brings has changed
    import        an import, or a re-export, leads elsewhere
    class         a base class, or a method that is overridden, is another one
    value         what is called or read follows from values that functions return, take or store
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

from codeanatomy.arrow import to_python
from codeanatomy.pipeline.refresh.refresh_state import Refresh, ids_of
from codeanatomy.plan.changes import FILES, PROGRAM_TABLES, Impact

REASONS = ("resolved", "lost", "star_import", "import", "class", "value", "reference")
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
# The columns of relations before that `impact_of` reads.
COMPARED = ("owner_file_id", "path", *COLUMNS)


class RelationTarget(NamedTuple):
    """Where a relation leads to."""

    # None if the target is outside of the repository or unknown.
    node: str | None
    name: str | None
    method: str | None


# What identifies the origin of a relation: kind, source node, role and ordinal.
Source: TypeAlias = tuple[str, str, str | None, int | None]
Targets: TypeAlias = Mapping[Source, frozenset[RelationTarget]]


def impact_of(
    refresh: Refresh, before: Mapping[str, pa.Table], now: Mapping[str, pa.Table]
) -> tuple[Impact, ...]:
    """Return the reason for each file that is redone: edited files first, then the others by path.

    `before` and `now` have the relations of the files whose relations differ and that were not edited.
    """
    impact = [Impact(change.path, change.how) for change in refresh.changes]
    for owner in before.keys() | now.keys():
        was, becomes = (_targets(relations.get(owner)) for relations in (before, now))
        path = (before if owner in before else now)[owner].column("path")[0].as_py()
        impact.append(_impact(path, was, becomes))
    impact += _by_witnesses(refresh, ids_of(refresh.changes).union(before, now))
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
    if kind in IMPORTS:
        return "import"
    if kind in HIERARCHY:
        return "class"
    return "value" if methods & BY_VALUES else "reference"
