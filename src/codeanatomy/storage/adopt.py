"""Commits of data files that executors have written themselves (`storage.files`).

    files = write_files(folder, table, batches)               # on executors
    done  = adopt_files(store, "ast_files_v1", files, ["requests"], Commit("run-7"), by="repo_id")

What a commit promises holds here too: the columns are the contract's, rows that break a rule (which was seen
when they were written) are refused, the transaction is idempotent, conflicts are retried. It is made without
Spark (`storage.entries`), in milliseconds.

Rows of owners that the table has already are replaced: files that hold theirs and nothing else are taken out
of the table. Where a file has rows of theirs and of others, or the table's protocol asks for more, Spark
reads the new files as rows and writes them anew (`replace_by_owner`).

Tests: `tests/test_adopt.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError
from pyspark.sql.pandas.types import from_arrow_schema

from codeanatomy.catalog.spec import Table
from codeanatomy.errors import CommitConflict, ConstraintViolation, ContractError, StorageFailure, UsageError
from codeanatomy.storage import entries
from codeanatomy.storage.checks import SAMPLE_ROWS, rules_for
from codeanatomy.storage.commit import CONFLICTS, Retry, append, refusals_told, replace_by_owner
from codeanatomy.storage.contract import spark_schema
from codeanatomy.storage.deltalog import ENGINE_ERRORS, cause_of
from codeanatomy.storage.entries import DataFile, HeldFile, Opened
from codeanatomy.storage.events import Committed
from codeanatomy.storage.evolve import evolve, is_fitted, new_table
from codeanatomy.storage.gate import check_gate
from codeanatomy.storage.scan import parquet_rows
from codeanatomy.storage.stamps import Commit, stamp
from codeanatomy.storage.store import SCHEME, Store

OPERATION = "adopt_files"
LOST = "ConcurrentWriteException"


def local_folder(store: Store, name: str) -> str | None:
    """Where executors may write files of a table; none where only Spark can."""
    table, location = store.table(name), store.location(name)
    features = set(table.write.enable_features) - entries.PLAIN_FEATURES
    if table.schema.column_mapping_mode is not None or features or SCHEME.match(location):
        return None
    return location


def adopt_files(
    store: Store,
    name: str,
    files: Sequence[DataFile],
    owners: Sequence[str],
    commit: Commit,
    *,
    by: str,
    retry: Retry = Retry(),
) -> Committed:
    """Swap the rows of a set of owners for those in the files, in one atomic commit; without owners, add."""
    table = store.table(name)
    wanted = _Adoption(store, table, files, owners, commit, by, retry)
    with refusals_told(store, table, OPERATION, commit):
        for file in files:
            # From the footers: Spark would start a job to look at them.
            _refuse_other_columns(table, file, pq.read_schema(f"{store.location(name)}/{file.path}"))
        _refuse_broken(table, files)
        try:
            done = _retried(wanted)
        except (OSError, DeltaError, pa.ArrowException, *ENGINE_ERRORS) as problem:
            cause = cause_of(problem) if isinstance(problem, ENGINE_ERRORS) else str(problem)
            raise StorageFailure(
                f"{OPERATION} of {name} failed: {cause}",
                "check room and rights of the lake's disk; no rows were committed, or repeating says so",
            ) from problem
    if done is None:
        return _written_anew(wanted)
    store.record(done)
    return done


@dataclass(frozen=True)
class _Adoption:
    """A commit to be made."""

    store: Store
    table: Table
    files: Sequence[DataFile]
    owners: Sequence[str]
    commit: Commit
    by: str
    retry: Retry


def _retried(wanted: _Adoption) -> Committed | None:
    """The commit, or none if Spark has to make it."""
    store, table, files, commit = wanted.store, wanted.table, wanted.files, wanted.commit
    location, started = store.location(table.name), time.monotonic()
    conflicts: list[str] = []
    for attempt in range(wanted.retry.attempts):
        found = entries.opened(location)
        if found is not None:
            before = _repeated(location, table, found, commit)
            if before is not None:
                return _told(table, files, commit, before, started, conflicts, repeated=True)
            if not entries.is_plain(found.info):
                return None
            try:
                found = _fitted(store, table, found)
            except CONFLICTS as conflict:
                conflicts.append(type(conflict).__name__)
                time.sleep(wanted.retry.pause(attempt))
                continue
        owners = wanted.owners
        theirs = _owned(location, found, owners, wanted.by) if found is not None and owners else []
        if theirs is None:
            return None
        actions = [
            entries.said(stamp(commit, OPERATION), files, removing=bool(theirs)),
            *([] if found is not None else entries.born(new_table(store, table, None))),
            *map(entries.added, files),
            *map(entries.removed, theirs),
            entries.marked(commit),
        ]
        version = 0 if found is None else found.info.version + 1
        if entries.put(location, version, actions):
            if version == 0 and (now := entries.opened(location)) is not None:
                check_gate(table, now.info, store.record)
            return _told(table, files, commit, version, started, conflicts, removed=len(theirs))
        conflicts.append(LOST)
        time.sleep(wanted.retry.pause(attempt))
    raise CommitConflict(
        f"{OPERATION} of {table.name} lost against other writers {wanted.retry.attempts} times",
        "repeat it when the other writer is done",
    )


def _repeated(location: str, table: Table, found: Opened, commit: Commit) -> int | None:
    """The version of this transaction, if it was made before."""
    known = entries.transaction(location, commit.run_id)
    if known is None or known < commit.sequence:
        return None
    made = entries.own_version(location, found.info.version, commit)
    if made is None or made[1] != OPERATION:
        raise UsageError(
            f"run {commit.run_id} has committed sequence {known} to {table.name}, and {OPERATION} of "
            f"sequence {commit.sequence} is not in its log",
            "give every commit of a run to the same table a sequence of its own",
        )
    return made[0]


def _fitted(store: Store, table: Table, found: Opened) -> Opened:
    """The table as its contract wants it."""
    if is_fitted(store, table, found.info):
        return found
    evolve(store, table)
    return entries.opened(found.info.location) or found


def _owned(location: str, found: Opened, owners: Sequence[str], by: str) -> list[HeldFile] | None:
    """The files with rows of the owners; none if one of them has rows of others too."""
    theirs: list[HeldFile] = []
    for file in found.files:
        held = (
            {file.partition[by]}
            if by in file.partition
            else set(pc.unique(_column(f"{location}/{unquote(file.path)}", by)).to_pylist())
        )
        if held & set(owners):
            if not held <= set(owners):
                return None
            theirs.append(file)
    return theirs


def _column(path: str, name: str) -> pa.ChunkedArray:
    with pq.ParquetFile(path) as file:
        return file.read(columns=[name], use_threads=False).column(0)


def _told(
    table: Table,
    files: Sequence[DataFile],
    commit: Commit,
    version: int,
    started: float,
    conflicts: Sequence[str],
    *,
    repeated: bool = False,
    removed: int = 0,
) -> Committed:
    return Committed(
        table=table.name,
        operation=OPERATION,
        version=version,
        committed=not repeated,
        repeated=repeated,
        created=version == 0,
        run_id=commit.run_id,
        rows=sum(file.rows for file in files),
        files=len(files),
        files_removed=removed,
        size_bytes=sum(file.size_bytes for file in files),
        attempts=len(conflicts) + 1,
        conflicts=tuple(conflicts),
        seconds=time.monotonic() - started,
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


def _written_anew(wanted: _Adoption) -> Committed:
    """The rows of the files, written by Spark; nobody else knows of the files."""
    store, table, commit, retry = wanted.store, wanted.table, wanted.commit, wanted.retry
    folder = store.location(table.name)
    found = parquet_rows(store.spark, folder, spark_schema(table), [file.path for file in wanted.files])
    rows = found.select(*table.column_names)
    done = (
        replace_by_owner(store, table.name, rows, wanted.owners, commit, by=wanted.by, retry=retry)
        if wanted.owners
        else append(store, table.name, rows, commit, retry=retry)
    )
    for file in wanted.files:
        Path(folder, file.path).unlink(missing_ok=True)
    return done
