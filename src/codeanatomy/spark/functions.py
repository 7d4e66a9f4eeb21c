"""Declare the domain functions of Spark: `Column` helpers and SQL functions from one definition.

`FUNCTIONS` declares each function once: parameters, type, body. `register_functions` turns the
declaration into a temporary SQL function, which the optimizer inlines and SQL calls with named arguments:

    SELECT node_id('PARAMETER', definition_key(repo_id, path, qualified => 'Cart.total'), name => 'self')

The helper of the same name parses the same body and substitutes `Column`s for the parameters. It
needs no registration, and unlike a SQL function it also works inside a lambda:

    key = definition_key(fn.col("repo_id"), fn.col("path"), fn.lit("Cart.total"))
    files.select(node_id("PARAMETER", key, name=fn.lit("self")).alias("node_id"))

How one body serves both: it is written in the subset that the expression grammars of SQL and Python share
(calls, comparisons, `and`, `or`, `is not null`, a few operators), so Python's own parser reads it:

>>> print(FUNCTIONS_BY_NAME["span_len"].statement)
CREATE OR REPLACE TEMPORARY FUNCTION span_len(bstart BIGINT, bend BIGINT)
RETURNS BIGINT
COMMENT 'Bytes in the half-open span; null when it is not valid.'
RETURN when(0 <= bstart and bstart <= bend, bend - bstart)

This implies some rules: branches are `when(condition, value, ..., otherwise)`; doubles are written
`1e-3`, because `0.001` is a decimal to SQL; a comparison is never chained; no backslash, whose meaning in
a SQL literal depends on a setting. `stable_id` is the exception: SQL has no varargs, so its SQL form folds
an array with a lambda, while the helper builds one flat `concat` that takes part in code generation and is
folded when all its arguments are literals (the SQL form is not, so a filter on it cannot skip files).
Both share the expressions of frame and digest. A part of a node is a name or a number, which have a
parameter each, because a parameter of SQL has one type.

Registration takes about 0.3 s in a warm JVM and 1.3 s in a new one: only a session that accepts SQL from
users needs it.

The Python forms are in `codeanatomy.node_ids`, `codeanatomy.ids` and `codeanatomy.spans`. Functions of
`node_ids` take no null in Python; here, a null argument without a default gives null.
Tests: `tests/spark/test_functions.py`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as fn

from codeanatomy import ids
from codeanatomy.errors import CatalogError, UnknownName
from codeanatomy.node_ids import KEY_BYTES, KEY_CHARS, NATURAL_CHARS, NUMBER_DIGITS, PREFIXES


class SqlFunction(Struct, frozen=True):
    """A declared function: `parameters` are (name, type) pairs, `body` is an expression over them."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    returns: str
    body: str
    doc: str
    # Default values of the last parameters, as SQL literals by name.
    defaults: Mapping[str, str] = MappingProxyType({})

    @property
    def signature(self) -> str:
        """Name and typed parameters in SQL syntax."""
        listed = ", ".join(
            f"{name} {kind} DEFAULT {self.defaults[name]}" if name in self.defaults else f"{name} {kind}"
            for name, kind in self.parameters
        )
        return f"{self.name}({listed})"

    @property
    def statement(self) -> str:
        """The statement that registers the function in a session."""
        return (
            f"CREATE OR REPLACE TEMPORARY FUNCTION {self.signature}\nRETURNS {self.returns}\n"
            f"COMMENT '{self.doc}'\nRETURN {self.body}"
        )


def _frame_of(part: str) -> str:
    return f"coalesce(concat(octet_length({part}), ':', {part}), '~')"


def _id_of(framed: str) -> str:
    # 16 bytes are 22 base64 characters and '=='.
    return f"concat(prefix, ':', substr({_base64_of(framed, ids.ID_BYTES)}, 1, {ids.ID_CHARS}))"


def _base64_of(framed: str, size: int) -> str:
    # Two `replace`, because `translate` looks up every character in a map: 4.1 s instead of 3.1 s over 5 M
    # rows (best of 6 each, busy machine of 2 cores).
    digest = f"unhex(substr(sha2({framed}, 256), 1, {2 * size}))"
    return f"replace(replace(base64({digest}), '+', '-'), '/', '_')"


def _key_of(*parts: str) -> str:
    """Return a definition key, null if a part is."""
    framed = ", ".join(f"octet_length({part}), ':', {part}" for part in parts)
    return _base64_of(f"concat({framed})", KEY_BYTES)


def _escaped(name: str) -> str:
    return f"replace(replace({name}, '%', '%25'), ';', '%3B')"


# The prefix of a kind; null for null, an error for text that is no kind.
_PREFIX = f"""when(kind is not null, coalesce(
  decode(kind, {", ".join(f"'{kind}', '{prefix}'" for kind, prefix in PREFIXES.items())}),
  raise_error(concat('unknown node kind ', kind))))"""
_NUMBER = f"""when(
  number < {10**NUMBER_DIGITS}, lpad(string(number), {NUMBER_DIGITS}, '0'),
  string(number))"""
_NODE_PART = f"""when(
  number is not null, concat('.', {_NUMBER}),
  name is not null, concat('.', {_escaped("name")}),
  '')"""
_NATURAL_NAME = f"""when(
  char_length(name) >= {NATURAL_CHARS},
    concat(substr(name, 1, {NATURAL_CHARS - KEY_CHARS - 1}), '~', {_key_of("repo_id", "''", "name")}),
  name)"""


_HASH64 = "bigint(conv(substr(sha2(value, 256), 1, 16), 16, -10)) & 9223372036854775807"

_FRAMED_PARTS = f"array_join(transform(parts, part -> {_frame_of('part')}), '')"

# A position is inside a character when the unit that follows it is a continuation byte (80..BF) or a low
# surrogate (DC..DF). Past the last unit there is only the empty string, which sorts before both. The pair
# test must come before `decode`, which raises on half a pair; `when` evaluates lazily and in order.
_UTF16 = "encode(line_text, 'UTF-16BE')"
_NEXT_UTF8_BYTE = "substr(binary(line_text), int(col) + 1, 1)"
_NEXT_UTF16_BYTE = f"substr({_UTF16}, int(2 * col) + 1, 1)"
_COL_TO_BYTE = f"""when(
  0 <= col and col <= octet_length(line_text) and encoding in ('utf8', 'utf16', 'utf32'),
  when(
    octet_length(line_text) == char_length(line_text),
      col,
    encoding == 'utf8',
      when({_NEXT_UTF8_BYTE} < unhex('80') or {_NEXT_UTF8_BYTE} >= unhex('C0'), col),
    encoding == 'utf32',
      when(col <= char_length(line_text), octet_length(substr(line_text, 1, int(col)))),
    2 * col <= octet_length({_UTF16}),
      when({_NEXT_UTF16_BYTE} < unhex('DC') or {_NEXT_UTF16_BYTE} >= unhex('E0'),
        octet_length(decode(substr({_UTF16}, 1, int(2 * col)), 'UTF-16BE')))))"""

# `is not null` first, because SQL's `null and false` is false while the rule is null for any null. In a
# filter or a join the optimizer reduces it to the bare comparisons.
_CONTAINS = """when(
  outer_start is not null and outer_end is not null and inner_start is not null and inner_end is not null,
  0 <= outer_start and outer_start <= inner_start and inner_start <= inner_end and inner_end <= outer_end)"""
_OVERLAPS = """when(
  a_start is not null and a_end is not null and b_start is not null and b_end is not null,
  0 <= a_start and 0 <= b_start and a_start < a_end and b_start < b_end
    and a_start < b_end and b_start < a_end)"""

# NaN first: to Spark it is greater than every number.
_SCORE = """when(isnan(confidence), null, confidence > 1e0, 1e0, confidence < 0e0, 0e0, confidence)
  + when(span_length >= 0, 1e-3 / (1e0 + double(span_length)), 0e0)"""

_ENCODING_NORM = """coalesce(
  decode(encoding, '1', 'utf8', '2', 'utf16', '3', 'utf32'),
  decode(translate(lower(encoding), '-_', ''),
    'utf8', 'utf8', 'utf16', 'utf16', 'utf32', 'utf32',
    'utf8codeunitoffsetfromlinestart', 'utf8',
    'utf16codeunitoffsetfromlinestart', 'utf16',
    'utf32codeunitoffsetfromlinestart', 'utf32'))"""

_SPAN = (("bstart", "BIGINT"), ("bend", "BIGINT"))

FUNCTIONS: tuple[SqlFunction, ...] = (
    SqlFunction(
        "definition_key",
        (("repo_id", "STRING"), ("path", "STRING"), ("qualified", "STRING")),
        "STRING",
        _key_of("repo_id", "path", "qualified"),
        "Key of a definition by its qualified path; of the module, and its file, without one.",
        {"qualified": "''"},
    ),
    SqlFunction(
        "node_id",
        (("kind", "STRING"), ("key", "STRING"), ("name", "STRING"), ("number", "BIGINT")),
        "STRING",
        f"concat({_PREFIX}, ':', key, {_NODE_PART})",
        "Id of the node of a definition, or of a part of it by name or number.",
        {"name": "NULL", "number": "NULL"},
    ),
    SqlFunction(
        "natural_id",
        (("kind", "STRING"), ("repo_id", "STRING"), ("name", "STRING")),
        "STRING",
        f"concat({_PREFIX}, ':', replace({_escaped('repo_id')}, ':', '%3A'), ':', {_escaped(_NATURAL_NAME)})",
        "Id of a node of no file: of a package, type, or name outside of the repository.",
    ),
    SqlFunction(
        "edge_id",
        (("kind", "STRING"), ("src", "STRING"), ("dst", "STRING"), ("repeat", "BIGINT")),
        "STRING",
        "concat(kind, ';', src, ';', dst, when(repeat > 0, concat(';', repeat), ''))",
        "Id of an edge; repeat is its number among the edges of the same kind and ends.",
        {"repeat": "0"},
    ),
    SqlFunction(
        "stable_hash64",
        (("value", "STRING"),),
        "BIGINT",
        _HASH64,
        "First 8 bytes of SHA-256 of the text as a non-negative number; null for null.",
    ),
    SqlFunction(
        "stable_hash128",
        (("value", "STRING"),),
        "STRING",
        "substr(sha2(value, 256), 1, 32)",
        "First 16 bytes of SHA-256 of the text as 32 lower-case hex characters; null for null.",
    ),
    SqlFunction(
        "prefixed_hash64",
        (("prefix", "STRING"), ("value", "STRING")),
        "STRING",
        f"concat(prefix, ':', {_HASH64})",
        "prefix, a colon and the decimal stable_hash64 of value; null if either is null.",
    ),
    SqlFunction(
        "stable_id",
        (("prefix", "STRING"), ("parts", "ARRAY<STRING>")),
        "STRING",
        _id_of(f"concat({_frame_of('prefix')}, {_FRAMED_PARTS})"),
        "Id of the entity that parts identify; a null part is a value, a null prefix or array gives null.",
    ),
    SqlFunction(
        "cpg_score",
        (("confidence", "DOUBLE"), ("span_length", "BIGINT")),
        "DOUBLE",
        _SCORE,
        "Rank of a candidate: confidence in 0..1 plus at most 0.001 for a tight span (null is unbounded).",
    ),
    SqlFunction(
        "position_encoding_norm",
        (("encoding", "STRING"),),
        "STRING",
        _ENCODING_NORM,
        "utf8, utf16 or utf32 from any usual spelling or the SCIP enum; null when it is not known.",
    ),
    SqlFunction(
        "col_to_byte",
        (("line_text", "STRING"), ("col", "BIGINT"), ("encoding", "STRING")),
        "BIGINT",
        _COL_TO_BYTE,
        "UTF-8 byte offset of a 0-based column in code units of encoding; null when it cannot be placed.",
    ),
    SqlFunction(
        "span_contains",
        (
            ("outer_start", "BIGINT"),
            ("outer_end", "BIGINT"),
            ("inner_start", "BIGINT"),
            ("inner_end", "BIGINT"),
        ),
        "BOOLEAN",
        _CONTAINS,
        "Whether the inner half-open span lies within the outer one, borders included; null for any null.",
    ),
    SqlFunction(
        "span_overlaps",
        (("a_start", "BIGINT"), ("a_end", "BIGINT"), ("b_start", "BIGINT"), ("b_end", "BIGINT")),
        "BOOLEAN",
        _OVERLAPS,
        "Whether two half-open spans share at least one byte; null for any null.",
    ),
    SqlFunction(
        "span_len",
        _SPAN,
        "BIGINT",
        "when(0 <= bstart and bstart <= bend, bend - bstart)",
        "Bytes in the half-open span; null when it is not valid.",
    ),
)
FUNCTIONS_BY_NAME: Mapping[str, SqlFunction] = {function.name: function for function in FUNCTIONS}


def version_of(functions: tuple[SqlFunction, ...]) -> str:
    """Return a hash of the definitions, which does not depend on their documentation."""
    return ids.stable_id("functions", *(text for f in functions for text in (f.signature, f.returns, f.body)))


# Enters fingerprints, so that a change of a definition invalidates the rows computed with the old one.
FUNCTIONS_VERSION = version_of(FUNCTIONS)


def register_functions(spark: SparkSession) -> None:
    """Register the SQL functions in this session only."""
    for function in FUNCTIONS:
        spark.sql(function.statement)


def definition_key(repo_id: Column, path: Column, qualified: Column | None = None) -> Column:
    """Key of a definition, or without a qualified path of a module: `node_ids.definition_key`."""
    return _call("definition_key", repo_id, path, fn.lit("") if qualified is None else qualified)


def node_id(
    kind: str | Column, key: Column, name: Column | None = None, number: Column | None = None
) -> Column:
    """`node_ids.node_id`; a `str` kind is the kind itself, not the name of a column."""
    parts = (fn.lit(None) if part is None else part for part in (name, number))
    return _call("node_id", _node_kind(kind), key, *parts)


def natural_id(kind: str | Column, repo_id: Column, name: Column) -> Column:
    """Id of a node of no file: `node_ids.natural_id`; a `str` kind is the kind itself."""
    return _call("natural_id", _node_kind(kind), repo_id, name)


def edge_id(kind: str | Column, src: Column, dst: Column, repeat: Column | None = None) -> Column:
    """Id of an edge: `node_ids.edge_id`; a `str` kind is the kind itself."""
    return _call("edge_id", _literal(kind), src, dst, fn.lit(0) if repeat is None else repeat)


def stable_hash64(value: Column) -> Column:
    """63 bits of SHA-256 as a bigint: `ids.stable_hash64`."""
    return _call("stable_hash64", value)


def stable_hash128(value: Column) -> Column:
    """128 bits of SHA-256 as hex text: `ids.stable_hash128`."""
    return _call("stable_hash128", value)


def prefixed_hash64(prefix: str | Column, value: Column) -> Column:
    """`ids.prefixed_hash64`; a `str` prefix is the text itself, not the name of a column."""
    return _call("prefixed_hash64", _literal(prefix), value)


def stable_id(prefix: str | Column, *parts: Column) -> Column:
    """`ids.stable_id`; a `str` prefix is the text itself; parts are text, integers or booleans, no floats."""
    head = _literal(prefix).cast("string")
    framed = (_expand(_frame_of("part"), {"part": part.cast("string")}) for part in (head, *parts))
    return _expand(_id_of("framed"), {"prefix": head, "framed": fn.concat(*framed)})


def cpg_score(confidence: Column, span_length: Column) -> Column:
    """Confidence with the tighter span as tie-break: `spans.cpg_score`."""
    return _call("cpg_score", confidence, span_length)


def position_encoding_norm(encoding: Column) -> Column:
    """The unit of a column, or null: `spans.position_encoding_norm`."""
    return _call("position_encoding_norm", encoding)


def col_to_byte(line_text: Column, col: Column, encoding: Column) -> Column:
    """Byte offset of a column in its line, or null: `spans.col_to_byte`."""
    return _call("col_to_byte", line_text, col, encoding)


def span_contains(outer_start: Column, outer_end: Column, inner_start: Column, inner_end: Column) -> Column:
    """Whether outer holds inner, borders included: `spans.span_contains`."""
    return _call("span_contains", outer_start, outer_end, inner_start, inner_end)


def span_overlaps(a_start: Column, a_end: Column, b_start: Column, b_end: Column) -> Column:
    """Whether the spans share a byte: `spans.span_overlaps`."""
    return _call("span_overlaps", a_start, a_end, b_start, b_end)


def span_len(bstart: Column, bend: Column) -> Column:
    """Bytes in the span: `spans.span_len`."""
    return _call("span_len", bstart, bend)


def _call(name: str, *arguments: Column) -> Column:
    """Return the body over the arguments, with the casts of a call in SQL."""
    function = FUNCTIONS_BY_NAME[name]
    columns = {
        parameter: argument.cast(kind)
        for (parameter, kind), argument in zip(function.parameters, arguments, strict=True)
    }
    return _expand(function.body, columns).cast(function.returns)


def _literal(text: str | Column) -> Column:
    return fn.lit(text) if isinstance(text, str) else text


def _node_kind(kind: str | Column) -> Column:
    """Return a kind as a column; raise UnknownName, which lists the known kinds."""
    if isinstance(kind, str) and kind not in PREFIXES:
        raise UnknownName("kind", kind, PREFIXES)
    return _literal(kind)


def _expand(body: str, given: Mapping[str, Column]) -> Column:
    return _column(_parsed(body), {"null": fn.lit(None), **given})


@lru_cache(maxsize=64)
def _parsed(body: str) -> ast.expr:
    return ast.parse(f"({body})", mode="eval").body


_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Column]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.BitAnd: Column.bitwiseAND,
    ast.Eq: operator.eq,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.And: operator.and_,
    ast.Or: operator.or_,
}


def _column(node: ast.expr, given: Mapping[str, Column]) -> Column:
    """Convert a parsed body to a Column. Raise CatalogError for syntax outside of the shared grammar."""
    match node:
        case ast.Name(id=name):
            return given[name]
        case ast.Constant(value=value):
            return fn.lit(value)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return fn.lit(-value)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return fn.call_function(name, *(_column(arg, given) for arg in args))
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Name(id="null")]):
            return _column(left, given).isNotNull()
        case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Tuple() as choices]):
            return _column(left, given).isin(*ast.literal_eval(choices))
        case ast.Compare(left=left, ops=[op], comparators=[right]) | ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_column(left, given), _column(right, given))
        case ast.BoolOp(op=op, values=values):
            return reduce(_OPERATORS[type(op)], (_column(value, given) for value in values))
    raise CatalogError(
        f"{ast.unparse(node)}: not in the common grammar of SQL and Python",
        "see the module docstring of codeanatomy.spark.functions",
    )
