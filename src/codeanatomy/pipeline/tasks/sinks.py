"""Write the rows that a task makes to data files at once.

    sink = Sink({"ast_files_v1": TableFolder(NewFiles("/lake/extract/ast_files_v1"), table)}).open()
    sink.add("ast_files_v1", batch)      # to a file
    sink.add("cpg_edges", batch)         # nowhere: it is none of the sink's tables
    yield from sink.close()              # the data files that were written

A task works on files in the order of the tables, so a table that is ordered by repository and file needs no
exchange and no sort: every task writes one data file of it. Rows that a task does not make in this order,
such as failures, are few: they are sorted when they are written. Files of a task that fails or is repeated
are in no log, so no reader sees them, and `vacuum` removes them. Tests: `tests/unit/pipeline/test_sinks.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from msgspec import Struct

from codeanatomy.catalog.spec import Table
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.delta.log.folder import NewFiles
from codeanatomy.delta.write.data_files import TableWriter
from codeanatomy.pipeline.executors.sorted_tables import write_in_order
from codeanatomy.pipeline.tasks.pieces import MB, Piece, file_piece

# Arrow bytes of rows that are sorted before they are written: more are several files.
SORTED_BYTES = 64 * MB


class TableFolder(Struct, frozen=True):
    """Where files of a table are written, and the table with the write policy of the settings."""

    folder: NewFiles
    table: Table
    # Whether a task has its rows in the order of the table.
    is_in_order: bool = True
    # Columns with one value for all rows, which the rows of the tasks lack.
    constants: Mapping[str, str] = {}


class Sink(Struct, frozen=True):
    """The tables whose rows are written where they are made."""

    targets: Mapping[str, TableFolder] = {}

    def open(self) -> OpenSink:
        """Return a sink for the rows of one task."""
        return OpenSink(self.targets)


class OpenSink:
    """The data files that a task is writing."""

    def __init__(self, targets: Mapping[str, TableFolder]) -> None:
        self._targets = targets
        self._writers: dict[str, TableWriter] = {}
        # Rows that are sorted before they are written.
        self._unsorted: dict[str, list[pa.RecordBatch]] = {}
        self._written: dict[str, list[DataFile]] = {}

    def add(self, name: str, rows: pa.RecordBatch) -> None:
        """Write rows, if the table is one of the sink's."""
        target = self._targets.get(name)
        if target is None or not rows.num_rows:
            return
        if target.is_in_order:
            if name not in self._writers:
                self._writers[name] = TableWriter(target.folder, target.table)
            self._writers[name].add(rows)
            return
        waiting = self._unsorted.setdefault(name, [])
        waiting.append(rows)
        if sum(each.nbytes for each in waiting) >= SORTED_BYTES:
            self._write_sorted(name)

    def close(self) -> Iterator[Piece]:
        """Finish the data files and describe them."""
        for name in [*self._unsorted]:
            self._write_sorted(name)
        for name, writer in self._writers.items():
            self._written.setdefault(name, []).extend(writer.close())
        for name, files in self._written.items():
            for file in files:
                yield file_piece(name, file)

    def _write_sorted(self, name: str) -> None:
        target = self._targets[name]
        files = write_in_order(target.folder, target.table, self._unsorted.pop(name), target.constants)
        self._written.setdefault(name, []).extend(files)
