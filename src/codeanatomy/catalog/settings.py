"""What a user may change: extraction (`extract.`), refreshes (`refresh.`), what a run tells (`observe.`).

>>> ExtractOptions().max_file_size // 1024**2
8
>>> ObserveOptions(trace="otlp", endpoint="https://me:hush@collector:4318")
ObserveOptions(trace='otlp', endpoint='***', log_level='off', log_format='text', record_queries=False)
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

MB = 1024 * 1024
Size = Annotated[int, Meta(ge=1)]


class ExtractOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Which files are read, and how much one file may cost."""

    # Larger files are recorded and not read.
    max_file_size: Size = 8 * MB
    # Larger files are not given to LibCST, which takes 7 s and 700 MB for each MB.
    max_libcst_size: Size = 2 * MB
    # Seconds one witness may take for one file.
    file_seconds: Annotated[float, Meta(gt=0)] = 60.0
    # Memory that reading one file may take.
    max_memory_size: Size = 6 * 1024 * MB
    # Characters of a constant, and of the text of a captured node, that are kept.
    max_value_chars: Size = 256
    # Globs as in .gitignore: only these are read, if any are given.
    include: tuple[str, ...] = ()
    # ... and these are not.
    exclude: tuple[str, ...] = ()
    # Entries an archive may have, and bytes they may unpack to.
    max_archive_entries: Size = 200_000
    max_archive_size: Size = 2 * 1024 * MB
    # Seconds that scip-python may take for a repository.
    scip_seconds: Annotated[float, Meta(gt=0)] = 1800.0
    # Seconds that the type checker may take for a repository.
    types_seconds: Annotated[float, Meta(gt=0)] = 600.0
    # Tasks the files are spread over; none means by their size.
    partitions: Annotated[int, Meta(ge=1)] | None = None


class RefreshOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """When a build redoes what a change reaches, and when all of a repository."""

    # Of the paths of a repository, the share that may have changed; beyond it all of it is built anew.
    max_share: Annotated[float, Meta(ge=0, le=1)] = 0.4
    # Processes that a refresh uses; none means as many as there are cores.
    processes: Annotated[int, Meta(ge=1)] | None = None


class ObserveOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """What a run tells while it works, and what is kept of questions: all off by default."""

    # Spans of run, steps and commits: to stderr, or to an OpenTelemetry collector.
    trace: Literal["off", "console", "otlp"] = "off"
    # The collector, as in OTEL_EXPORTER_OTLP_ENDPOINT; empty means what that variable says.
    endpoint: Annotated[str, Meta(pattern="^(https?://[^/]+.*)?$")] = ""
    # What our own logger may write to stderr.
    log_level: Literal["off", "error", "warning", "info", "debug"] = "off"
    log_format: Literal["text", "json"] = "text"
    # Keep in the lake which columns questions filter and join by, without what was asked for: later builds
    # give these columns statistics.
    record_queries: bool = False

    def __repr__(self) -> str:
        # The address of a collector may hold a password, and this text may get into a log.
        hidden = "***" if self.endpoint else ""
        return (
            f"ObserveOptions(trace={self.trace!r}, endpoint={hidden!r}, "
            f"log_level={self.log_level!r}, log_format={self.log_format!r}, "
            f"record_queries={self.record_queries!r})"
        )
