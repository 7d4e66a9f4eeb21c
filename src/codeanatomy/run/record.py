"""What a run leaves behind: its plans and their cost, and as the last commit its rows in the manifest.

    publish(run, manifest_version)                 # readers see what it has written
    record_failure(run, "no space", "failed")      # they go on seeing what was there

A row pins every table of the lake, those that the run has not written too, so the newest run is one state of
all repositories. The rows of a repository of which every step was skipped are left as they are. Everything
here is written without Spark, so that a run can tell how it ended even when Spark is gone.

Tests: `tests/spark/test_record.py`, `tests/spark/test_build.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import structs, to_builtins

from codeanatomy.delta.commit_stamp import Commit, decode_stamp
from codeanatomy.delta.read.light import user_metadata_since
from codeanatomy.delta.write.small import append_small
from codeanatomy.errors import CommitConflict
from codeanatomy.extract.file_rows import failures_by_extractor
from codeanatomy.lake.manifest import InputPin, OutputPin, RunManifest, Status, append_manifest, output_pin
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.inputs import scan_rows
from codeanatomy.plan.repositories import Repository
from codeanatomy.plan.steps import catalog_hash
from codeanatomy.spark.metrics import Measures, measured

ARTIFACTS, CACHES, IMPACT = "plan_artifacts", "view_cache", "refresh_impact"
NOTHING_MEASURED = Measures(0, 0, 0, None)


def publish(run: Run, after: int) -> None:
    """Append the run's rows to the manifest, which must still be at the version that the run began with."""
    _recount(run)
    _fence(run)
    finished = _now(run)
    pins = tuple(_output_pin(run, name, version) for name, version in sorted(run.pins.items()))
    rows = [
        _failed_row(run, repository, finished)
        if repository.repo_id in run.listed.failed
        else _row(run, repository, finished, pins)
        for repository in _told(run)
    ]
    append_manifest(run.store.root, rows, Commit(run.run_id), after=after)


def record_failure(run: Run, error: str, status: Status) -> None:
    """Append a row for each repository that says why it was not built."""
    finished = _now(run)
    rows = [
        structs.replace(_failed_row(run, repository, finished, error), status=status)
        for repository in run.order.repositories
    ]
    append_manifest(run.store.root, rows, Commit(run.run_id), after=None)


def _now(run: Run) -> datetime:
    """The time, but never before the run began, nor before that was published which it builds on.

    Runs are in the order of time, and clocks may be set back.
    """
    published = run.base.published_at
    earliest = run.started if published is None else max(run.started, published + timedelta(microseconds=1))
    return max(datetime.now(UTC), earliest)


def _told(run: Run) -> list[Repository]:
    """The repositories that get a row: those of which anything is new."""
    busy = {each.repo_id for step in run.plan.steps for each in step.repositories if each.action != "skip"}
    return [
        each
        for each in run.order.repositories
        if run.plan.undo or each.repo_id in busy or each.repo_id in run.listed.failed
    ]


def _recount(run: Run) -> None:
    """Count by repository what was not counted when it was made."""
    for name in sorted(run.recount):
        rows = scan_rows(run, run.spark_store, name, run.listed.listings)
        found = {row["repo_id"]: row["count"] for row in rows.groupBy("repo_id").count().collect()}
        for repo_id in run.listed.listings:
            run.counts.setdefault(repo_id, Counter())[name] = found.get(repo_id, 0)


def _fence(run: Run) -> None:
    """Refuse to publish what another run has written to, although this one had the lease."""
    # A published table that is gone, and not made anew, has no history either.
    written = (each for each in run.pins if each in run.floor or each in run.committed)
    refuse_strangers(run.store.root, {name: run.floor.get(name, -1) for name in written}, run.run_id)


def refuse_strangers(root: str, floor: Mapping[str, int], run_id: str) -> None:
    """Refuse tables that somebody else has committed to after some versions."""
    for name, version in floor.items():
        since = user_metadata_since(root, name, version)
        others = {made.run_id for text in since if (made := decode_stamp(text)) is not None} - {run_id}
        if others:
            raise CommitConflict(
                f"run {', '.join(sorted(others))} wrote to {name} at the same time",
                "repeat it when the other run has ended",
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
        # Steps beyond the last one asked for are as before only if nothing under them is new.
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
    said = run.listed.failed.get(repository.repo_id) or error
    return RunManifest(**_common(run, repository, finished), status="failed", error=said)


def _common(run: Run, repository: Repository, finished: datetime) -> dict[str, Any]:
    """The fields that all rows of a run have, succeeded or not."""
    return {
        "run_id": run.run_id,
        "repo_id": repository.repo_id,
        "repo_root": str(repository.path.absolute()),
        "started_at": run.started,
        "finished_at": finished,
        "profile_hash": run.settings.runtime.identity,
        "settings_hash": run.asked.settings_hash,
        "catalog_hash": catalog_hash(run.store.tables),
        "witness_versions": run.asked.witness_versions,
        "input_pins": tuple(InputPin(name, pin) for name, pin in sorted(run.base.pins.items())),
        "step_ms": {name: round(1000 * seconds) for name, seconds in run.seconds.items()},
        "trace_id": run.trace.trace_id,
    }


def record_artifacts(run: Run) -> None:
    """Append a row for each step that ran, each file that was redone, and each cache that was used."""
    rows = [
        _artifact(run, number, step)
        for number, step in enumerate(run.steps)
        if step in run.plans or step in run.errors or run.refreshed_in(step)
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
    """What every row of what was observed begins with."""
    return {"run_id": run.run_id, "event_no": number, "event_time": datetime.now(UTC)}


def artifact_id(run: Run, step: str) -> str:
    """The name of what is recorded of a step, and the tag of its jobs."""
    return f"{run.run_id}/{step}"


def _artifact(run: Run, number: int, step: str) -> dict[str, Any]:
    error = run.errors.get(step)
    cost = measured(run.spark, artifact_id(run, step)) if run.is_open else NOTHING_MEASURED
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
