"""Read rows of pinned tables by file, without Spark.

    [wanted] = stored_rows("shop", {"ast_files_v1": reads}, {"file:a"})
    read_stored(run, wanted)

Only data files that may hold rows of the repository and the files are read, by the log's statistics, and of
them only row groups that do. Tests: `tests/unit/pipeline/test_stored_rows.py`,
`tests/unit/pipeline/test_many_repositories.py`.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.events import Scanned
from codeanatomy.delta.read.duck import lookup_connection, select_rows, translate_errors
from codeanatomy.delta.read.light import light_files
from codeanatomy.delta.read.predicate import DUCKDB, InList, IsNull, Predicate, Term
from codeanatomy.file_view import Reads, key_columns
from codeanatomy.pipeline.chunks import owner_column
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.executors.executor import StoredRows


def stored_rows(
    repo_id: str,
    reads: Reads,
    owners: Collection[str] | None = None,
    lead: str = "",
    *,
    is_unowned: bool = False,
) -> list[StoredRows]:
    """Name rows of tables of a repository: of some files, or all; their pieces have the table's name."""
    files = None if owners is None else tuple(sorted(owners))
    return [
        StoredRows(name, repo_id, files, columns, lead + name, is_unowned) for name, columns in reads.items()
    ]


def all_columns(*names: str) -> Reads:
    """Return the reads of whole tables."""
    return {name: dict.fromkeys(catalog.table(name).column_names, ()) for name in names}


def stored_predicate(wanted: StoredRows) -> Predicate:
    """Return the condition for the rows."""
    table = catalog.table(wanted.table)
    terms: list[Term] = [InList.of(table.column("repo_id"), (wanted.repo_id,))]
    if wanted.is_unowned:
        terms.append(IsNull(table.column(owner_column(table))))
    elif wanted.owners is not None:
        terms.append(InList.of(table.column(owner_column(table)), wanted.owners))
    return Predicate.all_of(table, *terms)


def read_stored(run: Run, wanted: StoredRows) -> pa.Table:
    """Read rows at the version that the run has pinned; none if the table does not exist."""
    table = catalog.table(wanted.table)
    schema = arrow_schema(table)
    if wanted.table not in run.pins or wanted.owners == ():
        return schema.empty_table()
    version, root = run.pins[wanted.table], run.store.root
    predicate = stored_predicate(wanted)
    there = light_files(root, wanted.table, version)
    files = [file for file in there if predicate.may_match(file.column_range)]
    read = {*key_columns(table.name), *wanted.reads}
    names = [each for each in table.column_names if each in read]
    run.observed(
        Scanned(
            table=wanted.table,
            version=version,
            projection=(),
            total_files=len(there),
            candidate_files=len(files),
            pushed_filters=predicate.shape,
            filter_columns=predicate.columns,
            projected_columns=tuple(names),
        )
    )
    listed = ", ".join(f'"{each}"' for each in names)
    with translate_errors(), lookup_connection() as connection:
        stored = select_rows(root, wanted.table, files)
        query = f"SELECT {listed} FROM ({stored}) WHERE {predicate.sql(DUCKDB)}"
        rows: pa.Table = connection.sql(query).to_arrow_table()
    return rows.cast(pa.schema([schema.field(each) for each in names]))
