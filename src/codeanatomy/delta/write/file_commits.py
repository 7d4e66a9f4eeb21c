"""Commit data files that executors have written with Arrow (`delta.write.data_files`), without Spark.

    files = write_files(folder, table, batches)               # on executors
    done  = commit_files(store, "ast_files_v1", files, ["requests"], Commit("run-7"), by="repo_id")

The columns are the contract's, and rows that violate a rule (checked while they were written) are refused.
The log entry is written in Python (`delta.log.entries`), in milliseconds.

Existing rows of the owners are replaced: files with only their rows are removed, other files get a deletion
vector (`delta.write.owner_rows`). So the cost of a commit depends on the rows that change, not on their
neighbours. In a table without that feature, which every reader opens, the rows that stay are written again
(`delta.write.rewrite`). A commit of rows never changes the features of a table; new columns and properties of
the contract are part of the same commit.

If the table's protocol requires more of a writer, Spark reads the new files and writes their rows again
(`delta.write.spark_rows`); without a session, NeedsSpark is raised.

Tests: `tests/spark/test_file_commits.py`, `tests/unit/delta/test_deletion_vectors.py`,
`tests/unit/delta/test_copy_on_write.py`, `tests/unit/delta/test_replaced_columns.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64
from pyspark.sql.pandas.types import from_arrow_schema

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.contract import spark_schema
from codeanatomy.delta.events import Committed
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.deletion_vectors import vector_path, write_vectors
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.log.folder import NewFiles, folder_of
from codeanatomy.delta.log.protocol import FEED_ENABLED, SIMPLE_FEATURES, has_simple_protocol, writes_vectors
from codeanatomy.delta.log.versions import TableVersion, open_version
from codeanatomy.delta.store import Store
from codeanatomy.delta.store_policy import is_local, policy_for
from codeanatomy.delta.write.checks import SAMPLE_ROWS, nested_rules, rules_for
from codeanatomy.delta.write.commit import Conflict, PendingCommit, Retry, run_commit
from codeanatomy.delta.write.evolve import MetadataChange, change_in_place, evolve, new_table
from codeanatomy.delta.write.log_writer import LogWriter, require_simple
from codeanatomy.delta.write.owner_rows import OwnerRows, RemovedRows, find_removed_rows
from codeanatomy.delta.write.rewrite import rewrite_file, write_change_files
from codeanatomy.errors import ConstraintViolation, ContractError, NeedsSpark

OPERATION = "commit_files"
# Which rows of a version leave the table.
Selection = Callable[[TableVersion], list[RemovedRows]]


def has_simple_policy(table: Table) -> bool:
    """Return whether a table's policy allows writing its files without Spark."""
    features = set(table.write.enable_features) - SIMPLE_FEATURES
    return table.schema.column_mapping_mode is None and not features


def new_files(store: LakeTables, name: str, *, published: bool = False) -> NewFiles:
    """Return where files of a table are written.

    `published` if the process that writes them also uploads them: an executor may be on another machine. Else
    the commit does it.
    """
    location = store.location(name)
    if published and not is_local(location):
        return NewFiles(location, policy_for(location))
    return NewFiles(folder_of(location).new_files)


def commit_files(
    store: LakeTables,
    name: str,
    files: Sequence[DataFile],
    owners: Sequence[str],
    commit: Commit,
    *,
    by: str,
    repos: Sequence[str] = (),
    shared_repos: Sequence[str] = (),
    retry: Retry = Retry(),
) -> Committed:
    """Replace the rows of a set of owners by those in the files, in one atomic commit; append without owners.

    `repos` lists the repositories of the owners, if they are known: rows of others are not read.
    `shared_repos` lists repositories for which rows without an owner (`by` is null) are replaced too.
    No commit is made if nothing would change.
    """
    table = store.table(name)
    owned = OwnerRows(by, frozenset(owners), frozenset(repos), frozenset(shared_repos))
    current = open_version(table, store.location(name))
    if current is not None and not has_simple_protocol(current.info):
        return _rewrite_with_spark(
            _require_spark(store, table, "is written by Spark"), table, files, owned, commit, retry
        )

    def select(version: TableVersion) -> list[RemovedRows]:
        return find_removed_rows(table, version.info.location, version.files, owned)

    writer = FileWriter(store, table, files, select)
    return run_commit(
        PendingCommit(store, table, OPERATION, commit, writer, retry, current, is_new=current is None)
    )


class FileWriter(LogWriter):
    """Commit data files, and remove the selected rows."""

    def __init__(self, store: LakeTables, table: Table, files: Sequence[DataFile], select: Selection) -> None:
        self._store = store
        self._table = table
        self._files = files
        self._select = select

    def check(self) -> None:
        """Refuse files with other columns than the contract's, and rows that violate a rule."""
        folder = folder_of(self._store.location(self._table.name))
        for file in self._files:
            path = Path(folder.new_files, file.path)
            # From the footer: Spark would start a job for it. Executors keep no copies of files elsewhere.
            if path.exists():
                _refuse_other_columns(self._table, file, pq.read_schema(path))
        _refuse_broken(self._table, self._files)
        folder.publish(file.path for file in self._files)

    def write(self, change: PendingCommit, current: TableVersion | None) -> bool:
        """Write the version with the files and without the selected rows, if that changes the table."""
        if current is None:
            actions = entries.create_actions(new_table(self._store, self._table))
            actions += map(entries.add_action, self._files)
            return self.write_entry(change, None, actions, files=self._files)
        require_simple(change.table, current)
        current, removed, altered = self._prepare(change, current)
        if not self._files and not removed:
            return False
        return self._replace(change, current, removed, altered)

    def _replace(
        self,
        change: PendingCommit,
        current: TableVersion,
        removed: Sequence[RemovedRows],
        altered: MetadataChange,
    ) -> bool:
        location, state = change.location, current.state
        with_vectors = writes_vectors(current.info)
        partial = {
            each.file.logged_path: each for each in removed if with_vectors and each.positions is not None
        }
        vectors = write_vectors(
            location, {path: each.positions for path, each in partial.items() if each.positions}
        )
        copies, changes = ([], []) if with_vectors else self._rewrite(current, removed)
        actions = [
            *entries.alter_actions(state, altered.properties, altered.columns),
            *map(entries.add_action, (*self._files, *copies)),
            *map(entries.change_action, changes),
            *(
                entries.remove_action(
                    each.file, rows=each.file_rows if each.file.logged_path in partial else None
                )
                for each in removed
            ),
            *(
                entries.shrink_action(state.adds[path], each.file_rows, vectors[path])
                for path, each in partial.items()
            ),
        ]
        # All vectors are in one file.
        vector_files = {vector_path(each) for each in vectors.values()}
        return self.write_entry(
            change,
            current,
            actions,
            files=self._files,
            removal=_removal_metrics(removed, copies, changes),
            unused=[*(file.path for file in (*copies, *changes)), *(path for path in vector_files if path)],
        )

    def _rewrite(
        self, current: TableVersion, removed: Sequence[RemovedRows]
    ) -> tuple[list[DataFile], list[DataFile]]:
        """Write what stays of partly removed data files to new ones; return these and the change files."""
        table, location = self._table, current.info.location
        partial = [each for each in removed if each.positions is not None]
        if not partial:
            return [], []
        copies = [
            file
            for each in partial
            for file in rewrite_file(table, location, each.file, each.positions or BitMap64())
        ]
        has_feed = current.info.properties.get(FEED_ENABLED) == "true"
        changes = (
            write_change_files(table, location, current.info.schema_json, removed, self._files)
            if has_feed
            else []
        )
        return copies, changes

    def _prepare(
        self, change: PendingCommit, current: TableVersion
    ) -> tuple[TableVersion, list[RemovedRows], MetadataChange]:
        """Return the table with the rows to remove, and how the commit changes its metadata.

        Features that only Spark enables are enabled before, by commits of their own.
        """
        removed = self._select(current)
        leaves_rows = sum(each.positions is None for each in removed) < len(current.files)
        altered = change_in_place(self._store, self._table, current.info, leaves_rows=leaves_rows)
        if altered is not None:
            return current, removed, altered
        from codeanatomy.delta.write.spark_rows import CONFLICTS

        try:
            evolve(_require_spark(self._store, self._table, "needs new features"), self._table)
        except CONFLICTS as conflict:
            raise Conflict(type(conflict).__name__) from conflict
        # Another writer may have committed before the change of the table.
        evolved = open_version(self._table, change.location) or current
        return evolved, self._select(evolved), MetadataChange()


def _removal_metrics(
    removed: Sequence[RemovedRows], copies: Sequence[DataFile], changes: Sequence[DataFile]
) -> dict[str, int]:
    """Return the metrics of removed rows and files, under Delta's names."""
    if not removed:
        return {}
    if copies:
        return {
            "numRemovedFiles": len(removed),
            "numDeletedRows": sum(each.rows for each in removed),
            "numCopiedFiles": len(copies),
            "numCopiedRows": sum(file.rows for file in copies),
            "numAddedChangeFiles": len(changes),
        }
    partial = [each.file for each in removed if each.positions is not None]
    return {
        "numRemovedFiles": len(removed) - len(partial),
        "numDeletedRows": sum(each.rows for each in removed),
        "numDeletionVectorsAdded": sum(file.vector is None for file in partial),
        "numDeletionVectorsUpdated": sum(file.vector is not None for file in partial),
    }


def _refuse_broken(table: Table, files: Sequence[DataFile]) -> None:
    broken = [each for file in files for each in file.broken][:SAMPLE_ROWS]
    if broken:
        rules = {**rules_for(table, {}), **nested_rules(table)}
        names = sorted({name for each in broken for name in each.rules})
        samples = tuple(f"{', '.join(each.rules)}: {each.row}" for each in broken)
        raise ConstraintViolation(table.name, {name: rules[name] for name in names}, samples)


def _refuse_other_columns(table: Table, file: DataFile, schema: pa.Schema) -> None:
    actual = {field.name: field.dataType.simpleString() for field in from_arrow_schema(schema)}
    actual |= {f"partition {name}": "" for name in file.partition}
    partitions = table.write.partition_by
    expected = {column.name: column.ddl for column in table.columns if column.name not in partitions}
    expected |= {f"partition {name}": "" for name in partitions}
    if actual != expected:
        differing = sorted(
            name for name in actual.keys() | expected.keys() if actual.get(name) != expected.get(name)
        )
        raise ContractError(
            f"columns of a data file differ from the contract of {table.name}: {', '.join(differing)}",
            "fix the code that writes the file",
        )


def _require_spark(store: LakeTables, table: Table, why: str) -> Store:
    """Return the store with its Spark session; raise NeedsSpark if it has none."""
    if not isinstance(store, Store):
        raise NeedsSpark(f"{table.name} {why}", "build with a Spark session")
    return store


def _rewrite_with_spark(
    store: Store, table: Table, files: Sequence[DataFile], owned: OwnerRows, commit: Commit, retry: Retry
) -> Committed:
    """Commit the rows of the files with Spark's writer, and delete the files."""
    # Imported here: few tables need it, and commands without Spark should not wait for it.
    from codeanatomy.delta.read.scan import read_parquet_files
    from codeanatomy.delta.write.spark_rows import append, replace_by_owner

    location, paths = store.location(table.name), [file.path for file in files]
    folder = folder_of(location)
    folder.publish(paths)
    rows = read_parquet_files(store.spark, location, spark_schema(table), paths).select(*table.column_names)
    done = (
        replace_by_owner(
            store,
            table.name,
            rows,
            sorted(owned.owners),
            commit,
            by=owned.by,
            repos=sorted(owned.repos),
            shared_repos=sorted(owned.shared_repos),
            retry=retry,
        )
        if owned.owners or owned.shared_repos
        else append(store, table.name, rows, commit, retry=retry)
    )
    folder.delete(paths)
    return done
