"""Comparison of two lakes row by row; builds by Spark: `tests/spark/test_clean_build.py`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codeanatomy import catalog
from codeanatomy.errors import UnknownName
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.checks.compare import Comparison, DifferenceCounts, compare_lakes
from support.tiny_graph import (
    CALL,
    FUNCTION,
    REPO,
    A,
    B,
    Row,
    Tables,
    derived,
    edge,
    healthy,
    manifest,
    node,
    write,
)

NODES, EDGES, FILES, TREES, MAP = "cpg_nodes", "cpg_edges", "repo_files_v1", "ast_files_v1", "cpg_props_map"
DIAGNOSTICS = "diagnostics_norm_v1"
CALLS_ID = edge("CALLS", CALL, FUNCTION)["edge_id"]
CALLS_KEY = {"edge_kind": "CALLS", "src_node_id": CALL, "dst_node_id": FUNCTION, "repeat": 0}
DETAILS = {"code": "E1", "source": "compiler"}
Change = Callable[[Tables], object]


def tables_with(change: Change | None = None) -> Tables:
    """The tables of the lake that is compared, after a change that only one of them shows."""
    tables = derived(healthy())
    diagnostic = {"repo_id": REPO, "diag_id": "diag:1", "file_id": A, "path": "a.py", "details": DETAILS}
    tables[DIAGNOSTICS] = [diagnostic]
    # Rows of the tables are shared by those that are made of them.
    copied = {name: [dict(row) for row in rows] for name, rows in tables.items()}
    pinned = {name: rows for name, rows in copied.items() if name != "run_manifest"}
    copied["run_manifest"] = [manifest(pinned)]
    if change is not None:
        change(copied)
    return copied


def row_of(tables: Tables, name: str, **wanted: object) -> Row:
    return next(row for row in tables[name] if all(row.get(key) == value for key, value in wanted.items()))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = tmp_path_factory.mktemp("whole")
    write(lake, tables_with())
    return lake


def damaged(folder: Path, whole: Path, change: Change) -> Path:
    """A copy of the lake in which the tables that a change is about are written anew."""
    before, after = tables_with(), tables_with(change)
    lake = Path(shutil.copytree(whole, folder / "here"))
    for name in before:
        if before[name] != after.get(name):
            shutil.rmtree(lake / catalog.table(name).path)
            write(lake, {name: after[name]} if name in after else {})
    return lake


def compared(folder: Path, whole: Path, change: Change) -> Comparison:
    return compare_lakes(str(damaged(folder, whole, change)), str(whole))


def test_the_same_rows_are_the_same_lake(tmp_path: Path, whole: Path) -> None:
    found = compared(tmp_path, whole, lambda tables: tables[NODES].reverse())
    assert (found.total, found.tables, found.differences) == (0, {}, ())
    assert found.rows[NODES] == 2 * len(healthy()[NODES])


def test_a_row_less(tmp_path: Path, whole: Path) -> None:
    found = compared(
        tmp_path, whole, lambda tables: tables[EDGES].remove(row_of(tables, EDGES, edge_id=CALLS_ID))
    )
    assert found.tables == {EDGES: DifferenceCounts(0, 1)}
    [row] = found.differences
    assert (row.table, row.side, row.repo_id, row.key) == (EDGES, "only_clean", REPO, CALLS_KEY)
    assert (row.times, row.place, row.differs) == (1, "a.py", ())
    assert json.loads(row.row)["dst_node_id"] == FUNCTION


def test_a_row_more(tmp_path: Path, whole: Path) -> None:
    found = compared(tmp_path, whole, lambda tables: tables[NODES].append(node("class:new", "CLASS", B)))
    assert found.tables == {NODES: DifferenceCounts(1, 0)}
    assert [(row.side, row.key) for row in found.differences] == [("only_here", {"node_id": "class:new"})]


@pytest.mark.parametrize("name", [NODES, EDGES, FILES, TREES, MAP, "relations_v1", "cpg_edges_by_dst"])
def test_a_row_that_is_there_again(tmp_path: Path, whole: Path, name: str) -> None:
    found = compared(tmp_path, whole, lambda tables: tables[name].extend([dict(tables[name][0])] * 2))
    assert found.tables == {name: DifferenceCounts(2, 0)}
    assert [(row.side, row.times, row.differs) for row in found.differences] == [("only_here", 2, ())]


CHANGES: dict[str, tuple[str, Change, str]] = {
    "another value": (NODES, lambda tables: row_of(tables, NODES, node_id=CALL).update(line=7), "line"),
    "a null that became a value": (
        NODES,
        lambda tables: row_of(tables, NODES, node_id=FUNCTION).update(qualname="a.f"),
        "qualname",
    ),
    "a value that became null": (
        EDGES,
        lambda tables: row_of(tables, EDGES, edge_id=CALLS_ID).update(bstart=None),
        "bstart",
    ),
    "a list in another order": (
        TREES,
        lambda tables: row_of(tables, TREES, file_id=A)["nodes"].reverse(),
        "nodes",
    ),
    "zero in a list once more": (
        TREES,
        lambda tables: row_of(tables, TREES, file_id=B).update(nodes=[{"ast_id": 0}] * 2),
        "nodes",
    ),
    "a list that became null": (
        TREES,
        lambda tables: row_of(tables, TREES, file_id=B).update(nodes=None),
        "nodes",
    ),
    "a property": (
        MAP,
        lambda tables: tables[MAP][0].update(
            props=[{**tables[MAP][0]["props"][0], "value_string": "other"}, *tables[MAP][0]["props"][1:]]
        ),
        "props",
    ),
    "a text in a map": (
        DIAGNOSTICS,
        lambda tables: tables[DIAGNOSTICS][0].update(details={**DETAILS, "code": "E2"}),
        "details",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_row_that_changed(tmp_path: Path, whole: Path, what: str) -> None:
    name, change, column = CHANGES[what]
    found = compared(tmp_path, whole, change)
    assert found.tables == {name: DifferenceCounts(1, 1)}
    assert [row.side for row in found.differences] == ["only_here", "only_clean"]
    assert [row.differs for row in found.differences] == [(column,), (column,)]
    assert found.differences[0].key == found.differences[1].key


def later(tables: Tables) -> None:
    for row in tables[FILES]:
        row["mtime_ns"] = 5


def turned(tables: Tables) -> None:
    tables[DIAGNOSTICS][0]["details"] = dict(reversed(DETAILS.items()))


@pytest.mark.parametrize("change", [later, turned], ids=["times of files", "the order of a map"])
def test_what_is_no_result_is_not_compared(tmp_path: Path, whole: Path, change: Change) -> None:
    assert compared(tmp_path, whole, change).total == 0


def test_counts_are_in_full_where_rows_are_cut(tmp_path: Path, whole: Path) -> None:
    def change(tables: Tables) -> None:
        for row in tables[NODES]:
            row["name"] = "x" * 5000

    found = compare_lakes(str(damaged(tmp_path, whole, change)), str(whole), limit=3)
    count = len(healthy()[NODES])
    assert found.tables == {NODES: DifferenceCounts(count, count)}
    assert (found.total, len(found.differences)) == (2 * count, 3)
    assert max(len(row.row) for row in found.differences) < 2100


def test_a_table_that_a_lake_lacks_is_empty(tmp_path: Path, whole: Path) -> None:
    def change(tables: Tables) -> None:
        del tables[NODES]
        tables["run_manifest"] = [
            manifest({name: rows for name, rows in tables.items() if name != "run_manifest"})
        ]

    assert compared(tmp_path, whole, change).tables == {NODES: DifferenceCounts(0, len(healthy()[NODES]))}


def test_a_stage_that_nobody_made_is_not_compared(tmp_path: Path, whole: Path) -> None:
    def without_graph(tables: Tables) -> None:
        tables["run_manifest"][0]["plan_fingerprints"] = {"extract": "0" * 32}

    def changed(tables: Tables) -> None:
        without_graph(tables)
        tables[NODES].pop()
        tables[FILES].pop()

    clean = damaged(tmp_path / "clean", whole, without_graph)
    assert set(compare_lakes(str(damaged(tmp_path, whole, changed)), str(clean)).tables) == {FILES}


def test_rows_of_nobody_count_unless_repositories_are_named(tmp_path: Path, whole: Path) -> None:
    def change(tables: Tables) -> None:
        tables[NODES].append({**node("class:new", "CLASS", B), "repo_id": "stranger"})

    here = Snapshot.open(str(damaged(tmp_path, whole, change)))
    assert compare_lakes(here, str(whole)).tables == {NODES: DifferenceCounts(1, 0)}
    assert compare_lakes(here, str(whole), [REPO]).total == 0
    with pytest.raises(UnknownName, match="stranger"):
        compare_lakes(here, str(whole), ["stranger"])
