"""Declare the tables about runs: manifest, lease, extraction failures and change-feed cursors.

A build of two repositories appends two rows to `run_manifest` in one commit, its last. A reader takes the
newest succeeded row of a repository and opens every table at the version it pins.

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.spec import MB, Column, Constraint, DeltaMaintenancePolicy, DeltaWritePolicy, Table
from codeanatomy.catalog.tables.columns import NO_ZORDER, REPO_ID, RUN_ID, one_of, span, strings, structs
from codeanatomy.catalog.tables.observe import TABLES as OBSERVE_TABLES

TABLE_NAME = Column("table_name", "string", "Name of the table.")
VERSION = Column("version", "bigint", "Delta version.")

RUN_MANIFEST = Table(
    "run_manifest",
    "meta",
    "One row per run and repository; the newest succeeded row of a repository is its published snapshot.",
    (
        RUN_ID,
        REPO_ID,
        Column("repo_root", "string", "Location of the source when it was built."),
        Column("git_commit", "string", "Git commit of the source; null outside of git."),
        Column(
            "source_digest",
            "string",
            "Digest of the paths and bytes that were read.",
            semantic_type="Fingerprint",
        ),
        Column("status", "string", "succeeded, failed or cancelled.", nullable=False),
        Column("mode", "string", "full, incremental, maintenance or restore.", nullable=False),
        Column("started_at", "timestamp", "Start of the run.", nullable=False),
        Column("finished_at", "timestamp", "End of the run.", nullable=False),
        Column("error", "string", "Error message; null if the run succeeded."),
        Column("profile_hash", "string", "Hash of the runtime profile.", False, "Fingerprint"),
        Column(
            "settings_hash",
            "string",
            "Hash of the settings that can change results.",
            semantic_type="Fingerprint",
        ),
        Column(
            "settings", "map<string,string>", "Settings that were set; of storage options without the values."
        ),
        Column("catalog_hash", "string", "Hash of the contracts of all tables.", semantic_type="Fingerprint"),
        Column("id_version", "int", "Version of the recipe of ids; null in rows from before version 2."),
        Column("witness_versions", "map<string,string>", "Version of each extractor and tool."),
        Column(
            "plan_fingerprints",
            "map<string,string>",
            "Fingerprint of each step, executed in this run or an earlier one.",
        ),
        Column(
            "rule_fingerprints",
            "map<string,string>",
            "Fingerprint of the code and settings of each step, independent of the source.",
        ),
        structs("input_pins", "Table versions at the start of the run.", TABLE_NAME, VERSION),
        structs(
            "output_pins",
            "Table versions that a reader of this run opens.",
            TABLE_NAME,
            VERSION,
            Column("rows", "bigint", "Number of rows of the table at that version."),
            Column("min_reader_version", "int", "Minimum protocol version for readers."),
            Column("min_writer_version", "int", "Minimum protocol version for writers."),
            strings("features", "Protocol features of the table."),
        ),
        Column("row_counts", "map<string,bigint>", "Number of rows of this repository in each table."),
        structs(
            "change_windows",
            "Change feed windows that the run consumed.",
            TABLE_NAME,
            Column("from_version", "bigint", "First version read."),
            Column("to_version", "bigint", "Last version read."),
        ),
        Column(
            "artifact_ids",
            "map<string,string>",
            "Id of each step's plan artifact, of this run or an earlier one.",
        ),
        Column("error_counts", "map<string,bigint>", "Number of failures, by extractor."),
        Column("step_ms", "map<string,bigint>", "Duration of each step in milliseconds."),
        Column("trace_id", "string", "OpenTelemetry trace id of the run; null if tracing was off."),
        Column(
            "engine",
            "string",
            "spark, or local (processes of one machine); null for maintenance, restores and older runs.",
        ),
        Column("master", "string", "Master of the Spark session, without credentials; null for local."),
        Column(
            "session_kind",
            "string",
            "own (started by the build), given (a caller's) or connect (Spark Connect); null for local.",
        ),
        Column("spark_version", "string", "Version of Spark; null for local."),
        Column("delta_version", "string", "Version of Delta in the Spark session; null for local."),
    ),
    primary_key=("run_id", "repo_id"),
    constraints=(
        one_of("status", "succeeded", "failed", "cancelled"),
        one_of("mode", "full", "incremental", "maintenance", "restore"),
        one_of("engine", "spark", "local", nullable=True),
        one_of("session_kind", "own", "given", "connect", nullable=True),
        Constraint("time_ordered", "finished_at >= started_at", "A run does not end before it begins."),
        Constraint(
            "failed_has_error",
            "status <> 'failed' OR error IS NOT NULL",
            "A failed run has an error message.",
        ),
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
        Column(
            "extractor_name", "string", "Table of the extractor that failed, or its name.", nullable=False
        ),
        Column("path", "string", "File or index that was being read.", False, "Path"),
        Column("error_index", "int", "Number of the failure for that path, from 0.", nullable=False),
        Column("error_type", "string", "Exception class or reason, such as SyntaxError or too_large.", False),
        Column("message", "string", "Error message.", nullable=False),
        Column(
            "file_id", "string", "Id of the file; null if it is not a source file.", semantic_type="FileId"
        ),
        Column(
            "file_sha256", "string", "SHA-256 of the raw bytes, if they were read.", semantic_type="Sha256"
        ),
        Column("line", "int", "Line of the failure, counted from 1.", semantic_type="LineNo1"),
        *span(of="the failure"),
    ),
    primary_key=("run_id", "repo_id", "extractor_name", "path", "error_index"),
    constraints=(Constraint("error_counted", "error_index >= 0", "Failures are numbered from 0."),),
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
    "One row per change feed, step, repository and run: the last version that the step has processed.",
    (
        Column("dataset", "string", "Table of the change feed.", nullable=False),
        Column("consumer", "string", "Step that reads the feed.", nullable=False),
        REPO_ID,
        Column("last_version", "bigint", "Newest Delta version that was processed.", nullable=False),
        Column(
            "run_id",
            "string",
            "Run after which the step is there; the row counts if that run is published.",
            False,
            "RunId",
        ),
        Column(
            "rule_fingerprint",
            "string",
            "Fingerprint of the step's code and settings with which it has processed the changes.",
            nullable=False,
        ),
    ),
    primary_key=("dataset", "consumer", "repo_id", "run_id"),
    constraints=(Constraint("version_counted", "last_version >= 0", "Delta versions count from 0."),),
    write=DeltaWritePolicy(target_file_size=32 * MB, zorder_by=("run_id", "repo_id")),
    upkeep=NO_ZORDER,
)

RUN_LEASE = Table(
    "run_lease",
    "meta",
    "A single row: the run that writes to the lake, or the last one that did, with its journal.",
    (
        RUN_ID,
        Column("state", "string", "held or released.", nullable=False),
        Column("host", "string", "Host name of the holder.", nullable=False),
        Column("process", "string", "Unique id of the holder's process, across machines.", nullable=False),
        strings("repo_ids", "Repositories that the run builds."),
        Column("acquired_at", "timestamp", "When the lease was acquired.", nullable=False),
        Column("heartbeat_at", "timestamp", "Time of the last heartbeat.", nullable=False),
        Column(
            "ttl_seconds",
            "int",
            "Seconds without a heartbeat after which another run may take the lease.",
            nullable=False,
        ),
        Column(
            "base_run_id",
            "string",
            "Published run that it builds on; at the end, the run itself.",
            semantic_type="RunId",
        ),
        structs(
            "steps",
            "Completed steps, by repository.",
            Column("step_name", "string", "Step of the run."),
            Column("repo_id", "string", "Repository.", semantic_type="RepoId"),
            Column("fingerprint", "string", "Fingerprint of the step's inputs.", semantic_type="Fingerprint"),
            Column("made_by", "string", "Run that executed the step, if another.", semantic_type="RunId"),
            Column(
                "rows",
                "map<string,bigint>",
                "Number of rows of the repository in each table, and of its failures.",
            ),
        ),
        structs(
            "pins",
            "Table versions after those steps.",
            Column("step_name", "string", "Step of the run."),
            TABLE_NAME,
            VERSION,
        ),
    ),
    primary_key=("run_id",),
    constraints=(
        one_of("state", "held", "released"),
        Constraint("beats_after", "heartbeat_at >= acquired_at", "A heartbeat is not older than the lease."),
        Constraint("ttl_counted", "ttl_seconds >= 1", "A lease lasts at least one second."),
    ),
    write=DeltaWritePolicy(target_file_size=32 * MB),
    # Only the newest version is ever read, and the holder of the lease vacuums the table.
    upkeep=DeltaMaintenancePolicy(z_order_when="never", vacuum_hours=24, log_hours=24),
)

# Rows of all runs: no run pins these tables, and they are read at their newest version.
RECORDS = (*OBSERVE_TABLES, RUN_MANIFEST, CDF_CURSORS)
TABLES = (RUN_MANIFEST, RUN_LEASE, EXTRACT_ERROR_ARTIFACTS, CDF_CURSORS)
