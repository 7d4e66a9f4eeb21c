"""Define the options of extraction (`extract.`), refreshes, tables (`delta.`) and observation (`observe.`).

>>> ExtractOptions().max_file_size // 1024**2
8
>>> ObserveOptions(trace="otlp", endpoint="https://me:hush@collector:4318")
ObserveOptions(trace='otlp', endpoint='***', log_level='off', log_format='text', record_queries=False)

Tests: `tests/unit/test_config.py`, `tests/unit/test_logs.py`, `tests/unit/test_tracing.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

MB = 1024 * 1024
Size = Annotated[int, Meta(ge=1)]


class ExtractOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Select the files to read, and limit the cost of one file."""

    # Larger files are recorded as skipped.
    max_file_size: Size = 8 * MB
    # Larger files are not parsed with LibCST, which takes 7 s and 700 MB for each MB.
    max_libcst_size: Size = 2 * MB
    # Time limit of one extractor on one file.
    file_seconds: Annotated[float, Meta(gt=0)] = 60.0
    # Memory limit of a worker process that extracts files, in bytes.
    max_memory_size: Size = 6 * 1024 * MB
    # Longer constants and texts of captured nodes are truncated.
    max_value_chars: Size = 256
    # Globs as in .gitignore; if any are given, only matching files are read.
    include: tuple[str, ...] = ()
    # Globs of files that are not read.
    exclude: tuple[str, ...] = ()
    # Limits of an archive: number of entries, and bytes after decompression.
    max_archive_entries: Size = 200_000
    max_archive_size: Size = 2 * 1024 * MB
    # Time limit of scip-python on a repository.
    scip_seconds: Annotated[float, Meta(gt=0)] = 1800.0
    # Time limit of the type checker on a repository.
    types_seconds: Annotated[float, Meta(gt=0)] = 600.0
    # Number of Spark tasks that extract files; None derives it from their total size.
    partitions: Annotated[int, Meta(ge=1)] | None = None


class RefreshOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Choose between refreshing the affected files and rebuilding a repository."""

    # Largest share of a repository's paths that may have changed; beyond it the repository is rebuilt.
    max_share: Annotated[float, Meta(ge=0, le=1)] = 0.4
    # Local processes; None means one per core.
    processes: Annotated[int, Meta(ge=1)] | None = None


# modern: rows leave tables by deletion vectors; all: data files are rewritten, and every reader opens them.
Readers = Literal["modern", "all"]


class DeltaOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Choose which readers open the tables of a lake; the rows are the same."""

    # None: as the lake is; a new lake is for all readers.
    readers: Readers | None = None


class ObserveOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Configure traces, logs and the recording of queries; all off by default."""

    # Export spans of the run, its steps and commits: to stderr, or to an OpenTelemetry collector.
    trace: Literal["off", "console", "otlp"] = "off"
    # URL of the collector, as in OTEL_EXPORTER_OTLP_ENDPOINT; empty means the value of that variable.
    endpoint: Annotated[str, Meta(pattern="^(https?://[^/]+.*)?$")] = ""
    # Lowest level that the logger `codeanatomy` writes to stderr.
    log_level: Literal["off", "error", "warning", "info", "debug"] = "off"
    log_format: Literal["text", "json"] = "text"
    # Record in the lake which columns queries filter and join by, without the compared values; later builds
    # collect statistics for these columns.
    record_queries: bool = False

    def __repr__(self) -> str:
        # The URL may contain a password, and a repr may be logged.
        hidden = "***" if self.endpoint else ""
        return (
            f"ObserveOptions(trace={self.trace!r}, endpoint={hidden!r}, "
            f"log_level={self.log_level!r}, log_format={self.log_format!r}, "
            f"record_queries={self.record_queries!r})"
        )
