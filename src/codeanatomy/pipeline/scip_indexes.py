"""Collect the SCIP indexes of a run, given by the user or made by scip-python, and cut them into tasks.

    --scip off                  no index; rows of older ones go away with this build
    --scip PATH                 an index of the one repository
    --scip NAME=PATH            ... of several, each named
    --scip auto                 scip-python makes one for each repository, where it is installed

An index that is missing, damaged or cannot be made is a failure of `scip_index_v1`, and the build goes on.

Tests: `tests/spark/test_scip_build.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.errors import UnknownName, UsageError
from codeanatomy.extract.evidence import Problem
from codeanatomy.extract.partitions import RepositoryRoot
from codeanatomy.extract.scip_index import ScipPartition, failed_index, partition_index
from codeanatomy.extract.tools.external_tool import sources_folder
from codeanatomy.extract.tools.scip_python import index_with_scip_python
from codeanatomy.pipeline.context import Run
from codeanatomy.plan.build_request import ScipChoice
from codeanatomy.plan.repositories import NAMED, Repository
from codeanatomy.sources.listing import Listing

INDEX_NAME = "index.scip"


def scip_choice(values: Sequence[str], repositories: Sequence[Repository]) -> ScipChoice:
    """Parse the values of --scip."""
    names = [repository.repo_id for repository in repositories]
    given: dict[str, Path] = {}
    auto = False
    for value in values:
        named = NAMED.fullmatch(value)
        if value in ("auto", "off"):
            auto = value == "auto"
        elif named is not None and not Path(value).exists():
            if named[1] not in names:
                raise UnknownName("repository", named[1], names)
            given[named[1]] = Path(named[2])
        elif len(names) > 1:
            raise UsageError(f"--scip {value} does not name its repository", "write --scip NAME=PATH")
        else:
            given[names[0]] = Path(value)
    for path in given.values():
        if not path.is_file():
            raise UsageError(f"there is no SCIP index at {path}", "name a file, or write --scip auto")
    return ScipChoice(auto, given)


@contextmanager
def scip_tasks(run: Run, repositories: Mapping[str, Listing]) -> Iterator[list[ScipPartition]]:
    """Yield the tasks that read the indexes; generated indexes exist until the context ends."""
    with tempfile.TemporaryDirectory(prefix="codeanatomy-scip-") as name:
        tasks: list[ScipPartition] = []
        with run.timed("scip"):
            for number, (repo_id, listing) in enumerate(repositories.items()):
                if repo_id in run.request.scip.given:
                    tasks += partition_index(repo_id, listing, run.request.scip.given[repo_id])
                elif run.request.scip.auto:
                    run.progress.update("scip", f"scip-python indexes {repo_id}")
                    tasks += _made(repo_id, listing, Path(name) / str(number), run.settings.extract)
        yield tasks


def _made(repo_id: str, listing: Listing, work: Path, options: ExtractOptions) -> list[ScipPartition]:
    try:
        return _indexed(repo_id, listing, work, options)
    except OSError as problem:
        failure = Problem("error", "index", "unreadable", str(problem))
        return [failed_index(RepositoryRoot(repo_id, listing.kind, listing.root), INDEX_NAME, failure)]


def _indexed(repo_id: str, listing: Listing, work: Path, options: ExtractOptions) -> list[ScipPartition]:
    work.mkdir()
    sources = [entry for entry in listing.entries if entry.skipped_reason is None]
    folder = sources_folder(listing, sources, work / "unpacked", options)
    output = work / INDEX_NAME
    paths = [entry.path for entry in sources]
    made = index_with_scip_python(folder, paths, output, repo_id, options.scip_seconds)
    if not output.exists():
        return [failed_index(RepositoryRoot(repo_id, listing.kind, listing.root), INDEX_NAME, *made.problems)]
    first, *others = partition_index(repo_id, listing, output)
    return [structs.replace(first, problems=(*made.problems, *first.problems)), *others]
