"""Plans of every view on Spark, each with a filter and columns that are typical of it.

A golden is the statement and the physical plan, with the expressions left out: which files and columns are
read, which filters are pushed down to them, how rows meet and where they are exchanged. Tables are planned as
if they were too large to be broadcast. After a change that is meant,
`pytest tests/spark/test_view_plans.py --regenerate` writes them anew, and the diff is reviewed.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.catalog.views import RECORD_VIEWS, VIEWS, view
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.write.small_rows import append_small
from codeanatomy.query.engines.spark_lake import SparkLake
from codeanatomy.query.lake import Lake
from codeanatomy.spark.plans import plan_texts
from codeanatomy.spark.session import clone_session
from support.folders import CASES
from support.light_builds import clean_lake
from support.plan_goldens import outline

GOLDENS = CASES / "plans" / "views"
# What the plans of a statement may not have, whatever the golden is.
FORBIDDEN = re.compile(r"CartesianProduct|Python|Pandas|InArrow")
RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
SETTINGS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Filters in full.
    "spark.sql.maxMetadataStringLength": "100000",
}
EVENT = {"event_no": 0, "event_time": datetime(2026, 5, 1, tzinfo=UTC)}
# A row of each table that this lake would not have: a table without a version is not read.
RECORDED: dict[str, dict[str, Any]] = {
    "delta_maintenance": {
        **EVENT,
        "table_name": "cpg_nodes",
        "operation": "optimize",
        "reason": "96 small files",
        "outcome": "done",
    },
    "delta_scan_plans": {**EVENT, "table_name": "cpg_nodes", "purpose": "sql"},
    "questions": {**EVENT, "verb": "sql", "read_run_id": "r", "seconds": 0.5, "rows": 1},
    "refresh_impact": {"repo_id": "shop", "path": "a.py", "reason": "changed", "relations": 0},
}
STATEMENTS = {
    "symbols": "SELECT symbol, kind, path, line FROM symbols WHERE name = 'Cart'",
    "calls": "SELECT caller, path, line FROM calls WHERE callee = 'shop.cart.total'",
    "call_sites": "SELECT written, line FROM call_sites WHERE path = 'shop/cart.py' AND confidence >= 0.9",
    "references": "SELECT path, line, usage FROM references WHERE symbol = 'shop.cart.Cart'",
    "imports": "SELECT importer, target FROM imports WHERE external",
    "inherits": "SELECT class_name, base FROM inherits WHERE path = 'shop/cart.py'",
    "flows": "SELECT source, target, line FROM flows WHERE path = 'shop/cart.py' AND relation = 'PASSES_TO'",
    "entry_points": "SELECT symbol, kind, name FROM entry_points WHERE kind = 'http' AND confidence >= 0.7",
    "files": "SELECT path, module, size_bytes, failures FROM files WHERE path LIKE 'shop/%'",
    "errors": "SELECT path, error_type FROM errors WHERE extractor = 'ast_files_v1'",
    "diagnostics": "SELECT path, line, message FROM diagnostics WHERE severity = 'error'",
    "repositories": "SELECT repo_id, files FROM repositories WHERE nodes > 0",
    "nodes": "SELECT node_id, name FROM nodes WHERE node_kind = 'CLASS' AND path = 'shop/cart.py'",
    "edges": "SELECT src_node_id, dst_node_id FROM edges WHERE edge_kind = 'CALLS' AND confidence > 0.5",
    "properties": "SELECT entity_id, value_string FROM properties WHERE prop_key = 'signature'",
    "delta_snapshots": "SELECT table_name, delta_version FROM delta_snapshots WHERE run_id = 'r'",
    "delta_mutations": "SELECT table_name, sum(rows) FROM delta_mutations GROUP BY table_name",
    "delta_scan_plans": "SELECT table_name, purpose FROM delta_scan_plans WHERE pruned_files = 0",
    "delta_maintenance": "SELECT table_name, reason FROM delta_maintenance WHERE outcome <> 'done'",
    "plan_artifacts": "SELECT frame_name, plan_hash FROM plan_artifacts WHERE artifact_id = 'r/graph'",
    "run_costs": "SELECT name, seconds FROM run_costs WHERE run_id = 'r' AND scope = 'rule'",
    "questions": "SELECT verb, max(seconds) FROM questions WHERE read_run_id = 'r' GROUP BY verb",
    "refresh_impact": "SELECT path, reason FROM refresh_impact WHERE run_id = 'r' AND repo_id = 'shop'",
    "run_manifest": "SELECT repo_id, status, settings_hash FROM run_manifest WHERE run_id = 'r'",
    "cdf_cursors": "SELECT dataset, last_version FROM cdf_cursors WHERE consumer = 'graph'",
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkLake]:
    """A lake of one repository, built once: nothing of it is maintained or refreshed."""
    folder = tmp_path_factory.mktemp("views")
    shutil.copytree(CASES / "ask" / "shop", folder / "shop")
    (folder / "shop" / "broken.py").write_text("def f(:\n", encoding="utf-8")
    clean_lake(folder / "lake", {"shop": folder / "shop"})
    for name, row in RECORDED.items():
        append_small(str(folder / "lake"), catalog.table(name), [{"run_id": "r", **row}], Commit("r"))
    opened = Lake.open(folder / "lake", spark=clone_session(spark, SETTINGS))
    yield opened
    opened.close()


def test_every_view_has_a_statement() -> None:
    assert set(STATEMENTS) == {each.name for each in (*VIEWS, *RECORD_VIEWS)}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_view_is_planned_as_reviewed(name: str, lake: SparkLake, request: pytest.FixtureRequest) -> None:
    path = GOLDENS / f"{name}.txt"
    physical = RUN_ID.sub("RUN", outline(plan_texts(lake.sql(STATEMENTS[name])).physical))
    found = f"{STATEMENTS[name]}\n\n{physical}\n"
    if request.config.getoption("--regenerate"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert path.exists(), "a new view: run this test with --regenerate and review what it writes"
    assert found.split("\n") == path.read_text(encoding="utf-8").split("\n")
    assert not FORBIDDEN.findall(physical)
    read = [line for line in physical.splitlines() if "FileScan" in line]
    # A plan of no files would show nothing.
    assert {line.split()[1] for line in read} == {table for table, _ in view(name).reads.values()}


def test_golden_files_are_those_of_views() -> None:
    assert {path.stem for path in Path(GOLDENS).iterdir()} == set(STATEMENTS)
