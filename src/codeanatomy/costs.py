"""Measure what functions cost in the processes that run them, and carry it among the counts of rows.

    costs = Costs()
    with costs.timed("normalize", "type_expressions"):
        ...
    counts_piece({repo_id: {**rows_by_table, **costs.counters()}})     # with the counts that a task returns

Rows of a step are made in many processes, which return nothing but pieces. Costs travel as integers among
their counts, under names that no table has; `sum_counts` of `pipeline.tasks.pieces` leaves them out, and
`sum_costs` has them. They are the seconds of all processes together, so they may be more than the duration of
the step.

>>> costs = Costs()
>>> costs.add("extract", "ast_files_v1", 0.25)
>>> costs.counters()
{'microseconds extract/ast_files_v1': 250000}
>>> costs_in({"ast_files_v1": 18, **costs.counters()})
{('extract', 'ast_files_v1'): 250000}

Tests: `tests/unit/test_costs.py`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

# Before the step and the name of what was measured.
PREFIX = "microseconds "
MICROSECONDS = 1_000_000

Item = TypeVar("Item")


class Costs:
    """Seconds by step and name of an extractor, a rule or another part of the work."""

    def __init__(self) -> None:
        self._seconds: Counter[tuple[str, str]] = Counter()

    def add(self, step: str, name: str, seconds: float) -> None:
        """Add seconds."""
        # A Counter may hold floats; its annotation allows integers only.
        self._seconds[step, name] += seconds  # type: ignore[assignment]

    @contextmanager
    def timed(self, step: str, name: str) -> Iterator[None]:
        """Add the duration of the block, also if it fails."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add(step, name, time.perf_counter() - began)

    def timed_items(self, step: str, name: str, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items, and add the time that each takes to be made."""
        iterator = iter(items)
        while True:
            began = time.perf_counter()
            try:
                item = next(iterator)
            except StopIteration:
                return
            finally:
                self.add(step, name, time.perf_counter() - began)
            yield item

    def counters(self) -> dict[str, int]:
        """Return the costs as counters."""
        return {
            f"{PREFIX}{step}/{name}": round(MICROSECONDS * seconds)
            for (step, name), seconds in self._seconds.items()
        }


def costs_in(counts: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Return the microseconds among counters, by step and name."""
    costs = {}
    for key, count in counts.items():
        if key.startswith(PREFIX):
            step, _, name = key.removeprefix(PREFIX).partition("/")
            costs[step, name] = count
    return costs


def without_costs(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counters that are no costs."""
    return {key: count for key, count in counts.items() if not key.startswith(PREFIX)}
