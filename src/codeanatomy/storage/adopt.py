"""Commits of data files that executors have written themselves (`storage.files`).

    files = write_files(folder, table, batches)               # on executors
    done  = adopt_files(store, "ast_files_v1", files, ["requests"], Commit("run-7"), by="repo_id")

What a commit promises holds here too: the columns are the contract's, every rule is checked before anything
becomes visible (by reading what is on disk, of which rules need a few columns only), the transaction is
idempotent, conflicts are retried. Rows of owners that the table has already are replaced: by appending where
there are none, by taking the place of all files where all rows are theirs, else by reading the files as rows
and writing them anew (`replace_by_owner`).

Tests: `tests/test_adopt.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from codeanatomy.catalog.spec import Table
from codeanatomy.errors import ContractError
from codeanatomy.storage.checks import rules_for, violation
from codeanatomy.storage.commit import Change, Retry, recorded, replace_by_owner
from codeanatomy.storage.contract import spark_schema
from codeanatomy.storage.events import Committed
from codeanatomy.storage.evolve import evolve, new_table
from codeanatomy.storage.scan import scan
from codeanatomy.storage.stamps import Commit
from codeanatomy.storage.store import SCHEME, Store
from codeanatomy.storage.transaction import DataFile, add_files


def local_folder(store: Store, name: str) -> str | None:
    """Where executors may write files of a table; none where only Spark can."""
    table, location = store.table(name), store.location(name)
    if table.schema.column_mapping_mode is not None or SCHEME.match(location):
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
    is_copy: bool = False,
    retry: Retry = Retry(),
) -> Committed:
    """Swap the rows of a set of owners for those in the files, in one atomic commit.

    Of a copy the rows are those of another table, which is where their rules are checked.
    """
    table = store.table(name)
    log = store.log(name)
    rows = _rows(store, table, files)
    theirs, others = _held(store, name, owners, by)
    if theirs and others:
        done = replace_by_owner(store, name, rows, owners, commit, by=by, retry=retry)
        # Written anew: nobody else knows of them.
        for file in files:
            Path(log.location, file.path).unlink(missing_ok=True)
        return done

    def write(session: SparkSession) -> bool:
        born = not log.exists()
        new = new_table(store, table, None) if born else None
        properties = {} if born else evolve(store, table).properties
        broken = None if is_copy else violation(table, rows, rules_for(table, properties))
        if broken is not None:
            raise broken
        transaction = (commit.run_id, commit.sequence)
        add_files(
            session, log.location, files, transaction, change.stamp, new, overwriting=theirs and not born
        )
        return True

    change = Change(store, table, "adopt_files", commit, retry, write)
    return recorded(change)


def _rows(store: Store, table: Table, files: Sequence[DataFile]) -> DataFrame:
    """What is in the files; they must have exactly the contract's columns."""
    schema = spark_schema(table)
    if not files:
        return store.spark.createDataFrame([], schema)
    folder = store.location(table.name)
    # From the footers: Spark would start a job to look at them.
    for file in files:
        _refuse_other_columns(table, file, pq.read_schema(f"{folder}/{file.path}"))
    # The values of partitions are in the paths below the base; Spark puts them behind the other columns.
    reader = store.spark.read.schema(schema).option("basePath", folder)
    return reader.parquet(*(f"{folder}/{file.path}" for file in files)).select(*table.column_names)


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


def _held(store: Store, name: str, owners: Sequence[str], by: str) -> tuple[bool, bool]:
    """Whether the table has rows of the owners, and whether it has rows of others."""
    if not store.log(name).exists():
        return False, False
    owned = F.col(by).isin(list(owners))
    rows = scan(store, name).rows.select(F.max(owned).alias("theirs"), F.max(~owned).alias("others")).first()
    return (bool(rows["theirs"]), bool(rows["others"])) if rows is not None else (False, False)
