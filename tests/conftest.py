"""Share one Spark session and one large lake among all tests, made by the first test that uses them."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table
from support.hostile_files import repositories_in

# PySpark is imported by the fixtures that need it: `make unit` runs without it.
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.delta.events import Event
    from codeanatomy.delta.store import Store

# The time of an example depends on the load of the machine.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=30)
hypothesis.settings.register_profile("system", deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# Sources that tests read; some of them have the names of tests.
collect_ignore = ["cases"]
SYSTEM = Path(__file__).parent / "system"
# Trees of sources are many objects and no garbage: look for garbage less often than Python does by itself.
GC_THRESHOLDS = (50_000, 20, 20)

# A process that a shell starts in the background ignores SIGINT; tests interrupt runs.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regenerate",
        action="store_true",
        help="write the goldens of tests/cases/golden and tests/cases/plans anew",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of tests/system."""
    for item in items:
        if SYSTEM in item.path.parents:
            item.add_marker(pytest.mark.system)


def pytest_collection_finish() -> None:
    """Leave modules and test items out of garbage collections: these took a sixth of the time of tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def pytest_sessionfinish() -> None:
    """Let the interpreter release everything at its end: DuckDB lists what is left."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Open a session like that of users, with few partitions because test data is tiny."""
    from codeanatomy.config import RuntimeProfile
    from codeanatomy.spark.session import open_session

    warehouse = tmp_path_factory.mktemp("warehouse")
    profile = RuntimeProfile(
        cores=2,
        shuffle_partitions=4,
        spark={
            "spark.sql.warehouse.dir": warehouse.as_uri(),
            # For tiny jobs the optimizing compiler costs more than it gives; without it, the JVM would
            # take a small cache for its code, which the plans of all tests do not fit into.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
            # The other core is busy with the tests beside these.
            " -XX:+UseSerialGC",
        },
    )
    session = open_session(profile)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write the repositories of the lake below; return them by name."""
    return repositories_in(tmp_path_factory.mktemp("repositories"))


@pytest.fixture(scope="session")
def lake(
    spark: SparkSession, repositories: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Build them through every stage and verify the lake; tests may add to it, not remove from it."""
    from support.spark_builds import built

    lake = tmp_path_factory.mktemp("lake")
    assert built(spark, lake, repositories, until=None, profile="full").status == "succeeded"
    return lake


@pytest.fixture(scope="session")
def ask_lake() -> Path:
    """Return the lake that the tests of `codeanatomy.query` read; no test writes to it."""
    from support.ask_lake import build_ask_lake
    from support.lake_cache import cached

    return cached("ask", build_ask_lake)


@pytest.fixture(scope="session")
def aged_lake() -> Path:
    """Return a lake of several refreshes; no test writes to it."""
    from support.aged_lake import build_aged_lake
    from support.lake_cache import cached

    return cached("aged", build_aged_lake)


@pytest.fixture(scope="module")
def shared_store(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Store]:
    """Make a store for all tests of a module that only read it: a commit takes a second."""
    from codeanatomy.delta.store import Store

    def make(*tables: Table) -> Store:
        return Store(spark, str(tmp_path_factory.mktemp("shared") / "lake"), tables=tables)

    return make


@pytest.fixture
def events() -> list[Event]:
    """Events that the store of this test has recorded."""
    return []


@pytest.fixture
def make_store(spark: SparkSession, tmp_path: Path, events: list[Event]) -> Callable[..., Store]:
    """Make a store in a separate folder, over the catalogue or over given tables."""
    from codeanatomy.delta.store import Store

    def make(*tables: Table) -> Store:
        return Store(spark, str(tmp_path / "lake"), tables=tables or catalog.TABLES, record=events.append)

    return make
