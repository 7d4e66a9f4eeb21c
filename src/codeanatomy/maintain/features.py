"""Show the protocol features of tables, and enable one.

    protocols("lake", settings, ("cpg_nodes",))[0].features      # ("changeDataFeed",)
    enable_feature("lake", settings, ("cpg_nodes",), "deletion_vectors", progress, open_session)

A feature can require more of readers and writers than they support, and most cannot be removed. So only those
can be enabled that the table's policy enables or lists as optional. The version that has the feature is
published, as after any maintenance. Tests: `tests/unit/maintain/test_maintain_command.py`,
`tests/spark/test_maintain_command.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.catalog.readers import readers_of
from codeanatomy.catalog.spec import FeatureName, Table
from codeanatomy.config import Settings
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.light import table_facts
from codeanatomy.delta.read.open_table import newest_version
from codeanatomy.delta.write.evolve import alter_feature
from codeanatomy.errors import FeatureError, StorageFailure, TableMissing, UsageError
from codeanatomy.maintain.maintenance_run import (
    MaintenanceRun,
    WriteRequest,
    open_maintenance_run,
    resolve_request,
)
from codeanatomy.progress import Progress

# Tables that an error lists.
MAX_LISTED = 3


class Protocol(Struct, frozen=True):
    """What a table requires of readers and writers, and the features that may be enabled."""

    table: str
    version: int
    min_reader_version: int
    min_writer_version: int
    features: tuple[str, ...]
    allowed: tuple[FeatureName, ...]
    # Programs that open the table.
    readers: tuple[str, ...]


def protocols(lake: str, settings: Settings, tables: Sequence[str]) -> list[Protocol]:
    """Return the protocol of the newest version of the given tables, or of all tables of the lake."""
    rows = []
    for name in tables or [table.name for table in catalog.TABLES]:
        table = catalog.table(name, settings.tables)
        try:
            version = newest_version(lake, table.name)
        except TableMissing:
            if tables:
                raise
            continue
        facts = table_facts(lake, table.name, version)
        rows.append(
            Protocol(
                table.name,
                version,
                facts.min_reader_version,
                facts.min_writer_version,
                facts.features,
                _allowed(table),
                readers_of(facts.features),
            )
        )
    if not rows:
        raise TableMissing(f"{lake} has no tables", "give a lake that was built, or build it first")
    return rows


def enable_feature(
    lake: str,
    settings: Settings,
    tables: Sequence[str],
    feature: FeatureName,
    progress: Progress,
    session: Callable[[], SparkSession],
) -> None:
    """Enable a feature of the given tables, and publish the versions that have it."""
    if not tables:
        raise UsageError("--enable needs the names of tables", "name each TABLE that gets the feature")
    for name in tables:
        allowed = _allowed(catalog.table(name, settings.tables))
        if feature not in allowed:
            raise FeatureError(
                f"the policy of {name} does not allow {feature}",
                f"add it to tables.{name}.upkeep.optional_features; allowed: {', '.join(allowed) or 'none'}",
            )
        newest_version(lake, name)
    request = resolve_request(WriteRequest(lake, settings))
    with open_maintenance_run(request, ("all, for a feature",), progress, session) as run:
        refuse_unpublished(run)
        pins = {} if run.current is None else run.current.pins
        store, versions, events = run.store(), dict[str, int](), list[dict[str, Any]]()
        try:
            for name in tables:
                before, table = newest_version(lake, name), catalog.table(name, settings.tables)
                versions[name] = alter_feature(store, table, feature, Commit(run.run_id))
                fields = {"outcome": "done", "from_version": before, "delta_version": versions[name]}
                events.append(run.event(name, "features", f"{feature} was requested", **fields))
        finally:
            # Also if it fails for a later table.
            published = {name: version for name, version in versions.items() if name in pins}
            if run.current is not None and published:
                run.publish(run.current, published, "maintenance")
            run.record(events)


def refuse_unpublished(run: MaintenanceRun, hint: str = "run codeanatomy build first") -> None:
    """Raise StorageFailure if a table has versions of a run that has died."""
    pins = {} if run.current is None else run.current.pins
    unpublished = [
        name for name, pin in pins.items() if run.initial_versions.get(name, pin.version) != pin.version
    ]
    if unpublished:
        raise StorageFailure(
            f"{', '.join(unpublished[:MAX_LISTED])} has versions that no run has published", hint
        )


def _allowed(table: Table) -> tuple[FeatureName, ...]:
    return tuple(dict.fromkeys((*table.write.enable_features, *table.upkeep.optional_features)))
