"""Tables of what the system did to its tables: one row per event, appended once per run.

A commit to `cpg_nodes` is a row of `delta_mutations`; the scan that fed it a row of `delta_scan_plans`; the
choice of its statistics columns a row of `stats_decisions`. `(run_id, event_no)` names an event.

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import MB, Column, Constraint, DeltaWritePolicy, Table
from codeanatomy.catalog.tables.columns import NO_ZORDER, PATH, REPO_ID, RUN_ID, one_of, strings, structs

EVENT = (
    RUN_ID,
    Column("event_no", "int", "Number of the event in its run and table, from 0.", nullable=False),
    Column("event_time", "timestamp", "When it happened.", nullable=False),
)
TABLE_NAME = Column("table_name", "string", "Table it happened to.", nullable=False)
DELTA_VERSION = Column("delta_version", "bigint", "Delta version of the table.")
METRICS = Column("metrics", "map<string,bigint>", "Figures the engine reported.")
DURATION_MS = Column("duration_ms", "bigint", "Milliseconds it took.")
EVENT_KEY = ("run_id", "event_no")
BY_RUN = DeltaWritePolicy(target_file_size=32 * MB, zorder_by=EVENT_KEY)

DELTA_SNAPSHOTS = Table(
    "delta_snapshots",
    "observe",
    "One row per table version that was opened: what its log says of it.",
    (
        *EVENT,
        TABLE_NAME,
        Column("delta_version", "bigint", "Version that was opened.", nullable=False),
        Column("committed_at", "timestamp", "When that version was committed."),
        Column("min_reader_version", "int", "Protocol a reader needs.", nullable=False),
        Column("min_writer_version", "int", "Protocol a writer needs.", nullable=False),
        strings("reader_features", "Features a reader needs."),
        strings("writer_features", "Features a writer needs."),
        strings("partition_columns", "Partition columns."),
        Column("properties", "map<string,string>", "Table properties."),
        Column("storage_options", "map<string,string>", "How it was reached: a hash of each option's value."),
        Column("schema_json", "string", "Schema as Delta stores it.", nullable=False),
    ),
    primary_key=EVENT_KEY,
    write=BY_RUN,
    upkeep=NO_ZORDER,
)

DELTA_MUTATIONS = Table(
    "delta_mutations",
    "observe",
    "One row per commit that was attempted.",
    (
        *EVENT,
        TABLE_NAME,
        Column("delta_version", "bigint", "Version it made; null if nothing was committed."),
        Column("operation", "string", "What was done, such as append or replace_by_owner.", nullable=False),
        Column("mode", "string", "Schema mode that applied: merge, overwrite or null."),
        Column("constraint_status", "string", "passed, violated or skipped.", nullable=False),
        structs(
            "constraint_violations",
            "Constraints that rows broke.",
            Column("name", "string", "Name of the constraint."),
            Column("expression", "string", "Its condition."),
            Column("sample", "string", "A row that broke it."),
        ),
        Column("error", "string", "Code and words of what refused it; null if nothing did."),
        Column("app_id", "string", "Application of the idempotent transaction."),
        Column("app_version", "bigint", "Version within that application."),
        Column("attempts", "int", "Tries until it went through or was given up.", nullable=False),
        strings("conflicts", "What it has lost against, attempt by attempt."),
        Column("commit_metadata", "map<string,string>", "What was written into Delta's history."),
        Column("rows", "bigint", "Rows written."),
        Column("files", "bigint", "Data files written."),
        Column("bytes", "bigint", "Bytes written."),
        METRICS,
        DURATION_MS,
    ),
    primary_key=EVENT_KEY,
    constraints=(
        one_of("constraint_status", "passed", "violated", "skipped"),
        Constraint("attempts_counted", "attempts >= 1", "A commit was tried at least once."),
    ),
    write=BY_RUN,
    upkeep=NO_ZORDER,
)

DELTA_SCAN_PLANS = Table(
    "delta_scan_plans",
    "observe",
    "One row per scan, or per recorded question: which files could hold what was asked for.",
    (
        *EVENT,
        TABLE_NAME,
        DELTA_VERSION,
        Column("total_files", "bigint", "Data files of the version."),
        Column("candidate_files", "bigint", "Files left after pruning."),
        Column("pruned_files", "bigint", "Files ruled out by partition values and statistics."),
        Column("purpose", "string", "build, or the verb of a recorded query.", nullable=False),
        strings("pushed_filters", "Conditions given to the scan."),
        strings("filter_columns", "Columns in those conditions."),
        strings("join_columns", "Columns it is joined by."),
        strings("projected_columns", "Columns asked for."),
        Column("projection", "map<string,string>", "Expression of each contract column."),
        Column("scans", "bigint", "How many of the same it stands for; null: one."),
    ),
    primary_key=EVENT_KEY,
    constraints=(
        Constraint(
            "files_add_up",
            "total_files IS NULL OR total_files = candidate_files + pruned_files",
            "A file is a candidate or pruned.",
        ),
    ),
    write=BY_RUN,
    upkeep=NO_ZORDER,
)

DELTA_MAINTENANCE = Table(
    "delta_maintenance",
    "observe",
    "One row per maintenance operation on a table.",
    (
        *EVENT,
        TABLE_NAME,
        Column("delta_version", "bigint", "Version it made; null if it made none."),
        Column(
            "operation",
            "string",
            "optimize, zorder, vacuum, checkpoint, cleanup_log, properties, features or restore.",
            nullable=False,
        ),
        strings("partitions", "Partitions it was about, as their folders are called; none: all."),
        Column("reason", "string", "Why, in figures of the table and its policy.", nullable=False),
        Column("outcome", "string", "done, refused or failed.", nullable=False),
        Column("from_version", "bigint", "Version it found."),
        Column("retention_hours", "double", "Age below which a vacuum keeps files."),
        Column("files_added", "bigint", "Data files written."),
        Column("files_removed", "bigint", "Data files removed, or that would be."),
        Column("bytes_added", "bigint", "Bytes written."),
        Column("bytes_removed", "bigint", "Bytes removed, or that would be."),
        METRICS,
        DURATION_MS,
    ),
    primary_key=EVENT_KEY,
    constraints=(one_of("outcome", "done", "refused", "failed"),),
    write=BY_RUN,
    upkeep=NO_ZORDER,
)

PLAN_ARTIFACTS = Table(
    "plan_artifacts",
    "observe",
    "One row per step that was executed: its plans, and what the one execution cost.",
    (
        *EVENT,
        Column("artifact_id", "string", "Name the manifest links to: run and step.", nullable=False),
        Column("step_name", "string", "Step of the run.", nullable=False),
        Column("fingerprints", "map<string,string>", "What its rows follow from, by repository."),
        strings("tables", "Tables it has written."),
        Column("logical_plan", "string", "Analysed plan, normalised."),
        Column("optimized_plan", "string", "Optimized plan, normalised."),
        Column("physical_plan", "string", "Physical plan, normalised."),
        structs(
            "operator_metrics",
            "Figures of each operator.",
            Column("operator_no", "int", "Operator in the physical plan, from 0."),
            Column("operator", "string", "Its name."),
            Column("metric", "string", "What was counted, with unit."),
            Column("value", "bigint", "The figure."),
        ),
        Column("status", "string", "succeeded, failed or skipped.", nullable=False),
        Column("error", "string", "What stopped it; null if nothing did."),
        Column("rows", "bigint", "Rows it produced."),
        Column("bytes", "bigint", "Bytes of the data files it wrote."),
        Column("spilled_bytes", "bigint", "Bytes that did not fit into memory."),
        Column("jobs", "int", "Spark jobs."),
        Column("tasks", "int", "Spark tasks."),
        Column("skew", "double", "Longest task over the median, in the stage that took longest."),
        DURATION_MS,
    ),
    primary_key=EVENT_KEY,
    constraints=(one_of("status", "succeeded", "failed", "skipped"),),
    write=BY_RUN,
    upkeep=NO_ZORDER,
)

VIEW_CACHE = Table(
    "view_cache",
    "observe",
    "One row per use of a cache boundary.",
    (
        *EVENT,
        TABLE_NAME,
        Column("policy", "string", "memory or delta_staging.", nullable=False),
        Column("location", "string", "Staging table below the lake; null in memory."),
        Column("fingerprint", "string", "What the cached rows were made from.", False, "Fingerprint"),
        Column("hit", "boolean", "The rows were there already.", nullable=False),
        Column("size_bytes", "bigint", "Size of the cached rows."),
    ),
    primary_key=EVENT_KEY,
    constraints=(
        one_of("policy", "memory", "delta_staging"),
        Constraint("size_counted", "size_bytes IS NULL OR size_bytes >= 0", "A size is not negative."),
    ),
    write=BY_RUN,
    upkeep=NO_ZORDER,
)

STATS_DECISIONS = Table(
    "stats_decisions",
    "observe",
    "One row per choice of the columns that get statistics.",
    (
        *EVENT,
        TABLE_NAME,
        Column("policy", "string", "off, explicit or auto.", nullable=False),
        strings("stats_columns", "Columns that get statistics."),
        strings("lineage_columns", "Columns later steps filter or join by."),
        Column("reasons", "map<string,string>", "Why each of them has statistics."),
        strings("dropped_columns", "Columns left out: over the limit, of a wrong type, or absent."),
    ),
    primary_key=EVENT_KEY,
    constraints=(one_of("policy", "off", "explicit", "auto"),),
    write=BY_RUN,
    upkeep=NO_ZORDER,
)

REFRESH_IMPACT = Table(
    "refresh_impact",
    "observe",
    "One row per file that a refresh has redone: why.",
    (
        RUN_ID,
        REPO_ID,
        PATH,
        Column(
            "reason",
            "string",
            "added, changed or removed; of a file that nobody has edited resolved, lost, star_import, "
            "import, class, value, moved, reference or witness.",
            nullable=False,
        ),
        Column("name", "string", "One of the names that lead elsewhere now.", semantic_type="QName"),
        Column("relations", "int", "Relations that lead elsewhere for this reason.", nullable=False),
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
    VIEW_CACHE,
    STATS_DECISIONS,
    REFRESH_IMPACT,
)
