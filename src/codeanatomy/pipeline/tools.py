"""Decide which repositories the type checker and the SCIP indexer run on: one task each, beside the files.

    --types off      no report; rows of older ones go away with this build
    --types auto     pyrefly checks each repository with sources, where it is installed; else nothing
    --scip PATH      the index at PATH is read; PATH has to be readable where the task is executed
    --scip auto      scip-python makes an index of each repository

    tool_tasks(listings, "auto", ScipChoice())  # [CheckerTask(django), CheckerTask(requests)], largest first

Tests: `tests/unit/extract/test_tool_tasks.py`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from codeanatomy.config import SCIP_VARIABLE
from codeanatomy.extract.partitions import RepositoryRoot, file_cost
from codeanatomy.extract.tools.external_tool import is_source
from codeanatomy.extract.tools.tool_tasks import CheckerTask, IndexTask
from codeanatomy.plan.build_request import ScipChoice, TypesChoice
from codeanatomy.sources.listing import Listing, encode_location


def tool_tasks(
    listings: Mapping[str, Listing],
    types: TypesChoice,
    scip: ScipChoice,
    environment: Mapping[str, str] = os.environ,
) -> list[CheckerTask | IndexTask]:
    """Return the tasks of the tools for repositories, the largest first, because they take longest."""
    command = scip_command(environment)
    tasks: list[CheckerTask | IndexTask] = []
    for repo_id, listing in listings.items():
        root = RepositoryRoot(repo_id, listing.kind, listing.root, listing.package)
        entries = [entry for entry in listing.entries if entry.skipped_reason is None]
        if repo_id in scip.given:
            tasks.append(IndexTask(root, entries, given=encode_location(_absolute(scip.given[repo_id]))))
        elif scip.auto:
            tasks.append(IndexTask(root, entries, command=command))
        sources = [entry for entry in entries if is_source(entry.path)]
        if types == "auto" and sources:
            tasks.append(CheckerTask(root, sources))
    return sorted(tasks, key=lambda task: -sum(map(file_cost, task.entries)))


def scip_command(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the user's command of scip-python, for processes with another working folder."""
    command = environment.get(SCIP_VARIABLE)
    return _absolute(Path(command)) if command and os.sep in command else command


def _absolute(path: Path) -> str:
    return str(path.absolute())
