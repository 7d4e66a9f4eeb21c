"""Commit data files that executors have written with Arrow (`delta.write.data_files`), without Spark.

    files = write_files(folder, table, batches)               # on executors
    done  = adopt_files(store, "ast_files_v1", files, ["requests"], Commit("run-7"), by="repo_id")

The guarantees are those of `delta.write.commit`: the columns are the contract's, rows that violate a rule
(checked while they were written) are refused, the transaction is idempotent, conflicts are retried. The log
entry is written in Python (`delta.log.entries`), in milliseconds.

Existing rows of the owners are replaced: files with only their rows are removed, other files get a deletion
vector (`delta.write.owner_rows`). So the cost of a commit depends on the rows that change, not on their
neighbours. In a table without that feature, which every reader opens, the rows that stay are written again
(`delta.write.rewrite`). A commit never changes the features of a table.

If no other rows are left and the stored columns differ from the contract, the same commit replaces the
columns. If the table's protocol requires more of a writer, Spark reads the new files and writes their rows
again (`replace_by_owner`); without a session, NeedsSpark is raised.

Tests: `tests/spark/test_adopt.py`, `tests/unit/delta/test_deletion_vectors.py`,
`tests/unit/delta/test_copy_on_write.py`, `tests/unit/delta/test_replaced_columns.py`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError
from msgspec import MsgspecError
from pyroaring import BitMap64
from pyspark.sql.pandas.types import from_arrow_schema

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.commit_stamp import Commit, encode_stamp
from codeanatomy.delta.contract import spark_schema
from codeanatomy.delta.events import Committed
from codeanatomy.delta.gate import check_gate
from codeanatomy.delta.log import entries
from codeanatomy.delta.log.deletion_vectors import vector_path, write_vectors
from codeanatomy.delta.log.entries import DataFile, TableVersion
from codeanatomy.delta.log.replay import replay_log
from codeanatomy.delta.read.scan import read_parquet_files
from codeanatomy.delta.store import SCHEME, LakeTables, Store
from codeanatomy.delta.write.checks import SAMPLE_ROWS, rules_for
from codeanatomy.delta.write.commit import CONFLICTS, Retry, append, record_refusals, replace_by_owner
from codeanatomy.delta.write.evolve import evolve, missing_properties, new_table, replacing_properties
from codeanatomy.delta.write.owner_rows import OwnerRows, RemovedRows, find_removed_rows
from codeanatomy.delta.write.rewrite import rewrite_file, write_change_files
from codeanatomy.errors import (
    CommitConflict,
    ConstraintViolation,
    ContractError,
    NeedsSpark,
    StorageFailure,
    UsageError,
)
from codeanatomy.spark.jvm import ENGINE_ERRORS, cause_of

OPERATION = "adopt_files"
LOST = "ConcurrentWriteException"


def has_simple_policy(table: Table) -> bool:
    """Return whether a table's policy allows writing its files without Spark."""
    features = set(table.write.enable_features) - entries.SIMPLE_FEATURES
    return table.schema.column_mapping_mode is None and not features


def local_folder(store: LakeTables, name: str) -> str | None:
    """Return the folder in which executors may write files of a table; None if only Spark can write it."""
    table, location = store.table(name), store.location(name)
    return location if has_simple_policy(table) and not SCHEME.match(location) else None


def adopt_files(
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
    adoption = _Adoption(store, table, files, owned, commit, retry)
    with record_refusals(store, table, OPERATION, commit):
        for file in files:
            # From the footer: Spark would start a job for it.
            _refuse_other_columns(table, file, pq.read_schema(f"{store.location(name)}/{file.path}"))
        _refuse_broken(table, files)
        try:
            done = _commit_with_retries(adoption)
        except (OSError, DeltaError, MsgspecError, pa.ArrowException, *ENGINE_ERRORS) as problem:
            cause = cause_of(problem) if isinstance(problem, ENGINE_ERRORS) else str(problem)
            raise StorageFailure(
                f"{OPERATION} of {name} failed: {cause}",
                "check disk space and permissions of the lake and run the command again: "
                "a commit that was made is not repeated",
            ) from problem
    if done is None:
        store_with_spark = _require_spark(adoption, "has a protocol that only Spark can write")
        return _rewrite_with_spark(adoption, store_with_spark)
    store.record(done)
    return done


@dataclass(frozen=True)
class _Adoption:
    """The arguments of a commit of data files."""

    store: LakeTables
    table: Table
    files: Sequence[DataFile]
    owned: OwnerRows
    commit: Commit
    retry: Retry


def _commit_with_retries(adoption: _Adoption) -> Committed | None:
    """Make the commit; return None if Spark has to make it."""
    store, table, files, commit = adoption.store, adoption.table, adoption.files, adoption.commit
    location, started = store.location(table.name), time.monotonic()
    conflicts: list[str] = []
    for attempt in range(adoption.retry.attempts):
        current = entries.open_version(table, location)
        missing: dict[str, str] = {}
        removed: list[RemovedRows] = []
        columns: dict[str, Any] = {}
        if current is not None:
            earlier = _find_repeated(location, table, current, commit)
            if earlier is not None:
                return _committed_event(table, files, commit, earlier, started, conflicts, repeated=True)
            if not entries.has_simple_protocol(current.info):
                return None
            try:
                current, removed, missing, columns = _prepare_table(adoption, current)
            except CONFLICTS as conflict:
                conflicts.append(type(conflict).__name__)
                time.sleep(adoption.retry.pause(attempt))
                continue
        version = -1 if current is None else current.info.version
        if current is not None and not files and not removed:
            return _committed_event(table, files, commit, version, started, conflicts, committed=False)
        metrics = _write_version(adoption, current, removed, missing, columns)
        if metrics is not None:
            if current is None and (created := entries.open_version(table, location)) is not None:
                check_gate(table, created.info, store.record)
            return _committed_event(
                table, files, commit, version + 1, started, conflicts, removed, metrics=metrics
            )
        conflicts.append(LOST)
        time.sleep(adoption.retry.pause(attempt))
    lost = CommitConflict(
        f"{OPERATION} of {table.name} conflicted with other writers {adoption.retry.attempts} times",
        "run the command again when the other writer has finished",
    )
    lost.conflicts = tuple(conflicts)
    raise lost


def _write_version(
    adoption: _Adoption,
    current: TableVersion | None,
    removed: Sequence[RemovedRows],
    missing: Mapping[str, str],
    columns: Mapping[str, Any],
) -> dict[str, int] | None:
    """Write the next version, with `missing` properties; return its metrics, None if another was faster.

    `columns` are the fields of the metadata that describe new columns; empty if they stay.
    """
    store, table, files, commit = adoption.store, adoption.table, adoption.files, adoption.commit
    location = store.location(table.name)
    with_vectors = current is not None and entries.writes_vectors(current.info)
    partial = {each.file.logged_path: each for each in removed if with_vectors and each.positions is not None}
    vectors = write_vectors(
        location, {path: each.positions for path, each in partial.items() if each.positions}
    )
    copies, changes = _rewrite_files(adoption, current, [] if with_vectors else removed)
    needs_state = current is not None and (partial or missing or columns)
    state = replay_log(location, current.info.version) if current is not None and needs_state else None
    metrics = _removal_metrics(removed, copies, changes)
    actions = [
        entries.commit_info_action(encode_stamp(commit, OPERATION), files, metrics, removing=bool(removed)),
        *([] if current is not None else entries.create_actions(new_table(store, table))),
        *([] if state is None else entries.alter_actions(state, missing, columns)),
        *map(entries.add_action, (*files, *copies)),
        *map(entries.change_action, changes),
        *(
            entries.remove_action(
                each.file, rows=each.file_rows if each.file.logged_path in partial else None
            )
            for each in removed
        ),
        *(
            []
            if state is None
            else [
                entries.shrink_action(state.adds[path], each.file_rows, vectors[path])
                for path, each in partial.items()
            ]
        ),
        entries.transaction_action(commit),
    ]
    version = 0 if current is None else current.info.version + 1
    is_written = entries.write_entry(location, version, actions, table.upkeep.checkpoint_interval)
    if not is_written:
        strays = [Path(location, file.path) for file in (*copies, *changes)]
        # All vectors are in one file.
        strays += [path for each in [*vectors.values()][:1] if (path := vector_path(location, each))]
        for stray in strays:
            stray.unlink(missing_ok=True)
    return entries.commit_metrics(files, metrics) if is_written else None


def _rewrite_files(
    adoption: _Adoption, current: TableVersion | None, removed: Sequence[RemovedRows]
) -> tuple[list[DataFile], list[DataFile]]:
    """Write what stays of partly removed data files to new ones; return these and the change files."""
    table, partial = adoption.table, [each for each in removed if each.positions is not None]
    if current is None or not partial:
        return [], []
    location, properties = current.info.location, current.info.properties
    copies = [
        file
        for each in partial
        for file in rewrite_file(table, location, each.file, each.positions or BitMap64())
    ]
    has_feed = properties.get(entries.FEED_ENABLED) == "true"
    changes = (
        write_change_files(table, location, current.info.schema_json, removed, adoption.files)
        if has_feed
        else []
    )
    return copies, changes


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


def _find_repeated(location: str, table: Table, current: TableVersion, commit: Commit) -> int | None:
    """Return the version of this transaction if it was made before."""
    known = entries.last_sequence(location, commit.run_id)
    if known is None or known < commit.sequence:
        return None
    earlier = entries.find_commit(location, current.info.version, commit)
    if earlier is None or earlier[1] != OPERATION:
        raise UsageError(
            f"run {commit.run_id} has committed sequence {known} to {table.name}, but {OPERATION} of "
            f"sequence {commit.sequence} is not in its log",
            "give every commit of a run to the same table a sequence of its own",
        )
    return earlier[0]


def _prepare_table(
    adoption: _Adoption, current: TableVersion
) -> tuple[TableVersion, list[RemovedRows], dict[str, str], dict[str, Any]]:
    """Update the table to its contract; return it with the rows to remove, and properties and columns to set.

    Columns are set by the commit itself if it leaves no older row, and else before it.
    """
    table, location = adoption.table, current.info.location
    removed = find_removed_rows(table, location, current.files, adoption.owned)
    replacing = _replacing_properties(adoption, current, removed)
    if replacing is not None:
        return current, removed, replacing, _columns_metadata(table)
    evolved, missing = _evolve_table(adoption, current)
    if evolved is not current:
        # Another writer may have committed before the change of the table.
        removed = find_removed_rows(table, location, evolved.files, adoption.owned)
    return evolved, removed, missing, {}


def _replacing_properties(
    adoption: _Adoption, current: TableVersion, removed: Sequence[RemovedRows]
) -> dict[str, str] | None:
    """Return the properties to set if the commit replaces the columns; None if older rows stay."""
    if sum(each.positions is None for each in removed) < len(current.files):
        return None
    return replacing_properties(adoption.store, adoption.table, current.info)


def _columns_metadata(table: Table) -> dict[str, Any]:
    return {
        "schemaString": spark_schema(table).json(),
        "partitionColumns": list(table.write.partition_by),
    }


def _evolve_table(adoption: _Adoption, current: TableVersion) -> tuple[TableVersion, dict[str, str]]:
    """Update the table to its contract; return it with the properties that the commit itself can set."""
    missing = missing_properties(adoption.store, adoption.table, current.info)
    if missing is not None:
        return current, missing
    evolve(_require_spark(adoption, "needs new columns or features"), adoption.table)
    return entries.open_version(adoption.table, current.info.location) or current, {}


def _require_spark(adoption: _Adoption, why: str) -> Store:
    """Return the store with its Spark session; raise NeedsSpark if it has none."""
    if not isinstance(adoption.store, Store):
        raise NeedsSpark(f"{adoption.table.name} {why}", "build with a Spark session")
    return adoption.store


def _committed_event(
    table: Table,
    files: Sequence[DataFile],
    commit: Commit,
    version: int,
    started: float,
    conflicts: Sequence[str],
    removed: Sequence[RemovedRows] = (),
    *,
    committed: bool = True,
    repeated: bool = False,
    metrics: Mapping[str, int] | None = None,
) -> Committed:
    metrics = entries.commit_metrics(files, {}) if metrics is None else metrics
    return Committed(
        table=table.name,
        operation=OPERATION,
        version=version,
        committed=committed and not repeated,
        repeated=repeated,
        created=committed and version == 0,
        run_id=commit.run_id,
        sequence=commit.sequence,
        metadata=encode_stamp(commit, OPERATION),
        rows=sum(file.rows for file in files),
        rows_deleted=sum(each.rows for each in removed),
        files=len(files),
        files_removed=metrics.get("numRemovedFiles", 0),
        size_bytes=sum(file.size_bytes for file in files),
        attempts=len(conflicts) + 1,
        conflicts=tuple(conflicts),
        seconds=time.monotonic() - started,
        metrics=dict(metrics),
    )


def _refuse_broken(table: Table, files: Sequence[DataFile]) -> None:
    broken = [each for file in files for each in file.broken][:SAMPLE_ROWS]
    if broken:
        rules = rules_for(table, {})
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


def _rewrite_with_spark(adoption: _Adoption, store: Store) -> Committed:
    """Commit the rows of the files with Spark's writer, and delete the files."""
    table, owned, commit, retry = adoption.table, adoption.owned, adoption.commit, adoption.retry
    folder = store.location(table.name)
    paths = [file.path for file in adoption.files]
    rows = read_parquet_files(store.spark, folder, spark_schema(table), paths).select(*table.column_names)
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
    for path in paths:
        Path(folder, path).unlink(missing_ok=True)
    return done
