"""SQL over the views: what is refused and how that is told, what is answered, and where it stops."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import duckdb
import pytest

from codeanatomy.catalog.views import VIEWS, view
from codeanatomy.delta.read.duck import spill_folder
from codeanatomy.errors import EXIT_USAGE, SqlRefused, UsageError
from codeanatomy.query.answers import Answer
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.lake import Lake
from codeanatomy.query.sql import light
from codeanatomy.query.sql.allowed import function_arguments
from codeanatomy.query.sql.check import TOKENS
from codeanatomy.query.sql.diagnostics import CODES, Diagnostic
from codeanatomy.query.sql.light import SqlAnswer, check, guarded, run_sql, selected
from support.ask_lake import reader_of

# By the code of the first diagnostic.
REFUSED = {
    "statement": [
        "",
        "   -- nothing",
        ";;",
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE calls",
        "CREATE TABLE t AS SELECT 1",
        "CREATE OR REPLACE TEMP VIEW calls AS SELECT 1",
        "DROP VIEW calls",
        "ALTER TABLE calls ADD COLUMN x INT",
        "TRUNCATE TABLE calls",
        "INSERT INTO calls SELECT * FROM calls",
        "WITH x AS (SELECT 1 AS a) INSERT INTO calls SELECT * FROM x",
        "UPDATE calls SET caller = 'x'",
        "DELETE FROM calls",
        "MERGE INTO calls USING symbols ON TRUE WHEN MATCHED THEN DELETE",
        "SET spark.sql.ansi.enabled = false",
        "RESET spark.sql.ansi.enabled",
        "USE elsewhere",
        "ATTACH 'other.db' AS other",
        "COPY calls TO 'out.csv'",
        "PRAGMA database_list",
        "CALL system.run()",
        "EXPLAIN SELECT * FROM calls",
        "DESCRIBE calls",
        "SHOW TABLES",
        "INSTALL httpfs",
        "LOAD 'x.so'",
        "ADD JAR 'x.jar'",
        "CACHE TABLE calls",
        "REFRESH TABLE calls",
        "EXECUTE IMMEDIATE 'SELECT 1'",
        "BEGIN",
        "VALUES (1)",
        "TABLE calls",
        "EXPORT DATABASE '/tmp/out'",
    ],
    "syntax": [
        "SELECT caller FROM calls WHERE",
        "SELECT caller FROM calls GROUP caller",
        "SELECT (caller FROM calls",
        "SELECT * FROM glob('/etc/*')",
        "SELECT FROM calls",
        "WITH x AS (caller) SELECT * FROM x",
        "SELECT 'it''s' FROM calls",
        "SELECT 'open FROM calls",
        "SELECT caller /* open FROM calls",
        "SELECT caller FROM calls calls calls",
        "SELECT '\udcff'",
        "SELECT caller AS `\ud800` FROM calls",
    ],
    "clause": [
        "SELECT caller INTO x FROM calls",
        "SELECT caller FROM calls FOR UPDATE",
        "SELECT /*+ BROADCAST(calls) */ caller FROM calls",
        "SELECT TRANSFORM(caller) USING 'cat' AS (x) FROM calls",
        "SELECT * FROM calls TABLESAMPLE (10 PERCENT)",
        "SELECT * FROM calls VERSION AS OF 3",
        "SELECT * FROM calls PIVOT (count(*) FOR external IN (TRUE, FALSE))",
        "SELECT * FROM calls LATERAL VIEW explode(caller) t AS x",
        "SELECT x.caller FROM calls c, LATERAL (SELECT c.caller) x",
        "SELECT caller FROM calls SORT BY caller",
        "SELECT caller FROM calls CLUSTER BY caller",
        "SELECT DISTINCT ON (caller) caller FROM calls",
        "SELECT caller FROM calls WHERE line > :line",
        "SELECT caller FROM calls WHERE line > ?",
        "SELECT @@version",
        "SELECT ${env:HOME}",
        "SELECT caller FROM calls LIMIT 1 + 1",
        "SELECT * FROM VALUES (1, 2)",
        "SELECT c.a FROM calls AS c(a, b)",
        "SELECT 0x1F",
        "SELECT * AS x FROM calls",
        "SELECT (*) FROM calls",
        "SELECT caller FROM calls WHERE * = 1",
    ],
    "function": [
        "SELECT reflect('java.lang.System', 'getenv', 'HOME')",
        "SELECT java_method('java.lang.System', 'exit', 1)",
        "SELECT getenv('HOME')",
        "SELECT input_file_name() FROM calls",
        "SELECT current_setting('temp_directory')",
        "SELECT read_text('/etc/passwd')",
        "SELECT current_user()",
        "SELECT current_database()",
        "SELECT version()",
        "SELECT now()",
        "SELECT rand()",
        "SELECT uuid()",
        "SELECT repeat('x', 1000000000)",
        "SELECT lpad('x', 1000000000, 'y')",
        "SELECT sequence(1, 1000000000)",
        "SELECT explode(collect_list(caller)) FROM calls",
        "SELECT sleep(10)",
        "SELECT assert_true(FALSE)",
        "SELECT raise_error('x')",
        "SELECT {fn user()}",
        "SELECT from_json(caller, 'a INT') FROM calls",
        "SELECT caller -> 'x' FROM calls",
        "SELECT contians(caller, 'x') FROM calls",
        "SELECT any_value(caller) FROM calls",
        "SELECT levenshtein(caller, callee) FROM calls",
        "SELECT max(line, 3) FROM calls",
        "SELECT ceil(line / 3, 1) FROM calls",
        "SELECT locate('a', caller, 3) FROM calls",
        "SELECT array_join(collect_list(caller), ', ', 'none') FROM calls",
        "SELECT regexp_replace(caller, 'a', 'b', 3) FROM calls",
        "SELECT regexp_replace(caller, 'a', callee) FROM calls",
        "SELECT regexp_replace(caller, 'a', 'b$') FROM calls",
        "SELECT map(1, 2)",
    ],
    "table": [
        "SELECT * FROM call",
        "SELECT * FROM cpg_nodes",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM parquet.`/etc/passwd`",
        "SELECT * FROM delta.`/lake/graph/cpg_nodes`",
        "SELECT * FROM spark_catalog.default.calls",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM read_parquet('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM range(10)",
        "SELECT * FROM IDENTIFIER('calls')",
        "SELECT * FROM stack(2, 1, 2)",
        "SELECT 1 FROM calls WHERE EXISTS (SELECT 1 FROM hidden)",
        "SELECT (SELECT max(line) FROM hidden) FROM calls",
        "SELECT caller FROM calls ORDER BY (SELECT max(line) FROM hidden)",
        "SELECT caller FROM calls c LEFT ANTI JOIN hidden h ON h.x = c.caller",
        "SELECT caller FROM calls c LEFT SEMI JOIN csv.`/etc/passwd` h ON h.x = c.caller",
        "WITH hidden AS (SELECT 1 AS a), x AS (SELECT * FROM more) SELECT * FROM hidden",
        "WITH x AS (SELECT 1 AS a) SELECT x.a FROM hidden AS x",
        "WITH r AS (SELECT * FROM r) SELECT * FROM r",
        "SELECT * FROM calls c, calls c",
        "SELECT x.caller FROM calls c",
    ],
    "column": [
        "SELECT nme FROM symbols",
        "SELECT s.nme FROM symbols s",
        "SELECT symbol FROM symbols WHERE knd = 'CLASS'",
        "SELECT kind, count(*) FROM symbols GROUP BY knd",
        "SELECT kind FROM symbols ORDER BY knd",
        "SELECT x.nme FROM (SELECT name FROM symbols) x",
        "WITH x AS (SELECT name FROM symbols) SELECT kind FROM x",
        "SELECT c.line FROM calls c WHERE EXISTS (SELECT 1 FROM symbols s WHERE s.symbol_id = c.caler_id)",
        "SELECT * FROM calls JOIN symbols USING (caller)",
        "SELECT a.b.c FROM calls",
        "SELECT c._metadata FROM calls c",
    ],
    "ambiguous": [
        "WITH x0 AS (SELECT * FROM calls)"
        + "".join(f", x{n + 1} AS (SELECT * FROM x{n} a, x{n} b)" for n in range(20))
        + " SELECT * FROM x20",
        "SELECT * FROM (SELECT caller, * FROM calls) x",
        "WITH x AS (SELECT * FROM calls c JOIN symbols s ON c.callee_id = s.symbol_id) SELECT * FROM x",
        "SELECT repo_id FROM calls JOIN symbols ON callee_id = symbol_id",
        "SELECT count(*) FROM calls a JOIN calls b ON a.callee_id = b.caller_id WHERE line > 1",
    ],
    "type": [
        "SELECT caller + 1 FROM calls",
        "SELECT -caller FROM calls",
        "SELECT line * external FROM calls",
        "SELECT caller FROM calls WHERE external = 'yes'",
        "SELECT caller FROM calls WHERE external = 1",
        "SELECT caller FROM calls WHERE line = '12'",
        "SELECT caller FROM calls WHERE caller = 12",
        "SELECT caller FROM calls WHERE line IN (1, 'two')",
        "SELECT caller FROM calls WHERE line BETWEEN 'a' AND 'b'",
        "SELECT caller FROM calls WHERE line",
        "SELECT caller FROM calls WHERE NOT caller",
        "SELECT caller FROM calls WHERE external AND line",
        "SELECT caller FROM calls WHERE line LIKE '1%'",
        "SELECT a.caller FROM calls a JOIN calls b ON a.line",
        "SELECT caller FROM calls GROUP BY caller HAVING count(*)",
        "SELECT sum(caller) FROM calls",
        "SELECT avg(external) FROM calls",
        "SELECT lower(line) FROM calls",
        "SELECT x.n || 'a' FROM (SELECT upper(count(*)) AS n FROM calls) x",
        "SELECT CAST(caller AS ARRAY<INT>) FROM calls",
        "SELECT CAST(caller AS TIMESTAMP) FROM calls",
        "SELECT kind FROM symbols UNION SELECT name, path FROM symbols",
        "SELECT line FROM symbols UNION SELECT 'x'",
        "SELECT name, 1 FROM symbols EXCEPT SELECT 'x', TRUE",
        "SELECT (SELECT line FROM symbols INTERSECT SELECT name FROM symbols)",
        "SELECT coalesce(line, 'x') FROM calls",
        "SELECT coalesce(NULL, line, 'x') FROM calls",
        "SELECT greatest(line, caller) FROM calls",
        "SELECT nullif(line, 'x') FROM calls",
        "SELECT if(external, 1, 'x') FROM calls",
        "SELECT if(line, 1, 0) FROM calls",
        "SELECT CASE WHEN external THEN 1 ELSE 'x' END FROM calls",
        "SELECT CASE WHEN line THEN 1 END FROM calls",
        "SELECT CASE line WHEN 'x' THEN 1 END FROM calls",
        "SELECT lag(line, 1, 'x') OVER (ORDER BY line) FROM calls",
        "SELECT caller FROM calls WHERE line IN (SELECT name FROM symbols)",
        "SELECT a FROM (VALUES (1), ('x')) AS v(a)",
        "SELECT CAST(line AS DECIMAL(10, 2)) FROM calls",
        "SELECT confidence DIV 2 FROM calls",
        "SELECT 9223372036854775808",
    ],
    "size": [
        "SELECT " + "(" * 300 + "1" + ")" * 300,
        "SELECT " + "NOT " * 2000 + "TRUE",
        "SELECT 'x" + "x" * 100_000 + "'",
        f"SELECT caller FROM calls WHERE line IN ({', '.join(map(str, range(TOKENS)))})",
        "SELECT 1 FROM calls WHERE line IN (" + "SELECT *, * FROM (" * 12 + "SELECT * FROM calls" + ")" * 13,
        "SELECT 1 AS a0" + "".join(f", a{n} + a{n} AS a{n + 1}" for n in range(40)),
    ],
}
# Functions that may be asked, as SQLGlot calls them.
CLASSES = """
    Abs ArgMax ArgMin ArrayAgg ArraySort ArrayToString ArrayUniqueAgg Avg Ceil Coalesce Concat
    ConcatWs Contains Count CountIf CumeDist DenseRank EndsWith Exp FirstValue Floor Greatest If Lag
    LastValue Lead Least Left Length Ln LogicalAnd LogicalOr Lower Max Median Min Ntile Nullif
    PercentRank Pow Rank RegexpLike RegexpReplace Replace Reverse Right Round RowNumber Sign
    SplitPart Sqrt StartsWith Stddev StddevPop StrPosition Substring Sum Trim Upper Variance
    VariancePop
"""
WRONG = [(code, text) for code, texts in REFUSED.items() for text in texts]


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


def ask(reader: LightReader, text: str, limit: int = 100, seconds: float = 20) -> SqlAnswer:
    return run_sql(reader, text, limit=limit, seconds=seconds)


def refusal(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(SqlRefused) as problem:
        check(text)
    return tuple(Diagnostic(**each) for each in problem.value.diagnostics)


# What is refused


@pytest.mark.parametrize(("code", "text"), WRONG, ids=[f"{code}-{text[:50]}" for code, text in WRONG])
def test_what_is_wrong_is_refused_and_told(code: str, text: str) -> None:
    started = time.process_time()
    first = refusal(text)[0]
    assert first.code == code
    assert first.message
    assert time.process_time() - started < 5


def test_every_code_is_explained_and_enough_is_tried() -> None:
    assert REFUSED.keys() == CODES.keys() - {"engine", "time"}
    assert len(WRONG) > 150


def test_a_diagnostic_has_its_place_and_a_suggestion() -> None:
    text = "SELECT name\nFROM symbols\nWHERE knd = 'CLASS'"
    assert refusal(text) == (
        Diagnostic(
            "column",
            "unknown column 'knd'",
            line=3,
            column=7,
            end=10,
            snippet="WHERE knd = 'CLASS'\n      ^^^",
            suggestion="did you mean kind?",
        ),
    )


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("SELECT * FROM simbols", "did you mean symbols?"),
        ("SELECT contians(caller, 'x') FROM calls", "did you mean contains?"),
        ("SELECT c.caler FROM calls c", "did you mean caller?"),
        ("SELECT cals.caller FROM calls", "did you mean calls?"),
        (
            "SELECT line FROM calls JOIN symbols ON callee_id = symbol_id",
            "write calls.line or symbols.line",
        ),
        (
            "SELECT caller FROM calls WHERE external = 'x'",
            "write TRUE or FALSE, or a comparison",
        ),
        ("SELECT 'it''s'", "write a quote inside of a string as \\'"),
        ("SELECT 0x10", "write a number or a string literal"),
        ("SELECT max(line, 3) FROM calls", "as in max(line)"),
    ],
)
def test_a_suggestion_names_what_was_meant(text: str, suggestion: str) -> None:
    assert refusal(text)[0].suggestion == suggestion


def test_a_function_is_called_as_it_was_typed() -> None:
    (found,) = refusal("SELECT Map(1, 2)")
    assert found.message == "the function 'map' is not supported"


def test_all_that_is_wrong_is_told_at_once_in_order() -> None:
    found = refusal("SELECT nme, s.knd, t.x FROM symbols s")
    assert [(each.code, each.column) for each in found] == [("column", 8), ("column", 13), ("table", 20)]


def test_the_error_shows_the_place() -> None:
    with pytest.raises(SqlRefused) as problem:
        check("SELECT nme FROM symbols")
    assert str(problem.value) == (
        "[CA015] line 1, column 8: unknown column 'nme'\n"
        "    SELECT nme FROM symbols\n"
        "           ^^^\n"
        "  next: did you mean name?"
    )
    assert problem.value.exit_code == EXIT_USAGE


def test_a_long_line_is_shown_around_the_place() -> None:
    (found,) = refusal(f"SELECT {'1, ' * 500}nme FROM symbols")
    assert found.snippet is not None
    line, marks = found.snippet.split("\n")
    assert len(line) <= 120
    assert line[marks.index("^") :].startswith("nme FROM symbols")


def test_no_control_character_of_a_statement_is_shown() -> None:
    (found,) = refusal("SELECT '\x1b[31m', nme FROM symbols")
    assert found.snippet == "SELECT ' [31m', nme FROM symbols\n                ^^^"


def test_warnings_of_sqlglot_are_silenced_here_only(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("sqlglot")
    level = logger.level
    together = Barrier(4)

    def look() -> None:
        together.wait()
        for _ in range(5):
            refusal("SELECT {fn user()}")

    threads = [Thread(target=look) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (logger.level, caplog.records) == (level, [])
    logger.warning("somebody else's")
    assert [record.message for record in caplog.records] == ["somebody else's"]


# What is made of a statement


def test_names_are_written_in_full_and_stars_are_spelled_out() -> None:
    found = check("SELECT * FROM Inherits i -- a remark\nWHERE I.`Line` > 3;")
    assert found.columns == view("inherits").column_names
    assert found.views == ("inherits",)
    assert found.duck_sql.startswith('SELECT "i"."repo_id" AS "repo_id", "i"."class_id" AS "class_id"')
    assert found.duck_sql.endswith('FROM "inherits" AS "i" WHERE "i"."line" > 3')
    assert found.spark_sql.endswith("FROM `inherits` AS `i` WHERE `i`.`line` > 3")


def test_columns_have_names_of_their_own() -> None:
    found = check(
        "SELECT c.line, s.line, count(*), max(c.line) FROM calls c, symbols s GROUP BY c.line, s.line"
    )
    assert found.columns == ("line", "line_2", "count", "max")


def test_references_is_a_name_like_any_other() -> None:
    assert check("SELECT symbol FROM references").duck_sql == (
        'SELECT "references"."symbol" AS "symbol" FROM "references" AS "references"'
    )


def test_all_views_that_are_read_are_named() -> None:
    text = (
        "WITH x AS (SELECT * FROM calls) SELECT symbol FROM symbols"
        " LEFT ANTI JOIN x ON symbol_id = x.callee_id WHERE path IN (SELECT path FROM files)"
        " UNION ALL SELECT class_name FROM inherits"
    )
    assert check(text).views == ("calls", "files", "inherits", "symbols")


def test_texts_survive_whatever_is_in_them(reader: LightReader) -> None:
    values = [
        "it's",
        'a "b"',
        "a\\b",
        "tab\tend",
        "line\nend",
        "-- x",
        "/* y",
        "; DROP TABLE calls",
        "é\u2028",
    ]
    written = ", ".join(
        "'" + value.replace("\\", "\\\\").replace("'", "\\'") + f"' AS c{number}"
        for number, value in enumerate(values)
    )
    assert [*ask(reader, f"SELECT {written}").rows[0].values()] == values


# What is answered


@pytest.mark.parametrize("name", [each.name for each in VIEWS])
def test_every_view_is_answered(name: str, reader: LightReader) -> None:
    found = ask(reader, f"SELECT * FROM {name}", limit=2)
    assert found.columns == view(name).column_names
    assert len(found.rows) >= 1


def test_functions_have_no_part_that_nobody_named() -> None:
    # One more here is a function more that may be asked, by whatever names SQLGlot reads it.
    assert {kind.__name__ for kind in function_arguments()} == {*CLASSES.split()}


def test_an_aggregate(reader: LightReader) -> None:
    text = "SELECT kind, count(*) FROM symbols WHERE path = 'shop/money.py' GROUP BY kind ORDER BY 2 DESC, 1"
    assert ask(reader, text).rows == (
        {"kind": "PARAMETER", "count": 7},
        {"kind": "BINDING", "count": 4},
        {"kind": "FUNCTION", "count": 4},
        {"kind": "CLASS", "count": 2},
        {"kind": "MODULE", "count": 1},
    )


def test_a_recursive_question(reader: LightReader) -> None:
    text = """
        WITH RECURSIVE reached(callee, depth) AS (
            SELECT callee, 1 FROM calls WHERE caller = 'shop.cart.sell'
            UNION
            SELECT c.callee, r.depth + 1 FROM calls c JOIN reached r ON c.caller = r.callee WHERE r.depth < 3
        )
        SELECT min(depth) AS depth, callee FROM reached WHERE callee LIKE 'shop.%'
        GROUP BY callee ORDER BY 1, 2
    """
    assert [tuple(row.values()) for row in ask(reader, text).rows] == [
        (1, "shop.cart.Cart.__init__"),
        (1, "shop.cart.Cart.add"),
        (1, "shop.cart.Cart.checkout"),
        (1, "shop.money.Price.__init__"),
        (1, "shop.money.Price.with_tax"),
        (2, "shop.cart.Cart.total"),
        (2, "shop.cart.print_bill"),
        (3, "shop.cart.total"),
    ]


def test_a_name_of_with_may_be_that_of_a_view(reader: LightReader) -> None:
    text = "WITH calls AS (SELECT callee FROM calls WHERE path = 'depot.py') SELECT count(*) FROM calls"
    assert ask(reader, text).rows == ({"count": 4},)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("'with!_tax' ESCAPE '!'", ["with_tax"]),
        (r"'with\\_tax'", ["with_tax"]),
        ("'with_tax'", ["with_tax"]),
        (r"'with\\_ta_'", ["with_tax"]),
        (r"'wit\\__tax'", []),
        ("concat('with', '_', 'tax')", ["with_tax"]),
    ],
)
def test_a_pattern_means_what_it_means_in_spark(reader: LightReader, pattern: str, found: list[str]) -> None:
    text = f"SELECT name FROM symbols WHERE path = 'depot.py' AND name LIKE {pattern}"
    assert [row["name"] for row in ask(reader, text).rows] == found


def test_values_are_what_json_has(reader: LightReader) -> None:
    (row,) = ask(
        reader, "SELECT 1.5 AS a, 7 / 2 AS b, collect_list(x.n) AS c FROM (VALUES (0.5)) AS x(n)"
    ).rows
    assert row == {"a": 1.5, "b": 3.5, "c": [0.5]}
    (row,) = ask(reader, "SELECT sqrt(-1) AS a, exp(1000) AS b, collect_list(ln(0.5)) AS c")
    assert (row["a"], row["b"], len(row["c"])) == (None, None, 1)


def test_an_answer_is_like_that_of_a_verb(reader: LightReader, ask_lake: Path) -> None:
    text = "SELECT name, line FROM symbols WHERE repo_id = 'depot' AND kind = 'CLASS'"
    found = ask(reader, text)
    verb = Lake.open(str(ask_lake)).stats(limit=1000)
    assert (found.verb, found.subject, found.views) == ("sql", (text,), ("symbols",))
    assert (found.run_id, found.freshness, found.coverage) == (verb.run_id, verb.freshness, verb.coverage)
    assert [fresh.repo_id for fresh in found.freshness] == ["depot", "flask", "shop"]
    assert list(found) == list(found.rows)
    assert {*Answer.__struct_fields__} - {"symbols", "unknown"} == {*SqlAnswer.__struct_fields__} - {
        "views",
        "sql",
    }
    assert [str(field.type) for field in found.to_arrow().schema] == ["string", "int64"]
    assert list(found.to_pandas().columns) == ["name", "line"]


def test_what_is_nested_is_not_written_out_without_end() -> None:
    deep = "caller"
    for _ in range(40):
        deep = f"substring({deep}, length(caller), length(caller))"
    assert len(check(f"SELECT {deep} FROM calls").duck_sql) < 20_000
    wide = "length(caller)"
    for _ in range(20):
        wide = f"length(left(caller, {wide}))"
    assert refusal(f"SELECT {wide} FROM calls")[0].code == "size"


# Limits


def test_rows_are_limited_and_counted(reader: LightReader) -> None:
    found = ask(reader, "SELECT symbol FROM symbols ORDER BY symbol, symbol_id", limit=3)
    total = ask(reader, "SELECT count(*) AS n FROM symbols").rows[0]["n"]
    assert (len(found), found.total, found.cut) == (3, total, total - 3)
    assert (found.more, found.notes) == (f"--limit {total}", ())


@pytest.mark.parametrize(
    ("asked", "cut", "more"), [(2, 0, None), (3, 0, None), (4, 1, "--limit 4"), (9, 6, "--limit 9")]
)
def test_a_limit_of_the_statement_counts_too(
    reader: LightReader, asked: int, cut: int, more: str | None
) -> None:
    found = ask(reader, f"SELECT symbol FROM symbols ORDER BY 1 LIMIT {asked}", limit=3)
    assert (found.total, found.cut, found.more, len(found)) == (asked, cut, more, min(asked, 3))


@pytest.mark.parametrize("limit", [0, -1, 10**30, "3", True, 2.0])
def test_a_limit_that_means_nothing_is_refused(reader: LightReader, limit: Any) -> None:
    with pytest.raises(UsageError, match="--limit must be"):
        ask(reader, "SELECT 1", limit=limit)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "3", True])
def test_a_time_that_means_nothing_is_refused(reader: LightReader, seconds: Any) -> None:
    with pytest.raises(UsageError, match=r"--seconds must be 0\.1-3600"):
        ask(reader, "SELECT 1", seconds=seconds)


def test_no_rows(reader: LightReader) -> None:
    found = ask(reader, "SELECT caller FROM calls WHERE FALSE")
    assert (found.rows, found.total, found.cut, found.more, found.columns) == ((), 0, 0, None, ("caller",))
    assert found.to_arrow().column_names == ["caller"]


def test_what_takes_too_long_is_stopped(reader: LightReader) -> None:
    started = time.monotonic()
    with pytest.raises(SqlRefused) as problem:
        ask(reader, "SELECT max(a.line + b.line + c.line) FROM nodes a, nodes b, nodes c", seconds=0.3)
    assert problem.value.diagnostics[0]["code"] == "time"
    assert "longer than 0.3 seconds" in problem.value.message
    assert time.monotonic() - started < 60
    # The next question is not disturbed.
    assert ask(reader, "SELECT 1 AS one").rows == ({"one": 1},)


def test_rows_are_given_although_there_is_no_time_to_count_them(reader: LightReader) -> None:
    text = "SELECT a.node_id FROM nodes a, nodes b WHERE length(concat(a.node_id, b.node_id)) > 1"
    found = ask(reader, text, limit=2, seconds=1)
    assert (len(found), found.total, found.cut, found.more) == (2, None, None, "--limit 20")
    assert found.notes == ("there are more rows, which were not counted",)


def test_a_lake_may_be_called_like_a_pattern(ask_lake: Path, tmp_path: Path) -> None:
    link = tmp_path / "la[k]e *"
    link.symlink_to(ask_lake)
    assert ask(reader_of(link), "SELECT count(*) AS n FROM calls WHERE path = 'depot.py'").rows == ({"n": 4},)


def test_no_advice_of_the_engine_is_passed_on(reader: LightReader) -> None:
    with pytest.raises(SqlRefused) as problem:
        ask(reader, f"SELECT {'1 + ' * 2300}1")
    assert problem.value.diagnostics[0]["code"] == "size"
    assert "SET" not in str(problem.value)
    assert "nested too deeply" in problem.value.message


def test_what_the_engine_refuses_is_told_like_the_rest(reader: LightReader) -> None:
    with pytest.raises(SqlRefused) as problem:
        ask(reader, "SELECT caller, line FROM calls GROUP BY caller")
    assert problem.value.diagnostics[0]["code"] == "engine"
    assert "GROUP BY" in problem.value.message


# The second line: what would happen to a statement that the check overlooks


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_blob('/proc/self/environ')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_text('{lake}/../../../../../../../../etc/passwd')",
        "SELECT getenv('HOME')",
        "SELECT * FROM text",
    ],
)
def test_the_database_reads_nothing_but_the_lake(ask_lake: Path, text: str) -> None:
    connection = guarded(str(ask_lake), os.getpid()).cursor()
    with pytest.raises(duckdb.Error):
        selected(connection, text.format(lake=ask_lake), time.monotonic() + 5)


@pytest.mark.parametrize(
    "text",
    [
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "SET lock_configuration = false",
        "RESET memory_limit",
        "INSTALL httpfs",
        "ATTACH '{lake}/x.db' AS x",
        "COPY (SELECT 1) TO '{lake}/x.csv'",
        "EXPORT DATABASE '{lake}/x'",
        "CREATE TABLE x AS SELECT 1",
        "PRAGMA version",
        "SELECT 1; SELECT 2",
    ],
)
def test_the_database_runs_nothing_but_a_select(ask_lake: Path, text: str) -> None:
    before = sorted(ask_lake.iterdir())
    connection = guarded(str(ask_lake), os.getpid()).cursor()
    with pytest.raises(duckdb.Error):
        selected(connection, text.format(lake=ask_lake), time.monotonic() + 5)
    assert sorted(ask_lake.iterdir()) == before


@pytest.mark.parametrize("setting", ["enable_external_access = true", "memory_limit = '1TB'"])
def test_the_settings_of_the_database_are_locked(ask_lake: Path, setting: str) -> None:
    with pytest.raises(duckdb.InvalidInputException):
        guarded(str(ask_lake), os.getpid()).cursor().execute(f"SET {setting}")


def test_what_is_spilled_is_in_a_folder_of_ours(ask_lake: Path) -> None:
    connection = guarded(str(ask_lake), os.getpid()).cursor()
    ((folder,),) = connection.execute("SELECT current_setting('temp_directory')").fetchall()
    assert folder == spill_folder(os.getpid())
    assert (Path(folder).stat().st_mode & 0o777, Path(folder).stat().st_uid) == (0o700, os.getuid())


def test_a_variable_of_this_process_is_no_table(ask_lake: Path) -> None:
    secret = duckdb.sql("SELECT 1 AS a")
    with pytest.raises(duckdb.CatalogException):
        selected(guarded(str(ask_lake), os.getpid()).cursor(), "SELECT * FROM secret", time.monotonic() + 5)
    assert secret is not None


def test_a_column_without_a_view_is_reported_with_what_to_write() -> None:
    (problem,) = refusal("SELECT sym")
    assert (problem.message, problem.suggestion) == ("unknown column 'sym'", "name a view: FROM symbols")


def test_rows_with_too_much_text_are_refused(ask_lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB's limit of memory does not count the values that Python holds."""
    monkeypatch.setattr(light, "MAX_ROWS_CHARS", 10_000)
    wide = "SELECT concat_ws(',', collect_list(symbol)) AS text FROM symbols"
    with pytest.raises(SqlRefused, match="too much text"):
        run_sql(reader_of(ask_lake), wide, limit=10, seconds=30)
    assert run_sql(reader_of(ask_lake), "SELECT symbol FROM symbols", limit=50, seconds=30).rows
