"""The manifest: its structs are the catalogue's columns, rows come back as they were, in order, once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from msgspec import Struct, structs, to_builtins

from codeanatomy import catalog
from codeanatomy.catalog.spec import Column
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.write.small_rows import append_small
from codeanatomy.errors import CommitConflict, ConstraintViolation
from codeanatomy.lake.lease import LeaseRow
from codeanatomy.lake.manifest import (
    ChangeWindow,
    InputPin,
    OutputPin,
    RunManifest,
    append_manifest,
    manifest_version,
    read_manifest,
)

NOON = datetime(2026, 3, 4, 12, 0, 0, 123456, tzinfo=UTC)


def run(run_id: str = "run-1", repo_id: str = "one", minutes: int = 0, **cells: Any) -> RunManifest:
    began = NOON + timedelta(minutes=minutes)
    usual: dict[str, Any] = {
        "status": "succeeded",
        "started_at": began,
        "finished_at": began + timedelta(seconds=5),
        "profile_hash": "p" * 32,
    }
    return RunManifest(run_id=run_id, repo_id=repo_id, **(usual | cells))


def shape(struct: type[Struct]) -> dict[str, Any]:
    """Names of the fields, with those of the structs they hold lists of."""
    return {field.name: _items(field.type) for field in structs.fields(struct)}


def _items(kind: Any) -> Any:
    inner = [each for each in get_args(kind) if isinstance(each, type) and issubclass(each, Struct)]
    return shape(inner[0]) if get_origin(kind) is tuple and inner else None


def columns(given: tuple[Column, ...]) -> dict[str, Any]:
    return {column.name: columns(column.fields) if column.fields else None for column in given}


@pytest.mark.parametrize(("struct", "table"), [(RunManifest, "run_manifest"), (LeaseRow, "run_lease")])
def test_fields_are_the_columns(struct: type[Struct], table: str) -> None:
    assert shape(struct) == columns(catalog.table(table).columns)
    assert list(shape(struct)) == list(catalog.table(table).column_names)
    must = {field.name for field in structs.fields(struct) if field.required}
    assert must >= {c.name for c in catalog.table(table).columns if not c.nullable} - {"mode"}


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    rows = [
        run(
            repo_root="~/one",
            git_commit="c" * 40,
            source_digest="d" * 22,
            witness_versions={"ast": "3.11", "libcst": "1.8"},
            plan_fingerprints={"extract": "e" * 22},
            input_pins=(InputPin("ast_files_v1", 3),),
            output_pins=(OutputPin("ast_files_v1", 4, 18, 1, 2, ("a", "b")), OutputPin("cpg_nodes", 0)),
            row_counts={"ast_files_v1": 18},
            change_windows=(ChangeWindow("ast_files_v1", 3, 4),),
            artifact_ids={"extract": "run-1/extract"},
            error_counts={"ast_files_v1": 0},
            step_ms={"extract": 1200},
            trace_id="t",
            engine="spark",
            master="local[2]",
            session_kind="own",
            spark_version="4.2.0",
            delta_version="4.4.0",
        ),
        run(repo_id="two", status="failed", error="no such folder", mode="incremental"),
    ]
    assert append_manifest(str(tmp_path), rows, Commit("run-1"), after=-1) == 0
    assert read_manifest(str(tmp_path)) == rows


def test_rows_from_before_ids_had_a_version_are_of_the_first(tmp_path: Path) -> None:
    root, table = str(tmp_path), catalog.table("run_manifest")
    older = structs.replace(table, columns=tuple(each for each in table.columns if each.name != "id_version"))
    cells = to_builtins(run(), builtin_types=(datetime,))
    del cells["id_version"]
    append_small(root, older, [cells], Commit("run-1"))
    assert [row.id_version for row in read_manifest(root)] == [1]
    append_manifest(
        root, [run("run-2", minutes=1, id_version=2)], Commit("run-2"), after=manifest_version(root)
    )
    assert [row.id_version for row in read_manifest(root)] == [1, 2]


def test_rows_are_in_the_order_of_their_runs(tmp_path: Path) -> None:
    root = str(tmp_path)
    append_manifest(root, [run("run-b", minutes=5)], Commit("run-b"), after=None)
    append_manifest(root, [run("run-c", minutes=9)], Commit("run-c"), after=None)
    append_manifest(root, [run("run-z", minutes=1), run("run-a", minutes=5)], Commit("run-z"), after=None)
    assert [row.run_id for row in read_manifest(root)] == ["run-z", "run-a", "run-b", "run-c"]


def test_a_lake_without_runs(tmp_path: Path) -> None:
    assert read_manifest(str(tmp_path)) == []
    assert manifest_version(str(tmp_path)) == -1


def test_publication_is_a_compare_and_set(tmp_path: Path) -> None:
    root = str(tmp_path)
    version = append_manifest(root, [run()], Commit("run-1"), after=manifest_version(root))
    assert version == manifest_version(root)
    append_manifest(root, [run("run-2")], Commit("run-2"), after=version)
    with pytest.raises(CommitConflict):
        append_manifest(root, [run("run-3")], Commit("run-3"), after=version)
    # A run that does not know whether it has published may try again.
    assert append_manifest(root, [run("run-2")], Commit("run-2"), after=version) == version + 1
    assert [row.run_id for row in read_manifest(root)] == ["run-1", "run-2"]


def test_a_failed_run_says_why(tmp_path: Path) -> None:
    with pytest.raises(ConstraintViolation, match="failed_has_error"):
        append_manifest(str(tmp_path), [run(status="failed")], Commit("run-1"), after=None)
    assert manifest_version(str(tmp_path)) == -1
