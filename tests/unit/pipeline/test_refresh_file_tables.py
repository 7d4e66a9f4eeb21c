"""What a refresh reads: rows of a lake at its versions, with what was made since in their place."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.refresh.file_tables import Inputs, by_owner
from support.edits import write_tree
from support.light_builds import clean_lake, refreshed

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
    clean_lake(work / "lake", sources)
    write_tree(work / "one", TREE | {"b.py": TREE["b.py"].replace(b"1", b"len([1])")})
    refreshed(work / "lake", sources)
    return work / "lake"


def pins(lake: Path) -> dict[str, int]:
    return {name: pin.version for name, pin in Snapshot.open(str(lake)).pins.items()}


@pytest.fixture
def inputs(lake: Path) -> Inputs:
    return Inputs(str(lake), "r", pins(lake))


def published(lake: Path, name: str, owner: str | None, repo_id: str = "r") -> list[str]:
    """The keys of rows as a reader sees them."""
    table = catalog.table(name)
    key, column = table.primary_key[-1], table.owner or ""
    rows = Snapshot.open(str(lake)).rows(name, list(dict.fromkeys((key, column, "repo_id")))).to_pylist()
    return sorted(str(row[key]) for row in rows if (row[column], row["repo_id"]) == (owner, repo_id))


def keys(name: str, rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.column(catalog.table(name).primary_key[-1]).to_pylist()))


@pytest.mark.parametrize("name", [RELATIONS, NODES, "ast_files_v1", PROGRAMS])
def test_rows_of_files_are_those_that_are_published(lake: Path, inputs: Inputs, name: str) -> None:
    found = inputs.of_files(name, [A, B])
    assert {owner: keys(name, rows) for owner, rows in found.items()} == {
        owner: published(lake, name, owner) for owner in (A, B)
    }
    assert all(rows.schema.equals(arrow_schema(catalog.table(name))) for rows in found.values())


def test_rows_that_left_by_a_vector_are_not_read(lake: Path, inputs: Inputs) -> None:
    files = Snapshot.open(str(lake)).files(NODES)
    assert any(file.vector is not None for file in files)
    assert keys(NODES, inputs.of_files(NODES, [B])[B]) == published(lake, NODES, B)
    assert keys(NODES, inputs.all_files(NODES)) == sorted(
        key for owner in (A, B, C) for key in published(lake, NODES, owner)
    )


def test_an_older_version_is_read_as_it_was(lake: Path) -> None:
    now = pins(lake)
    before = Inputs(str(lake), "r", now | {NODES: now[NODES] - 1})
    assert keys(NODES, before.of_files(NODES, [B])[B]) != published(lake, NODES, B)
    assert keys(NODES, before.of_files(NODES, [A])[A]) == published(lake, NODES, A)


def test_a_file_without_rows_is_not_among_the_answers(inputs: Inputs) -> None:
    assert inputs.of_files("py_bc_reaches_v1", [A, C, file_id("r", "nowhere.py")]).keys() == {A}
    assert inputs.of_files(RELATIONS, []) == {}


def test_a_name_is_not_taken_for_sql(lake: Path, inputs: Inputs) -> None:
    assert inputs.of_files(RELATIONS, ["it's", "' OR TRUE --"]) == {}
    for repo_id in ("' OR TRUE --", "it's"):
        odd = Inputs(str(lake), repo_id, pins(lake))
        assert odd.all_files(RELATIONS).num_rows == 0
        assert odd.unowned(NODES).num_rows == 0


def test_only_the_columns_that_are_asked_for_are_read(inputs: Inputs) -> None:
    found = inputs.of_files(NODES, [A], ["node_id", "owner_file_id"])[A]
    assert set(found.column_names) == {"node_id", "owner_file_id"}


def test_what_was_made_since_takes_the_place_of_what_is_published(lake: Path, inputs: Inputs) -> None:
    rows = inputs.of_files(NODES, [B])[B].slice(0, 2)
    inputs.put(NODES, [B, C], rows)
    found = inputs.of_files(NODES, [A, B, C])
    assert keys(NODES, found[B]) == keys(NODES, rows)
    assert C not in found
    assert keys(NODES, found[A]) == published(lake, NODES, A)
    everything = inputs.all_files(NODES)
    assert keys(NODES, everything) == sorted(keys(NODES, rows) + published(lake, NODES, A))
    # Of the other tables, nothing is new.
    assert B in inputs.of_files(RELATIONS, [B])


def test_a_file_can_be_made_again(lake: Path, inputs: Inputs) -> None:
    rows = inputs.of_files(NODES, [A, B])
    inputs.put(NODES, [A], rows[A].slice(0, 1))
    inputs.put(NODES, [B], rows[B].slice(0, 1))
    inputs.put(NODES, [A], rows[A].slice(0, 0))
    assert inputs.of_files(NODES, [A, B]).keys() == {B}


def test_rows_of_the_repository_as_a_whole(lake: Path, inputs: Inputs) -> None:
    before = inputs.unowned(NODES)
    assert keys(NODES, before) == published(lake, NODES, None) != []
    other = Inputs(str(lake), "other", pins(lake))
    assert keys(NODES, other.unowned(NODES)) == published(lake, NODES, None, "other") != []
    inputs.put(NODES, [A], before.slice(0, 0))
    assert keys(NODES, inputs.unowned(NODES)) == keys(NODES, before)
    inputs.put(NODES, [A], before.slice(0, 1), is_shared=True)
    assert keys(NODES, inputs.unowned(NODES)) == keys(NODES, before.slice(0, 1))
    assert keys(NODES, inputs.unowned(NODES, published=True)) == keys(NODES, before)
    # They are rows of no file.
    assert inputs.of_files(NODES, [A]) == {}
    assert set(inputs.all_files(NODES).column("owner_file_id").to_pylist()) == {B, C}


def test_rows_of_a_table_without_a_version_are_none(lake: Path) -> None:
    nothing = Inputs(str(lake), "r", {})
    for name in (NODES, FAILURES, PROGRAMS):
        assert nothing.where(name, {}).schema.equals(arrow_schema(catalog.table(name)))
    assert nothing.all_files(NODES).num_rows == 0
    assert nothing.unowned(NODES).num_rows == 0
    assert nothing.of_files(NODES, [A]) == {}


def test_failures_of_a_run(lake: Path, inputs: Inputs) -> None:
    run_id = Snapshot.open(str(lake)).repositories["r"].extract_run_id
    found = inputs.where(FAILURES, {"run_id": run_id})
    assert set(found.column("path").to_pylist()) == {"c.py"}
    assert inputs.where(FAILURES, {"run_id": run_id, "path": "a.py"}).num_rows == 0
    assert Inputs(str(lake), "nobody", pins(lake)).where(FAILURES, {"run_id": run_id}).num_rows == 0


def test_a_table_whose_rows_have_no_owner_is_refused(inputs: Inputs) -> None:
    with pytest.raises(ValueError, match="no owner"):
        inputs.of_files(FAILURES, [A])


def test_rows_are_parted_by_their_owner() -> None:
    table = catalog.table(NODES)
    schema = arrow_schema(table)
    owners = ["b", "a", None, "b", "c"]
    arrays = [
        pa.array(owners)
        if field.name == "owner_file_id"
        else pa.array([str(number) for number in range(5)])
        if field.name == "node_id"
        else pa.nulls(5, field.type)
        for field in schema
    ]
    chunks = pa.Table.from_arrays(arrays, schema=pa.schema([field.with_nullable(True) for field in schema]))
    found = by_owner(table, pa.concat_tables([chunks.slice(0, 2), chunks.slice(2)]))
    assert {owner: rows.column("node_id").to_pylist() for owner, rows in found.items()} == {
        "a": ["1"],
        "b": ["0", "3"],
        "c": ["4"],
    }
    assert by_owner(table, chunks.slice(0, 0)) == {}
