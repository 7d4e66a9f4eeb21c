"""How many files a lookup reads in a lake that was sorted and Z-ordered, of a real package."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy.config import load_settings
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.maintain.inspection import MaintenanceRequest
from codeanatomy.maintain.maintenance import maintain
from codeanatomy.progress import Progress
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Slice
from support import corpus
from support.light_builds import clean_lake

TABLES = ("cpg_nodes", "cpg_edges_by_src", "cpg_edges_by_dst")
# Of a package they are what larger ones are of a company.
SMALL_FILES = tuple(f"tables.{name}.write.target_file_size=1MB" for name in TABLES)


def ordered_lake(spark: SparkSession, lake: Path, package: str) -> Path:
    """A lake of a package whose largest tables are in many files, in the order of their policies."""
    clean_lake(lake, {package: corpus.package(package)})
    settings = load_settings(SMALL_FILES, env={}, start=None)
    asked = MaintenanceRequest(str(lake), settings, TABLES, ("zorder",), by_hand=True)
    report = maintain(asked, Progress(io.StringIO()), lambda: spark)
    assert [(each.operation, each.outcome) for each in report.outcomes] == [("zorder", "done")] * 3
    return lake


@pytest.mark.parametrize("package", ["requests", pytest.param("django", marks=pytest.mark.system)])
@pytest.mark.system
def test_a_lookup_reads_few_files(spark: SparkSession, tmp_path: Path, package: str) -> None:
    reader = LightReader(Snapshot.open(str(ordered_lake(spark, tmp_path / "lake", package))))
    found = "SELECT n.node_id, n.path, n.bstart, n.node_kind FROM n WHERE n.path IS NOT NULL"
    nodes = reader.rows(Query(f"{found} ORDER BY hash(n.node_id) LIMIT 20", {"n": Slice("cpg_nodes")}))
    read: dict[str, list[int]] = {}
    for node_id, path, _, kind in nodes:
        lookups = {
            "node by id": Slice("cpg_nodes", node_id=(node_id,)),
            "nodes of a kind in a file": Slice("cpg_nodes", node_kind=(kind,), path=(path,)),
            "edges from a node": Slice("cpg_edges_by_src", src_node_id=(node_id,)),
            "edges to a node": Slice("cpg_edges_by_dst", dst_node_id=(node_id,)),
        }
        for what, part in lookups.items():
            rows = reader.rows(Query("SELECT count(*) FROM t", {"t": part}))
            assert rows[0][0] > 0 or what.startswith("edges")
            scan = reader.scans[-1]
            assert scan.candidate_files is not None
            assert scan.total_files is not None
            read.setdefault(f"{what} of {scan.total_files} files", []).append(scan.candidate_files)
    for what, counts in read.items():
        print(f"{package}: {what}: {min(counts)} to {max(counts)} read")
        assert max(counts) <= 4, what
