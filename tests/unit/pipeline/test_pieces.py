"""Rows and other results travel in pieces of bounded size, and come out as they went in."""

from __future__ import annotations

import pyarrow as pa
import pytest

from codeanatomy.arrow import pack_rows
from codeanatomy.delta.log.entries import DataFile
from codeanatomy.pipeline.tasks.pieces import (
    COUNTS,
    DATA_FILE,
    DDL,
    PIECE_BYTES,
    PIECE_ROWS,
    SCHEMA,
    Piece,
    batches_of,
    counts_piece,
    cut,
    data_files,
    file_piece,
    in_batches,
    joined,
    row_pieces,
    sum_counts,
    to_batch,
)


@pytest.mark.parametrize(
    ("size", "parts"),
    [(0, 1), (1, 1), (PIECE_BYTES, 1), (PIECE_BYTES + 1, 2), (3 * PIECE_BYTES, 3), (3 * PIECE_BYTES + 5, 4)],
)
def test_a_stream_is_cut_and_joined(size: int, parts: int) -> None:
    data = bytes(number % 251 for number in range(997)) * (size // 997 + 1)
    pieces = list(cut("r", "0001", "program", data[:size], "key"))
    assert [(piece.part, piece.parts) for piece in pieces] == [(part, parts) for part in range(parts)]
    assert all(len(piece.data) <= PIECE_BYTES for piece in pieces)
    assert {piece[:4] for piece in pieces} == {("r", "0001", "key", "program")}
    assert list(joined(pieces)) == [("program", data[:size])]


def test_the_key_is_the_chunk_if_none_is_given() -> None:
    assert [piece.key for piece in cut("r", "0001", "program", b"")] == ["0001"]
    assert [piece.key for piece in cut("r", "0001", "program", b"", "")] == [""]


def test_streams_of_several_names_are_joined_by_themselves() -> None:
    large, small = bytes(PIECE_BYTES + 1), b"small"
    pieces = [
        *cut("r", "c", "one", small),
        *cut("r", "c", "two", large),
        *cut("r", "c", "two", small, "z"),
        *cut("r", "c", "three", large),
    ]
    assert [(name, len(data)) for name, data in joined(pieces)] == [
        ("one", len(small)),
        ("two", len(large)),
        ("two", len(small)),
        ("three", len(large)),
    ]


@pytest.mark.parametrize("lost", [0, 1, 2])
@pytest.mark.parametrize("others", [(), ("b",), ("b", "b")])
def test_a_stream_of_which_a_part_is_lost_is_an_error(lost: int, others: tuple[str, ...]) -> None:
    """Not fewer rows; the next stream may begin with the part that is due."""
    pieces = list(cut("r", "c", "a", bytes(2 * PIECE_BYTES + 1)))
    following = [piece for name in others for piece in cut("r", "c", name, bytes(2 * PIECE_BYTES + 1), "k")]
    del pieces[lost]
    with pytest.raises(ValueError, match=r"in r: parts are missing around [123] of 3"):
        list(joined([*pieces, *following[lost:]]))


def test_rows_of_a_flat_table_are_pieces_that_can_be_read_one_by_one() -> None:
    rows = pa.record_batch({"number": range(2 * PIECE_ROWS + 1)})
    pieces = list(row_pieces("r", "0001", "edges", rows, "a.py"))
    assert {piece.parts for piece in pieces} == {1}
    # Their keys keep the order, and differ from those of other files.
    keys = [piece.key for piece in pieces]
    assert keys == sorted(keys)
    assert all(key.startswith("a.py\t") for key in keys)
    lengths = [[batch.num_rows for batch in batches_of([piece])["edges"]] for piece in pieces]
    assert lengths == [[PIECE_ROWS], [PIECE_ROWS], [1]]
    assert pa.Table.from_batches(batches_of(pieces)["edges"]).column("number").to_pylist() == list(
        range(2 * PIECE_ROWS + 1)
    )
    assert list(row_pieces("r", "0001", "edges", rows.slice(0, 0))) == []


def test_rows_are_read_by_table() -> None:
    one, other = pa.record_batch({"x": [1, 2]}), pa.record_batch({"x": [3]})
    pieces = [
        *cut("r", "c", "a", pack_rows(one)),
        *cut("r", "c", "a", pack_rows(other), "later"),
        *cut("r", "c", "b", pack_rows(other)),
    ]
    assert {name: [rows.to_pydict() for rows in batches] for name, batches in batches_of(pieces).items()} == {
        "a": [{"x": [1, 2]}, {"x": [3]}],
        "b": [{"x": [3]}],
    }


def test_counts_of_tasks_are_added_by_repository() -> None:
    pieces = [
        counts_piece({"r": {"ast_files_v1": 2, "failures": 1}}),
        counts_piece({"r": {"ast_files_v1": 3}, "s": {"ast_files_v1": 7}}),
    ]
    assert {piece.name for piece in pieces} == {COUNTS}
    assert sum_counts(pieces) == {"r": {"ast_files_v1": 5, "failures": 1}, "s": {"ast_files_v1": 7}}
    assert sum_counts([]) == {}


def test_data_files_are_described_by_table() -> None:
    files = [DataFile(f"part-{number}.parquet", 10, number, "{}", {"k": "v"}) for number in range(3)]
    pieces = [file_piece("a", files[0]), file_piece("b", files[1]), file_piece("a", files[2])]
    assert {piece.name for piece in pieces} == {DATA_FILE}
    assert data_files(pieces) == {"a": [files[0], files[2]], "b": [files[1]]}


def test_pieces_are_rows_of_a_frame() -> None:
    pieces = [Piece("r", "0000", "k", "program", 0, 1, b"\x00\xff"), Piece("r", "", "", "counts", 0, 1, b"")]
    batch = to_batch(pieces)
    assert batch.schema.equals(SCHEMA)
    assert list(in_batches([batch, to_batch([])])) == pieces
    assert [column.split()[0] for column in DDL.split(", ")] == SCHEMA.names == list(Piece._fields)
