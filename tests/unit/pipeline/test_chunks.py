"""Files are divided into chunks by their ids: about equally, in their order, the same everywhere."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.node_ids import file_id
from codeanatomy.pipeline.tasks.chunks import (
    CHUNK_BYTES,
    CHUNK_FILES,
    MOST_CHUNKS,
    chunk_count,
    chunk_name,
    owner_column,
    rows_by_chunk,
)

IDS = sorted(file_id("r", f"folder{number % 7}/module{number}.py") for number in range(3000))


@pytest.mark.parametrize(
    ("files", "size", "chunks"),
    [
        (0, 0, 1),
        (1, 1, 1),
        (CHUNK_FILES, CHUNK_BYTES, 1),
        (CHUNK_FILES + 1, 0, 2),
        (1, CHUNK_BYTES + 1, 2),
        (10 * CHUNK_FILES, 3 * CHUNK_BYTES, 10),
        (10**9, 10**15, MOST_CHUNKS),
    ],
)
def test_the_number_of_chunks_follows_from_files_and_bytes(files: int, size: int, chunks: int) -> None:
    assert chunk_count(files, size) == chunks


@pytest.mark.parametrize("chunks", [1, 2, 7, 100, MOST_CHUNKS])
def test_chunks_are_in_the_order_of_ids_and_about_equal(chunks: int) -> None:
    names = [chunk_name(each, chunks) for each in IDS]
    assert names == sorted(names)
    assert all(0 <= int(name) < chunks and len(name) == 4 for name in names)
    if chunks <= 100:
        sizes = Counter(names)
        assert len(sizes) == chunks
        assert max(sizes.values()) < 2 * len(IDS) / chunks + 10


def relations(*owners: str | None) -> pa.RecordBatch:
    cells = [{"owner_file_id": owner, "src_id": str(number)} for number, owner in enumerate(owners)]
    schema = arrow_schema(catalog.table("cpg_nodes"))
    return pa.RecordBatch.from_pylist(
        cells, pa.schema([schema.field("owner_file_id"), pa.field("src_id", pa.string())])
    )


def test_rows_are_divided_by_the_chunk_of_their_file() -> None:
    owners = [IDS[0], IDS[-1], None, IDS[0], IDS[1500]]
    parts = dict(rows_by_chunk("cpg_nodes", relations(*owners), 7))
    assert sum(rows.num_rows for rows in parts.values()) == len(owners)
    for chunk, rows in parts.items():
        for owner in rows.column("owner_file_id").to_pylist():
            assert chunk == ("" if owner is None else chunk_name(owner, 7))
    assert parts[chunk_name(IDS[0], 7)].column("src_id").to_pylist() == ["0", "3"]
    # Rows of a single chunk are not copied.
    one = relations(IDS[0], IDS[0])
    assert [rows is one for _, rows in rows_by_chunk("cpg_nodes", one, 7)] == [True]
    assert list(rows_by_chunk("cpg_nodes", relations(), 7)) == []


def test_a_document_of_an_absent_file_is_in_the_chunk_that_the_file_would_be_in() -> None:
    rows = pa.RecordBatch.from_pylist(
        [
            {"repo_id": "r", "path": "here.py", "file_id": file_id("r", "here.py")},
            {"repo_id": "r", "path": "absent.py", "file_id": None},
        ],
        pa.schema([("repo_id", pa.string()), ("path", pa.string()), ("file_id", pa.string())]),
    )
    parts = {chunk: part.column("path").to_pylist() for chunk, part in rows_by_chunk(SCIP, rows, MOST_CHUNKS)}
    assert parts == {chunk_name(file_id("r", path), MOST_CHUNKS): [path] for path in ("here.py", "absent.py")}


def test_a_table_whose_rows_have_no_file() -> None:
    assert owner_column(catalog.table("cpg_nodes")) == "owner_file_id"
    with pytest.raises(ValueError, match="no owner"):
        owner_column(catalog.table("extract_error_artifacts"))
