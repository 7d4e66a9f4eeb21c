"""Decide which cases and how many random examples `make test` runs; `make test-system` runs the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import hypothesis
import pytest


def examples(wanted: int) -> int:
    """Return how many random examples a test runs: at most 50 in `make test`, all that are wanted in the
    system profile.
    """
    return wanted if hypothesis.settings.get_current_profile_name() == "system" else min(wanted, 50)


def quick(cases: Iterable[Any], *kept: int) -> list[Any]:
    """Mark all cases but those at the given places as `system`.

    >>> [len(case.marks) for case in quick(["a", "b", "c"], 1)]
    [1, 0, 1]
    """
    return [
        _param(case, () if number in kept else (pytest.mark.system,)) for number, case in enumerate(cases)
    ]


def _param(case: Any, marks: Sequence[pytest.MarkDecorator]) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=marks)
