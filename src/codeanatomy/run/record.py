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
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import structs, to_builtins

from codeanatomy import node_ids
from codeanatomy.delta.commit_stamp import Commit, decode_stamp
from codeanatomy.delta.log.folder import listed_once
from codeanatomy.delta.read.duck import count_rows
from codeanatomy.delta.read.light import user_metadata_since
from codeanatomy.delta.read.predicate import InList, Predicate
from codeanatomy.delta.read.scan import scan
from codeanatomy.delta.write.small_rows import append_small
from codeanatomy.errors import CommitConflict
from codeanatomy.extract.file_rows import failures_by_extractor
from codeanatomy.lake.cursors import Cursors, StepCursor, append_cursors
from codeanatomy.lake.manifest import InputPin, OutputPin, RunManifest, Status, append_manifest, output_pin
from codeanatomy.pipeline.context import Run
from codeanatomy.plan.feeds import feeds_of
from codeanatomy.plan.repositories import Repository
from codeanatomy.plan.steps import catalog_hash
from codeanatomy.spark.metrics import JobMetrics, job_metrics

ARTIFACTS, CACHES, IMPACT = "plan_artifacts", "view_cache", "refresh_impact"
NOTHING_MEASURED = JobMetrics(0, 0, 0, None)


def publish(run: Run, after: int) -> None:
    """Append the run's manifest rows; the manifest must still be at version `after`."""
    _recount(run)
    _refuse_concurrent_writes(run)
    finished = _now(run)
    pins = tuple(_output_pin(run, name, version) for name, version in sorted(run.pins.items()))
    rows = [
        _failed_row(run, repository, finished)
        if repository.repo_id in run.listed.failed
        else _row(run, repository, finished, pins)
        for repository in _repositories_to_record(run)
    ]
    published = [row.repo_id for row in rows if row.status == "succeeded"]
    append_cursors(
        run.store.root, {repo_id: _cursors(run, repo_id) for repo_id in published}, Commit(run.run_id)
    )
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
    append_manifest(run.store.root, rows, Commit(run.run_id), after=None)


def _now(run: Run) -> datetime:
    """Return the current time, but not before the start of the run or its base run's publication.

    Runs are ordered by time, and clocks may be set back.
    """
    published = run.base.published_at
    earliest = run.started if published is None else max(run.started, published + timedelta(microseconds=1))
    return max(datetime.now(UTC), earliest)


def _repositories_to_record(run: Run) -> list[Repository]:
    """Return the repositories that get a manifest row: those with changes or failures."""
    busy = {each.repo_id for step in run.plan.steps for each in step.repositories if each.action != "skip"}
    return [
        each
        for each in run.request.repositories
        if run.plan.undo or each.repo_id in busy or each.repo_id in run.listed.failed
    ]


def _recount(run: Run) -> None:
    """Count rows by repository in tables that were not counted when they were written."""
    for name in sorted(run.recount):
        counts = _counts_by_repository(run, name)
        for repo_id in run.listed.listings:
            run.counts.setdefault(repo_id, Counter())[name] = counts.get(repo_id, 0)


def _counts_by_repository(run: Run, name: str) -> dict[str, int]:
    if run.plan.engine == "local":
        counted = count_rows(run.store.root, name, run.pins[name], ("repo_id",))
        return {repo_id: count for (repo_id,), count in counted.items()}
    wanted = InList.of(run.store.table(name).column("repo_id"), run.listed.listings)
    where = Predicate.all_of(run.store.table(name), wanted)
    rows = scan(run.spark_store, name, run.pins[name], where=where).rows
    return {row["repo_id"]: row["count"] for row in rows.groupBy("repo_id").count().collect()}


def _refuse_concurrent_writes(run: Run) -> None:
    """Raise CommitConflict if another run wrote to a table while this one held the lease."""
    # A published table that was removed and not built again has no history.
    written = (each for each in run.pins if each in run.initial_versions or each in run.committed)
    refuse_foreign_commits(
        run.store.root, {name: run.initial_versions.get(name, -1) for name in written}, run.run_id
    )


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
        mode="incremental" if repo_id in run.refreshes else "full",
        git_commit=run.listed.commits[repo_id],
        source_digest=run.listed.digests[repo_id],
        plan_fingerprints=prints,
        rule_fingerprints={**rules, **run.rules},
        output_pins=pins,
        change_windows=run.refreshes[repo_id].windows if repo_id in run.refreshes else (),
        row_counts={name: counts[name] for name in sorted(run.pins) if name in counts},
        artifact_ids=artifacts,
        error_counts=failures_by_extractor(counts),
    )


def _failed_row(
    run: Run, repository: Repository, finished: datetime, error: str | None = None
) -> RunManifest:
    message = run.listed.failed.get(repository.repo_id) or error
    return RunManifest(**_common(run, repository, finished), status="failed", error=message)


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
        "catalog_hash": catalog_hash(run.store.tables),
        "id_version": node_ids.ID_VERSION,
        "witness_versions": run.build_inputs.witness_versions,
        "input_pins": tuple(InputPin(name, pin) for name, pin in sorted(run.base.pins.items())),
        "step_ms": {name: round(1000 * seconds) for name, seconds in run.seconds.items()},
        "trace_id": run.trace.trace_id,
    }


def record_artifacts(run: Run) -> None:
    """Append rows for executed steps, files processed by a refresh, and used caches."""
    rows = [
        _artifact(run, number, step)
        for number, step in enumerate(run.begun)
        if step in run.plans or step in run.finished or step in run.errors or run.refreshed_in(step)
    ]
    if rows:
        append_small(run.store.root, run.store.table(ARTIFACTS), run.redacted(rows), Commit(run.run_id))
    impact = [
        {"run_id": run.run_id, "repo_id": repo_id, **to_builtins(each)}
        for repo_id, refresh in run.refreshes.items()
        for each in refresh.impact
    ]
    if impact:
        append_small(run.store.root, run.store.table(IMPACT), impact, Commit(run.run_id))
    if run.caches:
        used = [_event(run, number) | to_builtins(cache) for number, cache in enumerate(run.caches)]
        append_small(run.store.root, run.store.table(CACHES), used, Commit(run.run_id))


def _event(run: Run, number: int) -> dict[str, Any]:
    """Return the columns that all observe rows have."""
    return {"run_id": run.run_id, "event_no": number, "event_time": datetime.now(UTC)}


def artifact_id(run: Run, step: str) -> str:
    """Return the id of a step's plan artifact, which is also the tag of its Spark jobs."""
    return f"{run.run_id}/{step}"


def _artifact(run: Run, number: int, step: str) -> dict[str, Any]:
    error = run.errors.get(step)
    cost = job_metrics(run.spark, artifact_id(run, step)) if run.is_open else NOTHING_MEASURED
    texts = run.plans.get(step)
    written = [run.committed[name] for name in run.written(step)]
    seconds = run.seconds.get(f"{step}_step")
    return _event(run, number) | {
        "artifact_id": artifact_id(run, step),
        "step_name": step,
        "fingerprints": run.fingerprints(step),
        "tables": [commit.table for commit in written],
        "logical_plan": None if texts is None else texts.logical,
        "optimized_plan": None if texts is None else texts.optimized,
        "physical_plan": None if texts is None else texts.physical,
        "operator_metrics": to_builtins(run.operators.get(step, ())),
        "status": "failed" if error else "succeeded",
        "error": error,
        "rows": sum(commit.rows for commit in written),
        "bytes": sum(commit.size_bytes for commit in written),
        "spilled_bytes": cost.spilled_bytes,
        "jobs": cost.jobs,
        "tasks": cost.tasks,
        "skew": cost.skew,
        "duration_ms": None if seconds is None else round(1000 * seconds),
    }
