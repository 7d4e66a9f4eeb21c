"""Declare the functions that SQL over a lake has beside those of the engines: ids and spans.

    SELECT * FROM symbols WHERE symbol_id = node_id('CLASS', definition_key('shop', 'cart.py', 'Cart'))
    SELECT * FROM nodes WHERE path = 'shop/cart.py' AND span_contains(bstart, bend, 120, 120)

Ids are made by the recipe of `codeanatomy.node_ids`. A part of a node is a name or a number, which have a
parameter each, because a parameter has one type. A null argument without a default gives null.

A span is a half-open range of bytes `[bstart, bend)`; it is valid if `0 <= bstart <= bend`. An invalid span
has no length; it contains, is contained in and overlaps nothing. An empty one is contained if inside or at a
border, and overlaps nothing.

Each function has a body for Spark and one for DuckDB, which give the same value. DuckDB has them as macros
(`macros`); a session of Spark as temporary SQL functions, which the optimizer inlines (`register_functions`).

>>> FUNCTIONS["span_len"].macro.partition(" AS CAST")[0]
'CREATE OR REPLACE MACRO span_len(bstart, bend)'

Tests: `tests/unit/test_sql_functions.py`, `tests/spark/test_functions.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct

from codeanatomy.node_ids import KEY_BYTES, KEY_CHARS, NATURAL_CHARS, NUMBER_DIGITS, PREFIXES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SqlFunction(Struct, frozen=True):
    """A declared function: `parameters` are (name, type) pairs, the bodies are expressions over them."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    returns: str
    spark: str
    duckdb: str
    doc: str
    example: str
    # Default values of the last parameters, as SQL literals by name.
    defaults: Mapping[str, str] = MappingProxyType({})

    @property
    def signature(self) -> str:
        """Name and typed parameters in the SQL of Spark."""
        listed = ", ".join(
            f"{name} {kind} DEFAULT {self.defaults[name]}" if name in self.defaults else f"{name} {kind}"
            for name, kind in self.parameters
        )
        return f"{self.name}({listed})"

    @property
    def arities(self) -> range:
        """The possible numbers of arguments."""
        return range(len(self.parameters) - len(self.defaults), len(self.parameters) + 1)

    def statement(self, prefix: str = "") -> str:
        """Return the statement that registers the function in a session of Spark."""
        return (
            f"CREATE OR REPLACE TEMPORARY FUNCTION {prefix}{self.signature}\nRETURNS {self.returns}\n"
            f"COMMENT '{self.doc}'\nRETURN {self.spark}"
        )

    @property
    def macro(self) -> str:
        """The statement that defines the function in DuckDB."""
        listed = ", ".join(
            f"{name} := {self.defaults[name]}" if name in self.defaults else name
            for name, _ in self.parameters
        )
        returns = "VARCHAR" if self.returns == "STRING" else self.returns
        return f"CREATE OR REPLACE MACRO {self.name}({listed}) AS CAST({self.duckdb} AS {returns})"


def _escaped(name: str) -> str:
    return f"replace(replace({name}, '%', '%25'), ';', '%3B')"


def _url_safe(encoded: str) -> str:
    return f"replace(replace({encoded}, '+', '-'), '/', '_')"


def _spark_key(*parts: str) -> str:
    """Return a definition key, null if a part is."""
    framed = ", ".join(f"octet_length({part}), ':', {part}" for part in parts)
    return _url_safe(f"base64(unhex(substr(sha2(concat({framed}), 256), 1, {2 * KEY_BYTES})))")


def _duck_key(*parts: str) -> str:
    framed = " || ".join(f"strlen({part}) || ':' || {part}" for part in parts)
    return _url_safe(f"to_base64(unhex(substr(sha256({framed}), 1, {2 * KEY_BYTES})))")


def _prefix(failure: str) -> str:
    """Return the prefix of a kind: null for null, an error for a text that is no kind."""
    known = " ".join(f"WHEN '{kind}' THEN '{prefix}'" for kind, prefix in PREFIXES.items())
    return f"CASE kind {known} ELSE CASE WHEN kind IS NOT NULL THEN {failure} END END"


def _part(text: str) -> str:
    """Return the part of a node: a number, a name or neither; `text` is the number as a text."""
    padded = f"CASE WHEN number < {10**NUMBER_DIGITS} THEN lpad({text}, {NUMBER_DIGITS}, '0') ELSE {text} END"
    return (
        f"CASE WHEN number IS NOT NULL THEN concat('.', {padded})"
        f" WHEN name IS NOT NULL THEN concat('.', {_escaped('name')}) ELSE '' END"
    )


def _natural(key: str) -> str:
    """Return a natural key, escaped; a long one is cut, with a hash of the whole."""
    cut = f"concat(substr(name, 1, {NATURAL_CHARS - KEY_CHARS - 1}), '~', {key})"
    return _escaped(f"CASE WHEN char_length(name) >= {NATURAL_CHARS} THEN {cut} ELSE name END")


SPARK_PREFIX = _prefix("raise_error(concat('unknown node kind ', kind))")
DUCK_PREFIX = _prefix("error('unknown node kind ' || kind)")
EMPTY = "''"
REPOSITORY = f"replace({_escaped('repo_id')}, ':', '%3A')"
# `IS NOT NULL` first, because `NULL AND FALSE` is false while any null shall give null.
CONTAINS = """CASE WHEN outer_start IS NOT NULL AND outer_end IS NOT NULL
  AND inner_start IS NOT NULL AND inner_end IS NOT NULL
  THEN 0 <= outer_start AND outer_start <= inner_start AND inner_start <= inner_end
    AND inner_end <= outer_end END"""
OVERLAPS = """CASE WHEN a_start IS NOT NULL AND a_end IS NOT NULL
  AND b_start IS NOT NULL AND b_end IS NOT NULL
  THEN 0 <= a_start AND 0 <= b_start AND a_start < a_end AND b_start < b_end
    AND a_start < b_end AND b_start < a_end END"""
LENGTH = "CASE WHEN 0 <= bstart AND bstart <= bend THEN bend - bstart END"


def _of_bounds(name: str, bounds: tuple[str, ...], returns: str, body: str, doc: str) -> SqlFunction:
    """Declare a function of the bounds of spans, with the same body for both engines."""
    example = f"{name}({', '.join(('bstart', 'bend', '0', '80')[: len(bounds)])})"
    return SqlFunction(name, tuple((each, "BIGINT") for each in bounds), returns, body, body, doc, example)


_DECLARED: tuple[SqlFunction, ...] = (
    SqlFunction(
        "definition_key",
        (("repo_id", "STRING"), ("path", "STRING"), ("qualified", "STRING")),
        "STRING",
        _spark_key("repo_id", "path", "qualified"),
        _duck_key("repo_id", "path", "qualified"),
        "Key of a definition by its qualified path; of the module, and its file, without one.",
        "definition_key(repo_id, path, 'Cart.total')",
        {"qualified": "''"},
    ),
    SqlFunction(
        "node_id",
        (("kind", "STRING"), ("key", "STRING"), ("name", "STRING"), ("number", "BIGINT")),
        "STRING",
        f"concat({SPARK_PREFIX}, ':', key, {_part('string(number)')})",
        f"({DUCK_PREFIX}) || ':' || key || {_part('CAST(CAST(number AS BIGINT) AS VARCHAR)')}",
        "Id of the node of a definition, or of a part of it by name or number.",
        "node_id('FUNCTION', definition_key(repo_id, path, 'Cart.total'))",
        {"name": "NULL", "number": "NULL"},
    ),
    SqlFunction(
        "natural_id",
        (("kind", "STRING"), ("repo_id", "STRING"), ("name", "STRING")),
        "STRING",
        f"concat({SPARK_PREFIX}, ':', {REPOSITORY}, ':', {_natural(_spark_key('repo_id', EMPTY, 'name'))})",
        f"({DUCK_PREFIX}) || ':' || {REPOSITORY} || ':' || {_natural(_duck_key('repo_id', EMPTY, 'name'))}",
        "Id of a node of no file: of a package, type, or name outside of the repository.",
        "natural_id('QUALIFIED_NAME', repo_id, 'builtins.sum')",
    ),
    SqlFunction(
        "edge_id",
        (("kind", "STRING"), ("src", "STRING"), ("dst", "STRING"), ("repeat", "BIGINT")),
        "STRING",
        "concat(kind, ';', src, ';', dst, CASE WHEN repeat > 0 THEN concat(';', repeat) ELSE '' END)",
        "kind || ';' || src || ';' || dst || CASE WHEN repeat > 0 THEN concat(';', repeat) ELSE '' END",
        "Id of an edge; repeat is its number among the edges of the same kind and ends.",
        "edge_id('CALLS', caller_id, callee_id)",
        {"repeat": "0"},
    ),
    _of_bounds(
        "span_contains",
        ("outer_start", "outer_end", "inner_start", "inner_end"),
        "BOOLEAN",
        CONTAINS,
        "Whether the outer half-open span contains the inner one, borders included; null for any null.",
    ),
    _of_bounds(
        "span_overlaps",
        ("a_start", "a_end", "b_start", "b_end"),
        "BOOLEAN",
        OVERLAPS,
        "Whether two half-open spans share at least one byte; null for any null.",
    ),
    _of_bounds(
        "span_len",
        ("bstart", "bend"),
        "BIGINT",
        LENGTH,
        "Bytes in the half-open span; null if it is not valid.",
    ),
)
FUNCTIONS: Mapping[str, SqlFunction] = {function.name: function for function in _DECLARED}


def macros() -> str:
    """Return the statements that define all functions in DuckDB."""
    return ";\n".join(function.macro for function in FUNCTIONS.values())


def register_functions(spark: SparkSession, prefix: str = "", names: Iterable[str] = FUNCTIONS) -> None:
    """Register functions in this session only, under their names with a prefix."""
    for name in names:
        spark.sql(FUNCTIONS[name].statement(prefix))
