"""The tools as tasks: which there are, their rows, their failures, and that they end with their process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import msgpack

from codeanatomy.arrow import unpack_rows
from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.config import SCIP_VARIABLE
from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.extract.partitions import RepositoryRoot
from codeanatomy.extract.scip.schema import Document, Index, Metadata
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.extract.tools import tool_tasks as running
from codeanatomy.extract.tools.tool_tasks import CheckerTask, IndexTask
from codeanatomy.extract.type_checker_files import TYPES
from codeanatomy.extract.worker import Task, extract_task
from codeanatomy.pipeline.tools import tool_tasks
from codeanatomy.plan.build_request import ScipChoice
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.listing import Entry, Listing
from support import scip_tool
from support.archives import stored, tar_bytes, zip_bytes
from support.folders import TESTS, write_sources
from support.marks import quick

Rows = dict[str, list[dict[str, Any]]]
OPTIONS = ExtractOptions()
NO_INDEX = ScipChoice()
SOURCES = {
    "pkg/__init__.py": "",
    "pkg/mod.py": "def f(): ...\nf()\n",
    "tool": "#!/usr/bin/python\nopen('x')\n",
}


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which the tasks work; nothing is left in it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_sources(tmp_path / "source", SOURCES)


def task_of(
    place: Path, types: bool = False, scip: ScipChoice = NO_INDEX, options: ExtractOptions = OPTIONS
) -> Task:
    """The one task of a repository, as it arrives at an executor."""
    (task,) = tool_tasks({"r": list_source(place, options)}, "auto" if types else "off", scip)
    decoded: Task = msgpack.decode(msgpack.encode(task), type=Task)
    return decoded


def rows_of(task: Task, options: ExtractOptions = OPTIONS) -> Rows:
    rows: Rows = {}
    for packed in extract_task(task, (), options):
        for name, stream in packed.streams.items():
            rows.setdefault(name, []).extend(pa.Table.from_batches(unpack_rows(stream)).to_pylist())
    return {name: sorted(found, key=lambda row: row["path"]) for name, found in rows.items() if found}


def failures(rows: Rows) -> list[tuple[str, str, str, str]]:
    """The failures of a task that has no other rows."""
    assert rows.keys() == {FAILURES}
    return [(row["repo_id"], row["path"], row["extractor_name"], row["error_type"]) for row in rows[FAILURES]]


def write_index(path: Path) -> Path:
    documents = [Document(relative_path="pkg/mod.py"), Document(relative_path="elsewhere.py")]
    metadata = Metadata(tool_info={"name": "by-hand", "version": "1"})
    path.write_bytes(Index(metadata=metadata, documents=documents).SerializeToString())
    return path


# Which tasks there are


def listing(root: str, **sizes: int) -> Listing:
    entries = [
        Entry(f"{name}.py", f"{root}/{name}.py", size, 0, False, "too_large" if size == 0 else None)
        for name, size in sizes.items()
    ]
    return Listing(root, "folder", (*entries, Entry("script", f"{root}/script", 5, 0, False, None)))


def described(tasks: list[CheckerTask | IndexTask]) -> list[tuple[str, str, int]]:
    return [(type(task).__name__, task.root.repo_id, len(task.entries)) for task in tasks]


def test_there_is_a_task_by_repository_and_tool() -> None:
    listings = {"a": listing("/a", x=10), "b": listing("/b", x=900, y=900, z=0), "c": listing("/c")}
    assert tool_tasks(listings, "off", ScipChoice()) == []
    assert described(tool_tasks(listings, "auto", ScipChoice())) == [
        ("CheckerTask", "b", 2),
        ("CheckerTask", "a", 1),
    ]
    mixed = tool_tasks(listings, "off", ScipChoice(auto=True, given={"a": Path("/i/a.scip")}), {})
    assert described(mixed) == [("IndexTask", "b", 3), ("IndexTask", "a", 2), ("IndexTask", "c", 1)]
    assert [task.given for task in mixed if isinstance(task, IndexTask)] == [None, "/i/a.scip", None]
    assert mixed[0].root == RepositoryRoot("b", "folder", "/b")


def test_a_task_does_not_depend_on_the_folder_or_the_environment_of_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    listings = {"r": listing("/r", x=1)}

    def index_task(scip: ScipChoice, environment: Mapping[str, str]) -> IndexTask:
        (task,) = tool_tasks(listings, "off", scip, environment)
        assert isinstance(task, IndexTask)
        return task

    assert index_task(ScipChoice(given={"r": Path("i.scip")}), {}).given == f"{tmp_path}/i.scip"
    strange = Path(os.fsdecode(b"/caf\xe9.scip"))
    assert index_task(ScipChoice(given={"r": strange}), {}).given == "bytes:/caf%E9.scip"
    auto = ScipChoice(auto=True)
    assert index_task(auto, {}).command is None
    assert index_task(auto, {SCIP_VARIABLE: "scip-python"}).command == "scip-python"
    assert index_task(auto, {SCIP_VARIABLE: "bin/scip-python"}).command == f"{tmp_path}/bin/scip-python"


# Rows


@pytest.mark.system
@pytest.mark.parametrize(("pack", "name"), quick([(tar_bytes, "r.tar"), (zip_bytes, "r.zip")], 0))
def test_an_archive_has_the_rows_of_its_folder(
    pack: Callable[[Iterable[tuple[str, bytes]]], bytes], name: str, source: Path, tmp_path: Path
) -> None:
    rows = rows_of(task_of(source, types=True))
    assert {row["path"] for row in rows[TYPES]} == {"pkg/__init__.py", "pkg/mod.py"}
    (call,) = rows[TYPES][1]["call_targets"]
    assert (call["target_name"], call["target_path"]) == ("pkg.mod.f", "pkg/mod.py")
    members = [(name, text.encode()) for name, text in SOURCES.items()]
    assert rows_of(task_of(stored(tmp_path, pack(members), name), types=True)) == rows


def test_an_index_is_made(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SCIP_VARIABLE, str(scip_tool.installed()))
    task = task_of(source, scip=ScipChoice(auto=True))
    # Only the driver has the variable.
    monkeypatch.delenv(SCIP_VARIABLE)
    rows = rows_of(task)
    assert {row["path"]: row["row_kind"] for row in rows[SCIP]} == {
        "index.scip": "index",
        "pkg/__init__.py": "document",
        "pkg/mod.py": "document",
    }
    monkeypatch.setenv(SCIP_VARIABLE, str(scip_tool.installed()))
    members = [(name, text.encode()) for name, text in SOURCES.items()]
    archive = stored(tmp_path, tar_bytes(members), "r.tar")
    assert rows_of(task_of(archive, scip=ScipChoice(auto=True))) == rows


def test_an_index_is_given(source: Path, tmp_path: Path) -> None:
    index = write_index(tmp_path / "my.scip")
    rows = rows_of(task_of(source, scip=ScipChoice(given={"r": index})))
    assert {row["path"]: (row["row_kind"], row["file_id"] is None) for row in rows[SCIP]} == {
        "my.scip": ("index", True),
        "pkg/mod.py": ("document", False),
        "elsewhere.py": ("document", True),
    }


# Failures


def test_without_pyrefly_there_is_nothing(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "find_pyrefly", lambda: None)
    assert list(extract_task(task_of(source, types=True), (), OPTIONS)) == []


def test_without_scip_python_there_is_a_failure(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SCIP_VARIABLE, str(tmp_path / "nowhere"))
    rows = rows_of(task_of(source, scip=ScipChoice(auto=True)))
    assert failures(rows) == [("r", "index.scip", SCIP, "missing_tool")]


def test_an_index_that_cannot_be_read(source: Path, tmp_path: Path) -> None:
    rows = rows_of(task_of(source, scip=ScipChoice(given={"r": tmp_path / "my.scip"})))
    assert failures(rows) == [("r", "my.scip", SCIP, "unreadable")]


def fake_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Take a shell script for both tools, once they are more than asked for their version."""
    tool = tmp_path / "fake"
    tool.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec echo fake 1\n{script}\n')
    tool.chmod(0o755)
    monkeypatch.setattr(running, "find_pyrefly", lambda: tool)
    monkeypatch.setenv(SCIP_VARIABLE, str(tool))


def test_a_tool_that_fails(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tool(tmp_path, monkeypatch, "echo no; exit 3")
    rows = rows_of(task_of(source, types=True))
    assert failures(rows) == [("r", ".", TYPES, "checker_failed")]
    assert rows[FAILURES][0]["message"] == "the type checker ended with code 3: no"
    rows = rows_of(task_of(source, scip=ScipChoice(auto=True)))
    assert failures(rows) == [("r", "index.scip", SCIP, "indexer_failed")]
    assert rows[FAILURES][0]["message"] == "the indexer ended with code 3: no"


def test_a_tool_that_takes_too_long(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tool(tmp_path, monkeypatch, "sleep 60")
    options = ExtractOptions(types_seconds=0.5, scip_seconds=0.5)
    started = time.monotonic()
    rows = rows_of(task_of(source, types=True), options)
    assert failures(rows) == [("r", ".", TYPES, "time_limit")]
    rows = rows_of(task_of(source, scip=ScipChoice(auto=True)), options)
    assert failures(rows) == [("r", "index.scip", SCIP, "time_limit")]
    assert time.monotonic() - started < 20


def test_a_tool_that_cannot_be_started(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tool(tmp_path, monkeypatch, "")
    tool = tmp_path / "fake"
    tool.write_text("#!/nowhere/interpreter\n")
    rows = rows_of(task_of(source, types=True))
    assert failures(rows) == [("r", ".", TYPES, "checker_failed")]
    missing = f"[Errno 2] No such file or directory: '{tool}'"
    assert rows[FAILURES][0]["message"] == f"the type checker ended with code 127: {missing}"


def test_sources_that_cannot_be_written_or_linked(tmp_path: Path) -> None:
    """A file of the archive is a folder, too."""
    archive = stored(tmp_path, zip_bytes([("a.py", b"x = 1\n"), ("a.py/b.py", b"x = 1\n")]), "r.zip")
    task = task_of(archive, types=True)
    assert isinstance(task, CheckerTask)
    assert len(task.entries) == 2
    assert failures(rows_of(task)) == [("r", ".", TYPES, "unreadable")]
    rows = rows_of(IndexTask(task.root, task.entries, command=sys.executable))
    assert failures(rows) == [("r", "index.scip", SCIP, "unreadable")]


def test_without_a_folder_to_work_in(source: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "nowhere"))
    assert failures(rows_of(task_of(source, types=True))) == [("r", ".", TYPES, "unreadable")]
    rows = rows_of(task_of(source, scip=ScipChoice(auto=True)))
    assert failures(rows) == [("r", "index.scip", SCIP, "unreadable")]


# The end of a task


@pytest.mark.system
def test_a_task_that_is_given_up_leaves_nothing(source: Path, temporary: Path) -> None:
    for number in range(3):
        (source / f"large{number}.py").write_text("# text\n" * 130_000)
    rows = extract_task(task_of(source, types=True), (), OPTIONS)
    next(rows)
    assert len(list(temporary.iterdir())) == 1
    rows.close()  # type: ignore[attr-defined]
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_tool_ends_with_the_process_of_its_task(source: Path, tmp_path: Path) -> None:
    """Spark kills the workers of a cancelled job; the tool is in a session of its own."""
    note = tmp_path / "note"
    program = (
        "import os, sys, tempfile; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "from unit.extract import test_tool_tasks as t;"
        "m = t.pytest.MonkeyPatch(); tempfile.tempdir = sys.argv[4];"
        "t.fake_tool(Path(sys.argv[4]), m, f'echo $$ > {sys.argv[3]}; exec sleep 60');"
        "t.rows_of(t.task_of(Path(sys.argv[2]), types=True))"
    )
    work = tmp_path / "work"
    work.mkdir()
    command = [sys.executable, "-c", program, str(TESTS), str(source), str(note), str(work)]
    with subprocess.Popen(command) as parent:
        while not (note.exists() and note.read_text()):
            assert parent.poll() is None
            time.sleep(0.02)
        tool = int(note.read_text())
        assert Path(f"/proc/{tool}/comm").read_text() in ("fake\n", "sleep\n")
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while _is_alive(tool) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _is_alive(tool)


def _is_alive(pid: int) -> bool:
    """Running, not waiting for the process that adopted it to take note."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_tool_has_the_signals_of_a_command(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python ignores SIGPIPE, and what it starts would inherit that."""
    fake_tool(tmp_path, monkeypatch, "grep SigIgn /proc/self/status; exit 3")
    (row,) = rows_of(task_of(source, types=True))[FAILURES]
    ignored = int(row["message"].rpartition(":")[2], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1))
