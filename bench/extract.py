"""The extract stage over the standard library on local[2], against a plain process pool of two.

    make bench-extract                                     # python bench/extract.py [FOLDER]

The pool runs the same witness functions over the same files and writes one Parquet file per table and share
with pyarrow: no Spark, no Delta, no isolation of files. Session start is not counted on either side. Ours is
the whole stage: listing, witnesses, commits of all tables. Also printed: what LibCST's witness costs over its
bare parse, and the peak memory of driver, JVM and workers.
"""

from __future__ import annotations

import gc
import io
import multiprocessing
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import libcst
import pyarrow.parquet as pq
from memory import Memory

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.config import load_settings
from codeanatomy.extract.evidence import run_extractor
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.file_rows import extract_file, table_batches
from codeanatomy.extract.partitions import FilePartition, RepositoryListing, partition_files, split_chunks
from codeanatomy.extract.worker import extract_tables
from codeanatomy.plan.build_request import BuildRequest
from codeanatomy.plan.repositories import Repository
from codeanatomy.plan.steps import EXTRACT
from codeanatomy.progress import Progress
from codeanatomy.run.build import build
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.reading import read_entries
from codeanatomy.sources.source_file import Source, decode
from codeanatomy.spark.session import open_session
from support.sessions import SharedSession

CORES = 2
LIMIT = 1.4
LIBCST_LIMIT = 3.0
MB = 1024 * 1024
OPTIONS = ExtractOptions()
TABLES = extract_tables(EXTRACTORS)


def pool_share(work: tuple[int, FilePartition, str]) -> int:
    """One task of the pool: examine the files of a share, write a Parquet file per table."""
    number, share, folder = work
    gc.disable()
    writers: dict[str, pq.ParquetWriter] = {}
    for chunk in split_chunks(share):
        files = [
            extract_file(chunk.roots[place].repo_id, reading, EXTRACTORS, OPTIONS, {}, lambda step: None)
            for place, entry in chunk.files
            for reading in read_entries(chunk.roots[place].kind, chunk.roots[place].root, [entry], OPTIONS)
        ]
        for name, batch in table_batches(TABLES, files).items():
            if name not in writers:
                path = f"{folder}/{name}-{number}.parquet"
                writers[name] = pq.ParquetWriter(path, batch.schema, compression="zstd")
            writers[name].write_batch(batch)
        del files
    for writer in writers.values():
        writer.close()
    return len(share.files)


def run_pool(folder: Path) -> float:
    with tempfile.TemporaryDirectory() as target:
        began = time.monotonic()
        shares = partition_files([RepositoryListing("stdlib", list_source(folder, OPTIONS))], cores=CORES)
        with multiprocessing.get_context("fork").Pool(CORES) as pool:
            work = [(number, share, target) for number, share in enumerate(shares)]
            done = sum(pool.imap_unordered(pool_share, work))
        seconds = time.monotonic() - began
        size = sum(path.stat().st_size for path in Path(target).iterdir())
    print(f"pool: {seconds:.1f} s, {done} files, {size / MB:.0f} MB of Parquet")
    return seconds


def run_ours(folder: Path) -> tuple[float, dict[str, int]]:
    settings = load_settings((f"runtime.master=local[{CORES}]",))
    spark = open_session(settings.runtime)
    with tempfile.TemporaryDirectory() as lake:
        order = BuildRequest(lake, settings, (Repository("stdlib", folder),), until=EXTRACT)
        memory = Memory()
        memory.start()
        report = build(order, Progress(io.StringIO()), SharedSession(spark))
        peak = memory.stop()
        seconds = report.seconds["extract_step"]
        size = sum(path.stat().st_size for path in Path(lake).rglob("*.parquet"))
        print(f"ours: {seconds:.1f} s, {size / MB:.0f} MB of Delta tables, steps {report.seconds}")
        for name, done in report.tables.items():
            print(f"  {name}: {done.rows} rows")
    spark.stop()
    return seconds, peak


def libcst_cost(sources: list[Source]) -> float:
    """CPU of the witness over CPU of the bare parse, over the same files, garbage collection off for both."""
    witness = next(each for each in EXTRACTORS if each.table == "libcst_files_v1")
    gc.disable()
    bare = whole = 0.0
    for source in sources:
        began = time.process_time()
        try:
            libcst.parse_module(source.text)
        except (libcst.ParserSyntaxError, RecursionError):
            continue
        middle = time.process_time()
        run_extractor(witness, source, OPTIONS)
        bare, whole = bare + middle - began, whole + time.process_time() - middle
    gc.enable()
    ratio = whole / bare
    print(f"libcst: witness {whole:.1f} s, bare parse {bare:.1f} s, ratio {ratio:.2f} (limit {LIBCST_LIMIT})")
    return ratio


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else sysconfig.get_paths()["stdlib"])
    entries = [entry for entry in list_source(folder, OPTIONS).entries if entry.skipped_reason is None]
    # Also brings the files into the system's cache, for both sides.
    raws = {
        reading.entry.path: reading.raw for reading in read_entries("folder", str(folder), entries, OPTIONS)
    }
    size = sum(len(raw or b"") for raw in raws.values())
    print(f"{len(entries)} files, {size / MB:.1f} MB, Python {sys.version.split()[0]}, {CORES} cores")
    decoded = (decode(path, raw) for path, raw in raws.items() if raw is not None)
    libcst_ratio = libcst_cost([source for source in decoded if isinstance(source, Source)][::5])
    pool_seconds = run_pool(folder)
    seconds, peak = run_ours(folder)
    print(f"{len(entries) / seconds:.0f} files/s, {size / MB / seconds:.2f} MB/s")
    print("peak memory: " + ", ".join(f"{name} {size / MB:.0f} MB" for name, size in sorted(peak.items())))
    ratio = seconds / pool_seconds
    print(f"ratio {ratio:.2f} (limit {LIMIT})")
    if ratio > LIMIT or libcst_ratio > LIBCST_LIMIT:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
