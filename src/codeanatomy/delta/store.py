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

from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from codeanatomy.config import Settings
from codeanatomy.delta.events import Recorder, discard
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.spark.session import require_delta, require_settings
from codeanatomy.spark.versions import require_internals


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
        require_settings(spark)
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
