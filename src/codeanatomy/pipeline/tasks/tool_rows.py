"""Compare the rows of tools with the stored ones: only files about which they differ count as changed.

    DifferingRows(frozenset({"shop"}), sink)(groups)   # a group per repository: writes rows that differ

SCIP indexes and type checker reports are made again as a whole.

Tests: `tests/unit/pipeline/test_tool_rows.py`, `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pyarrow as pa
from msgspec import Struct, msgpack

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.executors.executor import Group
from codeanatomy.pipeline.tasks.chunks import owner_column, rows_by_owner
from codeanatomy.pipeline.tasks.graph_stage import are_same
from codeanatomy.pipeline.tasks.pieces import OUTCOME, STORED, Piece, Pieces, batches_of
from codeanatomy.pipeline.tasks.sinks import Sink
from codeanatomy.plan.changes import TOOL_TABLES


class ToolOutcome(Struct, frozen=True):
    """What differs between the rows of tools and the stored ones."""

    # By table: files with other rows.
    owners: dict[str, list[str]] = {}
    # Tables whose rows of no file differ.
    shared: list[str] = []
    # Files that the index has or had documents of, but the repository lacks.
    missing: list[str] = []


class DifferingRows(Struct, frozen=True):
    """Write the rows of files that differ, of some repositories."""

    frame_name: ClassVar[str] = "differing tool rows"

    repositories: frozenset[str]
    sink: Sink

    def __call__(self, groups: Iterator[Group]) -> Pieces:
        """Compare the rows."""
        sink = self.sink.open()
        for group in (group for group in groups if group.repo_id in self.repositories):
            batches = batches_of(group.pieces)
            owners: dict[str, list[str]] = {}
            shared: list[str] = []
            missing: set[str] = set()
            for name in TOOL_TABLES:
                schema = arrow_schema(catalog.table(name))
                now, before = (
                    pa.Table.from_batches(
                        [rows.select(schema.names) for rows in batches.get(each, ())], schema
                    )
                    for each in (name, STORED + name)
                )
                owners[name], is_shared, rows = _differing(name, now, before)
                shared += [name] if is_shared else []
                missing.update(
                    *(_missing(group.repo_id, each) for each in (now, before)) if name == SCIP else ()
                )
                for batch in rows.combine_chunks().to_batches():
                    sink.add(name, batch)
            outcome = ToolOutcome(owners, shared, sorted(missing))
            yield Piece(group.repo_id, "", "", OUTCOME, 0, 1, msgpack.encode(outcome))
        yield from sink.close()


def _differing(name: str, now: pa.Table, before: pa.Table) -> tuple[list[str], bool, pa.Table]:
    """Return the files with other rows, whether rows of no file differ, and the new rows of both."""
    column = owner_column(catalog.table(name))
    of_now, of_before = rows_by_owner(now, column), rows_by_owner(before, column)
    nothing = now.schema.empty_table()
    differing = [
        owner
        for owner in of_now.keys() | of_before.keys()
        if not are_same(name, of_now.get(owner, nothing), of_before.get(owner, nothing))
    ]
    rows = [of_now[owner] for owner in sorted(differing, key=str) if owner in of_now]
    files = sorted(owner for owner in differing if owner is not None)
    return files, None in differing, pa.concat_tables([nothing, *rows])


def _missing(repo_id: str, rows: pa.Table) -> set[str]:
    """Return the ids that files of documents would have which the repository lacks."""
    cells = zip(*(rows.column(each).to_pylist() for each in ("path", "row_kind", "file_id")), strict=True)
    return {file_id(repo_id, path) for path, kind, own in cells if own is None and kind == "document"}
