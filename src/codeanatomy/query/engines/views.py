"""The views of the catalogue as queries over one snapshot.

    reader.rows(view_query(catalog.views.view("calls"), snapshot), limit=20)

The tables that a view names become slices. What the manifest of the snapshot knows, its repositories and the
runs that have read them, becomes rows in memory. Tests: `tests/unit/catalog/test_views.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from codeanatomy.catalog.views import View
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.engines.statements import InlineRows, Query, Relation, Row, Slice

ERRORS = "extract_error_artifacts"


def view_query(view: View, snapshot: Snapshot) -> Query:
    """A view as a statement and what the names in it stand for."""
    relations: dict[str, Relation] = {
        name: _slice(table, wanted, snapshot) for name, (table, wanted) in view.reads.items()
    }
    for name, columns in view.supplied.items():
        relations[name] = InlineRows(
            columns, [INLINE_ROWS[name](row) for row in snapshot.repositories.values()]
        )
    return Query(view.sql, relations, columns=view.column_names)


def _slice(table: str, wanted: Mapping[str, tuple[str, ...]], snapshot: Snapshot) -> Slice:
    if table != ERRORS:
        return Slice(table, **wanted)
    # The table has rows of all runs; only the files of the published runs are opened.
    runs = {row.extract_run_id for row in snapshot.repositories.values()}
    return Slice(table, run_id=sorted(runs), **wanted)


def _built(row: RunManifest) -> Row:
    return row.repo_id, row.extract_run_id


def _repository(row: RunManifest) -> Row:
    counts = row.row_counts
    files, nodes, edges = (counts.get(name) for name in ("repo_file_blobs_v1", "cpg_nodes", "cpg_edges"))
    return row.repo_id, row.run_id, row.git_commit, row.repo_root, files, nodes, edges


# Rows of the manifest, by the relation name in the statements of views.
INLINE_ROWS = {"built": _built, "built_repositories": _repository}
