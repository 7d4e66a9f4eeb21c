"""Declare the tables of recorded events: commits, scans, plans and maintenance, appended once per run.

A commit to `cpg_nodes` is a row of `delta_mutations`; the scan that fed it a row of `delta_scan_plans`.
`(run_id, event_no)` identifies an event.

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import MB, Column, Constraint, DeltaWritePolicy, Table
from codeanatomy.catalog.tables.columns import NO_ZORDER, PATH, REPO_ID, RUN_ID, one_of, strings, structs

EVENT_COLUMNS = (
    RUN_ID,
    Column("event_no", "int", "Number of the event within its run and table, from 0.", nullable=False),
    Column("event_time", "timestamp", "Time of the event.", nullable=False),
)
TABLE_NAME = Column("table_name", "string", "Name of the table.", nullable=False)
DELTA_VERSION = Column("delta_version", "bigint", "Delta version of the table.")
METRICS = Column("metrics", "map<string,bigint>", "Metrics that the engine reported.")
DURATION_MS = Column("duration_ms", "bigint", "Duration in milliseconds.")
EVENT_KEY = ("run_id", "event_no")
WRITE_BY_RUN = DeltaWritePolicy(target_file_size=32 * MB, zorder_by=EVENT_KEY)

DELTA_SNAPSHOTS = Table(
    "delta_snapshots",
    "observe",
    "One row per table version that was opened: protocol, properties and schema from its log.",
    (
        *EVENT_COLUMNS,
        TABLE_NAME,
        Column("delta_version", "bigint", "Version that was opened.", nullable=False),
        Column("committed_at", "timestamp", "When that version was committed."),
        Column("min_reader_version", "int", "Minimum protocol version for readers.", nullable=False),
        Column("min_writer_version", "int", "Minimum protocol version for writers.", nullable=False),
        strings("reader_features", "Features that a reader must support."),
        strings("writer_features", "Features that a writer must support."),
        strings("partition_columns", "Partition columns."),
        Column("properties", "map<string,string>", "Table properties."),
        Column(
            "storage_options", "map<string,string>", "Storage options, with a hash instead of each value."
        ),
        Column("schema_json", "string", "Schema in Delta's JSON form.", nullable=False),
    ),
    primary_key=EVENT_KEY,
    write=WRITE_BY_RUN,
    upkeep=NO_ZORDER,
)

DELTA_MUTATIONS = Table(
    "delta_mutations",
    "observe",
    "One row per attempted commit.",
    (
        *EVENT_COLUMNS,
        TABLE_NAME,
        Column("delta_version", "bigint", "Version that was committed; null if none was."),
        Column("operation", "string", "Operation, such as append or replace_by_owner.", nullable=False),
        Column("mode", "string", "Schema mode that was applied: merge, overwrite or null."),
        Column("constraint_status", "string", "passed, violated or skipped.", nullable=False),
        structs(
            "constraint_violations",
            "Violated constraints.",
            Column("name", "string", "Name of the constraint."),
            Column("expression", "string", "SQL condition of the constraint."),
            Column("sample", "string", "A row that violates it."),
        ),
        Column("error", "string", "Code and message of the error; null if there was none."),
        Column("app_id", "string", "Application id of the idempotent transaction."),
        Column("app_version", "bigint", "Application version of the idempotent transaction."),
        Column("attempts", "int", "Number of attempts.", nullable=False),
        strings("conflicts", "Conflicting commit of each failed attempt."),
        Column("commit_metadata", "map<string,string>", "User metadata of the commit in Delta's history."),
        Column("rows", "bigint", "Number of rows written."),
        Column("files", "bigint", "Number of data files written."),
        Column("bytes", "bigint", "Number of bytes written."),
        METRICS,
        DURATION_MS,
    ),
    primary_key=EVENT_KEY,
    constraints=(
        one_of("constraint_status", "passed", "violated", "skipped"),
        Constraint("attempts_counted", "attempts >= 1", "There was at least one attempt."),
    ),
    write=WRITE_BY_RUN,
    upkeep=NO_ZORDER,
)

DELTA_SCAN_PLANS = Table(
    "delta_scan_plans",
    "observe",
    "One row per scan of a build or recorded query: candidate and pruned files, filters and columns.",
    (
        *EVENT_COLUMNS,
        TABLE_NAME,
        DELTA_VERSION,
        Column("total_files", "bigint", "Number of data files of the version."),
        Column("candidate_files", "bigint", "Number of files left after pruning."),
        Column("pruned_files", "bigint", "Number of files ruled out by partition values and statistics."),
        Column("purpose", "string", "build, or the command of a recorded query.", nullable=False),
        strings("pushed_filters", "Conditions passed to the scan."),
        strings("filter_columns", "Columns in those conditions."),
        strings("join_columns", "Columns used as join keys."),
        strings("projected_columns", "Columns that were read."),
        Column("projection", "map<string,string>", "Expression for each contract column."),
        Column("scans", "bigint", "Number of equal scans that the row stands for; null means one."),
    ),
    primary_key=EVENT_KEY,
    constraints=(
        Constraint(
            "files_add_up",
            "total_files IS NULL OR total_files = candidate_files + pruned_files",
            "Every file is either a candidate or pruned.",
        ),
    ),
    write=WRITE_BY_RUN,
    upkeep=NO_ZORDER,
)

DELTA_MAINTENANCE = Table(
    "delta_maintenance",
    "observe",
    "One row per maintenance operation on a table.",
    (
        *EVENT_COLUMNS,
        TABLE_NAME,
        Column("delta_version", "bigint", "Version that was committed; null if none was."),
        Column(
            "operation",
            "string",
            "optimize, zorder, vacuum, checkpoint, cleanup_log, properties, features or restore.",
            nullable=False,
        ),
        strings("partitions", "Partitions, by folder name; empty means all."),
        Column("reason", "string", "Reason, with figures of the table and its policy.", nullable=False),
        Column("outcome", "string", "done, refused or failed.", nullable=False),
        Column("from_version", "bigint", "Table version before the operation."),
        Column("retention_hours", "double", "Minimum age in hours of files that a vacuum removes."),
        Column("files_added", "bigint", "Number of data files written."),
        Column("files_removed", "bigint", "Number of data files removed, or that would be removed."),
        Column("bytes_added", "bigint", "Number of bytes written."),
        Column("bytes_removed", "bigint", "Number of bytes removed, or that would be removed."),
        METRICS,
        DURATION_MS,
    ),
    primary_key=EVENT_KEY,
    constraints=(one_of("outcome", "done", "refused", "failed"),),
    write=WRITE_BY_RUN,
    upkeep=NO_ZORDER,
)

PLAN_ARTIFACTS = Table(
    "plan_artifacts",
    "observe",
    "One row per executed step with its totals, and one per frame that it computed on Spark, with its plans.",
    (
        *EVENT_COLUMNS,
        Column(
            "artifact_id",
            "string",
            "Id that the manifest refers to, made of run and step; the same for a step and its frames.",
            nullable=False,
        ),
        Column("step_name", "string", "Step of the run.", nullable=False),
        Column(
            "frame_no", "int", "Number of the frame within the step, from 0; null in the row of the step."
        ),
        Column(
            "frame_name", "string", "What the frame computes, such as solve; null in the row of the step."
        ),
        Column("fingerprints", "map<string,string>", "Input fingerprint of the step, by repository."),
        strings("tables", "Tables that the step wrote."),
        Column(
            "plan_hash",
            "string",
            "Hash of the physical plan of the frame: the same hash means the same scans and operators.",
            semantic_type="Fingerprint",
        ),
        Column("logical_plan", "string", "Analyzed logical plan of the frame, normalized."),
        Column("optimized_plan", "string", "Optimized logical plan of the frame, normalized."),
        Column("physical_plan", "string", "Physical plan of the frame, normalized."),
        structs(
            "operator_metrics",
            "Metrics of each operator of the frame.",
            Column("operator_no", "int", "Number of the operator in the physical plan, from 0."),
            Column("operator", "string", "Name of the operator."),
            Column("metric", "string", "Name of the metric, with unit."),
            Column("value", "bigint", "Value of the metric."),
        ),
        Column("status", "string", "succeeded, failed or skipped.", nullable=False),
        Column("error", "string", "Error message; null if there was none."),
        Column("rows", "bigint", "Number of rows that the step wrote; null for a frame."),
        Column("bytes", "bigint", "Size of the written data files in bytes; null for a frame."),
        Column("spilled_bytes", "bigint", "Bytes spilled from memory; null for a frame, and if unknown."),
        Column(
            "jobs",
            "int",
            "Number of Spark jobs of the step; null for a frame, and if unknown (Spark Connect).",
        ),
        Column("tasks", "int", "Number of Spark tasks of the step; null for a frame, and if unknown."),
        Column(
            "skew",
            "double",
            "Ratio of the longest task to the median task, in the longest stage; null for a frame.",
        ),
        DURATION_MS,
    ),
    primary_key=EVENT_KEY,
    constraints=(one_of("status", "succeeded", "failed", "skipped"),),
    write=WRITE_BY_RUN,
    upkeep=NO_ZORDER,
)

RUN_COSTS = Table(
    "run_costs",
    "observe",
    "One row per part of a run, step, extractor, rule and table: what it cost.",
    (
        RUN_ID,
        Column(
            "scope",
            "string",
            "part: a part of the run, such as list or extract_commit; step: a whole step; extractor or rule:"
            " one of them, in all processes together; table: the commits to it.",
            nullable=False,
        ),
        Column("step_name", "string", "Step that it belongs to; null for a part of the run."),
        Column("name", "string", "Name of the part, step, extractor, rule or table.", nullable=False),
        Column(
            "seconds",
            "double",
            "Seconds by the clock; of an extractor or rule the sum of all processes that ran it.",
            nullable=False,
        ),
        Column("rows", "bigint", "Number of rows committed; null if it has no table of its own."),
        Column("bytes", "bigint", "Size of the committed data files in bytes; null if it has no table."),
        Column("files", "bigint", "Number of committed data files; null if it has no table."),
    ),
    primary_key=("run_id", "scope", "step_name", "name"),
    constraints=(
        one_of("scope", "part", "step", "extractor", "rule", "table"),
        Constraint("time_counted", "seconds >= 0", "A duration is not negative."),
    ),
    write=DeltaWritePolicy(target_file_size=32 * MB, zorder_by=("run_id", "scope", "name")),
    upkeep=NO_ZORDER,
)

QUESTIONS = Table(
    "questions",
    "observe",
    "One row per question that was answered while `observe.record_queries` was on.",
    (
        *EVENT_COLUMNS,
        Column("verb", "string", "Command, such as callers or sql.", nullable=False),
        Column(
            "read_run_id",
            "string",
            "Published run whose state was read; `run_id` is the run that recorded the question.",
            False,
            "RunId",
        ),
        Column("seconds", "double", "Seconds that the answer took.", nullable=False),
        Column("files", "bigint", "Number of data files that were opened, each counted once."),
        Column("bytes", "bigint", "Size of those files: at most so many bytes were read."),
        Column("rows", "bigint", "Number of rows that were returned.", nullable=False),
    ),
    primary_key=EVENT_KEY,
    constraints=(Constraint("time_counted", "seconds >= 0", "A duration is not negative."),),
    write=WRITE_BY_RUN,
    upkeep=NO_ZORDER,
)

REFRESH_IMPACT = Table(
    "refresh_impact",
    "observe",
    "One row per file that a refresh processed again, with the reason.",
    (
        RUN_ID,
        REPO_ID,
        PATH,
        Column(
            "reason",
            "string",
            "added, changed or removed; for a file that was not edited: resolved, lost, star_import, "
            "import, class, value, reference or witness.",
            nullable=False,
        ),
        Column("name", "string", "One of the names whose target changed.", semantic_type="QName"),
        Column(
            "relations", "int", "Number of relations whose target changed for this reason.", nullable=False
        ),
    ),
    primary_key=("run_id", "repo_id", "path"),
    write=DeltaWritePolicy(target_file_size=32 * MB, zorder_by=("run_id", "repo_id", "path")),
    upkeep=NO_ZORDER,
)

TABLES = (
    DELTA_SNAPSHOTS,
    DELTA_MUTATIONS,
    DELTA_SCAN_PLANS,
    DELTA_MAINTENANCE,
    PLAN_ARTIFACTS,
    RUN_COSTS,
    QUESTIONS,
    REFRESH_IMPACT,
)
