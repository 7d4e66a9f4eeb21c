"""Apply the normalize rules to the files whose evidence changed.

    redone = normalize_files(run, refresh, files)
    refresh_normalize(run)                     # the same, committed

Tests: `tests/unit/pipeline/test_refresh.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from codeanatomy.arrow import pack_rows
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.node_ids import file_id
from codeanatomy.normalize.file_view import file_from_rows
from codeanatomy.normalize.rules import DIAGNOSTICS, FILE_TABLES, READS, file_rows
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.normalize_step import FILE_INPUTS
from codeanatomy.pipeline.refresh.processes import map_in_forks, processes_of
from codeanatomy.pipeline.refresh.refresh_state import Refresh
from codeanatomy.pipeline.refresh.row_streams import Streams, documents_in, joined, rows_in, streams_of
from codeanatomy.pipeline.refresh.write import Redone, replace_rows
from codeanatomy.plan.changes import FILES
from codeanatomy.plan.steps import NORMALIZE, RELATE


def refresh_normalize(run: Run) -> None:
    """Redo the files that changed; what relate adds to the diagnostics is committed with them there."""
    for refresh in run.refreshing(NORMALIZE):
        files = scope(refresh)
        with run.timed(NORMALIZE):
            made = normalize_files(run, refresh, files)
        run.progress.update(NORMALIZE, f"{len(files):,}/{len(files):,} files", last=True)
        refresh.diagnostics = made[DIAGNOSTICS]
        for name, rows in made.items():
            refresh.inputs.put(name, files, rows)
        redone = {name: Redone(rows, files) for name, rows in made.items()}
        if refresh.repo_id in run.refreshed_in(RELATE):
            del redone[DIAGNOSTICS]
        with run.timed("normalize_commit"):
            replace_rows(run, refresh, NORMALIZE, redone)


def scope(refresh: Refresh) -> frozenset[str]:
    """The files that are redone, including those that only a SCIP index contains."""
    return refresh.touched_in(FILES, SCIP) | missing_files(refresh)


def missing_files(refresh: Refresh) -> frozenset[str]:
    """The files that a SCIP index has or had documents of, but the repository lacks."""
    both = (_missing_documents(refresh, published=published) for published in (True, False))
    return frozenset(one for documents in both for one in documents)


def normalize_files(run: Run, refresh: Refresh, files: Collection[str]) -> dict[str, pa.Table]:
    """Normalize files: their rows, by table."""
    wanted = sorted(files)
    evidence = {name: refresh.inputs.of_files(name, wanted) for name in FILE_INPUTS}
    documents = _missing_documents(refresh)

    inputs: list[tuple[str, Streams]] = []
    for one in wanted:
        rows = {
            name: streams_of(rows_by_file[one])
            for name, rows_by_file in evidence.items()
            if one in rows_by_file
        }
        if SCIP not in rows and one in documents:
            rows[SCIP] = streams_of(documents[one])
        if FILES in rows or SCIP in rows:
            inputs.append((one, rows))
    made = run.worker.call(normalize_streams, inputs, processes_of(run.settings))
    return {name: joined(name, [each[name] for each in made]) for name in FILE_TABLES}


def normalize_streams(files: Sequence[tuple[str, Streams]], processes: int) -> list[dict[str, bytes]]:
    """Normalize packed evidence in forks; return the packed rows of each file, by table."""

    def make(number: int) -> dict[str, bytes]:
        file_id, streams = files[number]
        made = file_rows(file_from_rows(file_id, documents_in(rows_in(streams)), READS))
        return {name: pack_rows(batch) for name, batch in made.items()}

    return list(map_in_forks(make, len(files), processes))


def _missing_documents(refresh: Refresh, *, published: bool = False) -> Mapping[str, pa.Table]:
    """Documents of files that the repository lacks, by the file that each would be."""
    rows = refresh.inputs.unowned(SCIP, published=published)
    documents: dict[str, pa.Table] = {}
    for number, (path, kind) in enumerate(
        zip(rows.column("path").to_pylist(), rows.column("row_kind").to_pylist(), strict=True)
    ):
        if kind == "document":
            documents[file_id(refresh.repo_id, path)] = rows.slice(number, 1)
    return documents
