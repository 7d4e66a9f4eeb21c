"""Conditions: what is understood of a text, what is refused, and what one may be for the rows of a file."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import Any

import duckdb
import pytest

from codeanatomy import catalog
from codeanatomy.catalog.spec import Column
from codeanatomy.delta.read.column_ranges import (
    ANY_VALUE,
    ONLY_NULL,
    ColumnRange,
    range_from_partition,
    range_from_statistics,
)
from codeanatomy.delta.read.predicate import DUCKDB, FALSE, NULL, SPARK, TRUE, And, Constant, Not, Or, Term
from codeanatomy.delta.read.predicate_text import parse_predicate
from codeanatomy.errors import PredicateError

NODES = catalog.table("cpg_nodes")
RUNS = catalog.table("run_manifest")
TEXT, WHOLE = Column("text", "string", "."), Column("whole", "bigint", ".")
NUMBER, FLAG = Column("number", "double", "."), Column("flag", "boolean", ".")
TIME = Column("time", "timestamp", ".")


# What is understood.


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("PATH = 'a.py'", "`path` = 'a.py'"),
        ("cpg_nodes.Path == 'a.py'", "`path` = 'a.py'"),
        ("'a.py' = path", "`path` = 'a.py'"),
        ("5 < bstart", "`bstart` > 5"),
        ("bstart >= 5L", "`bstart` >= 5"),
        ("bstart = -5", "`bstart` = -5"),
        ("bstart != 5", "(NOT `bstart` = 5)"),
        ("bstart <=> 5", "`bstart` <=> 5"),
        ("bstart <=> NULL", "`bstart` IS NULL"),
        ("bstart IS DISTINCT FROM 5", "(NOT `bstart` <=> 5)"),
        ("bstart = NULL", "CAST(NULL AS BOOLEAN)"),
        ("bstart IN (3, 1, 3, NULL)", "`bstart` IN (1, 3, NULL)"),
        ("bstart NOT IN (3)", "(NOT `bstart` IN (3))"),
        ("bstart BETWEEN 1 AND 2", "(`bstart` >= 1 AND `bstart` <= 2)"),
        ("NOT bstart BETWEEN 1 AND NULL", "(NOT (`bstart` >= 1 AND CAST(NULL AS BOOLEAN)))"),
        ("path IS NOT NULL", "(NOT `path` IS NULL)"),
        ("path LIKE 'a/%'", "startswith(`path`, 'a/')"),
        ("path LIKE 'a'", "`path` = 'a'"),
        ("path NOT LIKE 'a%'", "(NOT startswith(`path`, 'a'))"),
        ("startswith(path, 'a')", "startswith(`path`, 'a')"),
        ("((path = 'a')) AND TRUE OR FALSE", "((`path` = 'a' AND TRUE) OR FALSE)"),
        ("path = 'it\\'s ${HOME}'", "`path` = CAST(X'6974277320247b484f4d457d' AS STRING)"),
        ("path = 'a' -- not read", "`path` = 'a'"),
    ],
)
def test_what_is_understood(text: str, written: str) -> None:
    found = parse_predicate(NODES, text)
    assert found.sql() == written
    # What was written means the same, but for texts that went by their bytes.
    assert "X'" in written or parse_predicate(NODES, written) == found


@pytest.mark.parametrize(
    "text",
    [
        "upper(path) = 'A'",
        "path = qualname",
        "bstart + 1 = 2",
        "bstart = 1.5",
        "bstart = '5'",
        "bstart = CAST('5' AS BIGINT)",
        "bstart = 3000000000::INT",
        "path = 5",
        "path LIKE 'a_c%'",
        "path LIKE 'a%c'",
        "path LIKE 'a\\\\%'",
        "path LIKE 'a!%' ESCAPE '!'",
        "path LIKE ANY ('a%', 'b%')",
        "bstart BETWEEN SYMMETRIC 2 AND 1",
        "path RLIKE '^a'",
        "path ILIKE 'a%'",
        "path IN ('a', qualname)",
        "1 = 1",
    ],
)
def test_what_is_not_understood_may_be_anything(text: str) -> None:
    found = parse_predicate(NODES, text)
    for column_range in (ANY_VALUE, ONLY_NULL, ColumnRange("z", "z", nulls=False)):
        assert (
            found.term.outcomes(dict.fromkeys(NODES.column_names, column_range).__getitem__)
            == TRUE | FALSE | NULL
        )


def test_columns_and_shape_have_no_values() -> None:
    found = parse_predicate(
        NODES, "Path = 'secret' AND (bstart < 41 OR upper(NAME) = 'secret') AND node_kind IN ('secret', 'x')"
    )
    assert found.columns == ("path", "bstart", "name", "node_kind")
    assert found.shape == ("path = ?", "(bstart < ? OR (UPPER(name) = ?))", "node_kind IN (?)")


def test_values_of_other_types() -> None:
    assert parse_predicate(RUNS, "started_at >= TIMESTAMP '2026-05-01 12:00:00+02:00'").sql() == (
        "`started_at` >= TIMESTAMP '2026-05-01 10:00:00+00:00'"
    )
    # Without a zone it is UTC, whatever the zone of a session.
    assert parse_predicate(RUNS, "started_at < '2026-05-01'").sql(DUCKDB) == (
        "\"started_at\" < TIMESTAMPTZ '2026-05-01 00:00:00+00:00'"
    )
    assert "CAST('2026' AS" in parse_predicate(RUNS, "started_at < timestamp '2026'").sql()
    assert parse_predicate(RUNS, "output_pins IS NULL").columns == ("output_pins",)
    assert parse_predicate(RUNS, "output_pins[0].table_name = 'x'").columns == ("output_pins",)
    edges = catalog.table("cpg_edges")
    assert parse_predicate(edges, "confidence > 0.5 AND confidence < 1").sql() == (
        "(`confidence` > 0.5D AND `confidence` < 1.0D)"
    )


def test_each_engine_reads_its_spelling() -> None:
    text = "path LIKE 'it\\'s%' AND NOT line <=> 3 AND path IN ('b', 'a\"')"
    found = parse_predicate(NODES, text).sql(DUCKDB)
    rows = "(VALUES ('it''s', 3), ('it''s', NULL), ('a\"', 1), (NULL, 2)) AS t (path, line)"
    assert duckdb.execute(f"SELECT count(*) FROM {rows} WHERE {found}").fetchall() == [(0,)]
    found = found.replace(" AND \"path\" IN ('a\"', 'b')", "")
    assert duckdb.execute(f"SELECT * FROM {rows} WHERE {found}").fetchall() == [("it's", None)]


# What is refused.


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("path =", "is not a condition"),
        ("path = 'a", "is not a condition"),
        ("path = 'a' ORDER BY path", "is not a condition"),
        ("path = 'a') OR (TRUE", "is not a condition"),
        ("SELECT 1", "is not a condition"),
        ("DROP TABLE x", "is not a condition"),
        ("path = 'a'; line = 3", "several statements"),
        ("path IN ()", "IN has no values"),
        ("path IN (SELECT 1)", "a subquery"),
        ("EXISTS (SELECT 1)", "a subquery"),
        ("line = (SELECT 1)", "a subquery"),
        ("count(*) > 1", "an aggregate"),
        ("max(line) > 1", "an aggregate"),
        ("row_number() OVER (ORDER BY line) = 1", "a window"),
        ("explode(path) = 1", "table function"),
        ("path = ?", "a parameter"),
        ("path = :a", "a parameter"),
        ("path = ${env:HOME}", "a variable"),
        ("reflect('java.lang.System', 'exit', 1) = 'x'", "unknown function"),
        ("java_method('java.lang.System', 'exit', 1) = 'x'", "unknown function"),
        ("input_file_name() = 'x'", "unknown function"),
        ("*", "a star"),
        (f"path = '{'a' * 100_000}'", "characters"),
        ("(" * 3000 + "path = 'a'" + ")" * 3000, "nested"),
        ("NOT " * 3000 + "path = 'a'", "nested"),
        ("path = '\ud800'", "UTF-8"),
    ],
)
def test_what_is_no_condition_on_the_table(text: str, told: str) -> None:
    with pytest.raises(PredicateError, match=told):
        parse_predicate(NODES, text)


@pytest.mark.parametrize("text", ["kind = 'CLASS'", "other.path = 'a'", "upper(kind) = 'A'", "NOT nope"])
def test_an_unknown_column_is_told_with_those_that_there_are(text: str) -> None:
    with pytest.raises(PredicateError, match="has no column") as refused:
        parse_predicate(NODES, text)
    assert all(name in str(refused.value.hint) for name in NODES.column_names)


def test_long_lists_are_no_nesting() -> None:
    found = parse_predicate(NODES, " OR ".join(f"path = 'a{number}'" for number in range(3000)))
    assert isinstance(found.term, Or)
    assert len(found.term.terms) == 3000


# What a condition may be.


VALUES: tuple[bool | None, ...] = (True, False, None)
BITS = {True: TRUE, False: FALSE, None: NULL}


def only(term: Term) -> int:
    return term.outcomes(lambda _: ANY_VALUE)


def test_and_or_and_not_are_those_of_sql() -> None:
    for one, other in product(VALUES, VALUES):
        (expected,) = duckdb.execute(
            "SELECT a AND b, a OR b, NOT a FROM (SELECT ?::BOOLEAN AS a, ?::BOOLEAN AS b)", [one, other]
        ).fetchall()
        terms = (Constant(one), Constant(other))
        found = (only(And(terms)), only(Or(terms)), only(Not(Constant(one))))
        assert found == tuple(BITS[each] for each in expected)


def test_sets_of_outcomes_are_combined_pair_by_pair() -> None:
    """What two conditions may be together is what any two of their outcomes are."""
    held = [
        ColumnRange(1, 1, nulls=False),
        ColumnRange(9, 9, nulls=False),
        ColumnRange(1, 9),
        ONLY_NULL,
        ANY_VALUE,
    ]
    text = {"a": "line < 5", "b": "bstart < 5"}
    for one, other in product(held, held):
        column_ranges = {"line": one, "bstart": other}
        of_a, of_b = (
            parse_predicate(NODES, each).term.outcomes(column_ranges.__getitem__) for each in text.values()
        )
        for joint, name in ((f"{text['a']} AND {text['b']}", "AND"), (f"{text['a']} OR {text['b']}", "OR")):
            found = parse_predicate(NODES, joint).term.outcomes(column_ranges.__getitem__)
            pairs = product(
                [value for value in VALUES if BITS[value] & of_a],
                [value for value in VALUES if BITS[value] & of_b],
            )
            expected = 0
            for a, b in pairs:
                ((value,),) = duckdb.execute(f"SELECT ?::BOOLEAN {name} ?::BOOLEAN", [a, b]).fetchall()
                expected |= BITS[value]
            assert found == expected


@pytest.mark.parametrize(
    ("text", "column_range", "may"),
    [
        ("line = 5", ColumnRange(1, 4), False),
        ("line = 5", ColumnRange(5, 5), True),
        ("line <> 5", ColumnRange(5, 5), False),
        ("line <> 5", ColumnRange(5, 6), True),
        ("NOT line = 5", ColumnRange(5, 5), False),
        ("NOT (line = 5)", ONLY_NULL, False),
        ("line IS NULL", ColumnRange(1, 4, nulls=False), False),
        ("line IS NOT NULL", ONLY_NULL, False),
        ("line <=> 5", ONLY_NULL, False),
        ("NOT line <=> 5", ONLY_NULL, True),
        ("line < 5", ColumnRange(5, 9), False),
        ("line <= 5", ColumnRange(5, 9), True),
        ("NOT line < 5", ColumnRange(1, 4), False),
        ("NOT line <= 5", ColumnRange(5, 6), True),
        ("line > 9", ColumnRange(5, 9), False),
        ("line >= 9", ColumnRange(5, 9), True),
        ("line BETWEEN 6 AND 7", ColumnRange(1, 5), False),
        ("line NOT BETWEEN 1 AND 9", ColumnRange(1, 9), False),
        ("line IN (1, 9)", ColumnRange(2, 8), False),
        ("line IN (1, 5, 9)", ColumnRange(2, 8), True),
        ("line NOT IN (5, 6)", ColumnRange(5, 5), False),
        ("line NOT IN (5, NULL)", ColumnRange(1, 9), False),
        ("line NOT IN (5, NULL) OR line IS NULL", ColumnRange(1, 9), True),
        ("line = NULL", ANY_VALUE, False),
        ("NOT line = NULL", ANY_VALUE, False),
        ("path = 'b'", ColumnRange("c", "d"), False),
        ("path LIKE 'b%'", ColumnRange("ba", "bz"), True),
        ("path LIKE 'b%'", ColumnRange("a", "az"), False),
        ("path LIKE 'b%'", ColumnRange("c", "d"), False),
        ("path LIKE 'b%'", ColumnRange("a", "b"), True),
        ("path NOT LIKE 'b%'", ColumnRange("ba", "bz"), False),
        ("path NOT LIKE 'b%'", ColumnRange("ba", "c"), True),
    ],
)
def test_what_may_be_true(text: str, column_range: ColumnRange, may: bool) -> None:
    assert parse_predicate(NODES, text).may_match(lambda _: column_range) is may


# What the log says of a column.


def test_a_text_of_32_bytes_may_be_cut() -> None:
    begin = "x" * 32
    cut = range_from_statistics(TEXT, "a", begin, nulls=0)
    assert cut.may_equal(f"{begin}yz")
    assert cut.may_be_greater(f"{begin}yz")
    assert not cut.may_equal("y")
    assert not cut.may_be_greater("y")
    assert cut.may_start_with(f"{begin}y")
    assert not range_from_statistics(TEXT, begin, begin, nulls=0).is_constant(begin)
    short = range_from_statistics(TEXT, "a", "x" * 31, nulls=0)
    assert not short.may_equal("x" * 32)
    # A writer may count characters of two bytes, or four.
    assert range_from_statistics(TEXT, "a", "é" * 16).may_equal("é" * 17)


def test_nan_is_beyond_the_greatest_number() -> None:
    held = range_from_statistics(NUMBER, 1.0, 2.0, nulls=0)
    assert held.may_be_greater(5.0)
    assert not held.may_equal(5.0)
    assert not held.may_be_less(1.0)
    assert not held.is_constant(1.0)
    assert range_from_statistics(NUMBER, -0.0, 0.0).may_equal(0.0)
    for told in ("NaN", "Infinity", float("inf"), float("nan"), 10**400, True, "1.0"):
        assert range_from_statistics(NUMBER, told, told, nulls=0) == ColumnRange(nulls=False, nan=True)


def test_times_are_cut_to_milliseconds() -> None:
    held = range_from_statistics(TIME, "2026-05-01T12:00:00.123Z", "2026-05-01T12:00:00.123Z", nulls=0)
    assert held.may_equal(datetime(2026, 5, 1, 12, 0, 0, 123_999, UTC))
    assert not held.may_equal(datetime(2026, 5, 1, 12, 0, 0, 125_000, UTC))
    for told in ("2026-05-01T12:00:00", "2026-05-01", 5, "soon", "9999-12-31T23:59:59.999999Z"):
        assert range_from_statistics(TIME, "0001-01-01T00:00:00Z", told, nulls=0).greatest is None


@pytest.mark.parametrize(
    ("column", "least", "greatest"),
    [
        (TEXT, 1, 2),
        (WHOLE, "1", "2"),
        (WHOLE, 1.0, 2.0),
        (WHOLE, True, True),
        (WHOLE, {"a": 1}, {"a": 2}),
        (FLAG, 0, 1),
        # Bounds that are none.
        (WHOLE, 2, 1),
    ],
)
def test_values_of_another_type_say_nothing(column: Column, least: Any, greatest: Any) -> None:
    assert range_from_statistics(column, least, greatest, nulls=3, rows=3) == ANY_VALUE


def test_counts_of_nulls() -> None:
    assert range_from_statistics(WHOLE, None, None, nulls=4, rows=4) == ONLY_NULL
    # Some of the rows are gone: the others may be those with a value.
    assert range_from_statistics(WHOLE, None, None, nulls=4, rows=4, shrunk=True) == ANY_VALUE
    assert not range_from_statistics(WHOLE, None, None, nulls=0, rows=4, shrunk=True).nulls
    for nulls, rows in ((3, 4), (None, 4), (4, None), (0.5, 4), (0, 0), (True, True)):
        held = range_from_statistics(WHOLE, None, None, nulls=nulls, rows=rows)
        assert (held.values, held.nulls) == (True, (nulls, rows) != (0, 0))
    # A value is there, whatever was counted.
    assert range_from_statistics(WHOLE, 1, 1, nulls=4, rows=4).values


def test_a_default_may_be_in_the_place_of_a_null() -> None:
    column = Column("weight", "double", ".", default=1.0)
    assert range_from_statistics(column, 5.0, 6.0, nulls=2, rows=4) == ANY_VALUE
    assert range_from_statistics(column, None, None, nulls=4, rows=4) == ANY_VALUE
    assert not range_from_statistics(column, 5.0, 6.0, nulls=0, rows=4).may_equal(1.0)
    assert range_from_partition(Column("kind", "string", ".", default="x"), None) == ANY_VALUE


def test_partition_values_are_texts_of_their_type() -> None:
    assert range_from_partition(TEXT, "a").is_constant("a")
    assert range_from_partition(TEXT, None) == ONLY_NULL
    assert range_from_partition(WHOLE, "-12").is_constant(-12)
    assert range_from_partition(FLAG, "true").is_constant(True)
    assert range_from_partition(TIME, "2026-05-01T12:00:00.000000Z").is_constant(
        datetime(2026, 5, 1, 12, tzinfo=UTC)
    )
    unclear = {TEXT: ["", "__HIVE_DEFAULT_PARTITION__"], WHOLE: ["", "1.5", "x"], FLAG: ["TRUE", "1"]}
    unclear |= {TIME: ["2026-05-01 12:00:00"], NUMBER: ["1.5", "NaN"]}
    for column, texts in unclear.items():
        assert [range_from_partition(column, text) for text in texts] == [ANY_VALUE] * len(texts)


def test_literals_are_spelled_for_each_engine() -> None:
    assert SPARK.literal("a b") == "'a b'"
    assert SPARK.literal("$") == "CAST(X'24' AS STRING)"
    assert DUCKDB.literal("it's") == "'it''s'"
    assert (SPARK.literal(True), SPARK.literal(-3), SPARK.literal(1e300)) == ("TRUE", "-3", "1e+300D")
    for value in (0.1, -2.5, 1e300, 5e-324):
        assert duckdb.execute(f"SELECT {DUCKDB.literal(value)}").fetchall() == [(value,)]
