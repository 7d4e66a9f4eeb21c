"""Check that table literals are consistent, and report all problems at once.

>>> from msgspec.structs import replace
>>> from codeanatomy.catalog import TABLES, table
>>> check_catalog(TABLES)
>>> check_catalog([replace(table("repo_files_v1"), owner="file")])
Traceback (most recent call last):
codeanatomy.errors.CatalogError: [CA001] 1 problem in the catalogue:
  repo_files_v1: owner file is not a column
  next: correct the table's literal in codeanatomy/catalog

Constraints and derived columns spell SQL keywords in upper case and columns in lower case, so that an unknown
column is detected without a SQL parser. Tests: `tests/unit/catalog/test_catalog.py`, one per rule.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from codeanatomy.catalog.semantic_types import SEMANTIC_TYPES, supertypes
from codeanatomy.catalog.spec import ORDERED_TYPES, Column, ForeignKey, SemanticType, Table
from codeanatomy.errors import CatalogError

SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
SQL_STRING = re.compile(r"'[^']*'")
SQL_COLUMN = re.compile(r"\b[a-z_][a-z0-9_]*\b(?!\s*\()")

# Stages whose tables hold the rows of repositories.
DATA_STAGES = ("extract", "normalize", "relate", "graph")
REPOSITORY = "repo_id"
PARTITION_TYPES = ("string", "int", "bigint")
BLOOM_TYPES = ("string", "int", "bigint")
DICTIONARY_TYPES = ("string", "int", "bigint", "double", "timestamp", "binary")
DEFAULT_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "int": (int,),
    "bigint": (int,),
    "double": (float,),
    "boolean": (bool,),
}


def check_catalog(
    tables: Sequence[Table],
    semantic_types: Sequence[SemanticType] = SEMANTIC_TYPES,
    *,
    layout_is_free: bool = False,
) -> None:
    """Raise CatalogError, which lists every problem, if the tables are inconsistent.

    With `layout_is_free`, rows may be laid out in any way, as a user's settings may.
    """
    meanings = {meaning.name: meaning for meaning in semantic_types}
    by_name = {table.name: table for table in tables}
    problems = [*_semantic_types(semantic_types, meanings)]
    problems += [f"table {name} is declared twice" for name in _repeated(table.name for table in tables)]
    for table in tables:
        table_problems = (
            *_names_and_docs(table),
            *_columns(table, table.columns, meanings),
            *_policies(table),
            *(() if layout_is_free else _layout(table)),
            *_derived(table, meanings),
            *_keys(table),
            *(
                problem
                for key in table.foreign_keys
                for problem in _foreign_key(table, key, by_name, meanings)
            ),
            *_inputs(table, by_name),
            *_constraints(table),
        )
        problems += [f"{table.name}: {problem}" for problem in table_problems]
    problems += _cycles(tables)
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        listed = "".join(f"\n  {problem}" for problem in problems)
        raise CatalogError(
            f"{count} in the catalogue:{listed}", "correct the table's literal in codeanatomy/catalog"
        )


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _semantic_types(kinds: Sequence[SemanticType], meanings: dict[str, SemanticType]) -> Iterator[str]:
    for name in _repeated(kind.name for kind in kinds):
        yield f"semantic type {name} is declared twice"
    for kind in kinds:
        if not kind.doc.strip():
            yield f"semantic type {kind.name} has no doc"
        if kind.check is not None and "{c}" not in kind.check:
            yield f"semantic type {kind.name}: its check does not mention {{c}}"
        for wider in kind.is_a:
            if wider not in meanings:
                yield f"semantic type {kind.name} is a {wider}, which is unknown"
            elif meanings[wider].type != kind.type:
                yield f"semantic type {kind.name} is {kind.type}, but {wider} is {meanings[wider].type}"


def _names_and_docs(table: Table) -> Iterator[str]:
    if not SNAKE_CASE.fullmatch(table.name):
        yield "its name is not snake_case"
    if not table.doc.strip():
        yield "it has no doc"


def _columns(
    table: Table, columns: Sequence[Column], meanings: dict[str, SemanticType], parent: str = ""
) -> Iterator[str]:
    for name in _repeated(column.name for column in columns):
        yield f"column {parent}{name} is declared twice"
    for column in columns:
        where = f"column {parent}{column.name}"
        if not SNAKE_CASE.fullmatch(column.name):
            yield f"{where} is not snake_case"
        if not column.doc.strip():
            yield f"{where} has no doc"
        if parent and not column.nullable:
            yield f"{where} is nested, where Delta cannot enforce that it is never null"
        if column.type == "struct" and not column.fields:
            yield f"{where} is a struct without fields"
        if column.type != "struct" and column.fields:
            yield f"{where} has fields but is {column.type}"
        yield from _meaning(column, where, meanings)
        if column.default is not None and not _default_fits(column):
            yield f"{where}: default {column.default!r} is not a value of {column.ddl}"
        yield from _columns(table, column.fields, meanings, f"{parent}{column.name}.")


def _meaning(column: Column, where: str, meanings: dict[str, SemanticType]) -> Iterator[str]:
    if column.semantic_type is None:
        return
    meaning = meanings.get(column.semantic_type)
    if meaning is None:
        yield f"{where}: unknown semantic type {column.semantic_type}"
    elif column.ddl != meaning.type:
        yield f"{where} is {column.ddl}, but a {meaning.name} is {meaning.type}"


def _default_fits(column: Column) -> bool:
    # type() instead of isinstance(): a bool is not a default for an int column.
    return not column.array and type(column.default) in DEFAULT_TYPES.get(column.type, ())


def _policies(table: Table) -> Iterator[str]:
    write = table.write
    bloomed = tuple(bloom.column for bloom in write.writer.bloom_filters)
    for policy, chosen, allowed in (
        ("partition_by", write.partition_by, PARTITION_TYPES),
        ("zorder_by", write.zorder_by, ORDERED_TYPES),
        ("z_order_cols", table.upkeep.z_order_cols, ORDERED_TYPES),
        ("stats_columns", write.stats_columns, ORDERED_TYPES),
        ("bloom_filters", bloomed, BLOOM_TYPES),
        ("dictionary_off", write.writer.dictionary_off, DICTIONARY_TYPES),
    ):
        for name in _repeated(chosen):
            yield f"{policy} names {name} twice"
        for name in chosen:
            if name not in table.column_names:
                yield f"{policy} names {name}, which is not a column"
            elif table.column(name).ddl not in allowed:
                yield f"{policy} names {name}, but {table.column(name).ddl} is not allowed there"
    if len(write.stats_columns) > write.stats_max_columns:
        excess = f"{len(write.stats_columns)} stats_columns are more than stats_max_columns"
        yield f"{excess} {write.stats_max_columns}"
    if write.stats_policy == "explicit" and not write.stats_columns:
        yield "stats_policy is explicit without stats_columns"
    if table.schema.column_mapping_mode is not None and "column_mapping" not in write.enable_features:
        yield f"column_mapping_mode is {table.schema.column_mapping_mode} without the feature column_mapping"


def _derived(table: Table, meanings: dict[str, SemanticType]) -> Iterator[str]:
    yield from _columns(table, [derived.column for derived in table.derived], meanings)
    for derived in table.derived:
        where = f"derived column {derived.column.name}"
        if derived.column.name in table.column_names:
            yield f"{where} is stored, too"
        for name in derived.inputs:
            if name not in table.column_names:
                yield f"{where} is made of {name}, which is not a column"
        used = set(_column_names(derived.expression))
        for name in sorted(used.symmetric_difference(derived.inputs)):
            yield f"{where}: {name} is {'not among its inputs' if name in used else 'not in its expression'}"


def _column_names(expression: str) -> Iterable[str]:
    """Return the columns in a SQL expression, each once."""
    return dict.fromkeys(SQL_COLUMN.findall(SQL_STRING.sub("", expression)))


def _layout(table: Table) -> Iterator[str]:
    """Rows are read and replaced by repository and by owner: the files that hold them have to be known."""
    if table.stage not in DATA_STAGES or REPOSITORY not in table.column_names:
        return
    write = table.write
    clusters = [name for name in write.zorder_by if name not in write.partition_by]
    if clusters[:1] != [REPOSITORY] and REPOSITORY not in write.partition_by:
        yield f"{REPOSITORY} is not its first cluster column"
    with_statistics = {"off": (), "explicit": write.stats_columns, "auto": write.zorder_by}
    known = {*write.partition_by, *with_statistics[write.stats_policy]}
    for name in dict.fromkeys((REPOSITORY, table.owner)):
        if name in table.column_names and name not in known:
            yield f"{name} has no statistics"


def _keys(table: Table) -> Iterator[str]:
    if not table.primary_key:
        yield "it has no primary key"
    for name in table.primary_key:
        if name not in table.column_names:
            yield f"primary key {name} is not a column"
    known = [table.column(name) for name in table.primary_key if name in table.column_names]
    if known and all(column.nullable for column in known):
        yield "every column of its primary key is nullable"
    if table.owner is not None and table.owner not in table.column_names:
        yield f"owner {table.owner} is not a column"


def _foreign_key(
    table: Table, key: ForeignKey, by_name: dict[str, Table], meanings: dict[str, SemanticType]
) -> Iterator[str]:
    where = f"foreign key ({', '.join(key.columns)})"
    missing = [name for name in key.columns if name not in table.column_names]
    yield from (f"{where}: {name} is not a column" for name in missing)
    target = by_name.get(key.table)
    if target is None:
        yield f"{where}: unknown table {key.table}"
        return
    absent = [name for name in key.target if name not in target.column_names]
    yield from (f"{where}: {name} is not a column of {key.table}" for name in absent)
    if len(key.columns) != len(key.target):
        yield f"{where} has {len(key.columns)} columns, its target {len(key.target)}"
    if missing or absent or len(key.columns) != len(key.target):
        return
    if set(key.target) != set(target.primary_key):
        yield f"{where}: ({', '.join(key.target)}) is not the primary key of {key.table}"
    for name, other in zip(key.columns, key.target, strict=True):
        mine, theirs = table.column(name).semantic_type, target.column(other).semantic_type
        if theirs != mine and (mine is None or theirs not in supertypes(mine, meanings)):
            yield f"{where}: {name} is a {mine}, but {key.table}.{other} is a {theirs}"


def _inputs(table: Table, by_name: dict[str, Table]) -> Iterator[str]:
    for name in _repeated(table.inputs):
        yield f"inputs name {name} twice"
    for name in table.inputs:
        if name == table.name:
            yield "it is its own input"
        elif name not in by_name:
            yield f"unknown input {name}"


def _constraints(table: Table) -> Iterator[str]:
    for name in _repeated(constraint.name for constraint in table.constraints):
        yield f"constraint {name} is declared twice"
    for constraint in table.constraints:
        where = f"constraint {constraint.name}"
        if not SNAKE_CASE.fullmatch(constraint.name):
            yield f"{where} is not snake_case"
        if not constraint.doc.strip():
            yield f"{where} has no doc"
        if not constraint.expression.strip():
            yield f"{where} has no expression"
        for name in _column_names(constraint.expression):
            if name not in table.column_names:
                yield f"{where} mentions {name}, which is not a column"


def _cycles(tables: Sequence[Table]) -> Iterator[str]:
    inputs = {table.name: [name for name in table.inputs if name != table.name] for table in tables}
    try:
        TopologicalSorter(inputs).prepare()
    except CycleError as cycle:
        yield f"inputs form a cycle: {' -> '.join(reversed(cycle.args[1]))}"
