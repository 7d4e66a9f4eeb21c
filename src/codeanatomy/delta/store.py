"""Hold the context of every read and write: lake root, table contracts, event recorder, Spark session.

    store = Store(spark, "/data/lake")
    nodes = scan(store, "cpg_nodes", pin=3).rows
    done  = append(store, "cpg_nodes", rows, Commit(run_id="r1"))

Functions that need Spark take a `Store` as their first argument; those that do not take a `LakeTables`. There
is no global session. A store refuses sessions whose internals were not tested (`spark.versions`), except for
reads with the public interface (`query.engines.public_store`).

Tests: `tests/spark/test_commit.py`, `tests/spark/test_scan.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from codeanatomy.config import Settings
from codeanatomy.delta.events import Recorder, discard
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.errors import RemotePathRefused, UsageError
from codeanatomy.spark.session import require_delta
from codeanatomy.spark.versions import require_internals

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


@dataclass(frozen=True)
class LakeTables:
    """The context of a read or write without Spark."""

    # Path or URI of the lake.
    root: str
    tables: tuple[Table, ...] = catalog.TABLES
    record: Recorder = discard
    require_local_paths: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", normalize_root(str(self.root), self.require_local_paths))

    def table(self, name: str) -> Table:
        """Return the contract of a table, with the policies of the settings."""
        return catalog.table(name, self.tables)

    def location(self, name: str) -> str:
        """Return the path or URI of a table."""
        return f"{self.root}/{self.table(name).path}"


@dataclass(frozen=True, init=False, kw_only=True)
class Store(LakeTables):
    """The context of a read or write with Spark."""

    # False: only the public interface of Spark and Delta is used.
    uses_internals: ClassVar[bool] = True
    spark: SparkSession

    def __init__(
        self,
        spark: SparkSession,
        root: str,
        tables: tuple[Table, ...] = catalog.TABLES,
        record: Recorder = discard,
        require_local_paths: bool = False,
    ) -> None:
        require_delta(spark)
        if self.uses_internals:
            require_internals(spark)
        object.__setattr__(self, "spark", spark)
        super().__init__(root, tables, record, require_local_paths)

    @classmethod
    def from_settings(
        cls, settings: Settings, spark: SparkSession, root: str, record: Recorder = discard
    ) -> Store:
        """Open a store with the table policies and storage options of the settings.

        Raise StorageMismatch if the session has other storage options.
        """
        policy = StorePolicy.from_profile(settings.runtime)
        store = cls(spark, root, settings.tables, record, policy.require_local_paths)
        policy.require_match(spark, store.root)
        register_policy(store.root, policy)
        return store


def normalize_root(root: str, require_local_paths: bool) -> str:
    """Make a local root absolute, strip a trailing slash, and refuse a remote root if `require_local_paths`.

    >>> normalize_root("s3a://bucket/lake/", require_local_paths=False)
    's3a://bucket/lake'
    """
    if not root:
        raise UsageError("the path of the lake is empty", "give a folder or a URI")
    # Delta addresses tables as delta.`path` and does not escape the path itself.
    if "`" in root or "\n" in root:
        raise UsageError(
            f"{root!r} cannot be the path of a lake", "use a path without backticks and line breaks"
        )
    scheme = SCHEME.match(root)
    if scheme is None:
        path = Path(root).absolute()
        if path.is_file():
            raise UsageError(f"{root} is a file, not a folder", "give a folder for the lake")
        return str(path)
    if require_local_paths and scheme[1].lower() != "file":
        raise RemotePathRefused(
            f"{root} is remote, but runtime.require_local_paths is true",
            "use a local folder, or set runtime.require_local_paths=false",
        )
    return root.rstrip("/")
