"""The rows of a type checker: one per file that it was shown, and their failures.

Reports are made for whole repositories; their files are spread over tasks as all files are (`shares`), in the
order of their ids, and each task reads the parts of the report that it needs.

    Reported(place of requests, ".../report", ".../tree", "pyrefly 1.4.0, rules 1")
      requests/api.py -> call_graphs/requests.api:1003.json, ... -> a row of type_checker_files_v1

Tests: `tests/unit/extract/test_pyrefly_report.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, structs

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import ExtractorResult, Problem, SkippedSteps
from codeanatomy.extract.file_rows import FAILURES, FailureRows, Rows, extractor_row, file_id
from codeanatomy.extract.partitions import RepositoryRoot, file_cost
from codeanatomy.extract.pyrefly.cells import module_cells
from codeanatomy.extract.pyrefly.names import Names
from codeanatomy.extract.pyrefly.report import PROJECT, Module, Project, read_part
from codeanatomy.sources.listing import Entry
from codeanatomy.sources.reading import read_entries
from codeanatomy.sources.source_file import Source, decode

TYPES = "type_checker_files_v1"
RULES = "rules 1"
# Bytes of source whose reports one task, and one chunk of it, reads.
SHARE_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024
READ, CELLS = 0, 1


class CheckerReport(Struct, frozen=True, array_like=True):
    """A report on a repository: where it is, and the tree of links that the tool has seen."""

    place: RepositoryRoot
    folder: str
    tree: str
    # Of the tool and of our reading.
    version: str


class TypesPartition(Struct, frozen=True, tag=True):
    """Files of one task, each with the number of its report."""

    reports: list[CheckerReport]
    files: list[tuple[int, Entry]]
    # Of the first report as a whole; then there are no files.
    problems: tuple[Problem, ...] = ()


# By path.
Modules: TypeAlias = Mapping[str, Sequence[Module]]


def partition_reports(reports: Sequence[tuple[CheckerReport, Sequence[Entry]]]) -> list[TypesPartition]:
    """The shares of these reports, each with the files that were shown to the tool."""
    numbered = [(number, entry) for number, (_, entries) in enumerate(reports) for entry in entries]
    numbered.sort(key=lambda file: file_id(reports[file[0]][0].place.repo_id, file[1].path))
    whole = TypesPartition([report for report, _ in reports], numbered)
    return list(_cut(whole, SHARE_BYTES)) if numbered else []


def failed_report(place: RepositoryRoot, *problems: Problem) -> TypesPartition:
    """The share of a report that could not be had: only its failures."""
    return TypesPartition([CheckerReport(place, "", "", "")], [], problems)


def report_chunks(share: TypesPartition) -> Iterator[TypesPartition]:
    """The share in pieces whose rows fit into memory."""
    return _cut(share, CHUNK_BYTES)


def _cut(share: TypesPartition, size: int) -> Iterator[TypesPartition]:
    part: list[tuple[int, Entry]] = []
    filled = 0
    for file in share.files:
        if part and filled + file_cost(file[1]) > size:
            yield structs.replace(share, files=part)
            part, filled = [], 0
        part.append(file)
        filled += file_cost(file[1])
    yield structs.replace(share, files=part)


def extract_types(
    share: TypesPartition, options: ExtractOptions, silenced: SkippedSteps, enter: Callable[[int, int], None]
) -> Iterator[Rows]:
    """The rows of a chunk: of each file, or of what failed for all of them."""
    if share.problems:
        place = {"repo_id": share.reports[0].place.repo_id, "path": "."}
        yield _rows(place, None, share.problems)
    if share.files:
        enter(0, READ)
        read = _readings(share, silenced, options)
        opened = {number: _open(share.reports[number]) for number in {number for number, _ in share.files}}
    for file, (number, entry) in enumerate(share.files):
        report, raw = share.reports[number], read.get((number, entry.path))
        repo_id = report.place.repo_id
        place = {"repo_id": repo_id, "file_id": file_id(repo_id, entry.path), "path": entry.path}
        enter(file, CELLS)
        source = None if raw is None else decode(entry.path, raw)
        if raw is None or not isinstance(source, Source):
            # That it cannot be read is told where files are.
            yield _rows(place, None, tuple(dict.fromkeys(silenced.get(file, {}).values())))
            continue
        place["file_sha256"] = sha256(raw).hexdigest()
        dead = silenced.get(file, {})
        said = ExtractorResult({}, tuple(dict.fromkeys(dead.values()))) if dead else _said(opened[number], source)
        row = extractor_row(TYPES, {**place, "witness_version": report.version}, said)
        yield _rows(place, row, said.problems)


class _Opened(Struct, frozen=True):
    """A report that is being read."""

    names: Names
    modules: Modules


def _open(report: CheckerReport) -> _Opened | Problem:
    folder = Path(report.folder)
    project = read_part(folder / PROJECT, Project)
    if isinstance(project, Problem):
        return project
    names = Names(folder, Path(report.tree), project.modules)
    found: dict[str, list[Module]] = {}
    for module in sorted(project.modules.values(), key=lambda each: each.module_name):
        path = names.path_of(module)
        if path is not None:
            found.setdefault(path, []).append(module)
    return _Opened(names, found)


def _said(opened: _Opened | Problem, source: Source) -> ExtractorResult:
    if isinstance(opened, Problem):
        return ExtractorResult({}, (opened,))
    return module_cells(opened.names, opened.modules.get(source.path, ()), source)


def _readings(share: TypesPartition, silenced: SkippedSteps, options: ExtractOptions) -> dict[tuple[int, str], bytes]:
    """The bytes of the files, by report and path."""
    wanted: dict[int, list[Entry]] = {}
    for file, (number, entry) in enumerate(share.files):
        if READ not in silenced.get(file, {}):
            wanted.setdefault(number, []).append(entry)
    found = {}
    for number, entries in wanted.items():
        place = share.reports[number].place
        for reading in read_entries(place.kind, place.root, entries, options):
            if reading.raw is not None:
                found[number, reading.entry.path] = reading.raw
    return found


def _rows(place: Rows, row: Rows | None, problems: Sequence[Problem]) -> Rows:
    failures = FailureRows()
    failures.add(TYPES, problems)
    return {"place": place, TYPES: row, FAILURES: failures.cells()}
