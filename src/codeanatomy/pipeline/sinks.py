"""Take the rows that a task makes: write them to data files at once, or pass them on as pieces.

    sink = Sink({"ast_files_v1": TableFolder(NewFiles("/lake/extract/ast_files_v1"), table)}).open()
    yield from sink.add("requests", "0012", "ast_files_v1", batch)     # nothing: written to a file
    yield from sink.add("requests", "0012", "cpg_edges", batch)        # pieces
    yield from sink.close()                                            # what was written

A task works on files in the order of the tables, so a table that is ordered by repository and file needs no
exchange and no sort: every task writes one data file of it. Files of a task that fails or is repeated are in
no log, so no reader sees them, and `vacuum` removes them. Tests: `tests/unit/pipeline/test_sinks.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa
from msgspec import Struct

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.folder import NewFiles
from codeanatomy.delta.write.data_files import TableWriter
from codeanatomy.pipeline.pieces import ROWS, Piece, file_piece, task_pieces


class TableFolder(NamedTuple):
    """Where files of a table are written, and the table with the write policy of the settings."""

    folder: NewFiles
    table: Table


class Sink(Struct, frozen=True):
    """The tables whose rows are written where they are made."""

    # Rows of other tables are passed on.
    targets: Mapping[str, TableFolder] = {}

    def open(self) -> OpenSink:
        """Return a sink for the rows of one task."""
        return OpenSink(self.targets)


class OpenSink:
    """The data files that a task is writing."""

    def __init__(self, targets: Mapping[str, TableFolder]) -> None:
        self._targets = targets
        self._writers: dict[str, TableWriter] = {}

    def add(self, repo_id: str, chunk: str, name: str, rows: pa.RecordBatch) -> Iterator[Piece]:
        """Write rows of a chunk of files, or yield them as pieces."""
        if not rows.num_rows:
            return
        if name not in self._targets:
            yield from task_pieces(repo_id, chunk, ROWS + name, rows)
            return
        if name not in self._writers:
            self._writers[name] = TableWriter(*self._targets[name])
        self._writers[name].add(rows)

    def close(self) -> Iterator[Piece]:
        """Finish the data files and describe them."""
        for name, writer in self._writers.items():
            for file in writer.close():
                yield file_piece(name, file)
