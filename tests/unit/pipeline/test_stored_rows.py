"""Rows of a lake at pinned versions: those of a repository, of some files, of no file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.events import Scanned
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.executors.executor import StoredRows
from codeanatomy.pipeline.tasks.stored_rows import read_stored
from support.edits import write_tree
from support.light_builds import MODERN, clean_lake, refreshed

TREE = {
    "a.py": b"import b\nb.f()\n",
    "b.py": b"def g():\n    return 1\n\n\ndef f():\n    return g()\n",
    "c.py": b"def broken(:\n",
}
A, B, C = (file_id("r", path) for path in TREE)
RELATIONS, NODES, PROGRAMS = "relations_v1", "cpg_nodes", "relate_programs_v1"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two repositories; the first was refreshed, so some of its rows are gone by deletion vectors."""
    work = tmp_path_factory.mktemp("inputs")
    write_tree(work / "one", TREE)
    write_tree(work / "other", TREE)
    sources = {"r": work / "one", "other": work / "other"}
    clean_lake(work / "lake", sources, MODERN)
    write_tree(work / "one", TREE | {"b.py": TREE["b.py"].replace(b"1", b"len([1])")})
    refreshed(work / "lake", sources)
    return work / "lake"


class Reader:
    """Reads stored rows of a repository as a run with these pins does."""

    def __init__(self, lake: Path, pins: dict[str, int], repo_id: str = "r") -> None:
        self.repo_id = repo_id
        self.scans: list[Scanned] = []
        self._run: Any = SimpleNamespace(
            pins=pins, store=SimpleNamespace(root=str(lake)), observed=self.scans.append
        )

    def read(
        self,
        name: str,
        owners: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        *,
        is_unowned: bool = False,
    ) -> pa.Table:
        reads = dict.fromkeys(catalog.table(name).column_names if columns is None else columns, ())
        listed = None if owners is None else tuple(owners)
        return read_stored(self._run, StoredRows(name, self.repo_id, listed, reads, name, is_unowned))


def pins(lake: Path) -> dict[str, int]:
    return {name: pin.version for name, pin in Snapshot.open(str(lake)).pins.items()}


@pytest.fixture
def reader(lake: Path) -> Reader:
    return Reader(lake, pins(lake))


def published(lake: Path, name: str, owner: str | None, repo_id: str = "r") -> list[str]:
    """The keys of rows as a reader sees them."""
    table = catalog.table(name)
    key, column = table.primary_key[-1], table.owner or ""
    rows = Snapshot.open(str(lake)).rows(name, list(dict.fromkeys((key, column, "repo_id")))).to_pylist()
    return sorted(str(row[key]) for row in rows if (row[column], row["repo_id"]) == (owner, repo_id))


def keys(name: str, rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.column(catalog.table(name).primary_key[-1]).to_pylist()))


@pytest.mark.parametrize("name", [RELATIONS, NODES, "ast_files_v1", PROGRAMS])
def test_rows_of_files_are_those_that_are_published(lake: Path, reader: Reader, name: str) -> None:
    rows = reader.read(name, [A, B])
    assert keys(name, rows) == sorted(key for owner in (A, B) for key in published(lake, name, owner))
    assert keys(name, reader.read(name, [B])) == published(lake, name, B) != []
    assert rows.schema.equals(arrow_schema(catalog.table(name)))


def test_rows_that_left_by_a_vector_are_not_read(lake: Path, reader: Reader) -> None:
    files = Snapshot.open(str(lake)).files(NODES)
    assert any(file.vector is not None for file in files)
    assert keys(NODES, reader.read(NODES, [B])) == published(lake, NODES, B)
    # Of all files, with what belongs to none.
    assert keys(NODES, reader.read(NODES)) == sorted(
        key for owner in (A, B, C, None) for key in published(lake, NODES, owner)
    )


def test_an_older_version_is_read_as_it_was(lake: Path) -> None:
    now = pins(lake)
    before = Reader(lake, now | {NODES: now[NODES] - 1})
    assert keys(NODES, before.read(NODES, [B])) != published(lake, NODES, B)
    assert keys(NODES, before.read(NODES, [A])) == published(lake, NODES, A)


def test_a_file_without_rows_has_none(reader: Reader) -> None:
    rows = reader.read("py_bc_reaches_v1", [A, C, file_id("r", "nowhere.py")])
    assert set(rows.column("file_id").to_pylist()) == {A}
    assert reader.read(RELATIONS, []).num_rows == 0
    assert reader.read(RELATIONS, []).schema.equals(arrow_schema(catalog.table(RELATIONS)))


def test_a_name_is_not_taken_for_sql(lake: Path, reader: Reader) -> None:
    assert reader.read(RELATIONS, ["it's", "' OR TRUE --"]).num_rows == 0
    for repo_id in ("' OR TRUE --", "it's"):
        odd = Reader(lake, pins(lake), repo_id)
        assert odd.read(RELATIONS).num_rows == 0
        assert odd.read(NODES, is_unowned=True).num_rows == 0


def test_columns_that_are_not_wanted_are_not_read(reader: Reader) -> None:
    rows = reader.read(NODES, [A], ["node_id"])
    # With those by which rows are divided among files.
    assert set(rows.column_names) == {"repo_id", "path", "owner_file_id", "node_id"}
    [scan] = reader.scans
    assert set(scan.projected_columns) == set(rows.column_names)


def test_data_files_without_the_repository_are_not_read(lake: Path, reader: Reader) -> None:
    table = catalog.table(RELATIONS)
    for owners in (None, [A], ["file:nowhere"]):
        reader.read(RELATIONS, owners)
    scans = [(scan.total_files, scan.candidate_files) for scan in reader.scans]
    every = len(Snapshot.open(str(lake)).files(RELATIONS))
    assert {total for total, _ in scans} == {every}
    assert [candidates <= total for total, candidates in scans] == [True] * 3
    assert all(table.owner in scan.filter_columns for scan in reader.scans[1:])
    nowhere = Reader(lake, pins(lake), "zzz")
    assert nowhere.read(RELATIONS).num_rows == 0
    assert nowhere.scans[0].candidate_files == 0


def test_rows_of_the_repository_as_a_whole(lake: Path, reader: Reader) -> None:
    whole = reader.read(NODES, is_unowned=True)
    assert keys(NODES, whole) == published(lake, NODES, None) != []
    other = Reader(lake, pins(lake), "other").read(NODES, is_unowned=True)
    assert keys(NODES, other) == published(lake, NODES, None, "other") != []


def test_rows_of_a_table_without_a_version_are_none(lake: Path) -> None:
    nothing = Reader(lake, {})
    for name in (NODES, FAILURES, PROGRAMS):
        rows = nothing.read(name)
        assert rows.num_rows == 0
        assert rows.schema.equals(arrow_schema(catalog.table(name)))
    assert nothing.read(NODES, is_unowned=True).num_rows == 0
    assert nothing.read(NODES, [A]).num_rows == 0
    assert nothing.scans == []


def test_failures_of_a_repository(lake: Path, reader: Reader) -> None:
    rows = reader.read(FAILURES)
    assert set(rows.column("path").to_pylist()) == {"c.py"}
    assert Snapshot.open(str(lake)).repositories["r"].extract_run_id in rows.column("run_id").to_pylist()
    assert Reader(lake, pins(lake), "nobody").read(FAILURES).num_rows == 0


def test_a_table_whose_rows_have_no_owner_is_refused(reader: Reader) -> None:
    with pytest.raises(ValueError, match="no owner"):
        reader.read(FAILURES, [A])
