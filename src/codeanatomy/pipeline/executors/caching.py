"""Keep the frame that a step has computed while its tables are committed.

    with cache_frame(run, "relate", work, frame) as kept:
        ...                                     # every table is written from it; it is computed once

The catalogue declares how; of the tables of a step the strongest policy applies:

    none             not at all: it is computed again for every table
    memory           in Spark's cache, spilled to disk at once, and released at the end of the block
    delta_staging    as a Delta table below the lake, until the run is published: after a run that fails, the
                     next one reuses it, if it repeats the same work of the step on the same inputs

Each use is a row of `view_cache`. Tests: `tests/spark/test_caching.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from codeanatomy.catalog.spec import CachePolicy, Table
from codeanatomy.delta.write.staging import cached_bytes, clear_staged, stage
from codeanatomy.pipeline.context import CacheUse, Run
from codeanatomy.plan.steps import fingerprint

# From the weakest.
STRENGTH: tuple[CachePolicy, ...] = ("none", "memory", "delta_staging")


def table_with_strongest_cache(tables: Sequence[Table], step: str) -> Table:
    """Return the table of a step with the strongest cache policy, which applies to the whole step."""
    own = [table for table in tables if table.stage == step]
    return max(own, key=lambda table: STRENGTH.index(table.cache))


@contextmanager
def cache_frame(run: Run, step: str, work: object, frame: DataFrame) -> Iterator[DataFrame]:
    """Keep the frame that `work` makes until the end of the block, by the policy of the catalogue."""
    table = table_with_strongest_cache(run.store.tables, step)
    made_from = fingerprint(run.fingerprints(step))
    if table.cache == "delta_staging":
        # A step has several frames: of pass two and of what it merges, or of one refresh after the other.
        changes = {repo_id: refresh.changes for repo_id, refresh in run.refreshes.items()}
        made_from = fingerprint([made_from, type(work).__name__, work, changes])
        staged = stage(run.spark_store, step, frame, made_from)
        run.caches.append(
            CacheUse(table.name, table.cache, staged.location, made_from, staged.hit, staged.size_bytes)
        )
        yield staged.rows
    elif table.cache == "memory":
        # Packed rows are large, and read once for each table: on disk they do not crowd out what computes.
        kept = frame.persist(StorageLevel.DISK_ONLY)
        try:
            yield kept
            size = cached_bytes(kept)
            run.caches.append(CacheUse(table.name, table.cache, None, made_from, hit=False, size_bytes=size))
        finally:
            kept.unpersist()
    else:
        yield frame


def release(run: Run, step: str) -> None:
    """Delete the staged frame of a step whose tables are published."""
    if table_with_strongest_cache(run.store.tables, step).cache == "delta_staging":
        clear_staged(run.spark_store, step)
