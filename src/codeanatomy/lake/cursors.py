"""Keep the position of each step in the change feeds that it reads, by repository, in `cdf_cursors`.

    read_cursors("lake", {"shop": "run-7"})["shop"]["graph"]
    StepCursor(rules="9f31...", versions={"repo_files_v1": 12, "relations_v1": 9, ...})

A step has processed all changes of a table up to the version of its cursor, with the rules of this
fingerprint; what it redoes next is what the feed has after it. The rows of a run are written just before its
manifest rows and count only if that run is published, so cursors move with the publication: those of a run
that died in between are never read. A repository's cursors are those of its newest manifest row.

Tests: `tests/unit/lake/test_cursors.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from codeanatomy import catalog
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.light import light_table
from codeanatomy.errors import StorageFailure, TableMissing
from codeanatomy.logs import Log

CURSORS = "cdf_cursors"


class StepCursor(Struct, frozen=True):
    """The position of a step in its feeds."""

    # Fingerprint of the rules with which it has processed everything up to here.
    rules: str
    # Last version by table.
    versions: dict[str, int]


# By step.
Cursors = dict[str, StepCursor]


def read_cursors(root: str, runs: Mapping[str, str]) -> dict[str, Cursors]:
    """Read the cursors of repositories, given the newest published run of each."""
    columns = ("dataset", "consumer", "repo_id", "last_version", "run_id", "rule_fingerprint")
    try:
        rows = light_table(root, CURSORS, columns).to_pylist()
    except TableMissing:
        return {}
    except StorageFailure as problem:
        # Without cursors steps run in full.
        Log().warning(f"the cursors of steps cannot be read: {problem.message}")
        return {}
    cursors: dict[str, Cursors] = {}
    for row in rows:
        if runs.get(row["repo_id"]) == row["run_id"]:
            steps = cursors.setdefault(row["repo_id"], {})
            cursor = steps.setdefault(row["consumer"], StepCursor(row["rule_fingerprint"], {}))
            cursor.versions[row["dataset"]] = row["last_version"]
    return cursors


def append_cursors(root: str, cursors: Mapping[str, Cursors], commit: Commit) -> None:
    """Write the cursors of a run, which count as soon as its manifest rows are there."""
    from codeanatomy.delta.write.small_rows import append_small

    rows = [
        {
            "dataset": name,
            "consumer": step,
            "repo_id": repo_id,
            "last_version": version,
            "run_id": commit.run_id,
            "rule_fingerprint": cursor.rules,
        }
        for repo_id, steps in cursors.items()
        for step, cursor in steps.items()
        for name, version in cursor.versions.items()
    ]
    if rows:
        append_small(root, catalog.table(CURSORS), rows, commit)


def moved_cursors(cursors: Cursors, before: Mapping[str, int], after: Mapping[str, int]) -> Cursors:
    """Return the cursors of a state that is published again with some tables at later versions.

    A cursor at the version that was published moves to the new one; one that was behind stays.

    >>> behind = {"graph": StepCursor("9f", {"files": 4, "relations": 2})}
    >>> moved_cursors(behind, before={"files": 4, "relations": 3}, after={"files": 7, "relations": 5})
    {'graph': StepCursor(rules='9f', versions={'files': 7, 'relations': 2})}
    """
    moved: Cursors = {}
    for step, cursor in cursors.items():
        versions = {
            name: after.get(name, version) if before.get(name) == version else version
            for name, version in cursor.versions.items()
        }
        moved[step] = StepCursor(cursor.rules, versions)
    return moved
