"""Build lakes in the Spark session of the tests, and read their rows.

built(spark, lake, {"app": folder}, until=None)                   # as a user who names no engine
built(spark, lake, {"app": folder}, until=None, engine="local")   # on local processes
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.catalog.kinds import Profile
from codeanatomy.config import Engine, load_settings
from codeanatomy.plan.build_request import BuildRequest, ScipChoice, TypesChoice
from codeanatomy.plan.repositories import Repository
from codeanatomy.progress import Progress
from codeanatomy.query.checks.verify import verify
from codeanatomy.run.build import build
from codeanatomy.run.report import BuildReport
from codeanatomy.tracing import NO_TRACE, Trace
from support.sessions import SharedSession


def built(
    spark: SparkSession,
    lake: Path,
    repositories: dict[str, Path],
    *,
    settings: Sequence[str] = (),
    scip: ScipChoice | None = None,
    types: TypesChoice = "off",
    until: str | None = "extract",
    profile: Profile = "default",
    full: bool = False,
    engine: Engine = "spark",
    trace: Trace = NO_TRACE,
) -> BuildReport:
    """Build the repositories into a lake, by default with the first stage alone; a graph must be sound."""
    effective = load_settings((f"runtime.engine={engine}", *settings), env={}, start=None)
    sources = tuple(Repository(repo_id, path) for repo_id, path in repositories.items())
    order = BuildRequest(
        str(lake),
        effective,
        sources,
        scip or ScipChoice(),
        types,
        profile,
        until,
        full=full,
    )
    report = build(order, Progress(io.StringIO()), SharedSession(spark), trace)
    if until in (None, "graph"):
        checked = verify(str(lake))
        assert not checked.findings, checked.findings
        assert set(checked.runs) >= {name for name, one in report.repositories.items() if one.files}
    return report


def rows(lake: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table, read by another engine, ordered by its key."""
    table = catalog.table(name)
    opened = QueryBuilder().register("t", DeltaTable(str(lake / table.path)))
    listed: list[dict[str, Any]] = pa.table(opened.execute("SELECT * FROM t").read_all()).to_pylist()
    return sorted(listed, key=lambda row: [(row[key] is not None, row[key]) for key in table.primary_key])


def timeless(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without the columns that may differ between two builds of the same bytes."""
    return [{key: value for key, value in row.items() if key not in ("mtime_ns", "run_id")} for row in listed]
