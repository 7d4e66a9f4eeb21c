"""Explain why a file that was not edited is redone: where its relations lead to, before and now.

    file_impact(group, batches, explained)     # a piece with the reason for each of these files of the chunk
    # Impact("app/a.py", "resolved", "app.b.helper", 3)

    resolved      a name or call without a target has one now: something was added
    lost          its target is gone or no longer known
    star_import   what a star import brings has changed
    import        an import, or a re-export, leads elsewhere
    class         a base class, or a method that is overridden, is another one
    value         what is called or read follows from values that functions return, take or store
    reference     anything else that leads elsewhere
    witness       none of these, but a SCIP index or a type checker reports other rows for the file

A file with several reasons gets the first in this list, with the number of its relations.
Tests: `tests/unit/pipeline/test_impact.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, json

from codeanatomy.arrow import to_python
from codeanatomy.file_view import TableReads
from codeanatomy.pipeline.executors.executor import Group
from codeanatomy.pipeline.tasks.chunks import rows_by_owner
from codeanatomy.pipeline.tasks.pieces import IMPACT, STORED, Piece, Pieces, batches_of
from codeanatomy.plan.changes import Impact
from codeanatomy.relate.relation_rows import RELATIONS

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
# What is read of the relations that are stored.
COMPARED: TableReads = dict.fromkeys(COLUMNS, ())
# Name of the pieces with the stored relations.
BEFORE = STORED + RELATIONS


class RelationTarget(NamedTuple):
    """Where a relation leads to."""

    # None if the target is outside of the repository or unknown.
    node: str | None
    name: str | None
    method: str | None


# What identifies the origin of a relation: kind, source node, role and ordinal.
Source: TypeAlias = tuple[str, str, str | None, int | None]
Targets: TypeAlias = Mapping[Source, frozenset[RelationTarget]]


class ExplainImpact(Struct, frozen=True):
    """Find the reasons for files that were not edited and have other relations than before."""

    frame_name: ClassVar[str] = "impact"

    explained: frozenset[str]

    def __call__(self, groups: Iterator[Group]) -> Pieces:
        """Compare the relations of chunks of files."""
        for group in groups:
            yield from file_impact(group, batches_of(group.pieces), self.explained)


def file_impact(
    group: Group, batches: Mapping[str, Sequence[pa.RecordBatch]], explained: Collection[str]
) -> Pieces:
    """Yield the reasons for files of a chunk that were not edited and have other relations now."""
    before, now = (_by_file(batches.get(name, ()), explained) for name in (BEFORE, RELATIONS))
    impact = []
    for file_id in sorted(before.keys() | now.keys()):
        was, becomes = (_targets(relations.get(file_id)) for relations in (before, now))
        path = (before if file_id in before else now)[file_id].column("path")[0].as_py()
        impact.append(_impact(path, was, becomes))
    if impact:
        yield Piece(group.repo_id, group.chunk, "", IMPACT, 0, 1, json.encode(impact))


def edited_first(impact: Iterable[Impact]) -> tuple[Impact, ...]:
    """Order reasons: files that were edited, then those whose relations differ, by path."""
    return tuple(sorted(impact, key=lambda each: (each.relations > 0, each.path)))


def _by_file(batches: Sequence[pa.RecordBatch], files: Collection[str]) -> dict[str, pa.Table]:
    wanted = pa.array(sorted(files), pa.string())
    names = ["owner_file_id", "path", *COLUMNS]
    # Stored rows of other files have fewer columns than those of the solve.
    own = [
        rows.filter(pc.is_in(rows.column("owner_file_id"), value_set=wanted)).select(names)
        for rows in batches
    ]
    present = [rows for rows in own if rows.num_rows]
    by_file = rows_by_owner(pa.Table.from_batches(present), "owner_file_id") if present else {}
    return {file_id: rows for file_id, rows in by_file.items() if file_id}


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
