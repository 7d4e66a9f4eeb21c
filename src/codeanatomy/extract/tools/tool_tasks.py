"""Run the type checker or the SCIP indexer on a repository, as a task beside those that read its files.

    CheckerTask(root of requests, its sources)      pyrefly checks requests
    IndexTask(root of requests, its files)          scip-python indexes requests
    IndexTask(..., given="/indexes/requests.scip")  an index that exists is read

    for chunk in tool_chunks(task, options):        # files of the report, or documents of the index
        ...                                         # rows of the chunk are read in a child process

The tool runs in the process that executes the task, in a temporary folder that exists until the last chunk
was taken. Paths are those of the machine that executes the task. A report or an index that cannot be made or
read is a chunk that has only failures. Without pyrefly there is no chunk, because the type checker is
optional; without scip-python, which the user has to request, there is a failure.

Tests: `tests/unit/extract/test_tool_tasks.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, structs

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import Problem
from codeanatomy.extract.partitions import RepositoryRoot
from codeanatomy.extract.scip_index import ScipPartition, document_chunks, failed_index, partition_index
from codeanatomy.extract.tools.external_tool import sources_folder
from codeanatomy.extract.tools.pyrefly import check_with_pyrefly, find_pyrefly, linked_tree
from codeanatomy.extract.tools.scip_python import index_with_scip_python
from codeanatomy.extract.type_checker_files import (
    RULES,
    CheckerReport,
    TypesPartition,
    failed_report,
    partition_reports,
    report_chunks,
)
from codeanatomy.sources.listing import Entry, decode_location

INDEX_NAME = "index.scip"


class CheckerTask(Struct, frozen=True, tag=True):
    """Check the sources of a repository with pyrefly, where it is installed."""

    root: RepositoryRoot
    entries: list[Entry]


class IndexTask(Struct, frozen=True, tag=True):
    """Index the files of a repository with scip-python, or read an index of them."""

    root: RepositoryRoot
    entries: list[Entry]
    # Location of an index that exists (`encode_location`); None: scip-python makes one ...
    given: str | None = None
    # ... with this command; None: the one of the machine that executes the task.
    command: str | None = None


def tool_chunks(
    task: CheckerTask | IndexTask, options: ExtractOptions
) -> Iterator[TypesPartition | ScipPartition]:
    """Run the tool of a task and yield the chunks of its report, which exists until the last is taken."""
    try:
        with tempfile.TemporaryDirectory(prefix="codeanatomy-tool-", ignore_cleanup_errors=True) as name:
            work = Path(name).resolve()
            if isinstance(task, CheckerTask):
                for report in _check(task, work, options):
                    yield from report_chunks(report)
            else:
                for index in _index(task, work, options):
                    yield from document_chunks(index)
    # Sources that vanished, an archive with names that cannot be files here, a full disk.
    except (OSError, ValueError) as problem:
        yield _failure(task, str(problem))


def _check(task: CheckerTask, work: Path, options: ExtractOptions) -> list[TypesPartition]:
    tool = find_pyrefly()
    if tool is None:
        return []
    folder = sources_folder(task.root, task.entries, work / "unpacked", options)
    paths = [entry.path for entry in task.entries]
    checked = check_with_pyrefly(tool, folder, paths, work, options.types_seconds, task.root.package)
    if checked.problems:
        return [failed_report(task.root, *checked.problems)]
    version = f"{checked.version}, {RULES}"
    tree = linked_tree(work, task.root.package)
    report = CheckerReport(task.root, str(work / "report"), str(tree), version, list(checked.left_out))
    return partition_reports([(report, task.entries)])


def _index(task: IndexTask, work: Path, options: ExtractOptions) -> list[ScipPartition]:
    if task.given is not None:
        return partition_index(task.root, task.entries, Path(decode_location(task.given)))
    folder = sources_folder(task.root, task.entries, work / "unpacked", options)
    paths, output = [entry.path for entry in task.entries], work / INDEX_NAME
    project, seconds = task.root.repo_id, options.scip_seconds
    made = index_with_scip_python(folder, paths, output, project, seconds, task.command)
    if not output.exists():
        return [failed_index(task.root, INDEX_NAME, *made.problems)]
    first, *others = partition_index(task.root, task.entries, output)
    return [structs.replace(first, problems=(*made.problems, *first.problems)), *others]


def _failure(task: CheckerTask | IndexTask, message: str) -> TypesPartition | ScipPartition:
    if isinstance(task, CheckerTask):
        return failed_report(task.root, Problem("error", "check", "unreadable", message))
    return failed_index(task.root, INDEX_NAME, Problem("error", "index", "unreadable", message))
