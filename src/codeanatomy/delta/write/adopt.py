"""Commits of data files that executors have written themselves (`delta.write.data_files`).

    files = write_files(folder, table, batches)               # on executors
    done  = adopt_files(store, "ast_files_v1", files, ["requests"], Commit("run-7"), by="repo_id")

What a commit promises holds here too: the columns are the contract's, rows that break a rule (which was seen
when they were written) are refused, the transaction is idempotent, conflicts are retried. It is made without
Spark (`delta.log.entries`), in milliseconds.

Rows of owners that the table has already are replaced: files that hold theirs and nothing else are taken out
of the table, others get a deletion vector (`delta.write.owner_rows`). So what a commit costs depends on the rows that
change, not on those beside them. Where the table's protocol asks for more, Spark reads the new files as rows
and writes them anew (`replace_by_owner`); without a session that is refused.

Tests: `tests/spark/test_adopt.py`, `tests/unit/delta/test_deletion_vectors.py`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError
from msgspec import MsgspecError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
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
from codeanatomy.delta.read.scan import read_parquet_files, scan
from codeanatomy.delta.store import SCHEME, LakeTables, Store
from codeanatomy.delta.write.checks import SAMPLE_ROWS, rules_for
from codeanatomy.delta.write.commit import CONFLICTS, Retry, append, record_refusals, replace_by_owner
from codeanatomy.delta.write.evolve import evolve, missing_properties, new_table
from codeanatomy.delta.write.owner_rows import OwnerRows, PickedRows, RemovedRows, find_removed_rows
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
    """Whether files of a table may be written without Spark, as far as its policy says."""
    features = set(table.write.enable_features) - entries.SIMPLE_FEATURES
    return table.schema.column_mapping_mode is None and not features


def local_folder(store: LakeTables, name: str) -> str | None:
    """Where executors may write files of a table; none where only Spark can."""
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
    shared_repos: Sequence[str] = (),
    picked: PickedRows | None = None,
    retry: Retry = Retry(),
) -> Committed:
    """Swap the rows of a set of owners for those in the files, in one atomic commit; without owners, add.

    `shared_repos` names repositories whose rows without an owner (`by` is null) are swapped too, `picked` single
    rows of other owners. Where nothing would change, no commit is made.
    """
    table = store.table(name)
    owned = OwnerRows(by, frozenset(owners), frozenset(shared_repos), picked)
    wanted = _Adoption(store, table, files, owned, commit, retry)
    with record_refusals(store, table, OPERATION, commit):
        for file in files:
            # From the footers: Spark would start a job to look at them.
            _refuse_other_columns(table, file, pq.read_schema(f"{store.location(name)}/{file.path}"))
        _refuse_broken(table, files)
        try:
            done = _retried(wanted)
        except (OSError, DeltaError, MsgspecError, pa.ArrowException, *ENGINE_ERRORS) as problem:
            cause = cause_of(problem) if isinstance(problem, ENGINE_ERRORS) else str(problem)
            raise StorageFailure(
                f"{OPERATION} of {name} failed: {cause}",
                "check room and rights of the lake's disk; no rows were committed, or repeating says so",
            ) from problem
    if done is None:
        return _written_anew(wanted, _with_spark(wanted, "asks for more than we can write"))
    store.record(done)
    return done


@dataclass(frozen=True)
class _Adoption:
    """A commit to be made."""

    store: LakeTables
    table: Table
    files: Sequence[DataFile]
    owned: OwnerRows
    commit: Commit
    retry: Retry


def _retried(wanted: _Adoption) -> Committed | None:
    """The commit, or none if Spark has to make it."""
    store, table, files, commit = wanted.store, wanted.table, wanted.files, wanted.commit
    location, started = store.location(table.name), time.monotonic()
    conflicts: list[str] = []
    for attempt in range(wanted.retry.attempts):
        found = entries.open_version(table, location)
        missing: dict[str, str] = {}
        if found is not None:
            before = _repeated(location, table, found, commit)
            if before is not None:
                return _told(table, files, commit, before, started, conflicts, repeated=True)
            if not entries.has_simple_protocol(found.info):
                return None
            try:
                found, missing = _fitted(wanted, found)
            except CONFLICTS as conflict:
                conflicts.append(type(conflict).__name__)
                time.sleep(wanted.retry.pause(attempt))
                continue
        gone = [] if found is None else find_removed_rows(table, location, found.files, wanted.owned)
        version = -1 if found is None else found.info.version
        if found is not None and not files and not gone:
            return _told(table, files, commit, version, started, conflicts, committed=False)
        if _put(wanted, found, gone, missing):
            if found is None and (now := entries.open_version(table, location)) is not None:
                check_gate(table, now.info, store.record)
            return _told(table, files, commit, version + 1, started, conflicts, gone)
        conflicts.append(LOST)
        time.sleep(wanted.retry.pause(attempt))
    lost = CommitConflict(
        f"{OPERATION} of {table.name} lost against other writers {wanted.retry.attempts} times",
        "repeat it when the other writer is done",
    )
    lost.conflicts = tuple(conflicts)
    raise lost


def _put(
    wanted: _Adoption, found: TableVersion | None, gone: Sequence[RemovedRows], missing: Mapping[str, str]
) -> bool:
    """Make the next version, unless somebody else has; with it the table gets properties that it lacks."""
    store, table, files, commit = wanted.store, wanted.table, wanted.files, wanted.commit
    location = store.location(table.name)
    partly = {each.file.logged_path: each for each in gone if each.positions is not None}
    vectors = write_vectors(
        location, {path: each.positions for path, each in partly.items() if each.positions}
    )
    state = replay_log(location, found.info.version) if found is not None and (partly or missing) else None
    actions = [
        entries.commit_info_action(encode_stamp(commit, OPERATION), files, _removed_figures(gone), removing=bool(gone)),
        *([] if found is not None else entries.create_actions(new_table(store, table, None))),
        *([] if state is None else entries.alter_actions(state, missing, vectors=bool(partly))),
        *map(entries.add_action, files),
        *(entries.remove_action(each.file) for each in gone),
        *(
            []
            if state is None
            else [
                entries.shrink_action(state.adds[path], each.file_rows, vectors[path])
                for path, each in partly.items()
            ]
        ),
        entries.transaction_action(commit),
    ]
    version = 0 if found is None else found.info.version + 1
    made = entries.write_entry(location, version, actions, table.upkeep.checkpoint_interval)
    if not made and vectors:
        # All are in one file.
        stray = vector_path(location, next(iter(vectors.values())))
        if stray is not None:
            stray.unlink(missing_ok=True)
    return made


def _removed_figures(gone: Sequence[RemovedRows]) -> dict[str, int]:
    """Figures of what leaves, by the names that Delta has for them."""
    if not gone:
        return {}
    partly = [each.file for each in gone if each.positions is not None]
    return {
        "numRemovedFiles": len(gone) - len(partly),
        "numDeletedRows": sum(each.rows for each in gone),
        "numDeletionVectorsAdded": sum(file.vector is None for file in partly),
        "numDeletionVectorsUpdated": sum(file.vector is not None for file in partly),
    }


def _repeated(location: str, table: Table, found: TableVersion, commit: Commit) -> int | None:
    """The version of this transaction, if it was made before."""
    known = entries.last_sequence(location, commit.run_id)
    if known is None or known < commit.sequence:
        return None
    made = entries.find_commit(location, found.info.version, commit)
    if made is None or made[1] != OPERATION:
        raise UsageError(
            f"run {commit.run_id} has committed sequence {known} to {table.name}, and {OPERATION} of "
            f"sequence {commit.sequence} is not in its log",
            "give every commit of a run to the same table a sequence of its own",
        )
    return made[0]


def _fitted(wanted: _Adoption, found: TableVersion) -> tuple[TableVersion, dict[str, str]]:
    """The table as its contract wants it, but for properties that the commit can bring along."""
    missing = missing_properties(wanted.store, wanted.table, found.info)
    if missing is not None:
        return found, missing
    evolve(_with_spark(wanted, "has to be altered"), wanted.table)
    return entries.open_version(wanted.table, found.info.location) or found, {}


def _with_spark(wanted: _Adoption, why: str) -> Store:
    """The store, where only Spark can do what is wanted."""
    if not isinstance(wanted.store, Store):
        raise NeedsSpark(f"{wanted.table.name} {why}", "build with a Spark session")
    return wanted.store


def _told(
    table: Table,
    files: Sequence[DataFile],
    commit: Commit,
    version: int,
    started: float,
    conflicts: Sequence[str],
    gone: Sequence[RemovedRows] = (),
    *,
    committed: bool = True,
    repeated: bool = False,
) -> Committed:
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
        rows_deleted=sum(each.rows for each in gone),
        files=len(files),
        files_removed=sum(each.positions is None for each in gone),
        size_bytes=sum(file.size_bytes for file in files),
        attempts=len(conflicts) + 1,
        conflicts=tuple(conflicts),
        seconds=time.monotonic() - started,
        metrics=entries.commit_metrics(files, _removed_figures(gone)),
    )


def _refuse_broken(table: Table, files: Sequence[DataFile]) -> None:
    broken = [each for file in files for each in file.broken][:SAMPLE_ROWS]
    if broken:
        rules = rules_for(table, {})
        names = sorted({name for each in broken for name in each.rules})
        samples = tuple(f"{', '.join(each.rules)}: {each.row}" for each in broken)
        raise ConstraintViolation(table.name, {name: rules[name] for name in names}, samples)


def _refuse_other_columns(table: Table, file: DataFile, schema: pa.Schema) -> None:
    found = {field.name: field.dataType.simpleString() for field in from_arrow_schema(schema)}
    found |= {f"partition {name}": "" for name in file.partition}
    partitions = table.write.partition_by
    expected = {column.name: column.ddl for column in table.columns if column.name not in partitions}
    expected |= {f"partition {name}": "" for name in partitions}
    if found != expected:
        wrong = sorted(
            name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)
        )
        raise ContractError(
            f"data files of {table.name} differ in {', '.join(wrong)}", "mend what writes them"
        )


def _written_anew(wanted: _Adoption, store: Store) -> Committed:
    """The rows of the files, written by Spark; nobody else knows of the files."""
    table, owned, commit, retry = wanted.table, wanted.owned, wanted.commit, wanted.retry
    folder = store.location(table.name)
    found = read_parquet_files(store.spark, folder, spark_schema(table), [file.path for file in wanted.files])
    rows = found.select(*table.column_names)
    owners = owned.owners
    if owned.picked is not None:
        # It swaps whole owners: what was not picked of theirs is written again.
        rows = rows.unionByName(_not_picked(store, table.name, owned.by, owned.picked))
        owners |= owned.picked.owners
    done = (
        replace_by_owner(
            store,
            table.name,
            rows,
            sorted(owners),
            commit,
            by=owned.by,
            shared_repos=sorted(owned.shared_repos),
            retry=retry,
        )
        if owners or owned.shared_repos
        else append(store, table.name, rows, commit, retry=retry)
    )
    for file in wanted.files:
        Path(folder, file.path).unlink(missing_ok=True)
    return done


def _not_picked(store: Store, name: str, by: str, picked: PickedRows) -> DataFrame:
    """The other rows of owners of whom rows are picked."""
    theirs = scan(store, name).rows.where(F.col(by).isin(sorted(picked.owners)))
    values = store.spark.createDataFrame(pa.table({picked.column: picked.values}))
    return theirs.join(F.broadcast(values), picked.column, "left_anti").select(
        *store.table(name).column_names
    )
