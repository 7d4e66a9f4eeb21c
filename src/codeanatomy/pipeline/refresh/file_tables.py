"""Read rows of a table by file: those that this run has made, otherwise those that are published.

    inputs = Inputs("lake", {"ast_files_v1": 3, ...})
    inputs.put("ast_files_v1", ["file:a"], rows)             # made in this run, perhaps not committed yet
    inputs.of_files("ast_files_v1", ["file:a", "file:b"])    # by file: from this run, from the lake

Only data files that may hold rows of the files are read, by the log's statistics, and of them only row groups
that do. Tests: `tests/unit/pipeline/test_refresh_file_tables.py`.
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
from codeanatomy.delta.read.duck import (
    local_path,
    lookup_connection,
    select_rows,
    sql_literal,
    translate_errors,
)
from codeanatomy.delta.read.light import light_files


class Inputs:
    """The rows of a lake at pinned versions, overlaid with the rows of this run."""

    def __init__(self, lake: str, pins: Mapping[str, int], record: Recorder = discard) -> None:
        self._lake = lake
        self._pins = dict(pins)
        self._record = record
        self._made: dict[str, dict[str, pa.Table]] = {}
        self._made_unowned: dict[str, pa.Table] = {}
        self._stored_unowned: dict[tuple[str, str], pa.Table] = {}
        self._ahead: dict[tuple[str, str], Future[pa.Table]] = {}

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
        others = sorted(owner for owner in owners if owner not in made)
        if others:
            rows |= by_owner(catalog.table(name), self._stored(name, others, columns))
        return rows

    def all_files(self, name: str, repo_id: str) -> pa.Table:
        """The rows of all files of a repository."""
        table = catalog.table(name)
        made = self._made.get(name, {})
        ahead = self._ahead.pop((name, repo_id), None)
        stored = self._stored_files(name, repo_id) if ahead is None else ahead.result()
        if made:
            known = pa.array(list(made), pa.string())
            stored = stored.filter(pc.invert(pc.is_in(stored.column(_owner(table)), value_set=known)))
        return pa.concat_tables([stored, *(rows for rows in made.values() if rows.num_rows)])

    def read_ahead(self, name: str, repo_id: str) -> None:
        """Start reading in the background what `all_files` will return."""
        pool = ThreadPoolExecutor(1)
        self._ahead[name, repo_id] = pool.submit(self._stored_files, name, repo_id)
        pool.shutdown(wait=False)

    def _stored_files(self, name: str, repo_id: str) -> pa.Table:
        owner = _owner(catalog.table(name))
        condition = f"repo_id = {sql_literal(repo_id)} AND {owner} IS NOT NULL"
        return self._selected(name, condition, ("repo_id", owner))

    def unowned(self, name: str, repo_id: str, *, published: bool = False) -> pa.Table:
        """The rows of a repository that belong to no file: those made since, or as they are published."""
        if name in self._made_unowned and not published:
            return self._made_unowned[name]
        key = name, repo_id
        if key not in self._stored_unowned:
            condition = f"repo_id = {sql_literal(repo_id)} AND {_owner(catalog.table(name))} IS NULL"
            self._stored_unowned[key] = self._selected(
                name, condition, ("repo_id", _owner(catalog.table(name)))
            )
        return self._stored_unowned[key]

    def where(self, name: str, values: Mapping[str, str]) -> pa.Table:
        """The published rows with these values."""
        equal = (f"{column} = {sql_literal(value)}" for column, value in values.items())
        return self._selected(name, " AND ".join(equal), values)

    def _stored(self, name: str, owners: Collection[str], columns: Collection[str] | None) -> pa.Table:
        owner = _owner(catalog.table(name))
        listed = ", ".join(map(sql_literal, owners))
        return self._selected(name, f"{owner} IN ({listed})", (owner,), columns, owners)

    def _selected(
        self,
        name: str,
        condition: str,
        filtered: Iterable[str],
        columns: Collection[str] | None = None,
        owners: Collection[str] | None = None,
    ) -> pa.Table:
        table = catalog.table(name)
        schema = arrow_schema(table)
        if name not in self._pins:
            return schema.empty_table()
        files = there = light_files(self._lake, name, self._pins[name])
        if owners is not None:
            owners = sorted(owners)
            files = tuple(file for file in files if file.may_hold(_owner(table), owners))
        names = [each for each in table.column_names if columns is None or each in columns]
        self._record(
            Scanned(
                table=name,
                version=self._pins[name],
                projection=(),
                total_files=len(there),
                candidate_files=len(files),
                filter_columns=tuple(filtered),
                projected_columns=tuple(names),
            )
        )
        listed = ", ".join(f'"{each}"' for each in names)
        with translate_errors(), lookup_connection() as connection:
            query = (
                f"SELECT {listed} FROM ({select_rows(local_path(self._lake), name, files)}) WHERE {condition}"
            )
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
