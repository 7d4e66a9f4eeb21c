"""Write lakes of a few rows, run by run. No JVM.

    lake = SmallLake(tmp_path)
    lake.publish("one", {"a": {}}, calls=[("a", "m.f", "m.g")])     # a run of the repository a, and its rows
    lake.fail("two", {"a": "disk full"})

The first run ends at 12:00, the next a minute later, and so on.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.lake.manifest import OutputPin, RunManifest, append_manifest

HASH = "0123456789abcdef" * 2
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RELATIONS, ERRORS = "relations_v1", "extract_error_artifacts"


class SmallLake:
    """A lake whose tables are written by hand."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.count = 0

    def copied(self, root: Path) -> SmallLake:
        """Copy the lake to another folder."""
        made = SmallLake(shutil.copytree(self.root, root))
        made.count = self.count
        return made

    def publish(
        self,
        run_id: str,
        repositories: Mapping[str, Mapping[str, Any]],
        *,
        calls: Sequence[tuple[str, str, str]] = (),
        errors: Sequence[tuple[str, str, str]] = (),
        failed: Mapping[str, str] | None = None,
    ) -> None:
        """Publish a run that leaves the tables with these calls and adds these failures.

        A call is (repository, caller, callee), a failure (repository, path, message).
        """
        self.write(RELATIONS, [_call(*call) for call in calls], "overwrite")
        self.write(ERRORS, [_error(run_id, *error) for error in errors], "append")
        pins = tuple(OutputPin(name, self.version(name)) for name in (ERRORS, RELATIONS))
        steps = {"extract": HASH, "relate": HASH}
        rows = [
            self.row(
                run_id, name, **{"output_pins": pins, "plan_fingerprints": steps, **more}, status="succeeded"
            )
            for name, more in repositories.items()
        ]
        rows += [self.row(run_id, name, status="failed", error=why) for name, why in (failed or {}).items()]
        self.record(rows)

    def fail(self, run_id: str, errors: Mapping[str, str], status: str = "failed") -> None:
        """Record a run that publishes nothing."""
        self.record([self.row(run_id, name, status=status, error=why) for name, why in errors.items()])

    def row(self, run_id: str, repo_id: str, **more: Any) -> RunManifest:
        """Return a row of the manifest; the run took half a minute."""
        finished = NOON + self.count * MINUTE
        facts = {"started_at": finished - MINUTE / 2, "finished_at": finished, "profile_hash": HASH}
        return RunManifest(run_id=run_id, repo_id=repo_id, **{**facts, **more})

    def record(self, rows: Sequence[RunManifest]) -> None:
        """Record the end of a run."""
        append_manifest(str(self.root), rows, Commit(rows[0].run_id), after=None)
        self.count += 1

    def write(self, name: str, rows: Sequence[Mapping[str, Any]], mode: Any) -> None:
        """Write rows into a table, unchecked."""
        data = pa.Table.from_pylist(list(rows), arrow_schema(catalog.table(name)))
        write_deltalake(str(self.place(name)), data, mode=mode)

    def place(self, name: str) -> Path:
        return self.root / catalog.table(name).path

    def version(self, name: str) -> int:
        return int(DeltaTable(str(self.place(name))).version())


def _call(repo_id: str, caller: str, callee: str) -> dict[str, Any]:
    return {"repo_id": repo_id, "relation_kind": "CALL_GRAPH", "src_qname": caller, "dst_qname": callee}


def _error(run_id: str, repo_id: str, path: str, message: str) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "repo_id": repo_id,
        "extractor_name": "ast_files_v1",
        "path": path,
        "error_index": 0,
        "error_type": "SyntaxError",
        "message": message,
    }
