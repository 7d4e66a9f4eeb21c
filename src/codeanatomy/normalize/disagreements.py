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

Lists are compared inside of one row per file and topic, by Spark's set functions over texts, which hash; only
what is disputed is exploded. Tests: `tests/test_diagnostics.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from codeanatomy.catalog.columns import PLACE_NAMES

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
    return _told(_disputes(reduce(DataFrame.unionByName, claims)))


# Claims: one row per file, topic and witness that has something to say about it.


def _ast_claims(ast_files_v1: DataFrame) -> DataFrame:
    kinds = F.col("defs.kind")
    rejects = F.arrays_overlap("errors.error_type", F.array(*map(F.lit, REJECTIONS)))
    defs = _claims(
        _zipped("defs", "kind", "name", "bstart"),
        lambda each: _definition(_def_kind(each.kind), each["name"], each.bstart),
    )
    imports = _claims(
        _zipped("imports", "kind", "level", "module", "name", "asname", "bstart"),
        lambda each: _import(
            F.when(each.kind == "ImportFrom", _dotted(each.level, each.module)),
            each["name"],
            each.asname,
            each.bstart,
        ),
    )
    scopes = _counts(
        functions=_count(kinds, lambda kind: kind.endswith("FunctionDef")),
        lambdas=_count(kinds, lambda kind: kind == "Lambda"),
        classes=_count(kinds, lambda kind: kind == "ClassDef"),
    )
    misplaced = F.filter(_zipped("errors", "stage", "bstart", "bend"), lambda each: each.stage == "position")
    return _by_topic(
        ast_files_v1,
        "ast",
        misplaced,
        parse_outcome=_outcome(kinds.isNotNull(), rejects),
        defs=defs,
        imports=imports,
        calls=_spans(F.col("calls.bstart"), F.col("calls.bend")),
        scopes=scopes,
    )


def _libcst_claims(libcst_files_v1: DataFrame) -> DataFrame:
    rejects = F.array_contains("parse_errors.error_type", "ParserSyntaxError")
    defs = _claims(
        _zipped("defs", "kind", "name", "def_bstart"),
        lambda each: _definition(each.kind, each["name"], each.def_bstart),
    )
    imports = _claims(
        _zipped("imports", "kind", "level", "module", "name", "asname", "alias_bstart"),
        lambda each: _import(
            F.when(each.kind == "from", _dotted(each.level, each.module)),
            each["name"],
            each.asname,
            each.alias_bstart,
        ),
    )
    return _by_topic(
        libcst_files_v1,
        "libcst",
        parse_outcome=_outcome(F.col("defs.kind").isNotNull(), rejects),
        defs=defs,
        imports=imports,
        calls=_spans(F.col("callsites.call_bstart"), F.col("callsites.call_bend")),
    )


def _tree_sitter_claims(tree_sitter_files_v1: DataFrame) -> DataFrame:
    is_broken = F.col("stats.error_count") + F.col("stats.missing_count") > 0
    is_read = ~is_broken & ~F.col("stats.match_limit_exceeded")
    captures = F.filter(
        _zipped("captures", "pack", "match_index", "capture", "kind", "text", "bstart", "bend"),
        lambda each: each["pack"].isin("defs", "imports") & (each.capture != "import"),
    )
    files = tree_sitter_files_v1.select(
        *PLACE_NAMES,
        is_broken.alias("is_broken"),
        # Captures of a match side by side, its name last.
        F.sort_array(F.when(is_read, captures)).alias("captures"),
    ).select(*PLACE_NAMES, "is_broken", F.transform("captures", _matched).alias("matches"))
    broken = F.col("is_broken")
    return _by_topic(
        files,
        "tree_sitter",
        parse_outcome=_outcome(~broken, broken),
        defs=_matches_of("defs"),
        imports=_matches_of("imports"),
    )


def _matches_of(pack: str) -> Column:
    return F.transform(
        F.filter("matches", lambda each: (each["pack"] == pack) & each.claim.isNotNull()),
        lambda each: each.claim,
    )


def _matched(each: Column, index: Column) -> Column:
    """Pack and claim of the match whose last capture this is; a null claim for the others."""

    def before(steps: int, name: str) -> Column:
        found = F.get("captures", index - steps)
        return F.when((found.capture == name) & (found.match_index == each.match_index), found)

    definition, module = F.get("captures", index - 1), before(1, "module")
    alias = F.coalesce(before(1, "alias"), before(2, "alias"))
    kind = F.when(definition.kind == "class_definition", "class").otherwise("function")
    is_def = each["pack"] == "defs"
    return F.struct(
        each["pack"].alias("pack"),
        F.when(is_def & (each.kind == "lambda"), _claim(each.bstart, each.bstart, "", each.kind))
        .when(is_def & (each.capture == "name"), _definition(kind, _text(each), definition.bstart))
        .when(each.capture == "name", _import(_text(module), _text(each), _text(alias), each.bstart))
        .alias("claim"),
    )


def _symtable_claims(symtable_files_v1: DataFrame) -> DataFrame:
    functions = F.filter(
        _zipped("blocks", "type", "name", "parameters"),
        lambda each: (each["type"] == "function") & _is_written(each.parameters),
    )
    scopes = _counts(
        functions=_count(functions, lambda each: each["name"] != "lambda"),
        lambdas=_count(functions, lambda each: each["name"] == "lambda"),
        classes=_count(F.col("blocks.type"), lambda kind: kind == "class"),
    )
    return _by_topic(
        symtable_files_v1,
        "symtable",
        parameters=F.transform(functions, lambda each: _parameters(each["name"], each.parameters)),
        scopes=scopes,
    )


def _bytecode_claims(bytecode_files_v1: DataFrame) -> DataFrame:
    units = F.transform(
        _zipped("code_objects", "name", "flags", "argcount", "kwonlyargcount", "varnames"),
        lambda each: F.struct(
            F.when(each["name"] == "<lambda>", "lambda").otherwise(each["name"]).alias("name"),
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
    return _by_topic(
        bytecode_files_v1,
        "bytecode",
        parameters=F.transform(functions, lambda each: _parameters(each["name"], each.parameters)),
    )


def _by_topic(files: DataFrame, witness: str, misplaced: Column | None = None, **claims: Column) -> DataFrame:
    """The claims of a witness, one row per topic; none where its list is null."""
    topics = F.array(
        *(F.struct(F.lit(topic).alias("topic"), said.alias("claims")) for topic, said in claims.items())
    )
    nowhere = F.array().cast("array<struct<stage:string,bstart:bigint,bend:bigint>>")
    return files.select(
        *PLACE_NAMES,
        F.lit(witness).alias("witness"),
        (nowhere if misplaced is None else misplaced).alias("misplaced"),
        F.inline(F.filter(topics, lambda each: each.claims.isNotNull())),
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


def _text(capture: Column) -> Column:
    """The text of a capture without what may stand between its parts; if it was cut, nothing we know."""
    is_whole = F.octet_length(capture.text) == capture.bend - capture.bstart
    joined = F.regexp_replace(capture.text, r"[\s\\]", "")
    return F.when(capture.isNotNull(), F.when(is_whole, joined).otherwise(F.lit("\ufffd")))


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


def _disputes(claims: DataFrame) -> DataFrame:
    """One row per topic, place and subject, with the words of each witness who read the file."""
    said = F.col("said")
    all_claims = F.flatten(F.transform(said, lambda each: each.claims))
    # What every witness claims.
    agreed = F.aggregate(
        F.slice(said, 2, F.greatest(F.size(said) - 1, F.lit(0))),
        said[0].claims,
        lambda common, each: F.array_intersect(common, each.claims),
    )
    compared = (
        claims.groupBy(*PLACE_NAMES, "topic")
        .agg(
            F.array_sort(F.collect_list(F.struct("witness", "claims"))).alias("said"),
            F.flatten(F.collect_list("misplaced")).alias("misplaced"),
        )
        # Most lists are equal as they stand, or there is but one.
        .filter(F.size(F.array_distinct("said.claims")) > 1)
        .select("*", F.array_except(all_claims, agreed).alias("disputed"))
        .filter(F.size("disputed") > 0)
    )
    own = F.transform(
        said,
        lambda each: F.transform(
            F.array_intersect(each.claims, "disputed"),
            lambda claim: F.struct(each.witness.alias("witness"), F.split(claim, r"\|", 4).alias("parts")),
        ),
    )
    return (
        compared.select(
            *PLACE_NAMES, "topic", "misplaced", said.witness.alias("readers"), F.inline(F.flatten(own))
        )
        .select(
            *PLACE_NAMES,
            "topic",
            "misplaced",
            "readers",
            "witness",
            F.nullif(F.col("parts")[0], F.lit("")).cast("bigint").alias("bstart"),
            F.nullif(F.col("parts")[1], F.lit("")).cast("bigint").alias("bend"),
            F.col("parts")[2].alias("subject"),
            F.col("parts")[3].alias("words"),
        )
        .groupBy(*PLACE_NAMES, "topic", "misplaced", "readers", "bstart", "bend", "subject")
        .agg(
            F.array_sort(F.collect_set(F.struct("witness", "words"))).alias("spoken"),
            F.collect_set(F.substring_index("words", " ", 1)).alias("kinds"),
            F.collect_set(F.when(~F.col("words").endswith(UNKNOWN), F.col("words"))).alias("known"),
        )
    )


def _told(disputes: DataFrame) -> DataFrame:
    """The disputes that are none of the exceptions, in words."""
    is_spoken = F.size(F.array_except("readers", "spoken.witness")) == 0
    is_agreed = is_spoken & (F.size("kinds") == 1) & (F.size("known") <= 1)
    ast_is_silent = F.array_contains("readers", "ast") & ~F.array_contains("spoken.witness", "ast")
    is_misplaced = ast_is_silent & F.exists(
        "misplaced", lambda each: (each.bstart <= F.col("bstart")) & (F.col("bstart") < each.bend)
    )
    is_dead_code = (F.col("topic") == "parameters") & ~F.array_contains("spoken.witness", "bytecode")
    is_excepted = F.coalesce(is_agreed | is_misplaced | is_dead_code, F.lit(False))
    words = F.transform("readers", _words)
    sentences = F.zip_with("readers", words, lambda reader, said: F.concat(reader, F.lit(": "), said))
    about = F.concat_ws(" of ", "topic", F.nullif("subject", F.lit("")))
    return disputes.filter(~is_excepted).select(
        *PLACE_NAMES,
        F.when(F.col("topic") == "parse_outcome", "info").otherwise("warning").alias("severity"),
        F.col("topic").alias("code"),
        "bstart",
        "bend",
        F.concat(
            F.lit("the witnesses differ about "), about, F.lit(": "), F.array_join(sentences, "; ")
        ).alias("message"),
        F.map_from_arrays("readers", words).alias("details"),
    )


def _words(reader: Column) -> Column:
    """What a witness said; several lists of parameters may belong to one name."""
    own = F.filter("spoken", lambda each: each.witness == reader)
    said = F.array_join(F.transform(own, lambda each: each.words), ", ")
    return F.when(said == "", "nothing").otherwise(said)
