"""Commit a few rows with delta-rs, without a JVM: the manifest, the lease and the events of a run.

    append_small("lake", catalog.table("run_manifest"), [{"run_id": "run-7", ...}], Commit("run-7"), after=4)
    -> 5, or CommitConflict if another writer made version 5

A table is the same whether Spark (`delta.write.commit`) or this module has written it: schema with NOT NULL,
comments and semantic types, properties, protocol, the stamp in Delta's history and the transaction in the
log. Only its creation differs, since it takes a commit of its own: version 0 has no rows.

Every attempt is for exactly the next version and is never rebased, so `after` is a compare-and-set. The store
must be able to create a file only if it does not exist (a local file system, or an object store with
conditional writes). An attempt that failed after its entry was written is found in the log by its stamp.

Tests: `tests/unit/delta/test_small.py`, `tests/spark/test_small.py`.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import duckdb
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import DeltaError
from msgspec import json

from codeanatomy.catalog.spec import Compression, Table
from codeanatomy.delta.commit_stamp import Commit, encode_stamp
from codeanatomy.delta.contract import spark_schema
from codeanatomy.delta.layout import table_properties
from codeanatomy.delta.log.replay import logged_versions, read_commit_info
from codeanatomy.delta.read.light import COLOURS, UNREADABLE, location
from codeanatomy.delta.store_policy import deltalake_options
from codeanatomy.delta.write.checks import SAMPLE_ROWS, rules_for
from codeanatomy.errors import (
    CodeAnatomyError,
    CommitConflict,
    ConstraintViolation,
    ContractError,
    FeatureError,
    SchemaDrift,
    StorageFailure,
    UsageError,
)

Rows = Sequence[Mapping[str, Any]]
Mode = Literal["append", "overwrite"]

CODECS: Mapping[Compression, Literal["ZSTD", "SNAPPY", "GZIP", "UNCOMPRESSED"]] = {
    "zstd": "ZSTD",
    "snappy": "SNAPPY",
    "gzip": "GZIP",
    "uncompressed": "UNCOMPRESSED",
}
# Concurrent appends take milliseconds.
ATTEMPTS = 50
MAX_PAUSE_SECONDS = 0.2
DATABASE: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "autoinstall_known_extensions": False,
}
# Error messages of the operating system when a write fails, with the hint for each.
CAUSES: Mapping[str, str] = {
    "No space left on device": "free disk space and run the command again",
    "Disk quota exceeded": "free space within the quota and run the command again",
    "Read-only file system": "mount the file system of the lake writable, or use another lake",
    "Permission denied": "get write permission for the lake, or use another lake",
    "Operation not permitted": "get write permission for the lake, or use another lake",
}
# Disk space in bytes that a commit may need.
TRIAL_BYTES = 128 * 1024


def refuse_unwritable(root: str) -> None:
    """Raise UsageError if the path of a lake has characters that deltalake misinterprets."""
    odd = UNREADABLE.search(root) if "://" not in root else None
    if odd is not None:
        raise UsageError(
            f"the path of a lake must not contain {odd[0]!r}: {root}", "use a folder with another name"
        )


def append_small(root: str, table: Table, rows: Rows, commit: Commit, *, after: int | None = None) -> int:
    """Append rows, and return the version that contains them.

    `after` is the version the table must be at (-1: there is no table), else CommitConflict is raised; if it
    is None, conflicts are retried.
    """
    data = _check_rows(table, rows)
    for _ in range(ATTEMPTS):
        try:
            return _commit(root, table, data, commit, "append", after)
        except CommitConflict:
            if after is not None:
                raise
            time.sleep(random.uniform(0, MAX_PAUSE_SECONDS))
    raise CommitConflict(
        f"append of {table.name} conflicted with other writers {ATTEMPTS} times",
        "run the command again when the other writer has finished",
    )


def overwrite_small(root: str, table: Table, rows: Rows, commit: Commit, *, after: int) -> int:
    """Replace all rows if the table is at version `after`, and return the new version."""
    return _commit(root, table, _check_rows(table, rows), commit, "overwrite", after)


def _commit(root: str, table: Table, data: pa.Table, commit: Commit, mode: Mode, after: int | None) -> int:
    place = location(root, table.name)
    with _translate_errors(place, table, commit, mode) as attempt:
        options = deltalake_options(place)
        exists = DeltaTable.is_deltatable(place, storage_options=options)
        opened = DeltaTable(place, storage_options=options) if exists else None
        earlier = None if opened is None else _find_repeated(opened, table, commit, mode)
        if earlier is not None:
            return earlier
        version = -1 if opened is None else opened.version()
        if after is not None and version != after:
            raise _conflict(table, after, version)
        attempt.after = version
        _check_disk(place)
        if opened is None:
            opened = _create_table(place, table, commit)
            version = attempt.after = _next_version(table, version, opened)
        if _set_properties(opened, table, commit):
            version = attempt.after = _next_version(table, version, opened)
        write_deltalake(
            opened,
            _drop_comments(data, opened),
            mode=mode,
            schema_mode=_schema_mode(opened, table),
            writer_properties=WriterProperties(compression=CODECS[table.write.writer.compression]),
            commit_properties=_commit_properties(commit, mode, _transaction(commit)),
        )
        attempt.version = version + 1
    return attempt.version


def _next_version(table: Table, version: int, opened: DeltaTable) -> int:
    """Return the version after a commit of ours; raise CommitConflict if another writer committed too."""
    if opened.version() != version + 1:
        raise _conflict(table, version + 1, opened.version())
    return version + 1


class _Attempt:
    """The version that a commit must follow, and the version it has made."""

    after: int = -1
    version: int = -1


@contextmanager
def _translate_errors(place: str, table: Table, commit: Commit, mode: Mode) -> Iterator[_Attempt]:
    """Translate errors of deltalake and the system; ignore them if the commit is in the log."""
    attempt = _Attempt()
    try:
        yield attempt
    except CodeAnatomyError:
        raise
    except Exception as problem:
        # deltalake raises its own errors, those of the system, and plain exceptions.
        newest, made = _find_since(place, attempt.after, commit, mode)
        if made is None and newest > attempt.after:
            raise _conflict(table, attempt.after, newest) from problem
        if made is None:
            raise _failed(mode, table, place, str(problem)) from problem
        attempt.version = made


def _find_since(place: str, after: int, commit: Commit, mode: Mode) -> tuple[int, int | None]:
    """Return the newest version of a table, and the version after `after` that this commit has made."""
    try:
        opened = DeltaTable(place, storage_options=deltalake_options(place))
        newest = opened.version()
        return newest, _find_commit(opened, commit, mode, newest - after) if newest > after else None
    except (DeltaError, OSError, ValueError):
        return after, None


def _conflict(table: Table, expected: int, actual: int) -> CommitConflict:
    return CommitConflict(
        f"{table.name} is at version {actual}, not {expected}: another writer has committed to it",
        "run the command again",
    )


def _failed(mode: Mode, table: Table, place: str, message: str) -> StorageFailure:
    """Return the error for a message of deltalake or the system, reduced to the cause if it is known."""
    cause = next((cause for cause in CAUSES if cause.lower() in message.lower()), None)
    why = cause or " ".join(COLOURS.sub("", message).split())
    hint = CAUSES[cause] if cause else "no rows were committed; remove the cause and run the command again"
    return StorageFailure(f"{mode} of {table.name} at {place} failed: {why}", hint)


def _check_disk(place: str) -> None:
    """Raise a plain OSError if a local disk is full or read-only, which makes threads of deltalake panic."""
    parts = urlsplit(place)
    if parts.scheme not in ("", "file"):
        return
    folder = Path(unquote(parts.path) if parts.scheme else place)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder) as trial:
        trial.write(bytes(TRIAL_BYTES))


def _find_repeated(opened: DeltaTable, table: Table, commit: Commit, mode: Mode) -> int | None:
    """Return the version of this transaction if it was made before."""
    known = opened.transaction_version(commit.run_id)
    if known is None or known < commit.sequence:
        return None
    version = _find_commit(opened, commit, mode)
    if version is None:
        raise UsageError(
            f"run {commit.run_id} has committed sequence {known} to {table.name}, but this "
            f"{mode} of sequence {commit.sequence} is not in its log",
            "give every commit of a run to the same table a larger sequence than the one before",
        )
    return version


def _find_commit(opened: DeltaTable, commit: Commit, mode: Mode, limit: int | None = None) -> int | None:
    """Return the version with the stamp of a commit, among the newest `limit` versions."""
    stamp = encode_stamp(commit, mode)
    return next((version for version, metadata in _history(opened, limit) if metadata == stamp), None)


def _history(opened: DeltaTable, limit: int | None) -> Iterator[tuple[int, str | None]]:
    """Yield the newest versions with their user metadata, the last first.

    deltalake numbers versions from the one that it has loaded, which is wrong if the log grows in the
    meantime. So for a local table the versions are read from the names of its log entries.
    """
    parts = urlsplit(opened.table_uri)
    if parts.scheme != "file":
        yield from ((int(each["version"]), each.get("userMetadata")) for each in opened.history(limit))
        return
    folder = unquote(parts.path)
    for version in logged_versions(folder)[::-1][:limit]:
        yield version, read_commit_info(folder, version).get("userMetadata")


def _create_table(place: str, table: Table, commit: Commit) -> DeltaTable:
    """Create the table, without rows."""
    if table.write.enable_features:
        features = ", ".join(table.write.enable_features)
        raise FeatureError(
            f"{table.name} enables {features}, but it is written without Spark",
            f"leave tables.{table.name}.write.enable_features empty",
        )
    return DeltaTable.create(
        place,
        _schema(table),
        mode="error",
        partition_by=list(table.write.partition_by),
        description=table.doc,
        configuration=table_properties(table),
        storage_options=deltalake_options(place),
        commit_properties=_commit_properties(commit, "create"),
        # deltalake does not know our own properties.
        raise_if_key_not_exists=False,
    )


def _schema(table: Table) -> Schema:
    return Schema.from_json(spark_schema(table).json())


def _set_properties(opened: DeltaTable, table: Table, commit: Commit) -> bool:
    """Update properties that an older version of this program has written; return whether any changed."""
    stored = opened.metadata().configuration
    changed = {key: value for key, value in table_properties(table).items() if stored.get(key) != value}
    if changed:
        opened.alter.set_table_properties(
            changed, raise_if_not_exists=False, commit_properties=_commit_properties(commit, "alter")
        )
    return bool(changed)


def _schema_mode(opened: DeltaTable, table: Table) -> Literal["merge"] | None:
    """Return `merge` if columns or nested fields are to be added; raise SchemaDrift if not allowed."""
    stored = _column_types(json.decode(opened.schema().to_json()))
    contract = _column_types(spark_schema(table).jsonValue())
    new = [name for name, kind in contract.items() if stored.get(name) != kind]
    # deltalake would cast other types where it can.
    other = [name for name in new if name in stored and not _has_added_fields(stored[name], contract[name])]
    if other or (new and table.schema.schema_mode != "merge"):
        raise SchemaDrift(
            f"stored {table.name} differs from its contract in {', '.join(other or new)}",
            f"set tables.{table.name}.schema.schema_mode to merge for new columns; "
            "for other differences build a new lake",
        )
    return "merge" if new else None


def _drop_comments(data: pa.Table, opened: DeltaTable) -> pa.Table:
    """Drop the comments of stored columns: deltalake refuses to write comments that differ."""
    stored = {field.name for field in opened.schema().fields}
    fields = [
        pa.field(each.name, _arrow_type(each.type), each.nullable) if each.name in stored else each
        for each in data.schema
    ]
    return data.cast(pa.schema(fields))


def _column_types(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the column types of a schema in Delta's JSON, without comments."""
    return {field["name"]: _json_type(field["type"]) for field in schema["fields"]}


def _json_type(kind: Any) -> Any:
    """Return a type in Delta's JSON without the comments of its fields."""
    if isinstance(kind, dict):
        return {name: _json_type(part) for name, part in kind.items() if name != "metadata"}
    return [_json_type(part) for part in kind] if isinstance(kind, list) else kind


def _arrow_type(kind: pa.DataType) -> pa.DataType:
    """Return an Arrow type without the comments of its fields."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _arrow_type(each.type), each.nullable) for each in kind.fields])
    if pa.types.is_list(kind):
        element = kind.value_field
        return pa.list_(pa.field(element.name, _arrow_type(element.type), element.nullable))
    return kind


def _has_added_fields(stored: Any, contract: Any) -> bool:
    """Return whether the contract's type is the stored one, or the stored one with fields added."""
    if isinstance(stored, str) or isinstance(contract, str) or stored["type"] != contract["type"]:
        return bool(stored == contract)
    if stored["type"] == "array":
        return _has_added_fields(stored["elementType"], contract["elementType"])
    if stored["type"] == "struct":
        kinds = {field["name"]: field["type"] for field in contract["fields"]}
        return all(
            _has_added_fields(each["type"], kinds.get(each["name"], each["type"]))
            for each in stored["fields"]
        )
    return bool(stored == contract)


def _transaction(commit: Commit) -> Transaction:
    # Without a time, it would count as expired.
    return Transaction(commit.run_id, commit.sequence, int(time.time() * 1000))


def _commit_properties(commit: Commit, operation: str, *transactions: Transaction) -> CommitProperties:
    """Return the commit properties: the stamp, the transactions, and no retries for a later version."""
    return CommitProperties(
        custom_metadata={"userMetadata": encode_stamp(commit, operation)},
        max_commit_retries=0,
        app_transactions=list(transactions),
    )


def _check_rows(table: Table, rows: Rows) -> pa.Table:
    """Convert rows to the contract's columns and order; raise if they violate the contract or a rule."""
    unknown = sorted({name for row in rows for name in row} - set(table.column_names))
    if unknown:
        raise ContractError(
            f"{table.name} has no column {', '.join(unknown)}", "write only columns of the catalogue"
        )
    full = [{column.name: row.get(column.name, column.default) for column in table.columns} for row in rows]
    try:
        data = pa.Table.from_pylist(full, pa.schema(_schema(table).to_arrow()))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        raise ContractError(
            f"rows for {table.name} do not fit its columns: {problem}",
            "fix the code that produces the rows",
        ) from problem
    _refuse_broken(table, data, full)
    order = [(name, "ascending") for name in table.ordering]
    return data.sort_by(order) if order else data


@cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """Return the DuckDB database of a process: opening one takes longer than a query."""
    database = duckdb.connect(":memory:", config=DATABASE)
    database.execute("CREATE MACRO startswith(a, b) AS starts_with(a, b)")
    return database


def _refuse_broken(table: Table, data: pa.Table, rows: Rows) -> None:
    # The catalogue quotes names as Spark does.
    rules = {name: condition.replace("`", '"') for name, condition in rules_for(table, {}).items()}
    held = ", ".join(f"coalesce(({condition})::BOOLEAN, false)" for condition in rules.values())
    try:
        with _database(os.getpid()).cursor() as database:
            database.register("rows_to_write", data)
            results = database.execute(f"SELECT {held} FROM rows_to_write").fetchall()
    except duckdb.Error as problem:
        raise StorageFailure(
            f"the rules of {table.name} cannot be checked: {problem}", "check that there is free memory"
        ) from problem
    broken = [
        (row, [name for name, holds in zip(rules, result, strict=True) if not holds])
        for row, result in zip(rows, results, strict=True)
        if not all(result)
    ]
    if broken:
        scalar = [column.name for column in table.columns if not column.array and column.type != "struct"]
        samples = tuple(
            f"{', '.join(names)}: {json.encode({name: row[name] for name in scalar}).decode()}"
            for row, names in broken[:SAMPLE_ROWS]
        )
        violated = dict.fromkeys(name for _, names in broken for name in names)
        raise ConstraintViolation(table.name, {name: rules[name] for name in violated}, samples)
