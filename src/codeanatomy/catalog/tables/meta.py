"""Tables about runs: what was built from what, what failed, and how far change feeds were read.

A build of two repositories appends two rows to `run_manifest` in one commit, its last. A reader takes the
newest succeeded row of a repository and opens every table at the version it pins.

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import MB, Column, Constraint, DeltaMaintenancePolicy, DeltaWritePolicy, Table
from codeanatomy.catalog.tables.columns import NO_ZORDER, REPO_ID, RUN_ID, one_of, span, strings, structs

TABLE_NAME = Column("table_name", "string", "Name of the table.")
VERSION = Column("version", "bigint", "Delta version.")

RUN_MANIFEST = Table(
    "run_manifest",
    "meta",
    "One row per run and repository that it built; the newest succeeded one is the published snapshot.",
    (
        RUN_ID,
        REPO_ID,
        Column("repo_root", "string", "Where the source was when it was built."),
        Column("git_commit", "string", "Commit the source was at; null outside git."),
        Column("source_digest", "string", "Paths and bytes that were read.", semantic_type="Fingerprint"),
        Column("status", "string", "succeeded, failed or cancelled.", nullable=False),
        Column("mode", "string", "full, incremental, maintenance or restore.", nullable=False),
        Column("started_at", "timestamp", "Begin of the run.", nullable=False),
        Column("finished_at", "timestamp", "End of the run.", nullable=False),
        Column("error", "string", "What stopped it; null if it succeeded."),
        Column("profile_hash", "string", "Runtime profile.", False, "Fingerprint"),
        Column("settings_hash", "string", "Settings that can change results.", semantic_type="Fingerprint"),
        Column("catalog_hash", "string", "Contracts of all tables.", semantic_type="Fingerprint"),
        Column("witness_versions", "map<string,string>", "Version of each witness."),
        Column("plan_fingerprints", "map<string,string>", "Fingerprint of each step, done now or before."),
        Column("rule_fingerprints", "map<string,string>", "The same of what each step does to any source."),
        structs("input_pins", "Table versions the run began with.", TABLE_NAME, VERSION),
        structs(
            "output_pins",
            "Table versions a reader of this run opens.",
            TABLE_NAME,
            VERSION,
            Column("rows", "bigint", "Rows of the whole table at that version."),
            Column("min_reader_version", "int", "Protocol a reader needs."),
            Column("min_writer_version", "int", "Protocol a writer needs."),
            strings("features", "Protocol features of the table."),
        ),
        Column("row_counts", "map<string,bigint>", "Rows of this repository in each table."),
        structs(
            "change_windows",
            "Change feeds the run consumed.",
            TABLE_NAME,
            Column("from_version", "bigint", "First version read."),
            Column("to_version", "bigint", "Last version read."),
        ),
        Column("artifact_ids", "map<string,string>", "Plan artifact of each step, of this run or before."),
        Column("error_counts", "map<string,bigint>", "Failures, by extractor."),
        Column("step_ms", "map<string,bigint>", "Milliseconds each step took."),
        Column("trace_id", "string", "Trace of the run; null if tracing was off."),
    ),
    primary_key=("run_id", "repo_id"),
    constraints=(
        one_of("status", "succeeded", "failed", "cancelled"),
        one_of("mode", "full", "incremental", "maintenance", "restore"),
        Constraint("time_ordered", "finished_at >= started_at", "A run does not end before it begins."),
        Constraint("failed_has_error", "status <> 'failed' OR error IS NOT NULL", "A failed run says why."),
    ),
    write=DeltaWritePolicy(
        target_file_size=32 * MB,
        zorder_by=("run_id", "started_at"),
        stats_policy="explicit",
        stats_columns=("run_id", "started_at", "status"),
    ),
    upkeep=NO_ZORDER,
)

EXTRACT_ERROR_ARTIFACTS = Table(
    "extract_error_artifacts",
    "meta",
    "One row per failure of an extractor on a file or an index.",
    (
        RUN_ID,
        REPO_ID,
        Column("extractor_name", "string", "Table whose extractor failed, or its witness.", nullable=False),
        Column("path", "string", "What it was reading.", False, "Path"),
        Column("error_index", "int", "Number of the failure for that path, from 0.", nullable=False),
        Column("error_type", "string", "Class or reason, such as SyntaxError or too_large.", False),
        Column("message", "string", "What happened.", nullable=False),
        Column("file_id", "string", "The file; null if it is not a source.", semantic_type="FileId"),
        Column("file_sha256", "string", "Digest of the bytes, if they were read.", semantic_type="Sha256"),
        Column("line", "int", "Line it points at, counted from 1.", semantic_type="LineNo1"),
        *span(of="the place it points at"),
    ),
    primary_key=("run_id", "repo_id", "extractor_name", "path", "error_index"),
    constraints=(Constraint("error_counted", "error_index >= 0", "Failures are counted from 0."),),
    write=DeltaWritePolicy(
        target_file_size=64 * MB,
        zorder_by=("run_id", "extractor_name", "path"),
        stats_policy="explicit",
        stats_columns=("run_id", "extractor_name", "error_type", "path"),
    ),
    upkeep=NO_ZORDER,
)

CDF_CURSORS = Table(
    "cdf_cursors",
    "meta",
    "One row per change feed, consumer and repository: how far it was read.",
    (
        Column("dataset", "string", "Table whose change feed is read.", nullable=False),
        Column("consumer", "string", "Step that reads it.", nullable=False),
        REPO_ID,
        Column("last_version", "bigint", "Newest Delta version consumed.", nullable=False),
        Column("run_id", "string", "Run that consumed it.", False, "RunId"),
    ),
    primary_key=("dataset", "consumer", "repo_id"),
    constraints=(Constraint("version_counted", "last_version >= 0", "Delta versions count from 0."),),
    write=DeltaWritePolicy(target_file_size=32 * MB, zorder_by=("dataset", "repo_id")),
    upkeep=NO_ZORDER,
)

RUN_LEASE = Table(
    "run_lease",
    "meta",
    "One row: the run that writes to the lake, or the last that did, and how far it is.",
    (
        RUN_ID,
        Column("state", "string", "held or released.", nullable=False),
        Column("host", "string", "Machine of the holder.", nullable=False),
        Column("process", "string", "The holder among all processes of all machines.", nullable=False),
        strings("repo_ids", "Repositories it builds."),
        Column("acquired_at", "timestamp", "When it got the lease.", nullable=False),
        Column("heartbeat_at", "timestamp", "When it last said that it lives.", nullable=False),
        Column("ttl_seconds", "int", "Silence after which others may take the lease.", nullable=False),
        Column(
            "base_run_id", "string", "Published run it builds on; at its end itself.", semantic_type="RunId"
        ),
        structs(
            "steps",
            "Steps it has done, by repository.",
            Column("step_name", "string", "Step of the run."),
            Column("repo_id", "string", "Repository.", semantic_type="RepoId"),
            Column("fingerprint", "string", "What it was made from.", semantic_type="Fingerprint"),
            Column("made_by", "string", "Run that did it, if another.", semantic_type="RunId"),
            Column("rows", "map<string,bigint>", "Rows of the repository in each table, and its failures."),
        ),
        structs(
            "pins",
            "Table versions that those steps left.",
            Column("step_name", "string", "Step of the run."),
            TABLE_NAME,
            VERSION,
        ),
    ),
    primary_key=("run_id",),
    constraints=(
        one_of("state", "held", "released"),
        Constraint("beats_after", "heartbeat_at >= acquired_at", "A holder lives after it was born."),
        Constraint("ttl_counted", "ttl_seconds >= 1", "A lease is held for some time."),
    ),
    write=DeltaWritePolicy(target_file_size=32 * MB),
    # Only the newest version is ever read, and whoever holds the lease tidies up.
    upkeep=DeltaMaintenancePolicy(z_order_when="never", vacuum_hours=24, log_hours=24),
)

TABLES = (RUN_MANIFEST, RUN_LEASE, EXTRACT_ERROR_ARTIFACTS, CDF_CURSORS)
