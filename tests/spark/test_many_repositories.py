"""A build of many repositories on Spark: each of its data files holds a range of repositories and files."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import Event, Scanned
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.read.predicate import InList, Predicate
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.spark_rows import replace_by_owner
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.executors import spark_executor, spark_tables
from codeanatomy.pipeline.tasks.graph_rows import COPIES
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Slice
from support.many_repositories import DATA_TABLES, changed_files, write_repositories
from support.marks import quick
from support.spark_builds import built

COUNT = 12
ONE, PATH = "r05", "m2.py"
OWNER = file_id(ONE, PATH)
# Small enough for several data files per table, in KB.
SIZES = {"extract": 32, "normalize": 8, "relate": 32, "graph": 24}
SETTINGS = tuple(
    f"tables.{table.name}.write.target_file_size={SIZES[table.stage]}KB" for table in DATA_TABLES
)


@pytest.fixture(scope="module")
def reader(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> LightReader:
    """Read a lake whose tables were written with a task per data file, as those of a large build are."""
    folder = tmp_path_factory.mktemp("many")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(spark_tables, "FEW_BYTES", 0)
        patched.setattr(spark_executor, "KEY_STEP", 1)
        built(
            spark,
            folder / "lake",
            write_repositories(folder / "sources", COUNT),
            settings=(*SETTINGS, "extract.partitions=4"),
            until=None,
        )
    return LightReader(Snapshot.open(str(folder / "lake")))


def in_partitions(files: list[LoggedFile]) -> dict[str, list[LoggedFile]]:
    """Group data files by partition."""
    groups: dict[str, list[LoggedFile]] = {}
    for file in files:
        groups.setdefault(str(file.partition), []).append(file)
    return groups


def test_data_files_are_ranges_of_repositories(reader: LightReader) -> None:
    for table in DATA_TABLES:
        for files in in_partitions(reader.files(Slice(table.name))).values():
            ranges = sorted(
                (file.column_range("repo_id").least, file.column_range("repo_id").greatest) for file in files
            )
            assert all(before[1] <= after[0] for before, after in pairwise(ranges)), table.name


@pytest.mark.parametrize(
    "name",
    [
        "ast_files_v1",
        "py_bc_reaches_v1",
        "relations_v1",
        "cpg_nodes",
        "cpg_edges",
        "cpg_edges_by_src",
        "cpg_edges_by_dst",
    ],
)
def test_one_repository_is_in_few_files(reader: LightReader, name: str) -> None:
    table = catalog.table(name)
    every, own = reader.files(Slice(name)), reader.files(Slice(name, repo_id=(ONE,)))
    of_file = reader.files(Slice(name, repo_id=(ONE,), **{table.owner or "": (OWNER,)}))
    in_partition = max(map(len, in_partitions(every).values()))
    assert in_partition > 2
    # Of each partition two, if the repository is where one file ends and the next begins. Copies of the edges
    # are sorted in two parts: what needs no other file while repositories are solved, and the rest.
    parts = 2 if name in COPIES else 1
    assert 0 < max(map(len, in_partitions(own).values())) <= max(2 * parts, in_partition // COUNT + 2)
    assert 0 < max(map(len, in_partitions(of_file).values())) <= 2 * parts
    assert len(own) < len(every) / 2


@pytest.mark.parametrize("name", quick(["cpg_nodes", "relations_v1", "cpg_edges_by_dst"], 1, 2))
def test_spark_reads_and_rewrites_the_files_of_one_source_file(
    spark: SparkSession, reader: LightReader, tmp_path: Path, name: str
) -> None:
    table = catalog.table(name)
    shutil.copytree(f"{reader.snapshot.root}/{table.path}", tmp_path / table.path)
    events: list[Event] = []
    store = Store(spark, str(tmp_path), record=events.append)
    every = len(reader.files(Slice(name)))
    of_file = reader.files(Slice(name, repo_id=(ONE,), **{table.owner or "": (OWNER,)}))
    wanted = Predicate.all_of(
        table,
        InList.of(table.column("repo_id"), (ONE,)),
        InList.of(table.column(table.owner or ""), (OWNER,)),
    )
    rows = scan(store, name, where=wanted).rows
    count = rows.count()
    read = [event for event in events if isinstance(event, Scanned)][-1]
    assert (read.total_files, read.candidate_files) == (every, len(of_file))
    done = replace_by_owner(store, name, rows, [OWNER], Commit("again"), repos=[ONE])
    changed = changed_files(tmp_path, name, done.version)
    assert {file.path for file in changed} <= {file.path for file in of_file}
    assert 0 < len(changed) < every / 2
    assert scan(store, name, where=wanted).rows.count() == count > 0
