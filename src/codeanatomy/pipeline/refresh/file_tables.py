"""Read rows of a table by file: those that this run has made, otherwise those that are published.

    inputs = Inputs("lake", "shop", {"ast_files_v1": 3, ...})
    inputs.put("ast_files_v1", ["file:a"], rows)             # made in this run, perhaps not committed yet
    inputs.of_files("ast_files_v1", ["file:a", "file:b"])    # by file: from this run, from the lake

Only data files that may hold rows of the repository and the files are read, by the log's statistics, and of
them only row groups that do. Tests: `tests/unit/pipeline/test_refresh_file_tables.py`,
`tests/unit/pipeline/test_many_repositories.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.events import Recorder, Scanned, discard
from codeanatomy.delta.read.duck import local_path, lookup_connection, select_rows, translate_errors
from codeanatomy.delta.read.light import light_files
from codeanatomy.delta.read.predicate import DUCKDB, InList, IsNull, Not, Predicate, Term


class Inputs:
    """The rows of a repository in a lake at pinned versions, overlaid with the rows of this run."""

    def __init__(self, lake: str, repo_id: str, pins: Mapping[str, int], record: Recorder = discard) -> None:
        self._lake = lake
        self._repo_id = repo_id
        self._pins = dict(pins)
        self._record = record
        self._made: dict[str, dict[str, pa.Table]] = {}
        self._made_unowned: dict[str, pa.Table] = {}
        self._stored_unowned: dict[str, pa.Table] = {}
        self._ahead: dict[str, Future[pa.Table]] = {}

    def put(self, name: str, owners: Iterable[str], rows: pa.Table, *, is_shared: bool = False) -> None:
        """Overlay the rows of files, possibly none, and with `is_shared` those without an owner."""
        made = self._made.setdefault(name, {})
        made |= dict.fromkeys(owners, rows.schema.empty_table())
        made |= by_owner(catalog.table(name), rows)
        if is_shared:
            self._made_unowned[name] = rows.filter(pc.is_null(rows.column(_owner(catalog.table(name)))))

    def of_files(
        self, name: str, owners: Collection[str], columns: Collection[str] | None = None
    ) -> dict[str, pa.Table]:
        """The rows of files, by file, of those that have any."""
        made = self._made.get(name, {})
        rows = {owner: made[owner] for owner in owners if owner in made and made[owner].num_rows}
        others = [owner for owner in owners if owner not in made]
        if others:
            table = catalog.table(name)
            of_others = InList.of(table.column(_owner(table)), others)
            rows |= by_owner(table, self._stored(name, of_others, columns=columns))
        return rows

    def all_files(self, name: str) -> pa.Table:
        """The rows of all files."""
        table = catalog.table(name)
        made = self._made.get(name, {})
        ahead = self._ahead.pop(name, None)
        stored = self._stored_files(name) if ahead is None else ahead.result()
        if made:
            known = pa.array(list(made), pa.string())
            stored = stored.filter(pc.invert(pc.is_in(stored.column(_owner(table)), value_set=known)))
        return pa.concat_tables([stored, *(rows for rows in made.values() if rows.num_rows)])

    def read_ahead(self, name: str) -> None:
        """Start reading in the background what `all_files` will return."""
        pool = ThreadPoolExecutor(1)
        self._ahead[name] = pool.submit(self._stored_files, name)
        pool.shutdown(wait=False)

    def _stored_files(self, name: str) -> pa.Table:
        table = catalog.table(name)
        return self._stored(name, Not(IsNull(table.column(_owner(table)))))

    def unowned(self, name: str, *, published: bool = False) -> pa.Table:
        """The rows that belong to no file: those made since, or as they are published."""
        if name in self._made_unowned and not published:
            return self._made_unowned[name]
        if name not in self._stored_unowned:
            table = catalog.table(name)
            self._stored_unowned[name] = self._stored(name, IsNull(table.column(_owner(table))))
        return self._stored_unowned[name]

    def where(self, name: str, values: Mapping[str, str]) -> pa.Table:
        """The published rows with these values."""
        table = catalog.table(name)
        equal = (InList.of(table.column(column), (value,)) for column, value in values.items())
        return self._stored(name, *equal)

    def _stored(self, name: str, *terms: Term, columns: Collection[str] | None = None) -> pa.Table:
        """Read the published rows of the repository that meet all terms."""
        table = catalog.table(name)
        schema = arrow_schema(table)
        if name not in self._pins:
            return schema.empty_table()
        of_repository = InList.of(table.column("repo_id"), (self._repo_id,))
        predicate = Predicate.all_of(table, of_repository, *terms)
        there = light_files(self._lake, name, self._pins[name])
        files = [file for file in there if predicate.may_match(file.column_range)]
        names = [each for each in table.column_names if columns is None or each in columns]
        self._record(
            Scanned(
                table=name,
                version=self._pins[name],
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
            stored = select_rows(local_path(self._lake), name, files)
            query = f"SELECT {listed} FROM ({stored}) WHERE {predicate.sql(DUCKDB)}"
            rows: pa.Table = connection.sql(query).to_arrow_table()
        return rows.cast(pa.schema([schema.field(each) for each in names]))


def by_owner(table: Table, rows: pa.Table) -> dict[str, pa.Table]:
    """Group rows by the file that owns them; rows without an owner are left out."""
    if not rows.num_rows:
        return {}
    owner = _owner(table)
    keys = rows.column(owner).combine_chunks()
    order = pc.sort_indices(keys)
    ordered, runs = rows.take(order), pc.run_end_encode(keys.take(order))
    groups: dict[str, pa.Table] = {}
    start = 0
    for value, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        if value is not None:
            groups[value] = ordered.slice(start, end - start)
        start = end
    return groups


def _owner(table: Table) -> str:
    if table.owner is None:
        raise ValueError(f"rows of {table.name} have no owner")
    return table.owner
