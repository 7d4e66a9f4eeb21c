"""Checks of rows share a database of their process, which may still fork."""

from __future__ import annotations

import subprocess
import sys

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
