"""Build lakes without Spark: new ones, and as a refresh.

    clean_lake(lake, {"app": folder})            # the rows of a clean build, made by local processes
    clean_lake(lake, {"app": folder}, MODERN)    # the same in a lake with deletion vectors
    refreshed(lake, {"app": folder})             # what a build does after an edit; a session is an error
    with worker_code("..."): ...                 # builds whose worker process has other functions

`tests/spark/test_incremental.py` shows that the first has the rows of a build by Spark.
"""

from __future__ import annotations

import atexit
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any
from unittest.mock import patch

from codeanatomy.catalog.kinds import Profile
from codeanatomy.config import Engine, load_settings
from codeanatomy.pipeline.executors.local_process import Worker
from codeanatomy.plan.build_request import BuildRequest, ScipChoice
from codeanatomy.plan.repositories import Repository
from codeanatomy.progress import Progress
from codeanatomy.run.build import build
from codeanatomy.run.report import BuildReport
from support.sessions import no_session

# One process: a fork for a few small files takes longer than they do.
SETTINGS = ("refresh.processes=1", "refresh.max_share=1")
# Of a new lake whose refreshes write deletion vectors; without it they rewrite data files.
MODERN = "delta.readers=modern"


def order(
    lake: Path | str,
    repositories: Mapping[str, Path],
    *settings: str,
    profile: Profile = "default",
    engine: Engine = "local",
    **options: Any,
) -> BuildRequest:
    """Return a build request, as the command makes it, for local processes."""
    effective = load_settings((*SETTINGS, f"runtime.engine={engine}", *settings), env={}, start=None)
    sources = tuple(Repository(repo_id, path) for repo_id, path in repositories.items())
    return BuildRequest(str(lake), effective, sources, profile=profile, **{"scip": ScipChoice(), **options})


class Kept(Worker):
    """A worker process shared by all builds of the tests: starting one takes longer than its work."""

    def stop(self) -> None:
        """Keep the process; it ends with the tests."""


class SameProcess(Worker):
    """A worker that runs functions in the process of the test, where functions of ours may be replaced."""

    is_running = True

    def start(self) -> Any:
        """Start nothing."""

    def call(self, function: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
        """Call the function."""
        return function(*arguments)


KEPT = Kept()
# By the code that they have run.
OTHERS: dict[str, Kept] = {}
atexit.register(Worker.stop, KEPT)


@contextmanager
def worker_code(code: str) -> Iterator[None]:
    """Run code in the worker process of the builds in this block: it may replace functions there.

    The process is kept for other blocks with the same code.
    """
    if code not in OTHERS:
        OTHERS[code] = Kept()
        atexit.register(Worker.stop, OTHERS[code])
        OTHERS[code].call(exec, dedent(code), {})
    with patch(f"{__name__}.KEPT", OTHERS[code]):
        yield


def refreshed(lake: Path, repositories: Mapping[str, Path], *settings: str, **options: Any) -> BuildReport:
    """Refresh a lake: build the changed files."""
    request = order(lake, repositories, *settings, **options)
    return build(request, Progress(io.StringIO()), no_session, started=KEPT)


def clean_lake(lake: Path, repositories: Mapping[str, Path], *settings: str, **options: Any) -> BuildReport:
    """Build a new lake."""
    return refreshed(lake, repositories, *settings, **options)
