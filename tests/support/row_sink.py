"""Keep the rows that a task would write to data files, for tests of the stages.

pieces = list(GraphStage(..., sink=RowSink())(groups))
written(pieces)["diagnostics_norm_v1"]             # batches of rows
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from codeanatomy.pipeline.tasks.pieces import Piece, batches_of, task_pieces
from codeanatomy.pipeline.tasks.sinks import OpenSink, Sink

# Before the name of a table.
ROWS = "rows "


class KeptRows(OpenSink):
    """Rows of all tables, as pieces."""

    def __init__(self) -> None:
        super().__init__({})
        self.rows: list[tuple[str, pa.RecordBatch]] = []

    def add(self, name: str, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            self.rows.append((name, rows))

    def close(self) -> Iterator[Piece]:
        for name, rows in self.rows:
            yield from task_pieces("r", "0000", ROWS + name, rows)


class RowSink(Sink, frozen=True):
    """Opens `KeptRows`."""

    def open(self) -> OpenSink:
        return KeptRows()


def written(pieces: Iterable[Piece]) -> dict[str, list[pa.RecordBatch]]:
    """Return the rows that a task has given to the sink, by table."""
    batches = batches_of(piece for piece in pieces if piece.name.startswith(ROWS))
    return {name.removeprefix(ROWS): rows for name, rows in batches.items()}
