"""Rows of a task become data files of their table."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import json, structs

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.log.folder import NewFiles
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.tasks import sinks
from codeanatomy.pipeline.tasks.pieces import DATA_FILE, data_files
from codeanatomy.pipeline.tasks.sinks import SORTED_BYTES, Sink, TableFolder

LINES = "file_line_index_v1"
TABLE = catalog.table(LINES)


def lines(path: str, count: int) -> pa.RecordBatch:
    """Rows of the line index, with values for what a table requires."""
    samples: dict[str, Any] = {"string": "x", "int": 0, "long": 0, "boolean": False}
    cells = [
        {
            **{
                column.name: None if column.nullable else samples.get(str(column.type))
                for column in TABLE.columns
            },
            "repo_id": "r",
            "path": path,
            "file_id": file_id("r", path),
            "line_no": number,
        }
        for number in range(count)
    ]
    return pa.RecordBatch.from_pylist(cells, arrow_schema(TABLE))


def test_rows_of_a_local_table_are_in_one_data_file_of_the_task(tmp_path: Path) -> None:
    sink = Sink({LINES: TableFolder(NewFiles(str(tmp_path)), TABLE)}).open()
    sink.add(LINES, lines("a.py", 3))
    sink.add(LINES, lines("b.py", 2))
    sink.add(LINES, lines("c.py", 0))
    pieces = list(sink.close())
    assert [piece.name for piece in pieces] == [DATA_FILE]
    [file] = data_files(pieces)[LINES]
    assert file.rows == 5
    rows = pq.read_table(tmp_path / file.path)
    assert rows.column("path").to_pylist() == ["a.py"] * 3 + ["b.py"] * 2
    assert rows.column("line_no").to_pylist() == [0, 1, 2, 0, 1]


def test_rows_of_other_tables_are_written_nowhere() -> None:
    sink = Sink().open()
    sink.add(LINES, lines("a.py", 2))
    assert list(sink.close()) == []


def test_rows_in_no_order_are_sorted_and_completed(tmp_path: Path) -> None:
    """More than fit into memory are several files, each in order."""
    lacking = [lines(path, 2).drop_columns(["file_sha256"]) for path in ("b.py", "a.py", "c.py")]
    for most, files in ((SORTED_BYTES, 1), (1, 3)):
        with patch.object(sinks, "SORTED_BYTES", most):
            folder = TableFolder(NewFiles(str(tmp_path / str(most))), TABLE, False, {"file_sha256": "0f"})
            sink = Sink({LINES: folder}).open()
            for batch in lacking:
                sink.add(LINES, batch)
            written = data_files(sink.close())[LINES]
        assert len(written) == files
        tables = [pq.read_table(tmp_path / str(most) / file.path) for file in written]
        for table in tables:
            ids = table.column("file_id").to_pylist()
            assert ids == sorted(ids)
            assert set(table.column("file_sha256").to_pylist()) == {"0f"}
        assert sum(table.num_rows for table in tables) == 6


def test_the_policy_of_the_table_decides_about_statistics(tmp_path: Path) -> None:
    """Settings may give a table another policy than the catalogue."""
    bounds = []
    for columns in (("repo_id", "path"), ("path",)):
        table = structs.replace(TABLE, write=structs.replace(TABLE.write, stats_columns=columns))
        sink = Sink({LINES: TableFolder(NewFiles(str(tmp_path)), table)}).open()
        sink.add(LINES, lines("a.py", 1))
        [file] = data_files(sink.close())[LINES]
        bounds.append(set(json.decode(file.stats or "{}")["minValues"]))
    assert bounds == [{"repo_id", "path"}, {"path"}]


def test_two_tasks_write_two_files(tmp_path: Path) -> None:
    sink = Sink({LINES: TableFolder(NewFiles(str(tmp_path)), TABLE)})
    files = []
    for _ in range(2):
        opened = sink.open()
        opened.add(LINES, lines("a.py", 1))
        files += data_files(opened.close())[LINES]
    assert len({file.path for file in files}) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(file.path for file in files)
