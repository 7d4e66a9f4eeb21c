"""The three forms of each domain function agree: Python, `Column` helper, SQL with named arguments."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable, Sequence
from itertools import product
from math import inf, nan
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from codeanatomy import ids, node_ids, spans
from codeanatomy.errors import CatalogError, UnknownName
from codeanatomy.node_ids import NATURAL_CHARS, PREFIXES
from codeanatomy.spark import functions
from codeanatomy.spark.functions import (
    FUNCTIONS,
    FUNCTIONS_BY_NAME,
    FUNCTIONS_VERSION,
    register_functions,
    stable_id,
)

ROWS = 180

NASTY = (
    "",
    "~",
    ":",
    "0:",
    "1:a",
    "12",
    "a\x1fb",
    "\x00",
    "e\u0301",
    "é",
    "😀",
    "a😀b",
    "x\r\ny",
    "\ufeff",
    "true",
    ";",
    "%",
    "%3B;%25",
    "a:b;c%d",
    'it\'s "quoted" `text`',
    "back\\slash",
)
texts = st.one_of(
    st.none(),
    st.sampled_from(NASTY),
    # Lone surrogates have a test of their own: PySpark cannot ship them.
    st.text(
        alphabet=st.one_of(st.sampled_from("a~:;%0é\u0301😀\r\n'"), st.characters(exclude_categories=["Cs"]))
    ),
)
# Around the length from which a natural key is cut, in characters of one to four bytes.
long_texts = st.text("a;%é😀", min_size=NATURAL_CHARS - 2, max_size=NATURAL_CHARS + 3)
kinds = st.one_of(st.none(), st.sampled_from(sorted(PREFIXES)))
numbers = st.one_of(st.none(), st.integers(0, 12), st.integers(0, 2**63 - 1), st.integers(9_998, 1_000_002))
bigints = st.one_of(st.none(), st.integers(-2, 6), st.integers(-(2**63), 2**63 - 1))
doubles = st.one_of(st.none(), st.sampled_from((1.0, 0.9, 0.7, 0.5, 0.3, -0.0, nan, inf, -inf)), st.floats())
SPELLINGS = ("utf8", "utf16", "utf32", "UTF-8", "2", "-1", "utf_32", "UTF32CodeUnitOffsetFromLineStart")
encodings = st.one_of(st.sampled_from(SPELLINGS), texts)
columns = st.one_of(st.none(), st.integers(-1, 12), st.integers(-(2**63), 2**63 - 1))

ARGUMENTS: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "definition_key": (texts, texts, texts),
    "node_id": (kinds, texts, texts, numbers),
    "natural_id": (kinds, texts, st.one_of(texts, long_texts)),
    "edge_id": (texts, texts, texts, numbers),
    "stable_hash64": (texts,),
    "stable_hash128": (texts,),
    "prefixed_hash64": (texts, texts),
    "cpg_score": (doubles, bigints),
    "position_encoding_norm": (encodings,),
    "col_to_byte": (texts, columns, encodings),
    "span_contains": (bigints,) * 4,
    "span_overlaps": (bigints,) * 4,
    "span_len": (bigints,) * 2,
}


@pytest.fixture(scope="module")
def sql(spark: SparkSession) -> SparkSession:
    register_functions(spark)
    return spark


def node_id(kind: str, key: str, name: str | None = None, number: int | None = None) -> str:
    """Like `node_ids.node_id`, with the two parameters that SQL has for a part."""
    return node_ids.node_id(kind, key, name if number is None else number)


def edge_id(kind: str, src: str, dst: str, repeat: int | None = 0) -> str:
    return node_ids.edge_id(kind, src, dst, repeat or 0)


RECIPE: dict[str, Callable[..., str]] = {
    "definition_key": node_ids.definition_key,
    "node_id": node_id,
    "natural_id": node_ids.natural_id,
    "edge_id": edge_id,
}


def python_form(name: str) -> Callable[..., Any]:
    if name not in RECIPE:
        return getattr(ids, name, None) or getattr(spans, name)  # type: ignore[no-any-return]
    optional = {"name", "number", "repeat"} if name != "natural_id" else set()
    required = [p not in optional for p, _ in FUNCTIONS_BY_NAME[name].parameters]

    def null_in_null_out(*arguments: Any) -> str | None:
        missing = (value is None for value, needed in zip(arguments, required, strict=False) if needed)
        return None if any(missing) else RECIPE[name](*arguments)

    return null_in_null_out


def helper_form(name: str) -> Callable[..., Column]:
    return getattr(functions, name)  # type: ignore[no-any-return]


def exactly(value: object) -> object:
    """Floats by their bits, so that -0.0 is not 0.0."""
    return value.hex() if isinstance(value, float) else value


def by_helper(name: str) -> Column:
    """The helper over the columns that `arguments_frame` makes."""
    parameters = (parameter for parameter, _ in FUNCTIONS_BY_NAME[name].parameters)
    return helper_form(name)(*(fn.col(f"{name}.{parameter}") for parameter in parameters))


def by_sql(name: str) -> Column:
    parameters = (parameter for parameter, _ in FUNCTIONS_BY_NAME[name].parameters)
    return fn.expr(f"{name}({', '.join(f'{p} => {name}.{p}' for p in parameters)})")


def arguments_frame(spark: SparkSession, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> DataFrame:
    """A struct column of arguments per function, so that all of them are one job."""
    structs = (
        f"{name} struct<{', '.join(f'{p}: {kind}' for p, kind in FUNCTIONS_BY_NAME[name].parameters)}>"
        for name in names
    )
    return spark.createDataFrame([tuple(row) for row in rows], ", ".join(structs))


def random_rows(row: st.SearchStrategy[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows for one Spark job: a job takes seconds, and shrinking would be a job per attempt."""
    made: list[tuple[Any, ...]] = []

    @settings(max_examples=ROWS, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
    @given(row)
    def collect(one: tuple[Any, ...]) -> None:
        made.append(one)

    collect()
    return made


def assert_forms_agree(sql: SparkSession, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    helpers = [by_helper(name).alias(f"helper_{name}") for name in names]
    in_sql = [by_sql(name).alias(f"sql_{name}") for name in names]
    answers = arguments_frame(sql, names, rows).select(*helpers, *in_sql).collect()
    for row, answer in zip(rows, answers, strict=True):
        for name, arguments in zip(names, row, strict=True):
            expected = exactly(python_form(name)(*arguments))
            got = {form: exactly(answer[f"{form}_{name}"]) for form in ("helper", "sql")}
            assert got == {"helper": expected, "sql": expected}, (name, arguments)


def test_the_forms_agree(sql: SparkSession) -> None:
    rows = random_rows(st.tuples(*(st.tuples(*kinds) for kinds in ARGUMENTS.values())))
    assert len(rows) >= ROWS
    assert_forms_agree(sql, list(ARGUMENTS), rows)


def test_every_function_but_stable_id_is_in_the_agreement_test() -> None:
    assert {*ARGUMENTS, "stable_id"} == set(FUNCTIONS_BY_NAME)


def test_col_to_byte_agrees_on_every_column_of_hard_lines(sql: SparkSession) -> None:
    lines = ("", "ab", "é", "aé😀b", "😀😀", "e\u0301x", "\ufeffa\r\n", "\uffff\U00010000")
    encodings = ("utf8", "utf16", "utf32", "utf7")
    rows = [((line, col, encoding),) for line, col, encoding in product(lines, range(-1, 13), encodings)]
    assert_forms_agree(sql, ["col_to_byte"], rows)


def test_the_span_functions_agree_on_every_arrangement_of_bounds(sql: SparkSession) -> None:
    rows = [(bounds, bounds, bounds[:2]) for bounds in product((None, -1, 0, 1, 2, 3), repeat=4)]
    assert_forms_agree(sql, ["span_contains", "span_overlaps", "span_len"], rows)


def test_stable_id_agrees(sql: SparkSession) -> None:
    rows = random_rows(st.tuples(texts, texts, texts, bigints, st.one_of(st.none(), st.booleans())))
    assert len(rows) >= ROWS
    answers = (
        sql.createDataFrame(rows, "prefix string, a string, b string, number bigint, flag boolean")
        .select(
            stable_id(fn.col("prefix")).alias("helper_0"),
            stable_id(fn.col("prefix"), fn.col("a")).alias("helper_1"),
            stable_id(fn.col("prefix"), *(fn.col(c) for c in ("a", "b", "number", "flag"))).alias("helper_4"),
            fn.expr("stable_id(prefix => prefix, parts => array())").alias("sql_0"),
            fn.expr("stable_id(prefix => prefix, parts => array(a))").alias("sql_1"),
            fn.expr("stable_id(parts => array(a, b, string(number), string(flag)), prefix => prefix)").alias(
                "sql_4"
            ),
        )
        .collect()
    )
    for (prefix, *parts), answer in zip(rows, answers, strict=True):
        for arity in (0, 1, 4):
            expected = ids.stable_id(prefix, *parts[:arity])
            assert (answer[f"helper_{arity}"], answer[f"sql_{arity}"]) == (expected, expected), (
                prefix,
                parts,
            )


def test_parameters_of_ids_have_defaults(sql: SparkSession) -> None:
    key = node_ids.definition_key("shop", "shop/cart.py", "Cart.total")
    site = node_ids.node_id("CALLSITE", key, 3)
    in_sql = sql.sql(
        "WITH made AS (SELECT definition_key('shop', 'shop/cart.py', 'Cart.total') AS key) "
        "SELECT definition_key('shop', 'shop/cart.py'), node_id('FUNCTION', key), "
        "node_id('BINDING', key, 'x'), node_id('CALLSITE', key, number => 3), "
        "edge_id('CALLS', 'a', 'b'), edge_id('CALLS', 'a', 'b', 2) FROM made"
    )
    repo_id, path, made = fn.lit("shop"), fn.lit("shop/cart.py"), fn.lit(key)
    by_helpers = sql.range(1).select(
        functions.definition_key(repo_id, path),
        functions.node_id("FUNCTION", made),
        functions.node_id("BINDING", made, fn.lit("x")),
        functions.node_id("CALLSITE", made, number=fn.lit(3)),
        functions.edge_id("CALLS", fn.lit("a"), fn.lit("b")),
        functions.edge_id("CALLS", fn.lit("a"), fn.lit("b"), fn.lit(2)),
    )
    module = node_ids.definition_key("shop", "shop/cart.py")
    expected = (module, f"function:{key}", f"binding:{key}.x", site, "CALLS;a;b", "CALLS;a;b;2")
    assert in_sql.collect() == [expected]
    assert by_helpers.collect() == [expected]


def test_a_kind_that_does_not_exist_is_refused(sql: SparkSession) -> None:
    with pytest.raises(UnknownName, match="FUNCTON"):
        functions.node_id("FUNCTON", fn.lit("k"))
    for call in ("node_id('FUNCTON', 'k')", "natural_id('FUNCTON', 'r', 'n')"):
        with pytest.raises(Exception, match="unknown node kind FUNCTON"):
            sql.sql(f"SELECT {call}").collect()


def test_a_null_array_of_parts_has_no_id(sql: SparkSession) -> None:
    assert sql.sql("SELECT stable_id('x', CAST(NULL AS ARRAY<STRING>)) AS id").collect() == [(None,)]


def test_text_that_only_the_jvm_can_hold_agrees_too(sql: SparkSession) -> None:
    # PySpark ships a lone surrogate as U+FFFD, so the text is made from its bytes on the other side.
    text = "a\ud800b\ud83d\ude00"
    raw = text.encode("utf-8", "surrogatepass").hex()
    made = fn.expr(f"CAST(unhex('{raw}') AS STRING)")
    answer = sql.range(1).select(
        functions.stable_hash128(made).alias("hash"),
        stable_id("x", made).alias("id"),
        functions.definition_key(made, made, made).alias("key"),
        functions.natural_id("TYPE", made, fn.repeat(made, 50)).alias("natural"),
        *(functions.col_to_byte(made, fn.lit(col), fn.lit("utf16")).alias(f"col_{col}") for col in range(7)),
    )
    row = answer.collect()[0]
    assert (row["hash"], row["id"]) == (ids.stable_hash128(text), ids.stable_id("x", text))
    assert row["key"] == node_ids.definition_key(text, text, text)
    natural = node_ids.natural_id("TYPE", text, text * 50)
    assert row["natural"] == re.sub("[\ud800-\udfff]", "\ufffd", natural), "read back as U+FFFD"
    for col in range(7):
        assert row[f"col_{col}"] == spans.col_to_byte(text, col, "utf16"), col


def test_arguments_are_cast_as_a_call_in_sql_casts_them(sql: SparkSession) -> None:
    answer = sql.range(3).select(
        functions.stable_hash64(fn.col("id")).alias("helper"),
        fn.expr("stable_hash64(value => id)").alias("sql"),
    )
    assert answer.collect() == [(ids.stable_hash64(str(i)),) * 2 for i in range(3)]


def executed(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def optimized(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().optimizedPlan().toString())


def test_every_helper_is_native_and_compiled(sql: SparkSession) -> None:
    names = list(ARGUMENTS)
    frame = arguments_frame(sql, names, []).select(*(by_helper(name).alias(name) for name in names))
    ids_frame = sql.range(2).select(stable_id("x", fn.col("id"), fn.col("id")).alias("id"))
    for plan in (executed(frame), executed(ids_frame)):
        assert "*(1) Project" in plan, plan
        assert "EvalPython" not in plan
        assert "lambda" not in plan


def test_calls_on_literals_are_folded(sql: SparkSession) -> None:
    literals: dict[str, tuple[Any, ...]] = {
        "definition_key": ("r", "a.py", "A.f"),
        "node_id": ("CALLSITE", "k", None, 7),
        "natural_id": ("TYPE", "r", "x" * 200),
        "edge_id": ("CALLS", "a", "b", 1),
        "stable_hash64": ("a",),
        "stable_hash128": ("a",),
        "prefixed_hash64": ("p", "a"),
        "stable_id": ("def", "a:b", 7, None),
        "cpg_score": (0.9, 3),
        "position_encoding_norm": ("UTF-16",),
        "col_to_byte": ("aé😀b", 4, "utf16"),
        "span_contains": (0, 9, 2, 3),
        "span_overlaps": (0, 9, 9, 10),
        "span_len": (3, 7),
    }
    for name, arguments in literals.items():
        call = helper_form(name)(*(fn.lit(argument) for argument in arguments))
        expected = python_form(name)(*arguments)
        rendered = str(expected).lower() if isinstance(expected, bool) else str(expected)
        assert f"Project [{rendered} AS x#" in optimized(sql.range(1).select(call.alias("x"))), name


def test_a_column_no_integer_can_hold_is_not_placed_even_when_folded(sql: SparkSession) -> None:
    for col in (2**31, 2**62, -(2**63)):
        call = functions.col_to_byte(fn.lit("é"), fn.lit(col), fn.lit("utf16"))
        assert sql.range(1).select(call).collect() == [(None,)]


def test_in_a_join_containment_is_bare_comparisons(sql: SparkSession) -> None:
    outer = sql.range(4).select(fn.col("id").alias("o_start"), (fn.col("id") + 3).alias("o_end"))
    inner = sql.range(4).select(fn.col("id").alias("i_start"), (fn.col("id") + 1).alias("i_end"))
    bounds = ("o_start", "o_end", "i_start", "i_end")
    for condition in (
        functions.span_contains(*(fn.col(bound) for bound in bounds)),
        fn.expr(f"span_contains({', '.join(bounds)})"),
    ):
        plan = optimized(outer.join(inner, condition))
        assert "CASE" not in plan, plan
        assert "o_start" in plan.splitlines()[0]


def test_a_helper_works_inside_a_lambda(sql: SparkSession) -> None:
    frame = sql.sql("SELECT array('a', NULL) AS names")
    made = frame.select(fn.transform("names", lambda name: stable_id("x", name)).alias("ids"))
    assert made.collect()[0]["ids"] == [ids.stable_id("x", "a"), ids.stable_id("x", None)]


def test_a_string_prefix_is_text_and_not_a_column(sql: SparkSession) -> None:
    row = sql.range(1).select(
        stable_id("id").alias("a"), functions.prefixed_hash64("id", fn.lit("v")).alias("b")
    )
    assert row.collect() == [(ids.stable_id("id"), ids.prefixed_hash64("id", "v"))]


def test_registration_is_for_one_session(sql: SparkSession) -> None:
    register_functions(sql)
    other = sql.newSession()
    for function in FUNCTIONS:
        assert sql.catalog.functionExists(function.name)
        assert not other.catalog.functionExists(function.name)
    described = sql.sql("DESCRIBE FUNCTION EXTENDED span_len").collect()
    assert any(FUNCTIONS_BY_NAME["span_len"].doc in row[0] for row in described)


def test_parameters_have_the_same_names_in_all_forms() -> None:
    for function in FUNCTIONS:
        names = [name for name, _ in function.parameters]
        python = RECIPE.get(function.name) or python_form(function.name)
        assert list(inspect.signature(python).parameters) == names
        assert list(inspect.signature(helper_form(function.name)).parameters) == names
        assert names[len(names) - len(function.defaults) :] == list(function.defaults)


def test_declarations_survive_every_quoting() -> None:
    for function in FUNCTIONS:
        assert "\\" not in function.statement
        assert "'" not in function.doc


def test_a_body_outside_the_shared_grammar_is_refused(spark: SparkSession) -> None:
    for body in ("0 <= a <= b", "a if b else c", "not a", "f(a=b)"):
        given_columns = {name: fn.lit(1) for name in "abc"}
        with pytest.raises(CatalogError, match="grammar"):
            functions._expand(body, given_columns)


def test_the_version_is_of_the_recipes() -> None:
    assert functions.version_of(FUNCTIONS) == FUNCTIONS_VERSION
    reworded = tuple(replace(function, doc="other words") for function in FUNCTIONS)
    assert functions.version_of(reworded) == FUNCTIONS_VERSION
    changed = (*FUNCTIONS[:-1], replace(FUNCTIONS[-1], body="bend - bstart"))
    assert functions.version_of(changed) != FUNCTIONS_VERSION


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(functions).failed == 0
