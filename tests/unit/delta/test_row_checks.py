"""Checks of rows: values in lists and structs; and the database of a process, which may still fork."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa

from codeanatomy import catalog
from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.write.checks import nested_fields
from codeanatomy.delta.write.row_checks import RowCheck
from support.folders import ROOT, TESTS

# Checks rows of two tables, here and in a child; prints what is found, and how many threads there are more.
PROGRAM = """
import os
import pyarrow as pa
from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.write.row_checks import RowCheck
from support.item_table import ITEMS, changed

def checked(table, bend):
    row = {"item_id": "node:1", "kind": "A", "file_id": "file:1", "bstart": 1, "bend": bend}
    check = RowCheck(table)
    check.add(pa.RecordBatch.from_pylist([row], schema=arrow_schema(table)))
    return [rule for broken in check.broken() for rule in broken.rules if rule == "span_ordered"]

def all_checked():
    return [checked(ITEMS, 2), checked(ITEMS, 0), checked(changed(name="others"), 0)]

def threads():
    # Other systems do not list them.
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0

before = threads()
print(all_checked(), flush=True)
print(threads() - before, flush=True)
if os.fork() == 0:
    print(all_checked(), flush=True)
    os._exit(0)
os.wait()
print(all_checked())
"""


def test_a_process_that_has_checked_rows_has_no_more_threads_and_may_fork() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": f"{ROOT / 'src'}:{TESTS}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found = "[[], ['span_ordered'], ['span_ordered']]"
    assert done.stdout.splitlines() == [found, "0", found, found]


def batch(table: str, **values: object) -> pa.RecordBatch:
    """A row of a table, with values for some columns and valid ones for those that need them."""
    declared = catalog.table(table)
    required = {"repo_id": "r", "file_id": "file:0123456789abcdef", "path": "a.py", "parsed": True}
    row = {name: value for name, value in required.items() if name in declared.column_names} | values
    return pa.RecordBatch.from_pylist([row], schema=arrow_schema(declared))


def broken_rules(table: str, *batches: pa.RecordBatch) -> list[str]:
    check = RowCheck(catalog.table(table))
    for each in batches:
        check.add(each)
    return [rule for broken in check.broken() for rule in broken.rules if "." in rule]


def test_values_in_lists_and_structs_are_checked() -> None:
    good = {"bstart": 0, "bend": 4, "line": 1}
    fine = batch("ast_files_v1", nodes=[good, good], calls=[{"bstart": None}], defs=None)
    assert broken_rules("ast_files_v1", fine, fine) == []
    late = batch("ast_files_v1", nodes=[good, {**good, "line": 0}])
    assert broken_rules("ast_files_v1", fine, late, fine) == ["nodes.line_is_LineNo1"]
    several = batch("ast_files_v1", nodes=[{**good, "bstart": -1}], calls=[{"bend": -7}])
    assert broken_rules("ast_files_v1", fine, several) == [
        "nodes.bstart_is_BytePos",
        "calls.bend_is_BytePos",
    ]


def test_lists_in_lists_and_texts_are_checked() -> None:
    def compiled(offset: int) -> pa.RecordBatch:
        return batch(
            "bytecode_files_v1", code_objects=[{"instructions": [{"offset": 0}, {"offset": offset}]}]
        )

    assert broken_rules("bytecode_files_v1", compiled(2)) == []
    assert broken_rules("bytecode_files_v1", compiled(2), compiled(-2)) == [
        "code_objects.instructions.offset_is_BcOffset"
    ]
    named = batch("libcst_files_v1", defs=[{"qualified_names": [{"name": "a.f"}, {"name": ""}]}])
    assert broken_rules("libcst_files_v1", named) == ["defs.qualified_names.name_is_QName"]


def test_a_sample_is_of_the_row_with_the_value() -> None:
    check = RowCheck(catalog.table("ast_files_v1"))
    for path, line in (("a.py", 1), ("b.py", 0), ("c.py", 2)):
        check.add(batch("ast_files_v1", path=path, nodes=[{"line": line}]))
    (found,) = [broken for broken in check.broken() if broken.rules == ("nodes.line_is_LineNo1",)]
    assert '"path":"b.py"' in found.row


def test_fields_are_found_at_every_depth() -> None:
    found = {".".join(field.path) for field in nested_fields(catalog.table("bytecode_files_v1"))}
    assert {"errors.line", "code_objects.bstart", "code_objects.line_table.start_offset"} <= found
    assert nested_fields(catalog.table("cpg_nodes")) == ()
