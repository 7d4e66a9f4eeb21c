"""Read rows of pinned tables by file, with DuckDB: on the driver, or where a task runs.

    [wanted] = stored_rows("shop", {"ast_files_v1": reads}, {"file:a"})
    read_stored(run, wanted)                               # as a table
    ReadStored()(read_tasks(run, [wanted])[0])             # as pieces, in a task

Only data files that may hold rows of the repository and the files are read, by the log's statistics, and of
them only row groups that do. Tests: `tests/unit/pipeline/test_stored_rows.py`,
`tests/unit/pipeline/test_many_repositories.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa
from msgspec import Struct, structs

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema, pack_rows
from codeanatomy.delta.events import Scanned
from codeanatomy.delta.read.duck import lookup_connection, select_rows, translate_errors
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.light import light_files
from codeanatomy.delta.read.predicate import DUCKDB, InList, IsNull, Predicate, Term
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.file_view import Reads, TableReads, key_columns, project
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.executors.executor import StoredRows
from codeanatomy.pipeline.tasks.chunks import owner_column, rows_by_chunk
from codeanatomy.pipeline.tasks.pieces import MB, Pieces, cut

# Bytes of data files that a task reads.
READ_BYTES = 16 * MB
# Rows that are read at a time; of nested tables a row group has fewer.
BATCH_ROWS = 2048


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


class FileReads(Struct, frozen=True):
    """Data files of which rows are read where a task runs."""

    root: str
    table: str
    repo_id: str
    # Name of the pieces.
    name: str
    # The condition for the rows, as DuckDB writes it.
    where: str
    reads: TableReads
    files: tuple[LoggedFile, ...] = ()
    # Number of chunks of the repository.
    chunks: int = 1

    def query(self) -> str:
        """Return the SQL of the rows."""
        listed = ", ".join(f'"{each}"' for each in self.columns)
        return f"SELECT {listed} FROM ({select_rows(self.root, self.table, self.files)}) WHERE {self.where}"

    @property
    def columns(self) -> list[str]:
        """The columns that are read, in the order of the table."""
        table = catalog.table(self.table)
        read = {*key_columns(table.name), *self.reads}
        return [each for each in table.column_names if each in read]

    @property
    def schema(self) -> pa.Schema:
        """The types of the columns that are read."""
        schema = arrow_schema(catalog.table(self.table))
        return pa.schema([schema.field(each) for each in self.columns])


def file_reads(run: Run, wanted: StoredRows) -> FileReads:
    """Find the data files with wanted rows, at the version that the run has pinned; none without a table."""
    predicate = stored_predicate(wanted)
    reads = FileReads(
        run.store.root,
        wanted.table,
        wanted.repo_id,
        wanted.name,
        predicate.sql(DUCKDB),
        wanted.reads,
    )
    version = run.pins.get(wanted.table) if wanted.version is None else wanted.version
    if version is None or wanted.owners == ():
        return reads
    there = light_files(run.store.root, wanted.table, version)
    files = [file for file in there if predicate.may_match(file.column_range)]
    run.observed(
        Scanned(
            table=wanted.table,
            version=version,
            projection=(),
            total_files=len(there),
            candidate_files=len(files),
            pushed_filters=predicate.shape,
            filter_columns=predicate.columns,
            projected_columns=tuple(reads.columns),
        )
    )
    # What is known of their columns has been used.
    return structs.replace(reads, files=tuple(structs.replace(file, column_ranges={}) for file in files))


def read_stored(run: Run, wanted: StoredRows) -> pa.Table:
    """Read rows at the version that the run has pinned; none if the table does not exist."""
    reads = file_reads(run, wanted)
    if not reads.files:
        return arrow_schema(catalog.table(wanted.table)).empty_table()
    with translate_errors(), lookup_connection() as connection:
        rows: pa.Table = connection.sql(reads.query()).to_arrow_table()
    return rows.cast(reads.schema)


def read_tasks(run: Run, rows: Sequence[StoredRows]) -> list[list[FileReads]]:
    """Divide data files with wanted rows into tasks, so that a task reads few megabytes."""
    tasks: list[list[FileReads]] = []
    filled = READ_BYTES
    for wanted in rows:
        reads = structs.replace(file_reads(run, wanted), chunks=run.chunk_count(wanted.repo_id))
        for file in reads.files:
            if filled >= READ_BYTES:
                tasks.append([])
                filled = 0
            one = structs.replace(reads, files=(file,))
            last = tasks[-1][-1] if tasks[-1] else None
            if last is not None and structs.replace(last, files=()) == structs.replace(reads, files=()):
                tasks[-1][-1] = structs.replace(last, files=(*last.files, file))
            else:
                tasks[-1].append(one)
            filled += file.size_bytes
    return tasks


class ReadStored(Struct, frozen=True):
    """Read rows of pinned tables as pieces, in chunks of files, where a task runs."""

    # Access to the object store of the lake, for a process that has not opened it.
    policy: StorePolicy | None = None

    def __call__(self, tasks: Iterable[FileReads]) -> Pieces:
        """Yield the pieces."""
        for reads in tasks:
            if self.policy is not None:
                register_policy(reads.root, self.policy)
            with translate_errors(), lookup_connection() as connection:
                batches = connection.sql(reads.query()).to_arrow_reader(BATCH_ROWS)
                for number, batch in enumerate(batches):
                    yield from _stored_pieces(reads, number, batch.cast(reads.schema))


def _stored_pieces(reads: FileReads, number: int, rows: pa.RecordBatch) -> Pieces:
    # No other batch has this key: a data file is read once for a name.
    key = f"{reads.files[0].path}\t{number:06d}"
    for chunk, members in rows_by_chunk(reads.table, rows, reads.chunks):
        data = pack_rows(project(reads.table, members, reads.reads))
        yield from cut(reads.repo_id, chunk, reads.name, data, key)
