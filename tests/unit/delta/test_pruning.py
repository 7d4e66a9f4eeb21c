"""Which files are read: never too few, whatever the log says of them, and no more than have to be.

The oracle is DuckDB, which reads the rows of every file and knows nothing of the log.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import json, structs

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.catalog.spec import Column, DeltaWritePolicy, Table
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.events import Scanned
from codeanatomy.delta.lake_tables import LakeTables
from codeanatomy.delta.log.deletion_vectors import DeletionVector, read_vector
from codeanatomy.delta.log.replay import Add, LogState, replay_log
from codeanatomy.delta.log.versions import open_version
from codeanatomy.delta.read.column_ranges import ANY_VALUE
from codeanatomy.delta.read.file_index import FileIndex, LoggedFile, logged_files
from codeanatomy.delta.read.light import light_files
from codeanatomy.delta.read.open_table import newest_version
from codeanatomy.delta.read.predicate_text import parse_predicate
from codeanatomy.delta.write.data_files import write_files
from codeanatomy.delta.write.file_commits import commit_files
from codeanatomy.node_ids import file_id
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.engines.statements import Query, Slice, Within, nodes
from codeanatomy.query.sql.check import check
from codeanatomy.query.sql.light import run_sql
from codeanatomy.query.sql.pruning import conditions_of
from codeanatomy.query.symbols import resolve
from support.ask_lake import reader_of
from support.marks import examples

Row = dict[str, Any]

# A column of every type that has an order, with statistics and without.
PARTS = Table(
    "parts",
    "graph",
    "One row per part.",
    (
        Column("owner", "string", "Whose it is."),
        Column("kind", "string", "Its partition."),
        Column("name", "string", "A text."),
        Column("whole", "bigint", "A number."),
        Column("small", "int", "A small one."),
        Column("number", "double", "One with a point."),
        Column("flag", "boolean", "Yes or no."),
        Column("time", "timestamp", "A moment."),
        Column("note", "string", "A text without statistics."),
    ),
    primary_key=("owner",),
    owner="owner",
    write=DeltaWritePolicy(
        partition_by=("kind",),
        zorder_by=("owner",),
        stats_policy="explicit",
        stats_columns=("owner", "name", "whole", "small", "number", "time"),
    ),
)
TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
}
# As Delta's log calls them.
LOGGED = {"bigint": "long", "int": "integer"}
SCHEMA = pa.schema([pa.field(column.name, TYPES[column.type]) for column in PARTS.columns])
NODES = catalog.table("cpg_nodes")
ORACLE = duckdb.connect()
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)

# Few values, so that conditions meet rows; long texts that begin alike, and characters of all sizes.
TEXTS = [
    "",
    "a",
    "ab",
    "b",
    "x" * 31,
    "x" * 32,
    "x" * 33,
    "x" * 40 + "y",
    "x" * 32 + "\x7f",
    "x" * 32 + "🐍",
    "é" * 16,
    "é" * 17,
    "é" * 33,
    "🐍" * 8,
    "🐍" * 9,
    "\uffff",
    "🐍",
]
WHOLES = [-(2**63), -3, 0, 1, 2, 7, 2**53 + 1, 2**63 - 1]
SMALLS = [-(2**31), -1, 0, 5, 2**31 - 1]
NUMBERS = [-math.inf, -1.5, -0.0, 0.0, 0.5, 2.0, 1e300, math.inf, math.nan]
TIMES = [NOON + timedelta(microseconds=shift) for shift in (-1_000_001, -1, 0, 1, 999, 1000, 1001)]
KINDS = ["A", "B", None]
POOLS: dict[str, list[Any]] = {
    "owner": ["o1", "o2", "o3"],
    "kind": ["A", "B"],
    "name": TEXTS,
    "whole": WHOLES,
    "small": SMALLS,
    "number": NUMBERS,
    "flag": [True, False],
    "time": TIMES,
    "note": ["a", "b"],
}
some_rows = st.lists(
    st.fixed_dictionaries(
        {
            name: st.sampled_from(pool) if name in ("owner", "kind") else st.sampled_from([*pool, None])
            for name, pool in POOLS.items()
        }
    ),
    min_size=1,
    max_size=5,
)


# Conditions, in Spark's SQL and in DuckDB's.

BuildInputs = tuple[str, str]


def literal(value: Any) -> BuildInputs:
    if value is None:
        return "NULL", "NULL"
    if isinstance(value, bool):
        return str(value), str(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat()}'", f"TIMESTAMPTZ '{value.isoformat()}'"
    if isinstance(value, float):
        return f"{value!r}D", f"{value!r}::DOUBLE"
    return (f"'{value}'", f"'{value}'") if isinstance(value, str) else (str(value), str(value))


def both(form: str, *values: BuildInputs) -> BuildInputs:
    return form.format(*(each[0] for each in values)), form.format(*(each[1] for each in values))


@st.composite
def leaves(draw: st.DrawFn) -> BuildInputs:
    name = draw(st.sampled_from(list(POOLS)))
    # No literal is NaN or infinite: Spark has them by a cast only.
    pool = [each for each in POOLS[name] if not isinstance(each, float) or math.isfinite(each)]
    values = st.sampled_from([*pool, None]).map(literal)
    form = draw(st.sampled_from(["compare", "same", "among", "between", "null", "like", "flag", "opaque"]))
    if form == "flag":
        return "flag", "flag"
    if form == "null":
        return both(f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL")
    if form == "same":
        spark, duck = draw(values)
        return f"{name} <=> {spark}", f"{name} IS NOT DISTINCT FROM {duck}"
    if form == "among":
        listed = draw(st.lists(values, min_size=1, max_size=3))
        marks = ", ".join("{}" for _ in listed)
        return both(f"{name} {draw(st.sampled_from(['IN', 'NOT IN']))} ({marks})", *listed)
    if form == "between":
        return both(f"{name} BETWEEN {{}} AND {{}}", draw(values), draw(values))
    if form == "like":
        prefix = draw(st.sampled_from(["", "a", "x", "x" * 31, "x" * 32, "x" * 33, "é" * 16, "🐍"]))
        word = draw(st.sampled_from(["LIKE", "NOT LIKE"]))
        return both(f"name {word} '{prefix}%'")
    if form == "opaque":
        return both("length(name) > 31")
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
    return both(f"{name} {operator} {{}}" if draw(st.booleans()) else f"{{}} {operator} {name}", draw(values))


conditions = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        inner.map(lambda each: both("NOT ({})", each)),
        st.tuples(inner, inner).map(lambda pair: both("({} AND {})", *pair)),
        st.tuples(inner, inner).map(lambda pair: both("({} OR {})", *pair)),
    ),
    max_leaves=5,
)


def meeting(rows: pa.Table, duck: str) -> int:
    """How many rows meet a condition, by DuckDB."""
    with ORACLE.cursor() as database:
        database.register("rows", rows)
        ((count,),) = database.execute(f"SELECT count(*) FROM rows WHERE {duck}").fetchall()
        return int(count)


def as_table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


# Statistics of all kinds.


def cut_text(value: str, how: str, *, greatest: bool) -> str:
    """A bound as writers shorten it."""
    if how == "whole" or len(value) <= 32:
        return value
    if how == "tie" and greatest:
        return value[:32] + ("\x7f" if value[:33].isascii() and "\x7f" not in value else "\U0010ffff")
    return value[:32]


def told(name: str, value: Any, how: str, *, greatest: bool) -> Any:
    """A bound as JSON has it."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds" if how != "whole" else "microseconds")
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value)
    return cut_text(value, how, greatest=greatest) if isinstance(value, str) else value


@st.composite
def adds(draw: st.DrawFn) -> tuple[Add, list[Row]]:
    """A file as some writer may tell of it, and the rows of it that are the table's."""
    rows = draw(some_rows)
    kind = draw(st.sampled_from(KINDS))
    rows = [{**row, "kind": kind} for row in rows]
    how = draw(st.sampled_from(["whole", "cut", "tie"]))
    low, high, nulls = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    for name in ("owner", "name", "whole", "small", "number", "time", "flag"):
        kept = draw(st.sampled_from(["all", "all", "all", "none", "half", "counts", "wrong"]))
        held = [row[name] for row in rows if row[name] is not None]
        # As Parquet has it, without NaN.
        ordered = sorted(each for each in held if not isinstance(each, float) or not math.isnan(each))
        physical = f"col-{name}"
        if kept in ("all", "half") and ordered and name != "flag":
            low[physical] = told(name, ordered[0], how, greatest=False)
            high[physical] = told(name, ordered[-1], how, greatest=True)
            if kept == "half":
                (low if draw(st.booleans()) else high).pop(physical)
        if kept == "wrong":
            low[physical] = high[physical] = draw(
                st.sampled_from([[], {"a": 1}, "zzz" if name != "owner" else 3])
            )
            if isinstance(low[physical], str) and name in ("name", "time"):
                low.pop(physical), high.pop(physical)
        if kept in ("all", "counts"):
            nulls[physical] = len(rows) - len(held)
    records = len(rows)
    vector = None
    tight: dict[str, Any] = {}
    if draw(st.booleans()) and len(rows) > 1:
        rows = rows[: draw(st.integers(1, len(rows) - 1))]
        vector = DeletionVector("u", "x", 1, 1, 1)
        tight = {"tightBounds": False} if draw(st.booleans()) else {}
        records = draw(st.sampled_from([records, len(rows)]))
    stats = {"numRecords": records, "minValues": low, "maxValues": high, "nullCount": nulls, **tight}
    text = draw(st.sampled_from([json.encode(stats).decode()] * 6 + ["", "{}", "{", '{"minValues": 3}']))
    path = f"{draw(st.uuids())}.parquet"
    return Add(path, {"col-kind": kind}, 1, 0, True, text or None, None, vector), rows


def mapped_metadata() -> dict[str, Any]:
    """A schema whose columns have other names in the files."""
    fields = [
        {
            "name": column.name,
            "type": LOGGED.get(column.type, column.type),
            "nullable": True,
            "metadata": {"delta.columnMapping.physicalName": f"col-{column.name}"},
        }
        for column in PARTS.columns
    ]
    return {
        "schemaString": json.encode({"type": "struct", "fields": fields}).decode(),
        "partitionColumns": ["kind"],
        "configuration": {"delta.columnMapping.mode": "name"},
    }


def simple_conditions(name: str) -> Iterator[BuildInputs]:
    """All conditions of one part on a column, and their negations."""
    pool = [each for each in POOLS[name] if not isinstance(each, float) or math.isfinite(each)]
    found = [both(f"{name} IS NULL"), both(f"{name} IN (NULL)")]
    for value in map(literal, pool):
        found += [both(f"{name} {operator} {{}}", value) for operator in ("=", "<", "<=", ">", ">=")]
        found += [(f"{name} <=> {value[0]}", f"{name} IS NOT DISTINCT FROM {value[1]}")]
        found += [
            both(f"{name} IN ({{}}, {{}})", value, other) for other in (literal(pool[0]), literal(None))
        ]
    found += [both(f"{name} LIKE '{prefix}%'") for prefix in TEXTS if name == "name"]
    for each in found:
        yield from (each, both("NOT ({})", each))


def held_by(name: str, values: Sequence[Any], how: str) -> dict[str, Any]:
    """What a writer tells of a column."""
    held = [each for each in values if each is not None]
    ordered = sorted(each for each in held if not isinstance(each, float) or not math.isnan(each))
    bounds = bool(ordered) and name != "flag"
    low = {name: told(name, ordered[0], how, greatest=False)} if bounds else {}
    high = {name: told(name, ordered[-1], how, greatest=True)} if bounds else {}
    return {"minValues": low, "maxValues": high, "nullCount": {name: len(values) - len(held)}}


def files_of_two(name: str) -> Iterator[tuple[dict[str, Any], tuple[Any, ...]]]:
    """The statistics of all files of two rows, and the values that are left in each."""
    pool = [*POOLS[name], None]
    for pair in combinations_with_replacement(pool, 2):
        for how in ("whole", "cut", "tie"):
            yield {"numRecords": 2, **held_by(name, pair, how)}, pair
    for pair in product(pool, pool):
        # The second row was removed; some writers count the rows that are left.
        for records in (1, 2):
            yield {"numRecords": records, "tightBounds": False, **held_by(name, pair, "tie")}, pair[:1]


@pytest.mark.parametrize("name", [name for name in POOLS if name not in ("owner", "kind", "note")])
def test_no_pair_of_values_is_left_out(name: str) -> None:
    """All conditions on all files of two rows: what a bound hides shows in some of them."""
    stats = [(json.encode(stats).decode(), values) for stats, values in files_of_two(name)]
    made = {str(at): Add(str(at), {}, 1, 0, True, text) for at, (text, _) in enumerate(stats)}
    fields = [{"name": name, "type": LOGGED.get(PARTS.column(name).type, PARTS.column(name).type)}]
    metadata = {"schemaString": json.encode({"fields": fields}).decode()}
    files = logged_files(PARTS, LogState({}, metadata, made))
    pool = pa.table(
        {"place": range(len(POOLS[name]) + 1), name: pa.array([*POOLS[name], None], SCHEMA.field(name).type)}
    )
    gone = 0
    for spark, duck in simple_conditions(name):
        with ORACLE.cursor() as database:
            database.register("pool", pool)
            meets = {
                place for (place,) in database.execute(f"SELECT place FROM pool WHERE {duck}").fetchall()
            }
        asked = parse_predicate(PARTS, spark)
        for file in files:
            if not asked.may_match(file.column_range):
                gone += 1
                values = stats[int(file.path)][1]
                # By identity, for NaN is not equal to itself.
                places = {
                    at for at, each in enumerate([*POOLS[name], None]) if any(each is v for v in values)
                }
                assert not places & meets, (spark, stats[int(file.path)])
    assert gone > 0


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(adds(), min_size=1, max_size=4), conditions)
@pytest.mark.system
def test_no_file_with_a_matching_row_is_left_out(
    made: list[tuple[Add, list[Row]]], asked: BuildInputs
) -> None:
    state = LogState({}, mapped_metadata(), {add.path: add for add, _ in made})
    index = FileIndex(0, logged_files(PARTS, state))
    kept = {file.path for file in index.candidates(parse_predicate(PARTS, asked[0]))}
    for add, rows in made:
        if add.path not in kept:
            assert meeting(as_table(rows), asked[1]) == 0, (asked, add, rows)


def test_conditions_do_rule_files_out() -> None:
    """That the property above is not met by keeping all: a part of random files goes."""
    gone = total = 0

    @settings(
        max_examples=examples(150),
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(adds(), conditions)
    def counted(made: tuple[Add, list[Row]], asked: BuildInputs) -> None:
        nonlocal gone, total
        state = LogState({}, mapped_metadata(), {made[0].path: made[0]})
        index = FileIndex(0, logged_files(PARTS, state))
        total += 1
        gone += not index.candidates(parse_predicate(PARTS, asked[0]))

    counted()
    assert gone > total / 10


# Real files and logs.


def rows_in(folder: Path, file: LoggedFile) -> pa.Table:
    """The rows of a data file that are the table's."""
    stored = pq.ParquetFile(folder / file.path).read()
    removed = read_vector(str(folder), file.vector) if file.vector else ()
    rows = [{**row, **file.partition} for place, row in enumerate(stored.to_pylist()) if place not in removed]
    return as_table([{column.name: row.get(column.name) for column in PARTS.columns} for row in rows])


def check_real(folder: Path, version: int, asked: Iterable[BuildInputs]) -> int:
    """Check conditions against the rows of all files; how many files were ruled out."""
    opened = open_version(PARTS, str(folder), version)
    assert opened is not None
    index = opened.index
    held = {file.path: rows_in(folder, file) for file in index.files}
    gone = 0
    for spark, duck in asked:
        kept = {file.path for file in index.candidates(parse_predicate(PARTS, spark))}
        for path in held.keys() - kept:
            assert meeting(held[path], duck) == 0, (spark, path)
            gone += 1
    return gone


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(some_rows, min_size=1, max_size=3),
    st.lists(st.sampled_from(POOLS["owner"]), max_size=2),
    st.lists(conditions, min_size=5, max_size=5),
)
def test_files_of_our_writer(
    tmp_path_factory: pytest.TempPathFactory,
    commits: list[list[Row]],
    leave: list[str],
    asked: list[BuildInputs],
) -> None:
    tables = LakeTables(str(tmp_path_factory.mktemp("ours")), tables=(PARTS,))
    folder = Path(tables.location("parts"))
    for number, rows in enumerate(commits):
        ordered = sorted(rows, key=lambda row: (row["kind"], row["owner"]))
        files = write_files(str(folder), PARTS, as_table(ordered).to_batches())
        commit_files(tables, "parts", files, [], Commit(f"add-{number}"), by="owner")
    # Some rows leave by deletion vectors, or with their files.
    version = len(commits) - 1
    if leave:
        done = commit_files(tables, "parts", [], sorted(set(leave)), Commit("leave"), by="owner")
        version = done.version
    check_real(folder, version, asked)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(some_rows, min_size=1, max_size=3), st.lists(conditions, min_size=5, max_size=5))
@pytest.mark.system
def test_files_of_another_writer_with_partitions_of_null(
    tmp_path_factory: pytest.TempPathFactory, commits: list[list[Row]], asked: list[BuildInputs]
) -> None:
    folder = tmp_path_factory.mktemp("theirs") / "parts"
    for number, rows in enumerate(commits):
        # A column that is there from the second commit on.
        told_rows = [{**row, "kind": KINDS[place % 3]} for place, row in enumerate(rows)]
        table = as_table(told_rows) if number else as_table(told_rows).drop_columns(["small"])
        write_deltalake(folder, table, mode="append", partition_by=["kind"], schema_mode="merge")
    check_real(folder, len(commits) - 1, asked)


# What is left of the files of a table.


def node_id(kind: str, number: int, place: int) -> str:
    return f"{kind.lower()}:{number}{place:021}"


@pytest.fixture(scope="module")
def twenty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nodes of ten files, two kinds of each, in a data file each; those of the first were written again."""
    root = tmp_path_factory.mktemp("twenty")
    tables = LakeTables(str(root))
    for run, number in enumerate((*range(10), 0)):
        rows = [
            {
                "repo_id": "a",
                "node_id": node_id(kind, number, place),
                "node_kind": kind,
                "file_id": file_id("a", f"{number}.py"),
                "path": f"{number}.py",
                "bstart": 10 * place,
                "bend": 10 * place + 5,
                "line": place + 1,
                "owner_file_id": file_id("a", f"{number}.py"),
            }
            for kind in ("CLASS", "FUNCTION")
            for place in range(10)
        ]
        batch = pa.RecordBatch.from_pylist(rows, schema=arrow_schema(NODES))
        files = write_files(tables.location("cpg_nodes"), NODES, [batch])
        owners = [file_id("a", f"{number}.py")] if run == 10 else []
        commit_files(tables, "cpg_nodes", files, owners, Commit(f"run-{run}"), by="owner_file_id")
    return root


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("TRUE", 20),
        ("node_kind = 'CLASS'", 10),
        ("node_kind <> 'CLASS'", 10),
        ("node_kind IN ('CLASS', 'MODULE')", 10),
        ("NOT (node_kind IN ('CLASS', 'FUNCTION'))", 0),
        ("node_kind LIKE 'F%'", 10),
        (f"node_id = '{node_id('CLASS', 3, 5)}'", 1),
        (f"node_id IN ('{node_id('CLASS', 3, 5)}', '{node_id('FUNCTION', 9, 9)}', 'class:zz')", 2),
        (f"file_id = '{file_id('a', '3.py')}'", 2),
        ("path = '3.py' AND bstart BETWEEN 20 AND 40", 2),
        ("path = '3.py' AND bstart BETWEEN 20 AND 40 AND node_kind = 'CLASS'", 1),
        ("path = '3.py' AND bstart > 90", 0),
        ("path >= '8'", 4),
        ("NOT path < '8'", 4),
        ("path LIKE '3%'", 2),
        ("bend < 5", 0),
        ("bstart IS NULL", 0),
        ("NOT (bstart IS NOT NULL)", 0),
        ("path = '3.py' OR path = '4.py'", 4),
        # Of which the log says nothing.
        ("line = 77", 20),
        ("path = '3.py' AND upper(node_id) = 'X'", 2),
        ("path = '3.py' OR upper(node_id) = 'X'", 20),
        ("NOT (path = '3.py' AND line = 77)", 20),
    ],
)
def test_how_many_files_are_left(twenty: Path, text: str, candidates: int) -> None:
    index = FileIndex(0, light_files(str(twenty), "cpg_nodes"))
    assert (index.total, len(index.candidates(parse_predicate(NODES, text)))) == (20, candidates)


def test_a_log_with_a_checkpoint_says_the_same(twenty: Path) -> None:
    """The tenth version is a checkpoint, so nothing but that is read."""
    folder = twenty / NODES.path
    assert list((folder / "_delta_log").glob("*10.checkpoint.parquet"))
    version = newest_version(str(twenty), "cpg_nodes")
    replayed = {add.path: add.stats for add in replay_log(str(folder), version).adds.values()}
    files = light_files(str(twenty), "cpg_nodes")
    assert {file.logged_path for file in files} == replayed.keys()
    for file in files:
        stats = json.decode(replayed[file.logged_path] or "{}")
        held = file.column_range("bstart")
        assert (held.least, held.greatest) == (stats["minValues"]["bstart"], stats["maxValues"]["bstart"])
        assert file.rows == stats["numRecords"] == 10
        assert file.path == unquote(file.logged_path)


def test_a_column_of_another_type_or_under_another_collation_says_nothing() -> None:
    stats = json.encode({"numRecords": 1, "minValues": {"a": 1, "b": "x"}, "maxValues": {"a": 1, "b": "x"}})
    add = Add("p", {}, 1, 0, True, stats.decode())
    table = Table("t", "graph", ".", (Column("a", "bigint", "."), Column("b", "string", ".")), ("a",))

    def column_ranges(a: str, **of_b: Any) -> dict[str, Any]:
        fields = [{"name": "A", "type": a}, {"name": "b", "type": "string", "metadata": of_b}]
        schema = json.encode({"fields": fields}).decode()
        # Statistics are under the stored name.
        named = structs.replace(add, stats=add.stats.replace('"a"', '"A"') if add.stats else None)
        (file,) = logged_files(table, LogState({}, {"schemaString": schema}, {"p": named}))
        return {name: file.column_range(name) for name in ("a", "b")}

    assert column_ranges("long")["a"].is_constant(1)
    assert column_ranges("string")["a"] == ANY_VALUE
    assert column_ranges("double")["a"] == ANY_VALUE
    assert column_ranges("decimal(10,0)")["a"] == ANY_VALUE
    assert column_ranges("long")["b"].is_constant("x")
    assert column_ranges("long", __COLLATIONS={"b": "icu.UNICODE_CI"})["b"] == ANY_VALUE


# The light lane.


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


def test_a_lookup_tells_what_it_has_read(reader: LightReader) -> None:
    (place,) = reader.rows(
        Query(
            "SELECT path, bstart FROM n WHERE n.name = 'Flask'",
            {"n": nodes(("CLASS",), "flask")},
            order=("bstart",),
        ),
        limit=1,
    )
    path, start = place[0], place[1]
    part = nodes(
        ("FUNCTION",), "flask", path=(path,), bstart=Within(start), bend=Within(greatest=start + 30_000)
    )
    rows = reader.rows(Query("SELECT path, bstart, bend FROM n", {"n": part}))
    assert rows
    assert all(row[0] == path and row[1] >= start and row[2] <= start + 30_000 for row in rows)
    last = reader.scans[-1]
    assert (last.table, last.version) == ("cpg_nodes", reader.snapshot.pins["cpg_nodes"].version)
    assert last.total_files == len(reader.files(Slice("cpg_nodes")))
    assert last.candidate_files == len(reader.files(part))
    assert last.candidate_files < last.total_files / 10
    assert last.filter_columns == ("repo_id", "node_kind", "path", "bstart", "bend")
    assert last.pushed_filters == (
        "repo_id IN (?)",
        "node_kind IN (?)",
        "path IN (?)",
        "bstart >= ?",
        "bend <= ?",
    )


def test_a_slice_of_positions_is_that_of_its_rows(reader: LightReader) -> None:
    every = reader.rows(Query("SELECT bstart, bend FROM n", {"n": nodes(("FUNCTION", "MODULE"), "shop")}))
    for least, greatest, or_null in (
        (0, 50, False),
        (None, 50, True),
        (50, None, False),
        (None, None, False),
    ):
        part = nodes(("FUNCTION", "MODULE"), "shop", bstart=Within(least, greatest, or_null))
        rows = reader.rows(Query("SELECT bstart, bend FROM n", {"n": part}))
        expected = [
            row
            for row in every
            if (row[0] is None and (or_null or least is greatest is None))
            or (
                row[0] is not None
                and (least is None or row[0] >= least)
                and (greatest is None or row[0] <= greatest)
            )
        ]
        assert sorted(map(str, rows)) == sorted(map(str, expected))


def test_a_place_opens_few_files(reader: LightReader) -> None:
    reader.scans.clear()
    found = resolve(reader, "flask/app.py:110")
    assert found.method == "place"
    read = [each for each in reader.scans if each.table == "cpg_nodes" and "path" in each.filter_columns]
    assert {"bstart", "bend"} <= {name for each in read for name in each.filter_columns}
    assert "line" in {name for each in read for name in each.filter_columns}
    assert all((each.candidate_files or 0) <= 6 < (each.total_files or 0) for each in read)


def build_inputs(reader: LightReader, sql: str) -> tuple[list[Any], Scanned]:
    """The answer to a statement, and what it has read of the first table."""
    reader.scans.clear()
    return sorted(map(str, run_sql(reader, sql, limit=5000, seconds=60).rows)), reader.scans[0]


LEFT_JOIN = """
    SELECT e.edge_id FROM edges e LEFT JOIN nodes n ON n.node_id = e.src_node_id AND n.line < 9
    WHERE e.edge_kind = 'INHERITS' AND n.node_id IS NULL
"""
INSIDE = """
    SELECT t.name FROM (SELECT * FROM nodes n WHERE n.node_kind = 'CLASS') AS t
    WHERE EXISTS (SELECT 1 FROM edges e WHERE e.src_node_id = t.node_id AND e.edge_kind = 'INHERITS')
"""


@pytest.mark.parametrize(
    ("sql", "share"),
    [
        ("SELECT node_id FROM nodes WHERE path = 'flask/app.py' AND node_kind = 'FUNCTION'", 0.1),
        ("SELECT n.name FROM nodes AS n WHERE n.bstart < 40 AND n.path LIKE 'flask/a%' AND n.line > 0", 0.7),
        ("SELECT count(*) FROM nodes WHERE NOT (path <> 'flask/app.py' OR path IS NULL)", 0.85),
        (LEFT_JOIN, 0.1),
        (INSIDE, 0.1),
    ],
)
def test_a_statement_reads_what_may_match(
    reader: LightReader, monkeypatch: pytest.MonkeyPatch, sql: str, share: float
) -> None:
    rows, read = build_inputs(reader, sql)
    monkeypatch.setattr("codeanatomy.query.sql.pruning.conditions_of", lambda _: {})
    every, read_all = build_inputs(reader, sql)
    assert rows == every != []
    assert read_all.candidate_files == read_all.total_files == read.total_files
    assert (read.candidate_files or 0) <= share * (read.total_files or 0)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM nodes WHERE path = 'x' UNION ALL SELECT name FROM nodes WHERE node_kind = 'FILE'",
        "WITH nodes AS (SELECT * FROM nodes) SELECT node_id FROM nodes WHERE path = 'x'",
        "SELECT e.path FROM edges e RIGHT JOIN symbols s ON s.symbol_id = e.src_node_id WHERE e.path IS NULL",
        "SELECT e.edge_id FROM edges e FULL JOIN symbols s ON s.symbol_id = e.src_node_id WHERE e.path = 'x'",
        "SELECT s.symbol FROM symbols s LEFT JOIN nodes n ON n.node_id = s.symbol_id WHERE n.path = 'x'",
        "SELECT n.name FROM nodes n WHERE n.path = n.qualname OR n.path = 'x' AND upper(n.name) = 'Y'",
        "SELECT n.name FROM nodes n WHERE n.path IN (SELECT path FROM symbols)",
        "SELECT n.name FROM nodes n GROUP BY n.name HAVING n.name = 'x'",
    ],
)
def test_conditions_that_spare_nothing(sql: str) -> None:
    assert conditions_of(check(sql).tree) == {}
