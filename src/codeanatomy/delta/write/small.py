"""Commits of a few rows without a JVM: the manifest, the lease and what is recorded of a run.

    append_small("lake", catalog.table("run_manifest"), [{"run_id": "run-7", ...}], Commit("run-7"), after=4)
    -> 5, or CommitConflict if somebody else made version 5

A table looks the same whoever made it, Spark (`delta.write.commit`) or this: schema with NOT NULL, comments and
semantic types, properties, protocol, the stamp in Delta's history and the transaction in the log. Only the
birth differs, as it takes a commit of its own: version 0 has no rows.

Every attempt is made for exactly one next version and is never rebased, so that `after` is a compare and set;
it needs a store that can create a file only if there is none (a local file system, or an object store with
conditional writes). An attempt that fails after its entry was written is found in the log by its stamp.

Tests: `tests/unit/delta/test_small.py`.
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
from codeanatomy.delta.layout import resolve_stats_columns, table_properties
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
# Others that append at the same time are done within milliseconds.
ATTEMPTS = 50
MOST_SECONDS = 0.2
DATABASE: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "autoinstall_known_extensions": False,
}
# What the system says when it cannot write, and what to do about it.
CAUSES: Mapping[str, str] = {
    "No space left on device": "make room on the disk and repeat",
    "Disk quota exceeded": "make room within the quota and repeat",
    "Read-only file system": "mount the file system of the lake for writing, or use another lake",
    "Permission denied": "get the right to write to the lake, or use another",
    "Operation not permitted": "get the right to write to the lake, or use another",
}
# Bytes that a commit may need.
ROOM = 128 * 1024


def refuse_unwritable(root: str) -> None:
    """Refuse a folder whose name the library that writes the log takes for something else."""
    odd = UNREADABLE.search(root) if "://" not in root else None
    if odd is not None:
        raise UsageError(f"{odd[0]!r} in the path of a lake: {root}", "give the folder another name")


def append_small(root: str, table: Table, rows: Rows, commit: Commit, *, after: int | None = None) -> int:
    """Add rows, and return the version that holds them.

    `after` is the version the table must be at (-1: there is no table), else CommitConflict; without it
    the commit is repeated until it goes through.
    """
    data = _checked(table, rows)
    for _ in range(ATTEMPTS):
        try:
            return _committed(root, table, data, commit, "append", after)
        except CommitConflict:
            if after is not None:
                raise
            time.sleep(random.uniform(0, MOST_SECONDS))
    raise CommitConflict(
        f"append of {table.name} lost against other writers {ATTEMPTS} times",
        "repeat it when the other writer is done",
    )


def overwrite_small(root: str, table: Table, rows: Rows, commit: Commit, *, after: int) -> int:
    """Replace all rows, and return the version made; `after` as above."""
    return _committed(root, table, _checked(table, rows), commit, "overwrite", after)


def _committed(root: str, table: Table, data: pa.Table, commit: Commit, mode: Mode, after: int | None) -> int:
    place = location(root, table.name)
    with _failures(place, table, commit, mode) as attempt:
        options = deltalake_options(place)
        is_there = DeltaTable.is_deltatable(place, storage_options=options)
        opened = DeltaTable(place, storage_options=options) if is_there else None
        found = None if opened is None else _repeated(opened, table, commit, mode)
        if found is not None:
            return found
        version = -1 if opened is None else opened.version()
        if after is not None and version != after:
            raise _conflict(table, after, version)
        attempt.after = version
        _try_disk(place)
        if opened is None:
            opened = _created(place, table, commit)
            version = attempt.after = _next(table, version, opened)
        if _set_properties(opened, table, commit):
            version = attempt.after = _next(table, version, opened)
        write_deltalake(
            opened,
            _uncommented(data, opened),
            mode=mode,
            schema_mode=_schema_mode(opened, table),
            writer_properties=WriterProperties(compression=CODECS[table.write.writer.compression]),
            commit_properties=_properties_of(commit, mode, _transaction(commit)),
        )
        attempt.version = version + 1
    return attempt.version


def _next(table: Table, version: int, opened: DeltaTable) -> int:
    """The version after a commit of ours; what somebody else has added since must not be built on unseen."""
    if opened.version() != version + 1:
        raise _conflict(table, version + 1, opened.version())
    return version + 1


class _Attempt:
    """Which version a commit shall follow, and which it has made."""

    after: int = -1
    version: int = -1


@contextmanager
def _failures(place: str, table: Table, commit: Commit, mode: Mode) -> Iterator[_Attempt]:
    """What the library or the system raises, as an error of ours; nothing, if the commit is in the log."""
    attempt = _Attempt()
    try:
        yield attempt
    except CodeAnatomyError:
        raise
    except Exception as problem:
        # The library raises its own errors, those of the system, and plain exceptions.
        newest, made = _since(place, attempt.after, commit, mode)
        if made is None and newest > attempt.after:
            raise _conflict(table, attempt.after, newest) from problem
        if made is None:
            raise _failed(mode, table, place, str(problem)) from problem
        attempt.version = made


def _since(place: str, after: int, commit: Commit, mode: Mode) -> tuple[int, int | None]:
    """The newest version of a table, and the one after `after` that this commit has made."""
    try:
        opened = DeltaTable(place, storage_options=deltalake_options(place))
        newest = opened.version()
        return newest, _own(opened, commit, mode, newest - after) if newest > after else None
    except (DeltaError, OSError, ValueError):
        return after, None


def _conflict(table: Table, wanted: int, found: int) -> CommitConflict:
    return CommitConflict(
        f"{table.name} is at version {found}, not {wanted}: somebody else has written to it",
        "read it again and decide anew",
    )


def _failed(mode: Mode, table: Table, place: str, said: str) -> StorageFailure:
    """The error for what the library or the system says: the cause alone, where it is known."""
    cause = next((cause for cause in CAUSES if cause.lower() in said.lower()), None)
    why = cause or " ".join(COLOURS.sub("", said).split())
    hint = CAUSES[cause] if cause else "no rows were committed; repeat it when the cause is gone"
    return StorageFailure(f"{mode} of {table.name} at {place} failed: {why}", hint)


def _try_disk(place: str) -> None:
    """Fail with a plain OSError where a local disk is full or read-only: threads of the library panic."""
    parts = urlsplit(place)
    if parts.scheme not in ("", "file"):
        return
    folder = Path(unquote(parts.path) if parts.scheme else place)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder) as trial:
        trial.write(bytes(ROOM))


def _repeated(opened: DeltaTable, table: Table, commit: Commit, mode: Mode) -> int | None:
    """The version that this transaction has made before, if it has."""
    known = opened.transaction_version(commit.run_id)
    if known is None or known < commit.sequence:
        return None
    version = _own(opened, commit, mode)
    if version is None:
        raise UsageError(
            f"run {commit.run_id} has committed sequence {known} to {table.name}, and this "
            f"{mode} of sequence {commit.sequence} is not in its log",
            "give every commit of a run to the same table a larger sequence than the one before",
        )
    return version


def _own(opened: DeltaTable, commit: Commit, mode: Mode, newest: int | None = None) -> int | None:
    """The version with the stamp of a commit, among so many of the newest ones."""
    wanted = encode_stamp(commit, mode)
    return next((version for version, said in _history(opened, newest) if said == wanted), None)


def _history(opened: DeltaTable, newest: int | None) -> Iterator[tuple[int, str | None]]:
    """What the newest versions say of themselves, the last first.

    The library counts versions from the one that it has loaded: of a log that grows meanwhile it tells wrong
    numbers. So those of a local table are read from the names of its entries.
    """
    parts = urlsplit(opened.table_uri)
    if parts.scheme != "file":
        yield from ((int(each["version"]), each.get("userMetadata")) for each in opened.history(newest))
        return
    place = unquote(parts.path)
    for version in logged_versions(place)[::-1][:newest]:
        yield version, read_commit_info(place, version).get("userMetadata")


def _created(place: str, table: Table, commit: Commit) -> DeltaTable:
    """The table, new and empty."""
    if table.write.enable_features:
        raise FeatureError(
            f"{table.name} asks for {', '.join(table.write.enable_features)}, but is not written by Spark",
            f"leave tables.{table.name}.write.enable_features empty",
        )
    return DeltaTable.create(
        place,
        _schema(table),
        mode="error",
        partition_by=list(table.write.partition_by),
        description=table.doc,
        configuration=_table_properties(table),
        storage_options=deltalake_options(place),
        commit_properties=_properties_of(commit, "create"),
        # Ours are not known to the library.
        raise_if_key_not_exists=False,
    )


def _schema(table: Table) -> Schema:
    return Schema.from_json(spark_schema(table).json())


def _table_properties(table: Table) -> dict[str, str]:
    return table_properties(table, resolve_stats_columns(table))


def _set_properties(opened: DeltaTable, table: Table, commit: Commit) -> bool:
    """Bring the properties of a table that an older version of ours made to its policy, if they differ."""
    stored = opened.metadata().configuration
    wanted = {key: value for key, value in _table_properties(table).items() if stored.get(key) != value}
    if wanted:
        opened.alter.set_table_properties(
            wanted, raise_if_not_exists=False, commit_properties=_properties_of(commit, "alter")
        )
    return bool(wanted)


def _schema_mode(opened: DeltaTable, table: Table) -> Literal["merge"] | None:
    """How columns, or fields of them, that are not stored yet are written: added, if the policy allows it."""
    stored = _types(json.decode(opened.schema().to_json()))
    wanted = _types(spark_schema(table).jsonValue())
    new = [name for name, kind in wanted.items() if stored.get(name) != kind]
    # The library would cast where it can.
    other = [name for name in new if name in stored and not _grown(stored[name], wanted[name])]
    if other or (new and table.schema.schema_mode != "merge"):
        raise SchemaDrift(
            f"stored {table.name} differs from its contract in {', '.join(other or new)}",
            f"set tables.{table.name}.schema.schema_mode to merge for new columns; "
            "for other differences build a new lake",
        )
    return "merge" if new else None


def _uncommented(data: pa.Table, opened: DeltaTable) -> pa.Table:
    """The rows, with comments on new columns only: the library refuses to write those that differ."""
    stored = {field.name for field in opened.schema().fields}
    fields = [
        pa.field(each.name, _bare_type(each.type), each.nullable) if each.name in stored else each
        for each in data.schema
    ]
    return data.cast(pa.schema(fields))


def _types(schema: dict[str, Any]) -> dict[str, Any]:
    """The types of columns as Delta's JSON has them, without comments: other words are no other type."""
    return {field["name"]: _bare(field["type"]) for field in schema["fields"]}


def _bare(kind: Any) -> Any:
    if isinstance(kind, dict):
        return {name: _bare(part) for name, part in kind.items() if name != "metadata"}
    return [_bare(part) for part in kind] if isinstance(kind, list) else kind


def _bare_type(kind: pa.DataType) -> pa.DataType:
    """A type without the comments of its fields."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _bare_type(each.type), each.nullable) for each in kind.fields])
    if pa.types.is_list(kind):
        element = kind.value_field
        return pa.list_(pa.field(element.name, _bare_type(element.type), element.nullable))
    return kind


def _grown(stored: Any, wanted: Any) -> bool:
    """Whether a type, as Delta's JSON has it, is another one with fields added."""
    if isinstance(stored, str) or isinstance(wanted, str) or stored["type"] != wanted["type"]:
        return bool(stored == wanted)
    if stored["type"] == "array":
        return _grown(stored["elementType"], wanted["elementType"])
    if stored["type"] == "struct":
        kinds = {field["name"]: field["type"] for field in wanted["fields"]}
        return all(_grown(each["type"], kinds.get(each["name"], each["type"])) for each in stored["fields"])
    return bool(stored == wanted)


def _transaction(commit: Commit) -> Transaction:
    # One without a time would be taken for one that is long past.
    return Transaction(commit.run_id, commit.sequence, int(time.time() * 1000))


def _properties_of(commit: Commit, operation: str, *transactions: Transaction) -> CommitProperties:
    """What goes into the log with a commit; it is for the next version or for none."""
    return CommitProperties(
        custom_metadata={"userMetadata": encode_stamp(commit, operation)},
        max_commit_retries=0,
        app_transactions=list(transactions),
    )


def _checked(table: Table, rows: Rows) -> pa.Table:
    """The rows in the contract's columns and order; those that break a rule are refused."""
    unknown = sorted({name for row in rows for name in row} - set(table.column_names))
    if unknown:
        raise ContractError(
            f"{table.name} has no {', '.join(unknown)}", "write only columns of the catalogue"
        )
    full = [{column.name: row.get(column.name, column.default) for column in table.columns} for row in rows]
    try:
        data = pa.Table.from_pylist(full, pa.schema(_schema(table).to_arrow()))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        raise ContractError(
            f"rows for {table.name} do not fit its columns: {problem}", "mend what makes the rows"
        ) from problem
    _refuse_broken(table, data, full)
    order = [(name, "ascending") for name in table.ordering]
    return data.sort_by(order) if order else data


@cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    """The database of a process, which takes longer to make than to ask."""
    found = duckdb.connect(":memory:", config=DATABASE)
    found.execute("CREATE MACRO startswith(a, b) AS starts_with(a, b)")
    return found


def _refuse_broken(table: Table, data: pa.Table, rows: Rows) -> None:
    # Names are quoted as Spark does it.
    rules = {name: condition.replace("`", '"') for name, condition in rules_for(table, {}).items()}
    held = ", ".join(f"coalesce(({condition})::BOOLEAN, false)" for condition in rules.values())
    try:
        with _database(os.getpid()).cursor() as database:
            database.register("rows_to_write", data)
            answers = database.execute(f"SELECT {held} FROM rows_to_write").fetchall()
    except duckdb.Error as problem:
        raise StorageFailure(
            f"the rules of {table.name} cannot be checked: {problem}", "see that there is memory left"
        ) from problem
    broken = [
        (row, [name for name, holds in zip(rules, answer, strict=True) if not holds])
        for row, answer in zip(rows, answers, strict=True)
        if not all(answer)
    ]
    if broken:
        plain = [column.name for column in table.columns if not column.array and column.type != "struct"]
        samples = tuple(
            f"{', '.join(names)}: {json.encode({name: row[name] for name in plain}).decode()}"
            for row, names in broken[:SAMPLE_ROWS]
        )
        violated = dict.fromkeys(name for _, names in broken for name in names)
        raise ConstraintViolation(table.name, {name: rules[name] for name in violated}, samples)
