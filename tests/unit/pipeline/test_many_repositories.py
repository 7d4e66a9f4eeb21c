"""A lake of many repositories: data files that are read and rewritten for one repository or one file."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from codeanatomy import catalog
from codeanatomy.delta.read.duck import select_rows
from codeanatomy.delta.read.file_index import LoggedFile
from codeanatomy.delta.write import owner_rows
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.tasks import stored_rows
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Slice
from codeanatomy.query.lake import Lake
from support.light_builds import clean_lake, refreshed, worker_code
from support.many_repositories import (
    DATA_TABLES,
    FILES,
    changed_files,
    module_text,
    without_statistics,
    write_repositories,
)

COUNT = 4
# The repository and the file that are read or changed.
ONE, PATH = "r01", "m1.py"
OWNER = file_id(ONE, PATH)
# Tables whose data files have rows of one source file each, or of none.
IN_CHUNKS = ("cpg_nodes", "cpg_edges", "cpg_edges_by_src", "cpg_edges_by_dst", "cpg_props", "cpg_props_map")

# Has the tables of the graph written as data files of one source file each.
WRITE_BY_SOURCE_FILE = """
    import pyarrow as pa

    from codeanatomy.pipeline.executors import local_executor
    from codeanatomy.pipeline.tasks.chunks import rows_by_owner

    write_in_order = local_executor.write_in_order

    def write_by_source_file(folder, table, batches, **options):
        batches = list(batches)
        if table.stage != "graph" or not batches:
            return write_in_order(folder, table, iter(batches), **options)
        by_owner = rows_by_owner(pa.Table.from_batches(batches), table.owner)
        return [
            file
            for rows in by_owner.values()
            for file in write_in_order(folder, table, iter(rows.combine_chunks().to_batches()), **options)
        ]

    local_executor.write_in_order = write_by_source_file
"""


def build_lake(folder: Path, count: int, *settings: str) -> dict[str, Path]:
    """Build a lake with a data file per table and repository, and of graph tables one per source file."""
    sources = write_repositories(folder / "sources", count)
    with worker_code(WRITE_BY_SOURCE_FILE):
        for repo_id, source in sources.items():
            clean_lake(folder / "lake", {repo_id: source}, *settings)
    return sources


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a lake and its sources, which no test changes."""
    folder = tmp_path_factory.mktemp("many")
    build_lake(folder, COUNT)
    return folder


@pytest.fixture(scope="module")
def reader(folder: Path) -> LightReader:
    return LightReader(Snapshot.open(str(folder / "lake")))


def written(reader: LightReader) -> list[str]:
    """Return the tables that have rows."""
    return [table.name for table in DATA_TABLES if reader.files(Slice(table.name))]


def opened(reader: LightReader, table: str, **wanted: Collection[str]) -> list[LoggedFile]:
    return reader.files(Slice(table, **wanted))


def test_a_repository_is_in_files_of_its_own(reader: LightReader) -> None:
    for name in written(reader):
        every, own = opened(reader, name), opened(reader, name, repo_id=(ONE,))
        assert COUNT * len(own) == len(every)
        ranges = [file.column_range("repo_id") for file in own]
        assert all((each.least, each.greatest) == (ONE, ONE) for each in ranges)


def test_the_rows_of_a_file_are_in_few(reader: LightReader) -> None:
    for name in written(reader):
        table = catalog.table(name)
        own = opened(reader, name, repo_id=(ONE,), **{table.owner or "": (OWNER,)})
        partitions = {tuple(file.partition.values()) for file in own}
        # One for each partition that has such rows.
        assert 0 < len(own) == len(partitions), name
        if name in IN_CHUNKS:
            assert len(own) * (FILES - 1) < len(opened(reader, name, repo_id=(ONE,)))
        # Ids of files are hashes: without the repository, most files may have rows of the file.
        elif len(opened(reader, name)) == COUNT:
            assert len(opened(reader, name, **{table.owner or "": (OWNER,)})) > COUNT / 2


def some_ids(reader: LightReader, column: str) -> list[str]:
    """Return ids in a column of the edges of the file."""
    snapshot = reader.snapshot
    rows = snapshot.rows("cpg_edges", ["owner_file_id", "edge_kind", column]).to_pylist()
    return [row[column] for row in rows if (row["owner_file_id"], row["edge_kind"]) == (OWNER, "CALL_GRAPH")]


@pytest.mark.parametrize(
    ("table", "column", "of"),
    [
        ("cpg_nodes", "node_id", "src_node_id"),
        ("cpg_edges_by_src", "src_node_id", "src_node_id"),
        ("cpg_edges_by_dst", "dst_node_id", "dst_node_id"),
        ("cpg_props_map", "entity_id", "src_node_id"),
        ("relations_v1", "src_id", "src_node_id"),
    ],
)
def test_a_node_is_found_in_the_files_of_its_repository(
    reader: LightReader, table: str, column: str, of: str
) -> None:
    for node in some_ids(reader, of):
        own = opened(reader, table, repo_id=(ONE,), **{column: (node,)})
        assert len(own) <= FILES + 1
        assert len(own) < len(opened(reader, table)) / (COUNT - 1)


@pytest.mark.parametrize(
    ("verb", "names"),
    [
        ("show", [f"{ONE}_f1"]),
        ("callers", [f"{ONE}_f1"]),
        ("callees", [f"{ONE}_f1"]),
        ("refs", [f"{ONE}_f1"]),
        ("impact", [f"{ONE}_f1"]),
        ("flows", [f"{ONE}_f1.a"]),
        ("path", [f"{ONE}_f1", f"{ONE}_f3"]),
        ("explain", [f"{ONE}_f1", f"{ONE}_f2"]),
        ("unresolved", [f"{ONE}_f1"]),
    ],
)
def test_a_verb_reads_one_repository(folder: Path, verb: str, names: list[str]) -> None:
    lake = Lake.open(str(folder / "lake"))
    answer = lake.ask(verb, *names)
    assert [symbol.repo_id for symbol in answer.symbols] == [ONE] * len(names)
    assert verb == "unresolved" or answer.rows
    # All but those that search a name in all repositories.
    scans = [scan for scan in lake.reader.scans if "repo_id" in scan.filter_columns]
    assert len(scans) > len(lake.reader.scans) / 2
    for scan in scans:
        own = len(lake.reader.files(Slice(scan.table, repo_id=(ONE,))))
        assert (scan.candidate_files or 0) <= own, scan
    by_name = [scan for scan in lake.reader.scans if "repo_id" not in scan.filter_columns]
    assert {scan.table for scan in by_name} <= {"cpg_nodes"}


class Work:
    """Data files that a refresh reads, by table, and those that it takes rows from."""

    def __init__(self) -> None:
        self.read: dict[str, list[int]] = {}
        self.searched: dict[str, int] = {}
        self.changed: dict[str, list[LoggedFile]] = {}


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Count the data files that the next refresh reads."""
    counted = Work()
    removed_rows = owner_rows._removed_rows

    def selecting(root: str, name: str, files: Collection[LoggedFile]) -> str:
        counted.read.setdefault(name, []).append(len(files))
        return select_rows(root, name, list(files))

    def removing(database: Any, location: str, candidates: Any, owned: Any) -> Any:
        counted.searched[Path(location).name] = len(candidates)
        return removed_rows(database, location, candidates, owned)

    monkeypatch.setattr(stored_rows, "select_rows", selecting)
    monkeypatch.setattr(owner_rows, "_removed_rows", removing)
    return counted


def refresh_one(folder: Path, work: Work, *settings: str) -> None:
    """Change one file of one repository, and build again."""
    lake, root = folder / "lake", folder / "sources" / ONE
    before = Snapshot.open(str(lake)).pins
    (root / PATH).write_text(module_text(ONE, 1).replace("len([a, b])", "len([a, [b]])"), encoding="utf-8")
    refreshed(lake, {path.name: path for path in root.parent.iterdir()}, *settings)
    for name, pin in Snapshot.open(str(lake)).pins.items():
        if name in before and pin.version == before[name].version + 1:
            work.changed[name] = changed_files(lake, name, pin.version)


def test_a_refresh_reads_and_rewrites_the_files_of_one_source_file(
    folder: Path, reader: LightReader, tmp_path: Path, work: Work
) -> None:
    shutil.copytree(folder, tmp_path / "many")
    refresh_one(tmp_path / "many", work)
    assert {"ast_files_v1", "relations_v1", *IN_CHUNKS} <= work.changed.keys()
    for name, files in work.changed.items():
        every, own = opened(reader, name), opened(reader, name, repo_id=(ONE,))
        by = catalog.table(name).owner or ""
        of_file = opened(reader, name, repo_id=(ONE,), **{by: (OWNER,)})
        assert {file.path for file in files} <= {file.path for file in of_file}, name
        assert work.searched[name] == len(of_file) <= len(own) < len(every)
        # The repository as a whole is read where relations of all files are solved.
        assert all(count <= len(own) for count in work.read.get(name, ())), name
    assert sum(map(len, work.changed.values())) < 0.09 * sum(len(opened(reader, n)) for n in work.changed)


@pytest.mark.system
def test_without_statistics_of_repositories_all_files_are_read(tmp_path: Path) -> None:
    """The counts above depend on the policy: here it names no repository."""
    build_lake(tmp_path, 2, *without_statistics("repo_id"))
    reader = LightReader(Snapshot.open(str(tmp_path / "lake")))
    for name in written(reader):
        assert opened(reader, name, repo_id=(ONE,)) == opened(reader, name)


@pytest.mark.system
def test_without_statistics_of_owners_all_files_of_a_repository_are_read(tmp_path: Path, work: Work) -> None:
    """The counts above depend on the policy: here it names no owner."""
    settings = without_statistics("owner_file_id", "file_id", "path")
    build_lake(tmp_path, 2, *settings)
    reader = LightReader(Snapshot.open(str(tmp_path / "lake")))
    for name in written(reader):
        own = opened(reader, name, repo_id=(ONE,), **{catalog.table(name).owner or "": (OWNER,)})
        assert own == opened(reader, name, repo_id=(ONE,))
    work.searched.clear()
    refresh_one(tmp_path, work, *settings)
    for name in IN_CHUNKS:
        assert work.searched[name] == len(opened(reader, name, repo_id=(ONE,)))
        # Rows are found all the same.
        assert 0 < len(work.changed[name]) < work.searched[name]
