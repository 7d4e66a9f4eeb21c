from __future__ import annotations

import pyarrow as pa

from codeanatomy.query.answers import COLUMNS, Answer, place


def answer(*rows: dict[str, object]) -> Answer:
    columns = ("symbol", "line", "confidence", "test")
    return Answer("find", ("x",), (), columns, rows, len(rows), 0, None, (), "run", (), ())


def test_an_answer_is_its_rows() -> None:
    found = answer({"symbol": "a", "line": 1, "confidence": 1.0, "test": None})
    assert len(found) == 1
    assert [row["symbol"] for row in found] == ["a"]


def test_types_are_declared_and_not_guessed() -> None:
    empty = answer().to_arrow()
    assert empty.schema.types == [pa.string(), pa.int32(), pa.float64(), pa.bool_()]
    assert answer({"symbol": None, "line": None, "confidence": None, "test": None}).to_arrow().num_rows == 1


def test_columns_are_documented_and_no_words_of_sql() -> None:
    assert all(column.doc.endswith(".") for column in COLUMNS.values())
    assert not {"group", "references", "count", "order", "table"} & set(COLUMNS)


def test_places() -> None:
    assert place("a.py", 0) == "a.py:0"
