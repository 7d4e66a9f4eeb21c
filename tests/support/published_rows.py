"""Hash and count the published rows of a lake, to compare them over time or between lakes.

before = published(lake)
...                                     # a build that dies
assert published(lake) == before
assert current(lake) == current(clean)  # another lake, built from the same sources at once
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path
from typing import TypeAlias

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from codeanatomy import catalog
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.lake.snapshot import Snapshot

# May differ between two builds of the same bytes.
TIMELY = ("mtime_ns", "run_id", "timestamp_ms")

# By table: how many rows, and the sum of their hashes, which no order and no row of another repository hides.
Figures: TypeAlias = dict[str, tuple[int, int]]

# Columns of the conditions.
KEYS = ("repo_id", "run_id")


def published(root: Path | str) -> Figures:
    """All rows of the published version of every table."""
    lake = Snapshot.open(str(root))
    return {name: _figures(_rows(lake, name)) for name in sorted(lake.pins)}


def current(root: Path | str) -> Figures:
    """The same, of failures only those of the newest build of each repository: older ones are kept."""
    lake = Snapshot.open(str(root))
    kept = [
        (pc.field("repo_id") == repo_id)
        & (pc.field("run_id") == row.artifact_ids["extract"].partition("/")[0])
        for repo_id, row in lake.repositories.items()
    ]
    newest = reduce(or_, kept)
    return {
        name: _figures(_rows(lake, name, newest if name == FAILURES else None)) for name in sorted(lake.pins)
    }


def counted(root: Path | str) -> list[str]:
    """Where the manifest's counts are not those of the rows: of tables as a whole, and of repositories."""
    lake = Snapshot.open(str(root))
    wrong = []
    for name, pin in sorted(lake.pins.items()):
        rows = lake.rows(name, ("run_id", "repo_id") if name == FAILURES else ("repo_id",))
        if pin.rows not in (None, len(rows)):
            wrong.append(f"{name}: {len(rows)} rows, {pin.rows} in the pin")
        for repo_id, row in lake.repositories.items():
            of_it = rows.filter(pc.field("repo_id") == repo_id)
            if name == FAILURES:
                run_id = row.artifact_ids["extract"].partition("/")[0]
                of_it = of_it.filter(pc.field("run_id") == run_id)
            recorded = row.row_counts.get(name, 0)
            if recorded != len(of_it):
                wrong.append(f"{name} of {repo_id}: {len(of_it)} rows, {recorded} in the manifest")
    return wrong


def _rows(lake: Snapshot, name: str, where: pc.Expression | None = None) -> pa.Table:
    columns = [column for column in catalog.table(name).column_names if column not in TIMELY]
    rows = lake.rows(name, list(dict.fromkeys((*columns, *(KEYS if where is not None else ())))))
    return (rows if where is None else rows.filter(where)).select(columns)


def _figures(rows: pa.Table) -> tuple[int, int]:
    with duckdb.connect(config={"threads": 1}) as database:
        database.register("published_rows", rows)
        found = database.execute("SELECT count(*), coalesce(sum(hash(row)), 0) FROM published_rows row")
        count, total = found.fetchall()[0]
    return int(count), int(total)
