"""Costs that are measured where the work is done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from codeanatomy.costs import Costs, costs_in, without_costs
from codeanatomy.pipeline.tasks.pieces import counts_piece, sum_costs, sum_counts


class Clock:
    """A clock that stands still between the steps of a test."""

    now = 1000.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("codeanatomy.costs.time", clock)
    return clock


def test_a_block_that_fails_is_measured(clock: Clock) -> None:
    costs = Costs()

    def fail() -> None:
        clock.now += 0.5
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"), costs.timed("normalize", "rule"):
        fail()
    assert costs_in(costs.counters()) == {("normalize", "rule"): 500_000}


def test_only_making_items_is_measured(clock: Clock) -> None:
    def items() -> Iterator[int]:
        for number in range(3):
            clock.now += 1
            yield number

    costs = Costs()
    seen = []
    for number in costs.timed_items("graph", "rows", items()):
        seen.append(number)
        clock.now += 20
    assert seen == [0, 1, 2]
    assert costs_in(costs.counters()) == {("graph", "rows"): 3_000_000}


def test_costs_are_no_rows() -> None:
    costs = Costs()
    costs.add("extract", "ast_files_v1", 0.5)
    counts = {"ast_files_v1": 2, **costs.counters()}
    assert without_costs(counts) == {"ast_files_v1": 2}
    pieces = [counts_piece({"r": counts}), counts_piece({"s": counts})]
    assert sum_counts(pieces) == {"r": {"ast_files_v1": 2}, "s": {"ast_files_v1": 2}}
    assert sum_costs(pieces) == {("extract", "ast_files_v1"): 1_000_000}
