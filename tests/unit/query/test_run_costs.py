"""Costs of runs and tables."""

from __future__ import annotations

from pathlib import Path

from codeanatomy.delta.read.light import table_facts
from codeanatomy.query.status.run_costs import run_costs, table_costs
from codeanatomy.query.status.run_reports import run_report, runs


def test_costs_of_runs_are_those_of_their_reports(aged_lake: Path) -> None:
    root = str(aged_lake)
    costs = run_costs(root, limit=100)
    assert [cost.summary for cost in costs.rows] == list(runs(root).rows)
    for cost in costs.rows:
        steps = {step.step: step for step in run_report(root, cost.summary.run_id).steps}
        assert list(cost.step_ms) == ["extract", "normalize", "relate", "graph"]
        assert cost.step_ms == {name: steps[name].milliseconds for name in cost.step_ms}
        assert cost.bytes == sum(step.bytes or 0 for step in steps.values())


def test_pages_of_runs_follow_each_other(aged_lake: Path) -> None:
    root = str(aged_lake)
    whole = run_costs(root, limit=100)
    pages = [run_costs(root, 2, skip) for skip in range(0, whole.total + 2, 2)]
    assert [cost for page in pages for cost in page.rows] == list(whole.rows)
    assert {page.total for page in pages} == {len(whole.rows)}


def test_first_run_wrote_all_rows_of_its_tables(aged_lake: Path) -> None:
    root = str(aged_lake)
    first = runs(root).rows[-1].run_id
    costs = table_costs(root, first)
    report = {pin.table: pin for pin in run_report(root, first).pins}
    for name in ("cpg_nodes", "cpg_edges", "repo_files_v1"):
        assert costs[name].rows == report[name].rows
        assert costs[name].bytes == table_facts(root, name, report[name].after).size_bytes
        assert costs[name].attempts >= costs[name].commits == 1


def test_unknown_run_has_no_costs(aged_lake: Path) -> None:
    assert table_costs(str(aged_lake), "nope") == {}
