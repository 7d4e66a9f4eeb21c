"""Run the type checker on the repositories of a run, where it is installed, and cut its reports into tasks.

    --types off      no report; rows of older ones go away with this build
    --types auto     pyrefly checks each repository, where it is installed; else nothing

A report that cannot be made is a failure of `type_checker_files_v1`, and the build goes on.

Tests: `tests/unit/extract/test_pyrefly.py`, `tests/spark/test_pyrefly_build.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import Problem
from codeanatomy.extract.partitions import RepositoryRoot
from codeanatomy.extract.tools.external_tool import is_source, sources_folder
from codeanatomy.extract.tools.pyrefly import check_with_pyrefly, find_pyrefly
from codeanatomy.extract.type_checker_files import (
    RULES,
    CheckerReport,
    TypesPartition,
    failed_report,
    partition_reports,
)
from codeanatomy.pipeline.context import Run
from codeanatomy.sources.listing import Entry, Listing


@contextmanager
def type_tasks(run: Run, repositories: Mapping[str, Listing]) -> Iterator[list[TypesPartition]]:
    """Yield the tasks that read the reports; reports exist until the context ends."""
    tool = find_pyrefly() if run.request.types == "auto" else None
    if tool is None:
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="codeanatomy-types-") as name:
        made: list[tuple[CheckerReport, list[Entry]]] = []
        failed: list[TypesPartition] = []
        with run.timed("types"):
            for number, (repo_id, listing) in enumerate(repositories.items()):
                if not any(
                    entry.skipped_reason is None and is_source(entry.path) for entry in listing.entries
                ):
                    continue
                run.progress.update("types", f"pyrefly checks {repo_id}")
                work = Path(name).resolve() / str(number)
                report = _checked(tool, repo_id, listing, work, run.settings.extract)
                if isinstance(report, TypesPartition):
                    failed.append(report)
                else:
                    made.append(report)
        yield [*failed, *partition_reports(made)]


def _checked(
    tool: Path, repo_id: str, listing: Listing, work: Path, options: ExtractOptions
) -> tuple[CheckerReport, list[Entry]] | TypesPartition:
    """Return the report on a repository with the files it covers, or why there is none."""
    place = RepositoryRoot(repo_id, listing.kind, listing.root)
    entries = [entry for entry in listing.entries if entry.skipped_reason is None and is_source(entry.path)]
    try:
        work.mkdir()
        folder = sources_folder(listing, entries, work / "unpacked", options)
        paths = [entry.path for entry in entries]
        checked = check_with_pyrefly(tool, folder, paths, work, options.types_seconds)
    except OSError as problem:
        return failed_report(place, Problem("error", "check", "unreadable", str(problem)))
    if checked.problems:
        return failed_report(place, *checked.problems)
    version = f"{checked.version}, {RULES}"
    return CheckerReport(place, str(work / "report"), str(work / "tree"), version), entries
