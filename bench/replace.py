"""How Spark best replaces the rows of some files in a table, and from which size a build is for Spark.

    PYTHONPATH=tests python bench/replace.py LAKE                                  # ways to replace rows
    PYTHONPATH=tests python bench/replace.py LAKE --only cpg_edges --rounds 3
    PYTHONPATH=tests python bench/replace.py --sources click jinja2 path/of/a/folder      # engines

First part: the rows of one owner file, of thirty and of a tenth of them are read from a table of the lake and
cached. Then each way writes them into a copy of the table in place of those that are there:

    files      executors write Arrow files, the log entry deletes the old rows by deletion vectors
               (`delta.write.file_commits`)
    overwrite  `delta.write.spark_rows.replace_by_owner`: Delta's replaceWhere
    merge      Delta's MERGE: rows of a listed owner are deleted, the new ones match nothing and are inserted
    delete     Delta's DELETE, then an append: two commits, so readers may see the table between them

MERGE checks no rows. All ways begin with the log unread, as a refresh does, which commits to a table once.
The table has the same rows afterwards, else the script fails. Files, bytes and rows written are those that
are new in the folder, change files and vectors among them. A first round over one owner is not counted: the
JVM compiles.

Second part: seconds of full builds and of refreshes after edits by local processes and by Spark, without the
start of the session, and of the whole process; for the choice of the engine.

Printed is Markdown for FIGURES.md; progress goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from delta.tables import DeltaTable
from incremental import COMMAND, OPTIONS, TWO_CORES, Built, with_longer_body
from processor import difference, processor_seconds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from codeanatomy.arrow import arrow_schema
from codeanatomy.config import RuntimeProfile
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.layout import arrange_rows
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.read.open_table import location
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.store import Store
from codeanatomy.delta.write.data_files import write_files
from codeanatomy.delta.write.file_commits import commit_files, new_files
from codeanatomy.delta.write.rewrite import to_schema
from codeanatomy.delta.write.spark_rows import append, replace_by_owner
from codeanatomy.spark.jvm import spark_literal
from codeanatomy.spark.session import close_session, open_session
from support import corpus

TABLES = ("cpg_edges", "cpg_props", "relations_v1", "ast_files_v1")
CORES = 2
MANY = 30
TENTH = 10
MB = 1024 * 1024
# Number of rows, and sum of their hashes.
Digest = tuple[int, Decimal]


class Part(NamedTuple):
    """The rows of some owners, cached."""

    owners: list[str]
    rows: DataFrame
    row_count: int
    # Of a data file with these rows, estimated.
    file_bytes: int


class Cost(NamedTuple):
    """What one way took and wrote."""

    seconds: float
    processor: float
    files: int
    bytes: int
    rows: int


def write_on_executors(
    rows: DataFrame, write: Callable[[Iterator[pa.RecordBatch]], Iterable[DataFile]]
) -> list[DataFile]:
    """Run `write` on the rows of each task, and collect the files that it has written."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for file in write(batches):
            yield pa.RecordBatch.from_pydict({"file": [msgspec.json.encode(file).decode()]})

    made = rows.mapInArrow(run, "file string").toArrow()
    return [msgspec.json.decode(file, type=DataFile) for file in made.column("file").to_pylist()]


def by_files(store: Store, name: str, part: Part) -> None:
    table, folder = store.table(name), new_files(store, name)
    schema = arrow_schema(table)

    def write(batches: Iterator[pa.RecordBatch]) -> list[DataFile]:
        return write_files(folder, table, (to_schema(batch, schema) for batch in batches))

    files = write_on_executors(arrange_rows(store.spark, table, part.rows, part.file_bytes), write)
    commit_files(store, name, files, part.owners, Commit("bench"), by=table.owner or "")


def by_overwrite(store: Store, name: str, part: Part) -> None:
    replace_by_owner(store, name, part.rows, part.owners, Commit("bench"), file_bytes=part.file_bytes)


def by_merge(store: Store, name: str, part: Part) -> None:
    table = store.table(name)
    # Rows to insert have no owner to be matched by; those of owners to be deleted have nothing else.
    owners = store.spark.createDataFrame([(owner,) for owner in part.owners], "matched string")
    source = part.rows.withColumn("matched", F.lit(None).cast("string"))
    source = source.unionByName(owners, allowMissingColumns=True)
    (
        DeltaTable.forPath(store.spark, store.location(name))
        .alias("t")
        .merge(source.alias("s"), f"t.{owned(table.owner, part)} AND t.{table.owner} = s.matched")
        .whenMatchedDelete()
        .whenNotMatchedInsert(values={f"`{column}`": f"s.`{column}`" for column in table.column_names})
        .execute()
    )


def by_delete(store: Store, name: str, part: Part) -> None:
    DeltaTable.forPath(store.spark, store.location(name)).delete(owned(store.table(name).owner, part))
    append(store, name, part.rows, Commit("bench"), file_bytes=part.file_bytes)


def owned(column: str | None, part: Part) -> str:
    """The condition for rows of the owners, by which files are skipped, too."""
    return f"{column} IN ({', '.join(map(spark_literal, part.owners))})"


WAYS: dict[str, Callable[[Store, str, Part], None]] = {
    "files": by_files,
    "overwrite": by_overwrite,
    "merge": by_merge,
    "delete": by_delete,
}


def digest(store: Store, name: str) -> Digest:
    """What two tables with the same rows have in common."""
    row = F.to_json(F.struct(*store.table(name).column_names))
    total = F.sum(F.xxhash64(row).cast("decimal(38,0)"))
    ((count, hashes),) = scan(store, name).rows.agg(F.count("*"), total).collect()
    return count, hashes


def parts_of(store: Store, name: str) -> Iterator[Part]:
    """One owner, thirty, and a tenth of all, from all over the table."""
    owner = store.table(name).owner or ""
    everything = scan(store, name).rows
    distinct = everything.select(owner).distinct().where(F.col(owner).isNotNull())
    owners = sorted(row[0] for row in distinct.collect())
    size = sum(path.stat().st_size for path in data_files(Path(store.location(name)))) / everything.count()
    for wanted in sorted({1, min(MANY, len(owners)), max(1, len(owners) // TENTH)}):
        chosen = [owners[(2 * at + 1) * len(owners) // (2 * wanted)] for at in range(wanted)]
        rows = everything.where(F.col(owner).isin(chosen)).persist()
        count = rows.count()
        yield Part(chosen, rows, count, int(size * count))
        rows.unpersist(blocking=True)


def data_files(folder: Path) -> set[Path]:
    """Data files, change files and deletion vectors."""
    suffixes = (".parquet", ".bin")
    return {
        path
        for path in folder.rglob("*")
        if path.suffix in suffixes and "_delta_log" not in path.parts and not path.name.startswith(".")
    }


def measured(store: Store, way: str, name: str, part: Part, work: Path, expected: Digest) -> Cost:
    """Replace the rows once, in a copy of the table, which is removed."""
    # Of a new name, under which the JVM has no log.
    copy = Store(store.spark, tempfile.mkdtemp(dir=work))
    folder = Path(location(copy.root, name))
    shutil.copytree(location(store.root, name), folder)
    old = data_files(folder)
    before, began = processor_seconds(os.getpid()), time.monotonic()
    WAYS[way](copy, name, part)
    seconds = time.monotonic() - began
    spent = difference(processor_seconds(os.getpid()), before)
    new = data_files(folder) - old
    if digest(copy, name) != expected:
        raise SystemExit(f"{name}: other rows after {way} of {len(part.owners):,} owners")
    rows = sum(pq.read_metadata(path).num_rows for path in new if path.suffix == ".parquet")
    size = sum(path.stat().st_size for path in new)
    shutil.rmtree(copy.root)
    return Cost(seconds, sum(spent.values()), len(new), size, rows)


def compare_ways(lake: str, names: Iterable[str], rounds: int, work: Path) -> None:
    """Print what each way takes, by table and number of owners."""
    spark = open_session(RuntimeProfile(cores=CORES))
    print("| table | owners | rows | way | seconds | processor seconds | files written | MB | rows written |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    try:
        store = Store(spark, lake)
        uncounted = 1
        for name in names:
            expected = digest(store, name)
            for part in parts_of(store, name):
                talk(f"{name}: {len(part.owners):,} owners, {part.row_count:,} rows")
                costs: dict[str, list[Cost]] = {way: [] for way in WAYS}
                for number in range(uncounted + rounds):
                    for way in WAYS:
                        cost = measured(store, way, name, part, work, expected)
                        talk(f"  {way} {cost.seconds:.1f} s, {cost.files:,} files")
                        if number >= uncounted:
                            costs[way].append(cost)
                uncounted = 0
                for way, found in costs.items():
                    seconds, processor, files, size, rows = (
                        median(each) for each in zip(*found, strict=True)
                    )
                    print(
                        f"| `{name}` | {len(part.owners):,} | {part.row_count:,} | {way} | {seconds:.2f} "
                        f"| {processor:.1f} | {files:,.0f} | {size / MB:.2f} | {rows:,.0f} |",
                        flush=True,
                    )
    finally:
        close_session(spark)


def build(source: Path, lake: Path, engine: str) -> Built:
    began = time.monotonic()
    done = subprocess.run(
        [COMMAND, *TWO_CORES, "build", f"measured={source}", "--lake", lake, "--engine", engine, *OPTIONS],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Built(json.loads(done.stdout), time.monotonic() - began)


def builds(source: Path, lake: Path, engine: str) -> Iterator[tuple[str, int, int, Built]]:
    """Build a lake, and refresh it after edits: what, the files and bytes that are read, and the build."""
    files = sorted(source.rglob("*.py"), key=lambda path: (path.stat().st_size, path))
    for what, edited in (
        ("full", []),
        ("one file", [files[len(files) // 2]]),
        ("a tenth", files[TENTH // 2 :: TENTH]),
    ):
        for file in edited:
            file.write_text(with_longer_body(file.read_text(encoding="utf-8")), encoding="utf-8")
        changed = edited or files
        talk(f"{source.name}: {what}, {engine}")
        done = build(source, lake, engine)
        yield what, len(changed), sum(file.stat().st_size for file in changed), done


def compare_engines(names: Iterable[str], work: Path) -> None:
    """Print the seconds of builds and refreshes by engine."""
    print("| repository | build | files | MB | local: seconds | process | spark: seconds | process |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in names:
        original = Path(name) if Path(name).is_dir() else corpus.package(name)
        made = []
        for engine in ("local", "spark"):
            source = work / engine / original.name
            shutil.copytree(original, source)
            made.append(list(builds(source, work / engine / "lake", engine)))
            shutil.rmtree(work / engine)
        for (what, files, size, local), (_, _, _, spark) in zip(*made, strict=True):
            print(
                f"| {original.name} | {what} | {files:,} | {size / MB:.2f} | {local.seconds:.1f} "
                f"| {local.process:.1f} | {spark.seconds:.1f} | {spark.process:.1f} |",
                flush=True,
            )


def talk(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lake", nargs="?", help="the lake whose rows are replaced in copies of its tables")
    parser.add_argument("--only", default=",".join(TABLES), help="tables, divided by commas")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--sources", nargs="+", default=(), help="packages of the tests, or folders")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codeanatomy-bench-") as folder:
        if given.lake:
            compare_ways(given.lake, given.only.split(","), given.rounds, Path(folder))
        if given.sources:
            compare_engines(given.sources, Path(folder))


if __name__ == "__main__":
    main()
