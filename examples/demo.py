"""The main job, as far as it exists: the project's own source files as a versioned Delta table.

    make demo

Lists the Python files below src/, commits them to `repo_files_v1`, commits them again with one file
changed, and reads back what changed from the table's own change feed.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from pathlib import Path

from codeanatomy.config import load_settings
from codeanatomy.ids import stable_id
from codeanatomy.storage.commit import Commit, merge
from codeanatomy.storage.contract import spark_schema
from codeanatomy.storage.feed import Window, feed
from codeanatomy.storage.scan import scan
from codeanatomy.storage.session import open_session
from codeanatomy.storage.store import Store

ROOT = Path(__file__).resolve().parents[1]
LAKE = ROOT / ".demo" / "lake"
REPO = "codeanatomy"


def source_file(path: Path, extra: bytes = b"") -> dict[str, object]:
    """The row of a source file, by its bytes."""
    data = path.read_bytes() + extra
    name = path.relative_to(ROOT).as_posix()
    return {
        "repo_id": REPO,
        "file_id": stable_id("file", REPO, name),
        "path": name,
        "file_sha256": hashlib.sha256(data).hexdigest(),
        "size_bytes": len(data),
        "mtime_ns": 0,
        "encoding": "utf-8",
        "has_bom": False,
        "newline": "lf",
        "is_stub": False,
    }


def commit_files(store: Store, rows: list[dict[str, object]], run: str) -> None:
    """Merge a listing: new files, changed files, and files that are gone."""
    done = merge(
        store,
        "repo_files_v1",
        store.spark.createDataFrame(rows, spark_schema(store.table("repo_files_v1"))),
        Commit(run),
        update_when="old.file_sha256 <> new.file_sha256",
        delete_unmatched=f"old.repo_id = '{REPO}'",
    )
    print(f"{run}: version {done.version}, {done.rows} rows written in {done.seconds:.1f} s")


def main() -> None:
    started = time.monotonic()
    shutil.rmtree(LAKE, ignore_errors=True)
    settings = load_settings()
    spark = open_session(settings.runtime)
    print(f"session ready after {time.monotonic() - started:.1f} s")
    store = Store.of(settings, spark, str(LAKE))
    paths = sorted((ROOT / "src").rglob("*.py"))
    commit_files(store, [source_file(path) for path in paths], "first-listing")
    edited = [source_file(path, b"# edited\n" if path.name == "cli.py" else b"") for path in paths]
    commit_files(store, edited, "second-listing")
    found = scan(store, "repo_files_v1")
    print(f"repo_files_v1 at version {found.snapshot.version}: {found.rows.count()} files; the largest:")
    for row in found.rows.orderBy("size_bytes", ascending=False).limit(3).collect():
        print(f"  {row.path}  {row.size_bytes} bytes")
    for row in feed(store, "repo_files_v1", Window(starting_version=found.snapshot.version)).collect():
        print(f"changed: {row.path}  {row._change_type}")
    print(f"the lake is {LAKE.relative_to(ROOT)}, plain Delta: any engine reads it")
    spark.stop()


if __name__ == "__main__":
    main()
