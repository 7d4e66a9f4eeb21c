"""Statistics by use: recorded queries decide which columns of a table have bounds in the log."""

from __future__ import annotations

import io
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import json, structs

from codeanatomy import catalog
from codeanatomy.catalog.spec import Table, UsedColumn
from codeanatomy.config import load_settings
from codeanatomy.delta.layout import contract_hash, resolve_stats_columns, stats_reasons, table_properties
from codeanatomy.delta.log.entries import VECTORS_ENABLED
from codeanatomy.lake.recorded_queries import read_queries, record_queries
from codeanatomy.plan.steps import catalog_hash, rule_fingerprints, steps_of
from codeanatomy.progress import Progress
from codeanatomy.query.checks.verify import verify
from codeanatomy.query.lake import Lake
from codeanatomy.run import lineage
from codeanatomy.run.build import prepare
from codeanatomy.run.lineage import ColumnUse, rank_columns, with_lineage
from support.edits import write_tree
from support.light_builds import clean_lake, order, refreshed
from support.query_records import NODES, SOURCE, recorded_query
from support.spark_builds import rows

AUTO = f"tables.{NODES}.write.stats_policy=auto"
CLUSTERED = ("repo_id", "file_id", "bstart", "node_id")
STATS = "delta.dataSkippingStatsColumns"


class Built:
    """A small lake, and its source."""

    def __init__(self, folder: Path) -> None:
        self.lake, self.source, self.edits = folder / "lake", folder / "source", 0
        write_tree(self.source, SOURCE)
        clean_lake(self.lake, self.repositories)

    @property
    def repositories(self) -> dict[str, Path]:
        return {"app": self.source}

    def edit(self, *settings: str) -> None:
        """Change a file and build, without Spark."""
        self.edits += 1
        write_tree(self.source, {**SOURCE, "a.py": b"def f():\n    return %d\n" % (100 + self.edits)})
        assert refreshed(self.lake, self.repositories, *settings).status == "succeeded"

    def log(self, name: str = NODES) -> list[list[dict[str, Any]]]:
        """The actions of each version."""
        folder = self.lake / catalog.table(name).path / "_delta_log"
        return [
            [json.decode(line) for line in entry.read_bytes().splitlines()]
            for entry in sorted(folder.glob("*.json"))
        ]

    def properties(self, name: str = NODES) -> dict[str, str]:
        found = [
            each["metaData"]["configuration"]
            for entry in self.log(name)
            for each in entry
            if "metaData" in each
        ]
        # A refresh may bring the table its first vectors.
        return {key: value for key, value in found[-1].items() if key != VECTORS_ENABLED}

    def bounds(self) -> set[str]:
        """The columns that the files which the last version has added have bounds of."""
        added = [each["add"] for each in self.log()[-1] if "add" in each]
        told = [json.decode(each["stats"]) for each in added if "tightBounds" not in each["stats"]]
        assert told
        return {column for each in told for column in each["minValues"]}

    def decision(self) -> dict[str, Any]:
        """The last choice for the table."""
        found = [row for row in rows(self.lake, "stats_decisions") if row["table_name"] == NODES]
        return max(found, key=lambda row: str(row["run_id"]))


@pytest.fixture
def small(tmp_path: Path) -> Built:
    return Built(tmp_path)


def things(lineage: tuple[UsedColumn, ...] | None = None, **write: Any) -> Table:
    table = catalog.table(NODES)
    policy = structs.replace(table.write, **{"stats_policy": "auto", **write})
    return structs.replace(table, write=policy, lineage=lineage)


# From a question to a file.


def test_what_is_asked_for_has_statistics_in_the_next_build(small: Built) -> None:
    before = small.properties("cpg_edges")
    opened = Lake.open(small.lake, record=partial(record_queries, str(small.lake)))
    opened.sql("SELECT name FROM symbols WHERE line = 3")
    small.edit(AUTO)
    chosen = small.properties()[STATS].split(",")
    assert chosen[: len(CLUSTERED)] == list(CLUSTERED)
    assert "line" in chosen
    assert chosen[len(CLUSTERED) :] == sorted(chosen[len(CLUSTERED) :])
    assert small.bounds() <= set(chosen)
    assert {"line", *CLUSTERED} <= small.bounds()
    told = small.decision()
    assert told["policy"] == "auto"
    assert told["stats_columns"] == chosen
    assert "line" in told["lineage_columns"]
    reasons = dict(told["reasons"])
    assert reasons["file_id"] == "cluster column"
    assert reasons["line"].startswith("filtered by ")
    assert " of sql" in reasons["line"]
    # They are rows now, and no files.
    assert read_queries(str(small.lake)) == []
    scans = [row for row in rows(small.lake, "delta_scan_plans") if row["purpose"] == "sql"]
    assert any(row["table_name"] == NODES and "line" in row["filter_columns"] for row in scans)
    # Whose policy names its columns, or none, goes on as before.
    assert small.properties("cpg_edges") == before
    assert not verify(str(small.lake)).findings


@pytest.mark.system
def test_an_explicit_policy_is_left_alone(small: Built) -> None:
    before = small.properties()
    record_queries(str(small.lake), [recorded_query(NODES, "line", "name")])
    small.edit()
    assert small.properties() == before
    assert small.bounds() <= set(catalog.table(NODES).write.stats_columns)
    assert small.decision()["reasons"] == [
        (name, "named by the policy")
        for name in catalog.table(NODES).write.stats_columns
        if name != "node_kind"
    ]


@pytest.mark.system
def test_a_choice_stays_until_enough_runs_have_not_used_it(
    small: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lineage, "KEPT_RUNS", 1)
    # What a refresh filters by is known after the first.
    small.edit(AUTO)
    altered = []
    for questions in ([recorded_query(NODES, "line")], [], []):
        record_queries(str(small.lake), questions)
        small.edit(AUTO)
        altered.append((any("metaData" in each for each in small.log()[-1]), "line" in small.bounds()))
    # The run that takes the question over has it, the next one reads that, and the third has forgotten.
    assert altered == [(True, True), (False, True), (True, False)]
    assert "line" not in small.properties()[STATS]
    assert "line" not in small.decision()["lineage_columns"]


@pytest.mark.system
def test_questions_that_change_nothing_make_no_commit(small: Built) -> None:
    """What is asked for again, or cannot have statistics, alters no table."""
    small.edit(AUTO)
    record_queries(str(small.lake), [recorded_query(NODES, "line")])
    small.edit(AUTO)
    record_queries(
        str(small.lake),
        [recorded_query(NODES, name, purpose="sql") for name in ("line", "no_such_column", "node_kind")],
    )
    small.edit(AUTO)
    assert not any("metaData" in each for each in small.log()[-1])
    told = small.decision()
    assert "no_such_column" in told["dropped_columns"]
    assert dict(told["reasons"])["no_such_column"] == "left out: there is no such column"


# What counts.


def test_the_lineage_of_a_lake_without_runs(tmp_path: Path) -> None:
    tables = load_settings((AUTO,), env={}, start=None).tables
    assert catalog.table(NODES, with_lineage(str(tmp_path), tables)).lineage == ()
    record_queries(str(tmp_path), [recorded_query(NODES, "line"), recorded_query("cpg_edges", "role")])
    found = with_lineage(str(tmp_path), tables)
    assert catalog.table(NODES, found).lineage == (UsedColumn("line", "filtered by 1 scan of find"),)
    assert catalog.table("cpg_edges", found).lineage is None


def test_nothing_is_read_where_no_table_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(lineage, "read_manifest", refused)
    monkeypatch.setattr(lineage, "read_queries", refused)
    assert with_lineage(str(tmp_path), catalog.TABLES) == catalog.TABLES


def test_fingerprints_and_contracts_do_not_know_of_it(small: Built) -> None:
    record_queries(str(small.lake), [recorded_query(NODES, "line")])
    tables = load_settings((AUTO,), env={}, start=None).tables
    found = with_lineage(str(small.lake), tables)
    assert catalog.table(NODES, found).lineage
    assert catalog_hash(found) == catalog_hash(tables) == catalog_hash(catalog.TABLES)
    assert contract_hash(catalog.table(NODES, found)) == contract_hash(catalog.table(NODES))
    asked_for = prepare(order(small.lake, small.repositories, AUTO), Progress(io.StringIO())).plan_request
    rules = [
        rule_fingerprints(steps_of(each), asked_for.build_inputs, each) for each in (found, catalog.TABLES)
    ]
    assert rules[0] == rules[1]


def test_the_most_used_come_first_and_those_chosen_before() -> None:
    def use(column: str, purpose: str = "find", is_join: bool = False) -> ColumnUse:
        return ColumnUse(NODES, column, is_join, purpose)

    uses = Counter({use("b"): 3, use("a"): 1, use("c", "sql"): 4, use("c", is_join=True): 2, use("d"): 3})
    assert [each.name for each in rank_columns(uses)] == ["c", "b", "d", "a"]
    assert [each.name for each in rank_columns(uses, ("a", "d"))] == ["d", "a", "c", "b"]
    reasons = {each.name: each.reason for each in rank_columns(uses)}
    assert reasons["c"] == "filtered by 4 scans of sql, joined by 2 scans of find"
    many = Counter({use("x", purpose): n for n, purpose in enumerate("abcde", start=1)})
    assert rank_columns(many)[0].reason == "filtered by 5 scans of e and 4 of d and 3 of c and 3 of others"


# Which of them get statistics.


def used(*names: str) -> tuple[UsedColumn, ...]:
    return tuple(UsedColumn(name, "why") for name in names)


def test_the_policy_limits_how_many() -> None:
    table = things(used("qualname", "line", "name"), stats_max_columns=6)
    assert resolve_stats_columns(table) == (*CLUSTERED, "line", "qualname")
    reasons, dropped = stats_reasons(table)
    assert dropped == ("name",)
    assert reasons == {
        **dict.fromkeys(CLUSTERED, "cluster column"),
        "line": "why",
        "qualname": "why",
        "name": "left out: over the limit of 6 columns",
    }
    assert resolve_stats_columns(things(used("line"), stats_max_columns=2)) == CLUSTERED[:2]


def test_what_cannot_have_statistics_is_left_out_with_a_reason() -> None:
    relations = catalog.table("relations_v1")
    table = structs.replace(
        relations,
        write=structs.replace(relations.write, stats_policy="auto"),
        lineage=used("evidence", "nothing", "evidence.path", "dst_id"),
    )
    assert resolve_stats_columns(table) == (*relations.write.zorder_by, "dst_id")
    reasons, dropped = stats_reasons(table)
    assert set(dropped) == {"evidence", "nothing", "evidence.path"}
    assert reasons["nothing"] == reasons["evidence.path"] == "left out: there is no such column"
    assert reasons["evidence"].startswith("left out: it is ")
    # Partition columns have their values in the log anyway: nothing is left out.
    assert stats_reasons(things(used("node_kind")))[1] == ()


@pytest.mark.parametrize("policy", ["off", "explicit"])
def test_other_policies_do_not_look_at_it(policy: str) -> None:
    with_it, without = (things(each, stats_policy=policy) for each in (used("line"), None))
    assert resolve_stats_columns(with_it) == resolve_stats_columns(without)
    assert stats_reasons(with_it) == stats_reasons(without)
    assert table_properties(with_it, resolve_stats_columns(with_it)) == table_properties(
        without, resolve_stats_columns(without)
    )
