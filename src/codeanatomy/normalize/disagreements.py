"""Where witnesses contradict each other about a file: the fifth source of `diagnostics_norm_v1`.

Each witness turns what it saw into short texts, its *claims*, one list per topic: `12|12||function f` is a
function `f` that begins at byte 12. A claim that one witness of a topic makes and another does not is
disputed, and what is said about one place becomes one row:

    code    bstart  details
    defs    12      ast: function f, libcst: function f, tree_sitter: nothing

| code | witnesses | claims |
|---|---|---|
| `parse_outcome` | ast, libcst, tree_sitter | the file is accepted or rejected |
| `defs` | ast, libcst, tree_sitter | functions, classes and lambdas: first byte, kind, name |
| `imports` | ast, libcst, tree_sitter | imported names: first byte, the statement for this name alone |
| `calls` | ast, libcst | calls: span |
| `parameters` | symtable, bytecode | functions: name, parameters in order |
| `scopes` | ast, symtable | number of functions, lambdas and classes |

What is no disagreement:
- A witness that could not read the file says nothing. Of tree-sitter, which reads everything, that is a file
  with an error or a missing node, or a search that was given up: what it sees near an error follows from it.
- CPython normalises identifiers (NFKC), LibCST and tree-sitter keep the text. So names that are not ASCII,
  and those that tree-sitter cut, are claimed as `?`, which fits any name of that kind at the same place.
- Inside of f-strings that Python before 3.12 misplaces, `ast` has no places; see `span_errors_v1`.
- A definition of tree-sitter ends with the comments in its block, so only beginnings are compared.
- The compiler drops dead code and compiles a `finally` block twice: a function of symtable may have no code
  object or two. But every code object has parameters that symtable tells of.

Lists are compared inside the row of a file by Spark's set functions over texts, which hash; only what is
disputed is exploded. Tests: `tests/test_diagnostics.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import permutations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PLACE = ("repo_id", "file_id", "path")
PARSERS = ("ast", "libcst", "tree_sitter")
TOPICS: Mapping[str, Sequence[str]] = {
    "parse_outcome": PARSERS,
    "defs": PARSERS,
    "imports": PARSERS,
    "calls": ("ast", "libcst"),
    "parameters": ("symtable", "bytecode"),
    "scopes": ("ast", "symtable"),
}
WITNESSES = tuple(dict.fromkeys(witness for topic in TOPICS.values() for witness in topic))
UNKNOWN = "?"
# Errors by which CPython refuses a text; others, such as RecursionError, say nothing about it.
REJECTIONS = ("SyntaxError", "IndentationError", "TabError", "ValueError")
# Bits of co_flags.
CO_NEWLOCALS, CO_VARARGS, CO_VARKEYWORDS = 2, 4, 8


def disagreements(
    *,
    ast_files_v1: DataFrame,
    libcst_files_v1: DataFrame,
    tree_sitter_files_v1: DataFrame,
    bytecode_files_v1: DataFrame,
    symtable_files_v1: DataFrame,
) -> DataFrame:
    """One row per disputed place: file, `severity`, `code`, `bstart`, `bend`, `message`, `details`."""
    claims = (
        _ast_claims(ast_files_v1),
        _libcst_claims(libcst_files_v1),
        _tree_sitter_claims(tree_sitter_files_v1),
        _symtable_claims(symtable_files_v1),
        _bytecode_claims(bytecode_files_v1),
    )
    files = reduce(lambda left, right: left.join(right, list(PLACE), "full"), claims)
    return _told(_disputes(files))


# Claims, one row per file and witness. A list is null where the witness has nothing to say on the topic.


def _ast_claims(ast_files_v1: DataFrame) -> DataFrame:
    kinds = F.col("defs.kind")
    return ast_files_v1.select(
        *PLACE,
        _claims(
            _zipped("defs", "kind", "name", "bstart"),
            lambda each: _definition(_def_kind(each.kind), each["name"], each.bstart),
        ).alias("defs_ast"),
        _claims(
            _zipped("imports", "kind", "level", "module", "name", "asname", "bstart"),
            lambda each: _import(
                F.when(each.kind == "ImportFrom", _dotted(each.level, each.module)),
                each["name"],
                each.asname,
                each.bstart,
            ),
        ).alias("imports_ast"),
        _spans(F.col("calls.bstart"), F.col("calls.bend")).alias("calls_ast"),
        _counts(
            functions=_count(kinds, lambda kind: kind.endswith("FunctionDef")),
            lambdas=_count(kinds, lambda kind: kind == "Lambda"),
            classes=_count(kinds, lambda kind: kind == "ClassDef"),
        ).alias("scopes_ast"),
        _outcome(
            kinds.isNotNull(), F.arrays_overlap("errors.error_type", F.array(*map(F.lit, REJECTIONS)))
        ).alias("parse_outcome_ast"),
        F.filter(_zipped("errors", "stage", "bstart", "bend"), lambda each: each.stage == "position").alias(
            "misplaced"
        ),
    )


def _libcst_claims(libcst_files_v1: DataFrame) -> DataFrame:
    return libcst_files_v1.select(
        *PLACE,
        _claims(
            _zipped("defs", "kind", "name", "def_bstart"),
            lambda each: _definition(each.kind, each["name"], each.def_bstart),
        ).alias("defs_libcst"),
        _claims(
            _zipped("imports", "kind", "level", "module", "name", "asname", "alias_bstart"),
            lambda each: _import(
                F.when(each.kind == "from", _dotted(each.level, each.module)),
                each["name"],
                each.asname,
                each.alias_bstart,
            ),
        ).alias("imports_libcst"),
        _spans(F.col("callsites.call_bstart"), F.col("callsites.call_bend")).alias("calls_libcst"),
        _outcome(
            F.col("defs.kind").isNotNull(), F.array_contains("parse_errors.error_type", "ParserSyntaxError")
        ).alias("parse_outcome_libcst"),
    )


def _tree_sitter_claims(tree_sitter_files_v1: DataFrame) -> DataFrame:
    broken = F.col("stats.error_count") + F.col("stats.missing_count") > 0
    captures = F.filter(
        _zipped("captures", "pack", "match_index", "capture", "kind", "text", "bstart", "bend"),
        lambda each: each["pack"].isin("defs", "imports"),
    )
    searched = ~broken & ~F.col("stats.match_limit_exceeded") & F.col("captures.pack").isNotNull()
    files = tree_sitter_files_v1.select(
        *PLACE,
        F.coalesce(searched, F.lit(False)).alias("is_read"),
        _outcome(~broken, broken).alias("parse_outcome_tree_sitter"),
        captures.alias("captures"),
    )
    matches = (
        files.select(
            *PLACE,
            "is_read",
            "parse_outcome_tree_sitter",
            F.explode_outer(F.when(F.col("is_read"), F.col("captures"))).alias("each"),
        )
        .groupBy(*PLACE, "is_read", "parse_outcome_tree_sitter", "each.pack", "each.match_index")
        .agg(
            _captured("def", "kind"),
            _captured("def", "bstart"),
            _captured("name", "bstart"),
            *(_captured(name, "text") for name in ("module", "name", "alias")),
        )
    )
    kind = F.regexp_replace("def_kind", "_definition$", "")
    is_def = F.col("pack") == "defs"
    definition = _definition(kind, F.col("name_text"), F.col("def_bstart"))
    imported = _import(F.col("module_text"), F.col("name_text"), F.col("alias_text"), F.col("name_bstart"))
    return (
        matches.groupBy(*PLACE, "is_read", "parse_outcome_tree_sitter")
        .agg(
            F.collect_list(F.when(is_def, definition)).alias("defs"),
            F.collect_list(F.when(~is_def, imported)).alias("imports"),
        )
        .select(
            *PLACE,
            F.when(F.col("is_read"), F.col("defs")).alias("defs_tree_sitter"),
            F.when(F.col("is_read"), F.col("imports")).alias("imports_tree_sitter"),
            "parse_outcome_tree_sitter",
        )
    )


def _symtable_claims(symtable_files_v1: DataFrame) -> DataFrame:
    functions = F.filter(
        _zipped("blocks", "type", "name", "parameters"),
        lambda each: (each["type"] == "function") & _is_written(each.parameters),
    )
    return symtable_files_v1.select(
        *PLACE,
        F.transform(functions, lambda each: _parameters(each["name"], each.parameters)).alias(
            "parameters_symtable"
        ),
        _counts(
            functions=_count(functions, lambda each: each["name"] != "lambda"),
            lambdas=_count(functions, lambda each: each["name"] == "lambda"),
            classes=_count(F.col("blocks.type"), lambda kind: kind == "class"),
        ).alias("scopes_symtable"),
    )


def _bytecode_claims(bytecode_files_v1: DataFrame) -> DataFrame:
    units = F.transform(
        _zipped("code_objects", "name", "flags", "argcount", "kwonlyargcount", "varnames"),
        lambda each: F.struct(
            F.regexp_replace(each["name"], "^<lambda>$", "lambda").alias("name"),
            each.flags.alias("flags"),
            F.slice(
                each.varnames,
                1,
                each.argcount
                + each.kwonlyargcount
                + _bit(each.flags, CO_VARARGS)
                + _bit(each.flags, CO_VARKEYWORDS),
            ).alias("parameters"),
        ),
    )
    functions = F.filter(
        units,
        lambda each: (
            (_bit(each.flags, CO_NEWLOCALS) == 1)
            & ~each["name"].startswith("<")
            & _is_written(each.parameters)
        ),
    )
    return bytecode_files_v1.select(
        *PLACE,
        F.transform(functions, lambda each: _parameters(each["name"], each.parameters)).alias(
            "parameters_bytecode"
        ),
    )


# What claims are made of.


def _zipped(column: str, *fields: str) -> Column:
    """A list of structs with these fields only: a lambda over the column itself would read all of them."""
    return F.arrays_zip(*(F.col(f"{column}.{field}").alias(field) for field in fields))


def _claims(rows: Column, claim: Callable[[Column], Column]) -> Column:
    """The claims of a list; what has no place makes none."""
    return F.filter(F.transform(rows, claim), lambda text: text.isNotNull())


def _claim(begin: Column | str, end: Column | str, subject: Column | str, said: Column) -> Column:
    parts = (begin, end, subject, said)
    first, *others = (F.lit(part) if isinstance(part, str) else part.cast("string") for part in parts)
    return F.concat(first, *(piece for part in others for piece in (F.lit("|"), part)))


def _definition(kind: Column, name: Column, begin: Column) -> Column:
    named = F.concat(kind, F.lit(" "), F.when(_is_ascii(name), name).otherwise(F.lit(UNKNOWN)))
    return _claim(begin, begin, "", F.when(kind == "lambda", kind).otherwise(named))


def _def_kind(kind: Column) -> Column:
    """CPython's kind in the words of the others."""
    return (
        F.when(kind.endswith("FunctionDef"), "function").when(kind == "ClassDef", "class").otherwise("lambda")
    )


def _import(module: Column, name: Column, asname: Column, begin: Column) -> Column:
    """`module` has the dots of a relative import; it is null for `import x`."""
    head = F.when(module.isNull(), "import ").otherwise("from ")
    middle = F.coalesce(F.concat(module, F.lit(" import ")), F.lit(""))
    tail = F.concat(middle, name, F.coalesce(F.concat(F.lit(" as "), asname), F.lit("")))
    return _claim(begin, begin, "", F.concat(head, F.when(_is_ascii(tail), tail).otherwise(F.lit(UNKNOWN))))


def _dotted(level: Column, module: Column) -> Column:
    return F.concat(F.repeat(F.lit("."), level), F.coalesce(module, F.lit("")))


def _captured(capture: str, field: str) -> Column:
    """A field of the capture of that name; a text without what may stand between its parts."""
    value = F.col(f"each.{field}")
    if field == "text":
        is_whole = F.octet_length(value) == F.col("each.bend") - F.col("each.bstart")
        value = F.when(is_whole, F.regexp_replace(value, r"\\\\\r?\n|\s", "")).otherwise(F.lit("\ufffd"))
    return F.max(F.when(F.col("each.capture") == capture, value)).alias(f"{capture}_{field}")


def _is_ascii(text: Column) -> Column:
    return F.octet_length(text) == F.char_length(text)


def _spans(begins: Column, ends: Column) -> Column:
    claims = F.zip_with(begins, ends, lambda begin, end: _claim(begin, end, "", F.lit("call")))
    return F.filter(claims, lambda text: text.isNotNull())


def _parameters(name: Column, parameters: Column) -> Column:
    return _claim("", "", name, F.concat(F.lit("("), F.array_join(parameters, ", "), F.lit(")")))


def _is_written(parameters: Column) -> Column:
    """A function or lambda of the source: comprehensions and annotations have parameters such as `.0`."""
    return ~F.exists(parameters, lambda name: name.startswith("."))


def _bit(flags: Column, bit: int) -> Column:
    return F.when(flags.bitwiseAND(bit) != 0, 1).otherwise(0)


def _count(rows: Column, is_one: Callable[[Column], Column]) -> Column:
    return F.size(F.filter(rows, is_one))


def _counts(**numbers: Column) -> Column:
    claims = [_claim("", "", subject, number) for subject, number in numbers.items()]
    # The size of null is null.
    return F.when(next(iter(numbers.values())).isNotNull(), F.array(*claims))


def _outcome(accepted: Column, rejected: Column) -> Column:
    """What a parser says of the file; null if it gave up for a reason of its own."""
    said = F.when(accepted, "accepts").when(rejected, "rejects")
    return F.when(said.isNotNull(), F.array(_claim("", "", "", said)))


# Disputes.


def _disputes(files: DataFrame) -> DataFrame:
    """One row per topic, place and subject, with the words of each witness who spoke."""
    compared = files.select(
        *PLACE,
        "misplaced",
        *(f"{topic}_{witness}" for topic, speakers in TOPICS.items() for witness in speakers),
        *(_disputed(topic, speakers).alias(f"{topic}_disputed") for topic, speakers in TOPICS.items()),
    )
    claims = F.concat(*(_said(topic, witness) for topic, speakers in TOPICS.items() for witness in speakers))
    begin, end, subject, said = (F.split("claim", r"\|", 4)[part] for part in range(4))
    return (
        compared.select(*PLACE, "misplaced", F.inline(claims))
        .select(
            *PLACE,
            "misplaced",
            "topic",
            "readers",
            "witness",
            F.nullif(begin, F.lit("")).cast("bigint").alias("bstart"),
            F.nullif(end, F.lit("")).cast("bigint").alias("bend"),
            subject.alias("subject"),
            said.alias("said"),
        )
        .groupBy(*PLACE, "misplaced", "topic", "readers", "bstart", "bend", "subject")
        .agg(
            F.collect_set("witness").alias("speakers"),
            F.collect_set(F.substring_index("said", " ", 1)).alias("kinds"),
            F.collect_set(F.when(~F.col("said").endswith(UNKNOWN), F.col("said"))).alias("known"),
            F.create_map(*(part for witness in WITNESSES for part in _words(witness))).alias("words"),
        )
    )


def _disputed(topic: str, speakers: Sequence[str]) -> Column:
    """Claims that one witness makes and another, who read the file too, does not."""
    none = F.array().cast("array<string>")
    pairs = (F.array_except(f"{topic}_{one}", f"{topic}_{other}") for one, other in permutations(speakers, 2))
    return F.array_distinct(F.concat(*(F.coalesce(pair, none) for pair in pairs)))


def _said(topic: str, witness: str) -> Column:
    """The disputed claims of a witness."""
    readers = F.array(*(F.when(F.col(f"{topic}_{each}").isNotNull(), each) for each in TOPICS[topic]))
    claims = F.transform(
        F.array_intersect(f"{topic}_{witness}", f"{topic}_disputed"),
        lambda claim: F.struct(
            F.lit(topic).alias("topic"),
            F.array_compact(readers).alias("readers"),
            F.lit(witness).alias("witness"),
            claim.alias("claim"),
        ),
    )
    return F.coalesce(
        claims,
        F.array().cast("array<struct<topic:string,readers:array<string>,witness:string,claim:string>>"),
    )


def _words(witness: str) -> tuple[Column, Column]:
    said = F.array_sort(F.collect_set(F.when(F.col("witness") == witness, F.col("said"))))
    return F.lit(witness), F.coalesce(F.nullif(F.array_join(said, ", "), F.lit("")), F.lit("nothing"))


def _told(disputes: DataFrame) -> DataFrame:
    """The disputes that are none of the exceptions, in words."""
    silent = F.size(F.array_except("readers", "speakers")) > 0
    contradicted = (F.size("kinds") > 1) | (F.size("known") > 1)
    nowhere = (
        F.array_contains("readers", "ast")
        & ~F.array_contains("speakers", "ast")
        & F.exists("misplaced", lambda each: (each.bstart <= F.col("bstart")) & (F.col("bstart") < each.bend))
    )
    is_dead_code = (F.col("topic") == "parameters") & ~F.array_contains("speakers", "bytecode")
    details = F.map_filter("words", lambda witness, _: F.array_contains("readers", witness))
    said = F.transform(F.map_entries(details), lambda each: F.concat(each.key, F.lit(": "), each.value))
    about = F.concat_ws(" of ", "topic", F.nullif("subject", F.lit("")))
    return disputes.filter(
        (silent | contradicted) & ~F.coalesce(nowhere, F.lit(False)) & ~is_dead_code
    ).select(
        *PLACE,
        F.when(F.col("topic") == "parse_outcome", "info").otherwise("warning").alias("severity"),
        F.col("topic").alias("code"),
        "bstart",
        "bend",
        F.concat(F.lit("the witnesses differ about "), about, F.lit(": "), F.array_join(said, "; ")).alias(
            "message"
        ),
        details.alias("details"),
    )
