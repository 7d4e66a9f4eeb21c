"""Build the rows of a type checker's report: one per checked file, and their failures.

A report covers a whole repository; its files are divided into tasks like all files (`extract.partitions`), in
the order of repositories and ids, and each task reads the parts of the report that it needs.

    CheckerReport(root of requests, ".../report", ".../tree", "pyrefly 1.4.0, rules 1")
      requests/api.py -> call_graphs/requests.api:1003.json, ... -> a row of type_checker_files_v1

Tests: `tests/unit/extract/test_pyrefly_report.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, structs

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import ExtractorResult, Problem, SkippedSteps
from codeanatomy.extract.file_rows import FAILURES, FILE, FailureRows, FileRows, Row, extractor_row
from codeanatomy.extract.partitions import RepositoryRoot, file_cost
from codeanatomy.extract.pyrefly.cells import module_cells
from codeanatomy.extract.pyrefly.names import ReportNames
from codeanatomy.extract.pyrefly.report import PROJECT, Project, ReportedModule, read_report_file
from codeanatomy.node_ids import file_id
from codeanatomy.sources.listing import Entry
from codeanatomy.sources.reading import read_entries
from codeanatomy.sources.source_file import Source, decode

TYPES = "type_checker_files_v1"
RULES = "rules 1"
# Bytes of source per task, and per chunk of a task.
PARTITION_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024
READ, CELLS = 0, 1
CRASHED = Problem(
    "error", "check", "checker_failed", "the type checker crashes on this file: it was left out"
)


class CheckerReport(Struct, frozen=True, array_like=True):
    """A report on a repository: its folder, and the tree of links that the tool has checked."""

    root: RepositoryRoot
    folder: str
    tree: str
    # Of the tool and of our rules.
    version: str
    # Files that the tool crashes on.
    left_out: list[str] = []


class TypesPartition(Struct, frozen=True, tag=True):
    """Files of one task, each with the index of its report."""

    reports: list[CheckerReport]
    files: list[tuple[int, Entry]]
    # Of the first report as a whole, which then has no files.
    problems: tuple[Problem, ...] = ()


# By path.
Modules: TypeAlias = Mapping[str, Sequence[ReportedModule]]


def partition_reports(reports: Sequence[tuple[CheckerReport, Sequence[Entry]]]) -> list[TypesPartition]:
    """Divide the files of reports into tasks; each report is given with the files that were checked."""
    numbered = [(number, entry) for number, (_, entries) in enumerate(reports) for entry in entries]
    names = [report.root.repo_id for report, _ in reports]
    numbered.sort(key=lambda file: (names[file[0]], file_id(names[file[0]], file[1].path)))
    whole = TypesPartition([report for report, _ in reports], numbered)
    return list(_split(whole, PARTITION_BYTES)) if numbered else []


def failed_report(root: RepositoryRoot, *problems: Problem) -> TypesPartition:
    """Return the partition of a report that could not be made: it has only failures."""
    return TypesPartition([CheckerReport(root, "", "", "")], [], problems)


def report_chunks(partition: TypesPartition) -> Iterator[TypesPartition]:
    """Split a partition into chunks of one repository, with rows that fit into memory."""
    for _, files in groupby(partition.files, key=itemgetter(0)):
        yield from _split(structs.replace(partition, files=list(files)), CHUNK_BYTES)
    if not partition.files:
        yield partition


def _split(partition: TypesPartition, size: int) -> Iterator[TypesPartition]:
    files: list[tuple[int, Entry]] = []
    filled = 0
    for file in partition.files:
        if files and filled + file_cost(file[1]) > size:
            yield structs.replace(partition, files=files)
            files, filled = [], 0
        files.append(file)
        filled += file_cost(file[1])
    yield structs.replace(partition, files=files)


def extract_types(
    partition: TypesPartition,
    options: ExtractOptions,
    skipped_steps: SkippedSteps,
    enter: Callable[[int, int], None],
) -> Iterator[FileRows]:
    """Yield the rows of a chunk: of each file, or of a failure that concerns all of them."""
    if partition.problems:
        file = {"repo_id": partition.reports[0].root.repo_id, "path": "."}
        yield _rows(file, None, partition.problems)
    if partition.files:
        enter(0, READ)
        contents = _read_files(partition, skipped_steps, options)
        used = {number for number, _ in partition.files}
        opened = {number: _open_report(partition.reports[number]) for number in used}
    for position, (number, entry) in enumerate(partition.files):
        report, raw = partition.reports[number], contents.get((number, entry.path))
        repo_id = report.root.repo_id
        file = {"repo_id": repo_id, "file_id": file_id(repo_id, entry.path), "path": entry.path}
        enter(position, CELLS)
        skips = tuple(dict.fromkeys(skipped_steps.get(position, {}).values()))
        source = None if raw is None else decode(entry.path, raw)
        if raw is None or not isinstance(source, Source):
            # The failure to read it is recorded with `repo_files_v1`.
            yield _rows(file, None, skips)
            continue
        file["file_sha256"] = sha256(raw).hexdigest()
        if entry.path in report.left_out:
            skips = (*skips, CRASHED)
        result = ExtractorResult({}, skips) if skips else _extract_file(opened[number], source)
        row = extractor_row(TYPES, {**file, "witness_version": report.version}, result)
        yield _rows(file, row, result.problems)


class _OpenReport(Struct, frozen=True):
    """The names and modules of a report."""

    names: ReportNames
    modules: Modules


def _open_report(report: CheckerReport) -> _OpenReport | Problem:
    folder = Path(report.folder)
    project = read_report_file(folder / PROJECT, Project)
    if isinstance(project, Problem):
        return project
    names = ReportNames(folder, Path(report.tree), project.modules)
    by_path: dict[str, list[ReportedModule]] = {}
    for module in sorted(project.modules.values(), key=lambda each: each.module_name):
        path = names.path_of(module)
        if path is not None:
            by_path.setdefault(path, []).append(module)
    return _OpenReport(names, by_path)


def _extract_file(report: _OpenReport | Problem, source: Source) -> ExtractorResult:
    if isinstance(report, Problem):
        return ExtractorResult({}, (report,))
    return module_cells(report.names, report.modules.get(source.path, ()), source)


def _read_files(
    partition: TypesPartition, skipped_steps: SkippedSteps, options: ExtractOptions
) -> dict[tuple[int, str], bytes]:
    """Read the bytes of the files, by report and path."""
    wanted: dict[int, list[Entry]] = {}
    for position, (number, entry) in enumerate(partition.files):
        if READ not in skipped_steps.get(position, {}):
            wanted.setdefault(number, []).append(entry)
    contents = {}
    for number, entries in wanted.items():
        root = partition.reports[number].root
        for reading in read_entries(root.kind, root.root, entries, options):
            if reading.raw is not None:
                contents[number, reading.entry.path] = reading.raw
    return contents


def _rows(file: Row, row: Row | None, problems: Sequence[Problem]) -> FileRows:
    failures = FailureRows()
    failures.add(TYPES, problems)
    return {FILE: file, TYPES: row, FAILURES: failures.cells()}
