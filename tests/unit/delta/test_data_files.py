"""Data files that cannot be written to their end."""

from __future__ import annotations

import gc
import resource
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from codeanatomy.arrow import arrow_schema
from codeanatomy.delta.write.data_files import TableWriter
from support.item_table import ITEMS

# Enough for the rows of a file, and not for its footer.
FILE_BYTES = 1_000


def test_a_full_disk_is_one_error_and_nothing_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    rows = [
        {"item_id": f"item:{number:016}", "kind": kind, "file_id": "f"}
        for kind in ("A", "B", "C")
        for number in range(10)
    ]
    writer = TableWriter(str(tmp_path), ITEMS, is_copy=True)
    writer.add(pa.RecordBatch.from_pylist(rows, arrow_schema(ITEMS)))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A write beyond the limit fails as one on a full disk does.
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            writer.close()
        del writer
        gc.collect()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert ignored == []
