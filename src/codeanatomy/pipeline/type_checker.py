"""Yield the tasks of the type checker, for steps that run them together with other tasks.

    with type_tasks(run, listings) as tasks:    # one per repository; see `pipeline.tools`

Tests: `tests/unit/extract/test_tool_tasks.py`, `tests/spark/test_pyrefly_build.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from codeanatomy.extract.tools.tool_tasks import CheckerTask, IndexTask
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.tools import tool_tasks
from codeanatomy.plan.build_request import ScipChoice
from codeanatomy.sources.listing import Listing


@contextmanager
def type_tasks(run: Run, repositories: Mapping[str, Listing]) -> Iterator[list[CheckerTask | IndexTask]]:
    """Yield the tasks that check the repositories."""
    yield tool_tasks(repositories, run.request.types, ScipChoice())
