"""Protocol features of the tables of a lake: which there are, and how one is switched on.

    protocols("lake", settings, ("cpg_nodes",))[0].features      # ("changeDataFeed",)
    enable_feature("lake", settings, ("cpg_nodes",), "deletion_vectors", progress, open_session)

A feature can ask more of readers and writers than they can do, and most cannot be taken back. So only those
are switched on that the policy of the table names as optional or wants anyway. The version that has it is
published, as after any maintenance. Tests: `tests/unit/maintain/test_maintain_command.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.catalog.spec import FeatureName, Table
from codeanatomy.config import Settings
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.light import newest_version, table_facts
from codeanatomy.delta.write.evolve import alter_feature
from codeanatomy.errors import FeatureError, StorageFailure, TableMissing, UsageError
from codeanatomy.maintain.maintenance_run import Ask, checked, writing
from codeanatomy.progress import Progress

# Tables that are named in an error.
SHOWN = 3


class Protocol(Struct, frozen=True):
    """What a table asks of readers and writers, and what it may be made to ask."""

    table: str
    version: int
    min_reader_version: int
    min_writer_version: int
    features: tuple[str, ...]
    allowed: tuple[FeatureName, ...]


def protocols(lake: str, settings: Settings, tables: Sequence[str]) -> list[Protocol]:
    """The protocol of the newest version of each table that is there, or of those that are named."""
    found = []
    for name in tables or [table.name for table in catalog.TABLES]:
        table = catalog.table(name, settings.tables)
        try:
            version = newest_version(lake, table.name)
        except TableMissing:
            if tables:
                raise
            continue
        facts = table_facts(lake, table.name, version)
        found.append(
            Protocol(
                table.name,
                version,
                facts.min_reader_version,
                facts.min_writer_version,
                facts.features,
                _allowed(table),
            )
        )
    if not found:
        raise TableMissing(f"there is no table in {lake}", "name a lake that was built")
    return found


def enable_feature(
    lake: str,
    settings: Settings,
    tables: Sequence[str],
    feature: FeatureName,
    progress: Progress,
    session: Callable[[], SparkSession],
) -> None:
    """Switch a feature on for the tables that are named, and publish the versions that have it."""
    if not tables:
        raise UsageError("a feature is switched on table by table", "name the tables")
    for name in tables:
        allowed = _allowed(catalog.table(name, settings.tables))
        if feature not in allowed:
            raise FeatureError(
                f"the policy of {name} does not allow {feature}",
                f"add it to tables.{name}.upkeep.optional_features; allowed: {', '.join(allowed) or 'none'}",
            )
        newest_version(lake, name)
    with writing(checked(Ask(lake, settings)), ("all, for a feature",), progress, session) as run:
        pins = {} if run.current is None else run.current.pins
        stray = [name for name, pin in pins.items() if run.floor.get(name, pin.version) != pin.version]
        if stray:
            raise StorageFailure(
                f"{', '.join(stray[:SHOWN])} has versions that nobody has published", "build again first"
            )
        store, made, events = run.store(), dict[str, int](), list[dict[str, Any]]()
        try:
            for name in tables:
                before, table = newest_version(lake, name), catalog.table(name, settings.tables)
                made[name] = alter_feature(store, table, feature, Commit(run.run_id))
                told = {"outcome": "done", "from_version": before, "delta_version": made[name]}
                events.append(run.event(name, "features", f"{feature} was asked for", **told))
        finally:
            # Also if a later table cannot have it.
            versions = {name: version for name, version in made.items() if name in pins}
            if run.current is not None and versions:
                run.publish(run.current, versions, "maintenance")
            run.record(events)


def _allowed(table: Table) -> tuple[FeatureName, ...]:
    return tuple(dict.fromkeys((*table.write.enable_features, *table.upkeep.optional_features)))
