"""Open a Spark session for a command that may need one.

    with session_for(settings, progress) as session:
        build(request, progress, session)          # opens it when Spark is first needed

Tests: `tests/unit/cli/test_build_command.py`, `tests/spark/test_clean_build.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from codeanatomy.config import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.progress import Progress


@contextmanager
def session_for(settings: Settings, progress: Progress) -> Iterator[Callable[[], SparkSession]]:
    """Yield a function that opens the session at its first call; it is closed at the end of the block."""
    # Imported here: a command may not need Spark.
    from codeanatomy.spark.session import close_session, open_session

    opened: list[SparkSession] = []

    @cache
    def session() -> SparkSession:
        progress.update("spark", f"starting on {settings.runtime.master}")
        opened.append(open_session(settings.runtime))
        return opened[0]

    try:
        yield session
    finally:
        for spark in opened:
            close_session(spark)
