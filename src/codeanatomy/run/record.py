"""Record a run: its query plans and metrics, and as the last commit its manifest rows.

    publish(run, manifest_version)                 # readers see the new versions
    record_failure(run, "no space", "failed")      # readers keep the previous versions

A manifest row pins every table of the lake, including those that the run did not write, so that the newest
run is one consistent state of all repositories. The cursors of its steps (`lake.cursors`) are written just
before it. A repository of which every step was skipped gets no new row. All of this is written without Spark,
so that a run can record its failure even if Spark has failed.

Tests: `tests/spark/test_record.py`, `tests/spark/test_build.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import structs, to_builtins

from codeanatomy import node_ids
from codeanatomy.costs import MICROSECONDS
from codeanatomy.delta.commit_stamp import Commit, decode_stamp
from codeanatomy.delta.events import Committed
from codeanatomy.delta.log.folder import listed_once
from codeanatomy.delta.read.duck import count_rows
from codeanatomy.delta.read.light import user_metadata_since
from codeanatomy.delta.write.small_rows import append_small
from codeanatomy.errors import CommitConflict
from codeanatomy.extract.file_rows import failures_by_extractor
from codeanatomy.graph.rows import TABLES
from codeanatomy.lake.cursors import Cursors, StepCursor, append_cursors
from codeanatomy.lake.manifest import (
    InputPin,
    OutputPin,
    RunManifest,
    Status,
    append_manifest,
    output_pin,
    read_manifest,
)
from codeanatomy.logs import Log
from codeanatomy.normalize.rules import FAMILIES
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.tasks.file_stage import COMPILE
from codeanatomy.pipeline.tasks.graph_rows import ROWS_OF_FILES
from codeanatomy.pipeline.tasks.graph_stage import RESOLVE
from codeanatomy.pipeline.tasks.solve_stage import EMIT
from codeanatomy.plan.feeds import feeds_of
from codeanatomy.plan.repositories import Repository
from codeanatomy.plan.steps import EXTRACT, STAGES, catalog_hash
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.relate.repository import DIAGNOSTICS, PROGRAMS
from codeanatomy.spark.metrics import JobMetrics, job_metrics
from codeanatomy.spark.versions import is_connect

ARTIFACTS, COSTS, IMPACT = "plan_artifacts", "run_costs", "refresh_impact"
# Tables of rules that have not the name of a table.
RULE_TABLES: Mapping[str, Collection[str]] = {
    **{family.read.__name__: family.tables for family in FAMILIES},
    COMPILE: (PROGRAMS,),
    EMIT: (RELATIONS, DIAGNOSTICS),
    ROWS_OF_FILES: TABLES,
    RESOLVE: TABLES,
}
# Of the names of timings that are those of whole steps.
STEP_SUFFIX = "_step"


def publish(run: Run, after: int) -> None:
    """Append the run's manifest rows; the manifest must still be at version `after`."""
    _recount(run)
    # A published table that was removed and not built again has no history.
    written = (name for name in run.pins if name in run.initial_versions or name in run.committed)
    refuse_foreign_commits(
        run.store.root, {name: run.initial_versions.get(name, -1) for name in written}, run.run_id
    )
    finished, failed = _now(run), run.listed.failed
    pins = tuple(_output_pin(run, name, version) for name, version in sorted(run.pins.items()))
    busy = {each.repo_id for step in run.plan.steps for each in step.repositories if each.action != "skip"}
    rows = [
        _failed_row(run, each, finished) if each.repo_id in failed else _row(run, each, finished, pins)
        for each in run.request.repositories
        if run.plan.undo or each.repo_id in busy or each.repo_id in failed
    ] + _dead_rows(run)
    cursors = {row.repo_id: _cursors(run, row.repo_id) for row in rows if row.status == "succeeded"}
    append_cursors(run.store.root, cursors, Commit(run.run_id))
    append_manifest(run.store.root, rows, Commit(run.run_id), after=after)


def _cursors(run: Run, repo_id: str) -> Cursors:
    """Return how far the steps of a repository are: those of this run as far as it, the others as before."""
    cursors = dict(run.base.cursors.get(repo_id, {}))
    for step in run.plan.steps:
        feeds = feeds_of(step.inputs)
        if feeds:
            versions = {name: run.pins[name] for name in feeds if name in run.pins}
            cursors[step.name] = StepCursor(run.rules[step.name], versions)
    return cursors


def record_failure(run: Run, error: str, status: Status) -> None:
    """Append a manifest row with the error for each repository."""
    finished = _now(run)
    rows = [
        structs.replace(_failed_row(run, repository, finished, error), status=status)
        for repository in run.request.repositories
    ]
    append_manifest(run.store.root, rows + _dead_rows(run), Commit(run.run_id), after=None)


def _now(run: Run) -> datetime:
    """Return the current time, but not before the start of the run or its base run's publication.

    Runs are ordered by time, and clocks may be set back.
    """
    published = run.base.published_at
    earliest = run.started if published is None else max(run.started, published + timedelta(microseconds=1))
    return max(datetime.now(UTC), earliest)


def _recount(run: Run) -> None:
    """Count rows by repository in tables that were not counted when they were written."""
    for name in sorted(run.recount):
        counts = count_rows(run.store.root, name, run.pins[name], ("repo_id",))
        for repo_id in run.listed.listings:
            run.counts.setdefault(repo_id, Counter())[name] = counts.get((repo_id,), 0)


def refuse_foreign_commits(root: str, versions: Mapping[str, int], run_id: str) -> None:
    """Raise CommitConflict if another run committed to a table after the given version."""
    with listed_once(root):
        made_since = {name: user_metadata_since(root, name, version) for name, version in versions.items()}
    for name, since in made_since.items():
        others = {made.run_id for text in since if (made := decode_stamp(text)) is not None} - {run_id}
        if others:
            raise CommitConflict(
                f"run {', '.join(sorted(others))} wrote to {name} at the same time",
                "run the command again when the other run has ended",
            )


def _output_pin(run: Run, name: str, version: int) -> OutputPin:
    known = run.base.outputs.get(name)
    if known is not None and known.version == version:
        return known
    return output_pin(run.store.root, name, version)


def _row(run: Run, repository: Repository, finished: datetime, pins: tuple[OutputPin, ...]) -> RunManifest:
    repo_id = repository.repo_id
    before = run.base.repositories.get(repo_id)
    counts = run.counts.get(repo_id, Counter())
    actions = {
        step.name: each for step in run.plan.steps for each in step.repositories if each.repo_id == repo_id
    }
    prints = {name: each.fingerprint for name, each in actions.items()}
    artifacts = {
        name: f"{run.made_by(name, repo_id)}/{name}"
        for name, each in actions.items()
        if each.action != "skip"
    }
    rules: dict[str, str] = {}
    if before is not None:
        # Steps after the last requested one are still valid only if no step before them changed.
        kept = before.plan_fingerprints if not artifacts else {}
        prints = {**kept, **prints}
        rules = {name: each for name, each in before.rule_fingerprints.items() if name in prints}
        artifacts = {name: each for name, each in before.artifact_ids.items() if name in prints} | artifacts
    return RunManifest(
        **_common(run, repository, finished),
        status="succeeded",
        mode="incremental" if repo_id in run.frontiers else "full",
        git_commit=run.listed.commits[repo_id],
        source_digest=run.listed.digests[repo_id],
        plan_fingerprints=prints,
        rule_fingerprints={**rules, **run.rules},
        output_pins=pins,
        change_windows=run.frontiers[repo_id].windows if repo_id in run.frontiers else (),
        row_counts={name: counts[name] for name in sorted(run.pins) if counts[name]},
        artifact_ids=artifacts,
        error_counts=failures_by_extractor(counts),
    )


def _failed_row(
    run: Run, repository: Repository, finished: datetime, error: str | None = None
) -> RunManifest:
    message = run.listed.failed.get(repository.repo_id) or error
    return RunManifest(**_common(run, repository, finished), status="failed", error=message)


def _dead_rows(run: Run) -> list[RunManifest]:
    """Return the rows of a run that died with the lease: it could not write them itself."""
    dead = run.dead
    # A run may die after it has published.
    if dead is None or any(row.run_id == dead.run_id for row in read_manifest(run.store.root)):
        return []
    steps = ", ".join(step.step_name for step in dead.done) or "none"
    error = f"the run died; steps that were done: {steps}; run {run.run_id} has taken over or undone them"
    return [
        RunManifest(
            run_id=dead.run_id,
            repo_id=repo_id,
            status="failed",
            error=error,
            started_at=dead.acquired_at,
            finished_at=dead.heartbeat_at,
            profile_hash=run.settings.runtime.identity,
        )
        for repo_id in dead.repo_ids
    ]


def _common(run: Run, repository: Repository, finished: datetime) -> dict[str, Any]:
    """Return the fields that all manifest rows of a run have, succeeded or not."""
    return {
        "run_id": run.run_id,
        "repo_id": repository.repo_id,
        "repo_root": repository.root,
        "started_at": run.started,
        "finished_at": finished,
        "profile_hash": run.settings.runtime.identity,
        "settings_hash": run.build_inputs.settings_hash,
        "settings": run.redacted(run.settings.changed()),
        "catalog_hash": catalog_hash(run.store.tables),
        "id_version": node_ids.ID_VERSION,
        "witness_versions": run.build_inputs.witness_versions,
        "input_pins": tuple(InputPin(name, pin) for name, pin in sorted(run.base.pins.items())),
        "step_ms": {name: round(1000 * seconds) for name, seconds in run.seconds.items()},
        "trace_id": run.trace.trace_id,
        **to_builtins(run.plan.engine_facts),
    }


def record_artifacts(run: Run) -> None:
    """Append rows for executed steps and their frames, what they cost, and files processed by a refresh."""
    event = {"run_id": run.run_id, "event_time": datetime.now(UTC)}
    artifacts = [event | {"event_no": number} | row for number, row in enumerate(_artifacts(run))]
    rows: dict[str, list[dict[str, Any]]] = {
        ARTIFACTS: run.redacted(artifacts),
        COSTS: [{"run_id": run.run_id} | row for row in _costs(run)],
        IMPACT: [
            {"run_id": run.run_id, "repo_id": repo_id, **to_builtins(each)}
            for repo_id, frontier in run.frontiers.items()
            for each in frontier.impact
        ],
    }
    for name, each in rows.items():
        if each:
            append_small(run.store.root, run.store.table(name), each, Commit(run.run_id))


def artifact_id(run: Run, step: str) -> str:
    """Return the id of a step's plan artifacts, which is also the tag of its Spark jobs."""
    return f"{run.run_id}/{step}"


def _artifacts(run: Run) -> Iterator[dict[str, Any]]:
    """Return a row per step with its totals, each followed by the rows of its frames."""
    computed = {each.step for each in run.frames}
    for step in run.begun:
        if not (step in computed or step in run.finished or step in run.errors or run.refreshed_in(step)):
            continue
        written = [run.committed[name] for name in run.written(step)]
        seconds = run.seconds.get(f"{step}{STEP_SUFFIX}")
        yield {
            "artifact_id": artifact_id(run, step),
            "step_name": step,
            "fingerprints": run.fingerprints(step),
            "tables": [commit.table for commit in written],
            "status": "failed" if step in run.errors else "succeeded",
            "error": run.errors.get(step),
            "rows": sum(commit.rows for commit in written),
            "bytes": sum(commit.size_bytes for commit in written),
            "duration_ms": None if seconds is None else round(1000 * seconds),
            **_job_figures(run, step),
        }
        for number, frame in enumerate(each for each in run.frames if each.step == step):
            plans = {} if frame.plans is None else structs.asdict(frame.plans)
            yield {
                "artifact_id": artifact_id(run, step),
                "step_name": step,
                "frame_no": number,
                "frame_name": frame.name,
                "plan_hash": frame.plan_hash,
                **{f"{name}_plan": text for name, text in plans.items()},
                "operator_metrics": to_builtins(frame.operators),
                "status": "succeeded",
                "duration_ms": round(1000 * frame.seconds),
            }


def _job_figures(run: Run, step: str) -> dict[str, Any]:
    """Return the figures of a step's Spark jobs, none if they are unknown; no build fails for them."""
    if not run.is_open:
        # Local processes.
        return structs.asdict(JobMetrics(0, 0, 0, None))
    if is_connect(run.spark):
        return {}
    try:
        return structs.asdict(job_metrics(run.spark, artifact_id(run, step)))
    # They are internals of Spark, which another version may not have.
    except Exception as problem:  # noqa: BLE001
        Log(run_id=run.run_id, step=step).warning(f"the figures of jobs are not recorded: {problem}")
        return {}


def _costs(run: Run) -> Iterator[dict[str, Any]]:
    """Return what the run has cost: by part, step, extractor or rule, and table."""
    for name, seconds in run.seconds.items():
        step = name.removesuffix(STEP_SUFFIX)
        if step == name:
            yield {"scope": "part", "step_name": None, "name": name, "seconds": seconds}
        else:
            written = [run.committed[each] for each in run.written(step)]
            yield _cost_row("step", step, step, seconds, written)
    for (step, name), microseconds in sorted(run.costs.items()):
        scope = "extractor" if step == EXTRACT else "rule"
        tables = RULE_TABLES.get(name, (name,))
        written = [run.committed[each] for each in tables if each in run.committed]
        yield _cost_row(scope, step, name, microseconds / MICROSECONDS, written)
    for name, commit in sorted(run.committed.items()):
        stage = run.store.table(name).stage
        # Failures are a table about runs, which extract writes.
        yield _cost_row("table", stage if stage in STAGES else EXTRACT, name, commit.seconds, [commit])


def _cost_row(
    scope: str, step: str, name: str, seconds: float, written: Sequence[Committed]
) -> dict[str, Any]:
    """Return a row of `run_costs`, with rows and bytes if there is a commit that has them."""
    figures = {"rows": "rows", "bytes": "size_bytes", "files": "files"}
    sums = {column: sum(getattr(each, figure) for each in written) for column, figure in figures.items()}
    key = {"scope": scope, "step_name": step, "name": name, "seconds": round(seconds, 6)}
    return {**key, **(sums if written else {})}
