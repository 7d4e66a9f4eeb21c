"""Commit rows of owners to one table without a JVM, and check what every reader sees of each version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from msgspec import structs

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.spec import FeatureName, Table
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import Committed
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.light_feed import changed_owners
from codeanatomy.delta.log.deletion_vectors import DeletionVector
from codeanatomy.delta.read.duck import lookup_connection, select_rows
from codeanatomy.delta.read.light import light_files, light_table, table_facts
from codeanatomy.delta.read.open_table import newest_version
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.data_files import write_files
from codeanatomy.delta.write.file_commits import commit_files
from codeanatomy.ids import stable_id
from codeanatomy.node_ids import file_id
from support.log_files import replay_vectors

# Partitioned by kind, and sorted.
NODES = catalog.table("cpg_nodes")
# Sorted alone.
LINES = catalog.table("file_line_index_v1")
Row = dict[str, Any]
Counts = Counter[tuple[str | None, ...]]


def owner(number: int, repo_id: str = "a") -> str:
    return file_id(repo_id, f"{number}.py")


def nodes_of(number: int | None, rows: int, *kinds: str, repo_id: str = "a") -> list[Row]:
    """Return this many nodes of each kind, owned by a file or by the repository."""
    file = None if number is None else owner(number, repo_id)
    return [
        {
            "repo_id": repo_id,
            "node_id": stable_id("node", repo_id, kind, number, place),
            "node_kind": kind,
            "file_id": file,
            "path": None if number is None else f"{number}.py",
            **({} if number is None else {"bstart": place, "bend": place + 1, "line": 1}),
            "qualname": f"m.{place}",
            "owner_file_id": file,
        }
        for kind in kinds or ("CLASS", "FUNCTION")
        for place in range(rows)
    ]


def lines_of(number: int, rows: int, repo_id: str = "a") -> list[Row]:
    return [
        {
            "repo_id": repo_id,
            "file_id": owner(number, repo_id),
            "path": f"{number}.py",
            "file_sha256": "0" * 64,
            "line_no": line,
            "line_start_byte": line,
            "line_end_byte": line + 1,
            "newline_kind": "lf",
        }
        for line in range(rows)
    ]


class Lake:
    """A table that Python writes, and the rows it should have."""

    def __init__(self, tables: LakeTables, table: Table, by: str) -> None:
        self.tables, self.table, self.by = tables, table, by
        self.location = tables.location(table.name)
        self.rows: dict[tuple[str, str | None], list[Row]] = {}
        # The rows of every version.
        self.history: list[Counts] = []

    def swap(self, *rows: Row, owners: Iterable[str] = (), shared_repos: Iterable[str] = ()) -> Committed:
        """Replace the rows of owners."""
        order = [*self.table.write.partition_by, *self.table.ordering]
        ordered = sorted(rows, key=lambda row: [str(row.get(name) or "").rjust(9) for name in order])
        batches = [pa.RecordBatch.from_pylist(ordered, schema=arrow_schema(self.table))] if rows else []
        files = write_files(self.location, self.table, batches)
        gone, shared = set(owners), set(shared_repos)
        done = commit_files(
            self.tables,
            self.table.name,
            files,
            sorted(gone),
            Commit(f"run-{len(self.history)}"),
            by=self.by,
            shared_repos=sorted(shared),
        )
        for key in [key for key in self.rows if key[1] in gone or (key[1] is None and key[0] in shared)]:
            del self.rows[key]
        for row in rows:
            self.rows.setdefault((row["repo_id"], row[self.by]), []).append(row)
        if done.committed:
            assert done.version == len(self.history)
            self.history.append(counted(self.table, [row for each in self.rows.values() for row in each]))
        return done

    @property
    def version(self) -> int:
        return newest_version(self.tables.root, self.table.name)

    def vectors(self) -> list[DeletionVector]:
        return list(replay_vectors(self.location, self.version).values())

    def light(self, version: int) -> None:
        """Check that readers without a JVM see the rows of a version."""
        root, name, expected = self.tables.root, self.table.name, self.history[version]
        columns = key_columns(self.table)
        assert counted(self.table, light_table(root, name, columns, version=version).to_pylist()) == expected
        files = light_files(root, name, version)
        with lookup_connection() as database:
            rows = database.execute(f"SELECT {', '.join(columns)} FROM ({select_rows(root, name, files)})")
            assert Counter(rows.fetchall()) == expected
        opened = DeltaTable(self.location, version=version)
        found = QueryBuilder().register("t", opened).execute(f"SELECT {', '.join(columns)} FROM t")
        assert counted(self.table, pa.table(found.read_all()).to_pylist()) == expected
        assert table_facts(root, name, version).rows == expected.total()

    def all_see(self, store: Store, *versions: int) -> None:
        """Check that all readers, Spark included, see the rows of versions, or of the newest one."""
        versions = versions or (len(self.history) - 1,)
        for version in versions:
            self.light(version)
        frames = [
            store.spark.read.format("delta")
            .option("versionAsOf", version)
            .load(self.location)
            .selectExpr(f"{version} AS version", *key_columns(self.table))
            for version in versions
        ]
        # One job: a job for each version costs a second.
        found: dict[int, Counts] = {version: Counter() for version in versions}
        for version, *row in reduce(lambda one, other: one.unionAll(other), frames).collect():
            found[version][tuple(row)] += 1
        assert found == {version: self.history[version] for version in versions}


def key_columns(table: Table) -> list[str]:
    partition = [name for name in table.write.partition_by if name not in table.primary_key]
    return [*table.primary_key, *partition]


def counted(table: Table, rows: Iterable[Row]) -> Counts:
    columns = key_columns(table)
    return Counter(tuple(row[name] for name in columns) for row in rows)


def filled(lake: Lake, files: int = 20, rows: int = 5) -> Lake:
    lake.swap(*(row for number in range(files) for row in nodes_of(number, rows)))
    return lake


def featured(table: Table, *features: FeatureName) -> Table:
    """Return the table with these features and no others."""
    return structs.replace(table, write=structs.replace(table.write, enable_features=features))


def fed(table: Table) -> Table:
    features = tuple(dict.fromkeys((*table.write.enable_features, "change_data_feed")))
    return structs.replace(table, write=structs.replace(table.write, enable_features=features))


def changed(lake: Lake, first: int, last: int, repo_id: str = "a") -> set[int]:
    """Return the numbers of the changed owners."""
    found = changed_owners(lake.tables.root, NODES.name, first, last, "owner_file_id", repo_id)
    numbers = {owner(number, repo_id): number for number in range(40)}
    return {numbers[each] for each in found}


def entry(lake: Lake, version: int) -> Path:
    return Path(lake.location, "_delta_log", f"{version:020}.json")
