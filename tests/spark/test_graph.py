"""The graph stage in a build: rows as in one process, sound, laid out as declared, and repeatable."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.catalog.kinds import KINDS
from codeanatomy.graph.rows import EDGES, NODES, PROPS, PROPS_MAP
from support import corpus
from support.graph_stage import graph_of
from support.hostile_files import GOLDEN, STRANGE
from support.relate_stage import sources_below
from support.spark_builds import built, rows, timeless

GRAPH = tuple(table.name for table in catalog.TABLES if table.stage == "graph")


def test_rows_are_those_of_one_process(lake: Path, repositories: dict[str, Path]) -> None:
    """But for complaints, of which Spark makes the most."""
    there: dict[str, dict[str, dict[tuple[Any, ...], dict[str, Any]]]] = {}
    for name in (NODES, EDGES):
        for row in rows(lake, name):
            if row.get("node_kind") != "DIAGNOSTIC" and row.get("edge_kind") != "HAS_DIAGNOSTIC":
                there.setdefault(row["repo_id"], {}).setdefault(name, {})[key_of(name, row)] = row
    for repo_id, folder in repositories.items():
        if repo_id in ("hostile", "strange"):
            continue
        graph = graph_of(sources_below(folder), repo_id=repo_id)
        for edge in graph.edges:
            del edge["edge_id"]
        nodes = {key_of(NODES, row): row for row in graph.nodes if row["node_kind"] != "DIAGNOSTIC"}
        edges = {key_of(EDGES, row): row for row in graph.edges if row["edge_kind"] != "HAS_DIAGNOSTIC"}
        assert there[repo_id][NODES] == nodes, repo_id
        assert there[repo_id][EDGES] == edges, repo_id


def key_of(name: str, row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[part] for part in catalog.table(name).primary_key)


def test_every_kind_is_there(lake: Path) -> None:
    found = Counter(row["node_kind"] for row in rows(lake, NODES))
    found.update(row["edge_kind"] for row in rows(lake, EDGES))
    # SCIP's kinds need an index, which this lake is built without; the goldens have one.
    missing = {kind for kind in KINDS if not found[kind]}
    assert missing == {kind for kind, each in KINDS.items() if set(each.sources) == {"scip_index_v1"}}


def test_strange_files_have_their_nodes(lake: Path) -> None:
    nodes = [row for row in rows(lake, NODES) if row["repo_id"] == "strange"]
    files = {row["path"]: row for row in nodes if row["node_kind"] == "FILE"}
    assert set(files) == set(STRANGE)
    assert files["undecodable.py"]["subkind"] == "unread"
    by_path = {name: {row["node_kind"] for row in nodes if row["path"] == name} for name in STRANGE}
    assert {"DIAGNOSTIC", "TS_ERROR"} <= by_path["future.py"] | by_path["zeros.py"]
    assert "DIAGNOSTIC" in by_path["undecodable.py"]
    assert "DIAGNOSTIC" in by_path["deeper.py"]
    assert {"FUNCTION", "SCOPE", "BINDING", "CFG_BLOCK"} <= by_path["late.py"]
    assert not [row for row in nodes if row["name"] == "not_graphed"]


def test_copies_and_properties_are_consistent(lake: Path) -> None:
    edges = rows(lake, EDGES)
    assert rows(lake, "cpg_edges_by_src") == edges
    assert rows(lake, "cpg_edges_by_dst") == edges
    together_: dict[str, dict[str, Any]] = {}
    for row in rows(lake, PROPS):
        together_.setdefault(row["entity_id"], {})[row["prop_key"]] = row[f"value_{row['value_type']}"]
    by_entity = {
        row["entity_id"]: {prop["prop_key"]: prop[f"value_{prop['value_type']}"] for prop in row["props"]}
        for row in rows(lake, PROPS_MAP)
    }
    assert by_entity == together_


def test_the_layout_is_as_declared(lake: Path) -> None:
    for name in GRAPH:
        table = catalog.table(name)
        stored = DeltaTable(str(lake / table.path))
        assert tuple(stored.metadata().partition_columns) == table.write.partition_by
        for uri in stored.file_uris():
            file = pq.ParquetFile(uri)
            assert file.schema_arrow.names == [
                each for each in table.column_names if each not in table.write.partition_by
            ]
            clusters = [key for key in table.ordering if key not in table.write.partition_by]
            keys = [
                tuple(row.values())
                for row in file.read(columns=clusters).to_pylist()
                if None not in row.values()
            ]
            # Equal paths of two repositories, and what has no file, are in order by repository only.
            if name != EDGES:
                assert keys == sorted(keys), uri
            blooms = duckdb.execute(
                "SELECT path_in_schema FROM parquet_metadata(?) WHERE bloom_filter_offset IS NOT NULL", [uri]
            ).fetchall()
            assert {bloom.column for bloom in table.write.writer.bloom_filters} <= {row[0] for row in blooms}


@pytest.mark.system
def test_a_moved_repository_is_the_same(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    """And so is a second build, in the other profile a part of it."""
    moved = tmp_path / "elsewhere" / "deeper"
    shutil.copytree(GOLDEN / "reexports", moved)
    built(spark, tmp_path / "lake", {"reexports": moved}, until=None)
    off = {kind for kind, each in KINDS.items() if "default" not in each.profiles}
    for name, kind, ends in ((NODES, "node_kind", ()), (EDGES, "edge_kind", ("src_node_id", "dst_node_id"))):
        before = [row for row in rows(lake, name) if row["repo_id"] == "reexports"]
        after = rows(tmp_path / "lake", name)
        kept = [
            row
            for row in before
            if row[kind] not in off and not any(row[end].startswith("instruction:") for end in ends)
        ]
        assert timeless(after) == timeless(kept)


@pytest.mark.system
@pytest.mark.parametrize("name", ["requests", "flask", "django"])
def test_real_packages(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """The validator finds nothing, and rows do not depend on the number of partitions."""
    found = []
    for partitions in (1, 2, 7) if name != "django" else (7,):
        lake = tmp_path / str(partitions)
        settings = (f"extract.partitions={partitions}",)
        built(spark, lake, {name: corpus.package(name)}, until=None, settings=settings)
        if name != "django":
            found.append({table: rows(lake, table) for table in GRAPH})
    assert all(each == found[0] for each in found)
