"""Plans: which steps run for which repositories, and why; what is undone and what is gone on with."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from msgspec import structs

from codeanatomy import catalog, node_ids
from codeanatomy.cli.build import plan_graph, plan_lines
from codeanatomy.config import load_settings
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.read.open_table import location
from codeanatomy.errors import ContractError, StorageFailure, UsageError
from codeanatomy.lake.lease import JournalPin, JournalStep, LeaseRow
from codeanatomy.lake.manifest import OutputPin, RunManifest, append_manifest
from codeanatomy.node_ids import ID_VERSION
from codeanatomy.pipeline.context import Run
from codeanatomy.plan import steps as plan_steps
from codeanatomy.plan.run_plan import (
    LakeState,
    Plan,
    PlanRequest,
    Undo,
    lake_state,
    plan_run,
    refuse_features,
    written_tables,
)
from codeanatomy.plan.steps import BuildInputs, result_settings, rule_fingerprints, steps_of

NOW = datetime(2026, 5, 1, tzinfo=UTC)
TABLES = written_tables(catalog.TABLES)
EMPTY = LakeState(None, None, {}, {}, {}, frozenset())


def request(
    lake: str = "lake",
    *,
    source: str = "s1" * 16,
    profile: str = "default",
    until: str | None = None,
    **more: str,
) -> PlanRequest:
    settings = load_settings((), env={}, start=None)
    told = BuildInputs(result_settings(settings, profile), {"ast_files_v1": "ast 1"})  # type: ignore[arg-type]
    sources = {
        repo_id: {"source": digest, "scip": "off"} for repo_id, digest in {"one": source, **more}.items()
    }
    return PlanRequest(lake, catalog.TABLES, until, told, sources, {})


def published(asked: PlanRequest, version: int = 0) -> LakeState:
    """The lake after a run of a request."""
    plan = plan_run(asked, EMPTY, None)
    prints = {step.name: step.fingerprints for step in plan.steps}
    rows = {
        repo_id: RunManifest(
            run_id="run-1",
            repo_id=repo_id,
            source_digest=sources["source"],
            status="succeeded",
            started_at=NOW,
            finished_at=NOW,
            profile_hash="p" * 32,
            settings_hash=asked.build_inputs.settings_hash,
            id_version=ID_VERSION,
            witness_versions=asked.build_inputs.witness_versions,
            plan_fingerprints={name: found[repo_id] for name, found in prints.items()},
            rule_fingerprints=rule_fingerprints(
                steps_of(asked.tables, asked.until), asked.build_inputs, asked.tables
            ),
        )
        for repo_id, sources in asked.source_inputs.items()
    }
    outputs = {name: OutputPin(name, version) for name in TABLES}
    return LakeState("run-1", NOW, outputs, rows, dict.fromkeys(TABLES, version), frozenset())


def journal(asked: PlanRequest, base: LakeState, *steps: str, version: int = 1) -> LeaseRow:
    """The lease that a run of a request left when it died after these steps."""
    plan = plan_run(asked, base, None)
    return LeaseRow(
        run_id="run-2",
        state="held",
        host="h",
        process="gone",
        repo_ids=tuple(asked.source_inputs),
        acquired_at=NOW,
        heartbeat_at=NOW,
        ttl_seconds=60,
        base_run_id=base.run_id,
        steps=tuple(
            JournalStep(name, repo_id, plan.step(name).fingerprints[repo_id])
            for name in steps
            for repo_id in plan.step(name).runs_for
        ),
        pins=tuple(JournalPin(name, table, version) for name in steps for table in plan.step(name).outputs),
    )


def actions(plan: Plan, repo_id: str = "one") -> dict[str, str]:
    return {
        step.name: each.action for step in plan.steps for each in step.repositories if each.repo_id == repo_id
    }


def reasons(plan: Plan, repo_id: str = "one") -> dict[str, str]:
    return {
        step.name: each.why for step in plan.steps for each in step.repositories if each.repo_id == repo_id
    }


def test_everything_runs_in_a_new_lake() -> None:
    plan = plan_run(request(), EMPTY, None)
    assert set(actions(plan).values()) == {"run"}
    assert plan.step("graph").inputs["relations_v1"] is None
    assert plan.base_run_id is None
    assert not plan.nothing_to_do


def test_nothing_runs_twice() -> None:
    base = published(request())
    plan = plan_run(request(), base, None)
    assert plan.nothing_to_do
    assert reasons(plan)["extract"] == "unchanged since run run-1"
    assert plan.step("graph").inputs["relations_v1"] == 0
    assert plan.pins == dict.fromkeys(TABLES, 0)


def test_a_changed_source_runs_everything_of_that_repository_alone() -> None:
    base = published(request(two="t1"))
    plan = plan_run(request(source="s2", two="t1"), base, None)
    assert set(actions(plan).values()) == {"run"}
    assert set(actions(plan, "two").values()) == {"skip"}
    assert reasons(plan) == {
        "extract": "the source changed",
        "normalize": "extract changed",
        "relate": "extract changed",
        "graph": "extract, normalize and relate changed",
    }
    assert plan.step("extract").runs_for == ("one",)


def test_a_reason_names_all_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    base = published(request())
    digest = plan_steps.code_digest
    monkeypatch.setattr(plan_steps, "code_digest", lambda step: "new" if step != "relate" else digest(step))
    alone = reasons(plan_run(request(), base, None))
    assert alone == {
        "extract": "its code changed",
        "normalize": "extract and its code changed",
        "relate": "extract changed",
        "graph": "extract, normalize, relate and its code changed",
    }
    both = reasons(plan_run(request(source="s2", profile="full"), base, None))
    assert both["extract"] == "the source as it is read and its code changed"
    assert both["graph"] == "extract, normalize, relate, its code and settings changed"


def test_a_reason_names_tools_and_damage() -> None:
    base, asked = published(request()), request(source="s2")
    tools = structs.replace(asked.build_inputs, witness_versions={"ast_files_v1": "ast 2"})
    indexed = {"one": {**asked.source_inputs["one"], "scip": "auto"}}
    asked = structs.replace(asked, build_inputs=tools, source_inputs=indexed)
    why = reasons(plan_run(asked, base, None))["extract"]
    assert why == "the source as it is read, the SCIP index or tool and versions of the witnesses changed"
    unchanged = structs.replace(
        request(), source_inputs={"one": {**request().source_inputs["one"], "scip": "x"}}
    )
    assert reasons(plan_run(unchanged, base, None))["extract"] == "the SCIP index or tool changed"
    newest = {name: version for name, version in base.newest.items() if name != "cpg_edges"}
    damaged = structs.replace(base, newest=newest, damaged=frozenset({"cpg_edges"}))
    plan = plan_run(request(profile="full"), damaged, None)
    assert reasons(plan)["graph"] == "cpg_edges is damaged or missing, and settings changed"
    older = structs.replace(base.repositories["one"], rule_fingerprints={"extract": "0f" * 16})
    plan = plan_run(request(source="s2"), structs.replace(base, repositories={"one": older}), None)
    assert reasons(plan)["extract"].endswith("and its rules changed")


def test_features_that_a_build_does_not_write_are_refused() -> None:
    nodes = catalog.table("cpg_nodes")
    write = structs.replace(nodes.write, enable_features=("row_tracking",))
    tables = [structs.replace(each, write=write) if each is nodes else each for each in catalog.TABLES]
    with pytest.raises(
        UsageError, match="cpg_nodes would have features that only Spark's writer has"
    ) as refused:
        refuse_features("lake", tables, None)
    assert "remove tables.cpg_nodes.write.enable_features" in refused.value.hint
    # Of steps that run.
    refuse_features("lake", tables, "relate")
    refuse_features("lake", catalog.TABLES, None)


def test_a_setting_runs_what_it_can_change() -> None:
    plan = plan_run(request(profile="full"), published(request()), None)
    assert actions(plan) == {"extract": "skip", "normalize": "skip", "relate": "skip", "graph": "run"}
    assert reasons(plan)["graph"] == "settings changed"


def test_ids_of_another_version_are_all_made_again() -> None:
    base = published(request(two="t1"))
    older = {name: structs.replace(row, id_version=1) for name, row in base.repositories.items()}
    lake = structs.replace(base, repositories=older)
    plan = plan_run(request(source="s2", two="t1"), lake, None)
    for repo_id in ("one", "two"):
        assert set(actions(plan, repo_id).values()) == {"run"}
        assert set(reasons(plan, repo_id).values()) == {
            f"its ids are of version 1, this release makes version {ID_VERSION}: all steps run"
        }
    assert any("ids are of version 1" in line for line in plan_lines(plan))
    with pytest.raises(ContractError, match="the ids of two are of version 1") as refused:
        plan_run(request(), lake, None)
    assert refused.value.hint == "build one, two in one run, or build into a new lake"


def test_the_version_of_ids_is_part_of_every_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    base, changed = published(request()), request(source="s2")
    done = journal(changed, base, "extract")
    left = structs.replace(base, newest={**base.newest, **{pin.table_name: pin.version for pin in done.pins}})
    before = plan_run(changed, left, done)
    assert before.resumes == "run-2"
    monkeypatch.setattr(node_ids, "ID_VERSION", ID_VERSION + 1)
    after = plan_run(changed, left, done)
    assert after.resumes is None, "no step of a run with other ids is resumed"
    assert all(step.fingerprints != after.step(step.name).fingerprints for step in before.steps)


def test_a_step_that_was_not_asked_for_before_runs() -> None:
    base = published(request(until="normalize"))
    plan = plan_run(request(), base, None)
    assert actions(plan) == {"extract": "skip", "normalize": "skip", "relate": "run", "graph": "run"}
    assert reasons(plan)["relate"] == "last built without it"


def test_a_table_that_is_gone_is_made_again() -> None:
    base = published(request())
    newest = {name: version for name, version in base.newest.items() if name != "cpg_edges"}
    state = structs.replace(base, newest=newest, damaged=frozenset({"cpg_edges"}))
    plan = plan_run(request(), state, None)
    assert actions(plan) == {"extract": "skip", "normalize": "skip", "relate": "skip", "graph": "run"}
    assert reasons(plan)["graph"] == "cpg_edges is damaged or missing"


def test_what_a_dead_run_wrote_is_undone() -> None:
    base = published(request())
    left = structs.replace(base, newest={**base.newest, "ast_files_v1": 3})
    plan = plan_run(request(), left, None)
    assert plan.undo == (Undo("ast_files_v1", 3, 0),)
    assert set(actions(plan).values()) == {"skip"}
    assert not plan.nothing_to_do


def test_what_a_dead_run_finished_is_kept() -> None:
    base, changed = published(request()), request(source="s2")
    before = journal(changed, base, "extract", "normalize")
    written = {
        name: 1
        for step in ("extract", "normalize")
        for name in plan_run(changed, base, None).step(step).outputs
    }
    # Relate had written its diagnostics, and not finished.
    dead = {"relate_diagnostics_v1": 1, "cpg_nodes": 1}
    left = structs.replace(base, newest={**base.newest, **written, **dead})
    plan = plan_run(changed, left, before)
    assert actions(plan) == {"extract": "resume", "normalize": "resume", "relate": "run", "graph": "run"}
    assert plan.resumes == "run-2"
    assert set(plan.undo) == {Undo("relate_diagnostics_v1", 1, 0), Undo("cpg_nodes", 1, 0)}
    assert plan.pins["ast_files_v1"] == 1
    assert plan.pins["cpg_edges"] == 0


def test_the_journal_counts_what_a_step_has_written_alone() -> None:
    plan = plan_run(request(), EMPTY, None)
    nothing: Any = None
    run = Run(
        "run-2",
        nothing,
        nothing,
        nothing,
        nothing,
        nothing,
        plan,
        nothing,
        nothing,
        EMPTY,
        dict.fromkeys(TABLES, 0),
        lambda: None,
    )
    run.count({"one": {"relations_v1": 5, "type_nodes_v1": 2, "diagnostics_norm_v1": 3}})
    assert run.step_done("normalize").rows == {"one": {"type_nodes_v1": 2, "diagnostics_norm_v1": 3}}
    done = run.step_done("relate")
    assert done.rows == {"one": {"relations_v1": 5}}
    assert set(done.pins) == {"relations_v1", "relate_programs_v1", "relate_diagnostics_v1"}


@pytest.mark.parametrize(
    "case", ["other source", "other repository", "published since", "journal of the published"]
)
def test_what_a_dead_run_finished_is_undone_if_it_does_not_fit(case: str) -> None:
    base, changed = published(request()), request(source="s2", two="t1")
    before = journal(changed, base, "extract")
    now = changed
    if case == "other source":
        now = request(source="s3", two="t1")
    elif case == "other repository":
        # What the dead run has written of repository two would be published half done.
        now = request(source="s2")
    elif case == "published since":
        before = structs.replace(before, base_run_id="run-0")
    else:
        before = structs.replace(before, run_id="run-1")
    left = structs.replace(base, newest={**base.newest, "ast_files_v1": 1})
    plan = plan_run(now, left, before)
    assert plan.resumes is None
    assert actions(plan)["extract"] == "run"
    assert plan.undo == (Undo("ast_files_v1", 1, 0),)


def test_a_lake_that_has_lost_its_manifest_is_left_alone() -> None:
    base = published(request())
    left = structs.replace(EMPTY, newest=base.newest)
    last = structs.replace(journal(request(source="s2"), base, "extract"), base_run_id="run-1")
    with pytest.raises(StorageFailure, match="has lost its manifest: run run-1 was published"):
        plan_run(request(), left, last)


def test_views_tell_everything(tmp_path: Path) -> None:
    base = published(request())
    left = structs.replace(base, newest={**base.newest, "ast_files_v1": 3})
    plan = structs.replace(
        plan_run(request(profile="full"), left, None), failed={"bad\x1b": 'no "such" folder'}
    )
    text = "\n".join(plan_lines(plan))
    assert "ast_files_v1: from v3 back to v0" in text
    assert "skip    one: unchanged since run run-1" in text
    assert "relations_v1 v0" in text
    drawn = plan_graph(plan)
    assert drawn.startswith("digraph plan {")
    assert '"table relations_v1" -> "graph" [label="v0"];' in drawn
    assert '"graph" -> "table cpg_nodes";' in drawn
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg"], input=drawn.encode(), check=True, capture_output=True)


def test_the_state_of_a_lake_is_read_from_its_logs(tmp_path: Path) -> None:
    lake = str(tmp_path)
    assert lake_state(lake, catalog.TABLES) == EMPTY
    for name in ("ast_files_v1", "cpg_nodes"):
        write_deltalake(location(lake, name), pa.table({"repo_id": ["one"]}))
    row = structs.replace(
        published(request()).repositories["one"],
        output_pins=(OutputPin("ast_files_v1", 0), OutputPin("cpg_nodes", 0), OutputPin("cpg_edges", 0)),
    )
    append_manifest(lake, [row], Commit("run-1"), after=-1)
    write_deltalake(location(lake, "ast_files_v1"), pa.table({"repo_id": ["one"]}), mode="append")
    for file in Path(location(lake, "cpg_nodes")).glob("*.parquet"):
        file.unlink()
    state = lake_state(lake, catalog.TABLES)
    assert state.run_id == "run-1"
    assert state.newest == {"ast_files_v1": 1, "cpg_nodes": 0}
    assert state.damaged == {"cpg_nodes", "cpg_edges"}
