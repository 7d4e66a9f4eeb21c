"""Files that crash, hang or eat memory cost one row each; everything else comes out as it should."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from codeanatomy import catalog
from codeanatomy.arrow import unpack_rows
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import Extractor, ExtractorResult
from codeanatomy.extract.file_rows import FAILURES, table_columns
from codeanatomy.extract.partitions import FilePartition, RepositoryListing, partition_files
from codeanatomy.extract.worker import extract_tables, extract_task
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.source_file import Source
from support.folders import TESTS

EMPTY = {
    column.name: {field.name: [] for field in column.fields}
    for column in catalog.table("ast_files_v1").columns
    if column.fields and column.name != "errors"
}


def misbehave(source: Source, options: ExtractOptions) -> ExtractorResult:
    """A witness that does what the file says."""
    if b"segfault" in source.utf8:
        os.kill(os.getpid(), signal.SIGSEGV)
    if b"hang" in source.utf8:
        time.sleep(1000)
    if b"hoard" in source.utf8:
        bytearray(options.max_memory_size * 2)
    if b"raise" in source.utf8:
        raise ZeroDivisionError("on purpose")
    if b"ragged" in source.utf8:
        return ExtractorResult({**EMPTY, "type_ignores": {"tag": [], "line": [1]}})
    return ExtractorResult(EMPTY)


def honest(source: Source, options: ExtractOptions) -> ExtractorResult:
    return ExtractorResult(
        {"blocks": {field.name: [] for field in catalog.table("symtable_files_v1").column("blocks").fields}}
    )


EXTRACTORS = (
    Extractor("ast_files_v1", misbehave, "test 1"),
    Extractor("symtable_files_v1", honest, "test 1"),
)


def shares_of(folder: Path, options: ExtractOptions, tasks: int = 1) -> list[FilePartition]:
    return partition_files([RepositoryListing("r", list_source(folder, options))], tasks)


def extracted(shares: Sequence[FilePartition], options: ExtractOptions) -> dict[str, list[dict[str, Any]]]:
    """All rows by table, by path."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in extract_tables(EXTRACTORS)}
    for share in shares:
        for packed in extract_task(share, EXTRACTORS, options):
            for name, stream in packed.streams.items():
                rows[name] += pa.Table.from_batches(unpack_rows(stream)).to_pylist()
    for found in rows.values():
        found.sort(key=lambda row: (row["path"], row.get("line_no", 0), row.get("extractor_name", "")))
    return rows


def failures(rows: dict[str, list[dict[str, Any]]]) -> list[tuple[str, str, str]]:
    return [(row["path"], row["extractor_name"], row["error_type"]) for row in rows[FAILURES]]


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_each_table_gets_its_rows(tmp_path: Path) -> None:
    options = ExtractOptions()
    rows = extracted(shares_of(write(tmp_path, a="x = 1\ny = 2\n", b=""), options), options)
    assert [row["path"] for row in rows["repo_files_v1"]] == ["a.py", "b.py"]
    assert [row["text"] for row in rows["repo_file_blobs_v1"]] == ["x = 1\ny = 2\n", ""]
    assert [(row["path"], row["line_no"], row["line_start_byte"]) for row in rows["file_line_index_v1"]] == [
        ("a.py", 0, 0),
        ("a.py", 1, 6),
    ]
    assert [row["witness_version"] for row in rows["ast_files_v1"]] == ["test 1", "test 1"]
    assert rows[FAILURES] == []
    assert all(
        set(row) == {c.name for c in table_columns(name)} for name, found in rows.items() for row in found
    )


@pytest.mark.parametrize(
    ("text", "error_type", "said"),
    [
        ("segfault", "crashed", "SIGSEGV"),
        ("hang", "time_limit", "extract.file_seconds = 1"),
        ("hoard", "MemoryError", ""),
        ("raise", "ZeroDivisionError", "on purpose"),
    ],
)
def test_a_file_that_misbehaves_costs_one_witness(
    tmp_path: Path, text: str, error_type: str, said: str
) -> None:
    options = ExtractOptions(file_seconds=1.0, max_memory_size=256 * 1024**2)
    rows = extracted(shares_of(write(tmp_path, a="x = 1\n", b=f"# {text}\n", c="y = 1\n"), options), options)
    assert failures(rows) == [("b.py", "ast_files_v1", error_type)]
    assert said in rows[FAILURES][0]["message"]
    assert [(row["path"], row["nodes"]) for row in rows["ast_files_v1"]] == [
        ("a.py", []),
        ("b.py", None),
        ("c.py", []),
    ]
    assert [error["error_type"] for error in rows["ast_files_v1"][1]["errors"]] == [error_type]
    assert [row["blocks"] for row in rows["symtable_files_v1"]] == [[], [], []]
    assert [row["skipped_reason"] for row in rows["repo_files_v1"]] == [None, None, None]


def test_several_files_of_a_chunk_may_crash(tmp_path: Path) -> None:
    options = ExtractOptions()
    write(tmp_path, a="segfault", b="x", c="segfault", d="raise", e="segfault")
    rows = extracted(shares_of(tmp_path, options), options)
    assert failures(rows) == [
        ("a.py", "ast_files_v1", "crashed"),
        ("c.py", "ast_files_v1", "crashed"),
        ("d.py", "ast_files_v1", "ZeroDivisionError"),
        ("e.py", "ast_files_v1", "crashed"),
    ]
    assert len(rows["symtable_files_v1"]) == 5


def test_rows_that_cannot_be_packed_cost_their_file_only(tmp_path: Path) -> None:
    options = ExtractOptions()
    rows = extracted(shares_of(write(tmp_path, a="x", b="ragged", c="y"), options), options)
    assert {(path, kind) for path, _, kind in failures(rows)} == {("b.py", "broken_rows")}
    assert [(row["path"], row["nodes"]) for row in rows["ast_files_v1"]] == [
        ("a.py", []),
        ("b.py", None),
        ("c.py", []),
    ]


def test_a_file_of_the_far_future(tmp_path: Path) -> None:
    write(tmp_path, a="x", b="y")
    os.utime(tmp_path / "a.py", ns=(2**63, 2**63))
    options = ExtractOptions()
    rows = extracted(shares_of(tmp_path, options), options)
    assert failures(rows) == []
    assert [row["mtime_ns"] is None for row in rows["repo_files_v1"]] == [True, False]


def test_a_tar_is_not_one_file_to_the_time_limit(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(300):
        (source / f"m{number}.py").write_text("x = 1\n" * 100)
    shutil.make_archive(str(tmp_path / "packed"), "bztar", source)
    options = ExtractOptions()
    rows = extracted(shares_of(tmp_path / "packed.tar.bz2", options), options)
    assert failures(rows) == []
    assert timeless(rows) == timeless(extracted(shares_of(source, options), options))


def timeless(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {name: [{**row, "mtime_ns": None} for row in found] for name, found in rows.items()}


def test_a_process_with_a_memory_limit_of_its_own(tmp_path: Path) -> None:
    options = ExtractOptions(max_memory_size=2**50)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    assert hard == resource.RLIM_INFINITY
    write(tmp_path, a="x")
    program = (
        "import resource, sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30));"
        "from unit.extract import test_worker as t; o = t.ExtractOptions(max_memory_size=2**50);"
        "print(len(t.extracted(t.shares_of(Path(sys.argv[2]), o), o)['ast_files_v1']))"
    )
    command = [sys.executable, "-c", program, str(TESTS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
    assert resource.getrlimit(resource.RLIMIT_AS) == (soft, hard)
    assert len(extracted(shares_of(tmp_path, options), options)["ast_files_v1"]) == 1


@pytest.mark.system
def test_a_child_does_not_outlive_its_parent_for_long(tmp_path: Path) -> None:
    write(tmp_path, a="hang")
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "from unit.extract import test_worker as t; o = t.ExtractOptions(file_seconds=1.5);"
        "(share,) = t.shares_of(Path(sys.argv[2]), o); print('ready', flush=True);"
        "list(t.extract_task(share, t.EXTRACTORS, o))"
    )
    command = [sys.executable, "-c", program, str(TESTS), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        listed = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        while not listed.read_text():
            assert parent.poll() is None
            time.sleep(0.02)
        time.sleep(0.5)
        children = listed.read_text().split()
        parent.kill()
    assert children
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_how_files_are_cut_does_not_change_their_rows(tmp_path: Path) -> None:
    options = ExtractOptions()
    for number in range(200):
        (tmp_path / f"m{number}.py").write_text("x = 1\n" * number)
    (tmp_path / "broken.py").write_bytes(b"\xff\xfe\x00")
    one = extracted(shares_of(tmp_path, options, 1), options)
    assert one == extracted(shares_of(tmp_path, options, 7), options)
    assert len(one["repo_files_v1"]) == 201
    assert failures(one) == [("broken.py", "repo_files_v1", "binary")]


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    options = ExtractOptions()
    (share,) = shares_of(write(tmp_path, a="x"), options)
    before = _children()
    rows = extract_task(share, EXTRACTORS, options)
    next(rows)
    rows.close()
    assert _children() == before


def _children() -> set[str]:
    return {path.name for path in Path(f"/proc/{os.getpid()}/task").iterdir()} | set(
        Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    )
