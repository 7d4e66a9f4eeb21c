"""Counts of the lake, against the syntax trees of the sources; and what failed when it was built."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codeanatomy.errors import UnknownName
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Slice
from codeanatomy.query.verbs.errors import errors
from codeanatomy.query.verbs.stats import COLUMNS, GROUPS, stats
from support.ask_lake import reader_of
from support.small_lakes import SmallLake


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


def counted(reader: LightReader, repo_id: str | None = None) -> list[dict[str, Any]]:
    rows = reader.rows(stats(reader, repo_id=repo_id).query)
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def amounts(rows: list[dict[str, Any]], repo_id: str, group: str) -> dict[str, int]:
    return {row["symbol"]: row["amount"] for row in rows if (row["repo_id"], row["kind"]) == (repo_id, group)}


def test_flask_is_counted_as_its_syntax_trees_are(reader: LightReader) -> None:
    root = Path(reader.snapshot.repositories["flask"].repo_root or "")
    files = sorted(root.rglob("*.py"))
    met = Counter(type(node).__name__ for file in files for node in ast.walk(ast.parse(file.read_bytes())))
    rows = counted(reader)
    nodes = amounts(rows, "flask", "nodes")
    # Packaging files are read for the entry points that they declare.
    packaging = list(root.rglob("entry_points.txt"))
    assert packaging
    assert amounts(rows, "flask", "files")["read"] == len(files) + len(packaging)
    assert nodes["MODULE"] == len(files) + len(packaging)
    assert nodes["CLASS"] == met["ClassDef"]
    assert nodes["FUNCTION"] == met["FunctionDef"] + met["AsyncFunctionDef"] + met["Lambda"]
    assert nodes["CALLSITE"] == met["Call"]
    calls = amounts(rows, "flask", "calls")
    assert list(calls) == ["one target", "no target", "several targets"]
    assert sum(calls.values()) == met["Call"]
    share = 100 * calls["no target"] / met["Call"]
    (detail,) = (row["detail"] for row in rows if row["repo_id"] == "flask" and row["symbol"] == "no target")
    assert detail == f"{share:.1f} % of {met['Call']:,} call sites"


def test_edges_and_reasons(reader: LightReader) -> None:
    """Of one repository, though others are in the same files; against rows that are counted here."""
    rows = counted(reader, "shop")
    assert {row["repo_id"] for row in rows} == {"shop"}
    for kind in ("CALL_GRAPH", "INHERITS", "READS"):
        query = Query(
            "SELECT e.edge_id FROM e", {"e": Slice("cpg_edges", edge_kind=(kind,), repo_id=("shop",))}
        )
        assert amounts(rows, "shop", "edges")[kind] == len(reader.rows(query))
    query = Query(
        "SELECT r.reason FROM r WHERE r.dst_id IS NULL", {"r": Slice("relations_v1", repo_id=("shop",))}
    )
    reasons = Counter(row[0] for row in reader.rows(query))
    assert amounts(rows, "shop", "unresolved") == reasons
    assert "IMPORTS_NAME 1" in [row["detail"] for row in rows if row["symbol"] == "name_not_found"]


def test_failures_are_counted_and_listed(reader: LightReader) -> None:
    counts = amounts(counted(reader), "depot", "failures")
    rows = reader.rows(errors(reader, repo_id="depot").query)
    assert counts == Counter(row[1] for row in rows)
    assert (None, "ast_files_v1", "broken.py", 1, None, "SyntaxError", "invalid syntax", "depot") in rows
    assert reader.rows(errors(reader, repo_id="shop").query) == []


def test_the_order_of_rows(reader: LightReader) -> None:
    rows = counted(reader)
    keys = [(row["repo_id"], GROUPS.index(row["kind"]), -row["amount"], row["symbol"]) for row in rows]
    assert keys == sorted(keys)
    with pytest.raises(UnknownName):
        stats(reader, repo_id="nowhere")


def test_errors_of_the_newest_state_have_the_builds_that_failed_after_it(tmp_path: Path) -> None:
    made = SmallLake(tmp_path)
    counts = {"error_counts": {"ast_files_v1": 1}}
    made.publish("one", {"a": counts}, errors=[("a", "a.py", "old")])
    made.publish("two", {"a": counts}, errors=[("a", "a.py", "new")])
    made.fail("three", {"a": "disk full"})

    def details(as_of: str | None) -> list[tuple[str, str]]:
        reader = LightReader(Snapshot.open(str(tmp_path), as_of))
        return [(row[1], row[6]) for row in reader.rows(errors(reader).query)]

    assert details(None) == [("build", "disk full"), ("ast_files_v1", "new")]
    assert details("one") == [("ast_files_v1", "old")]
