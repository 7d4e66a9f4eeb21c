"""Tables restored without a JVM: to a version, and to no rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from codeanatomy.delta.commit_stamp import decode_stamp
from codeanatomy.delta.read.open_table import location
from codeanatomy.delta.write.restore import restore_table
from codeanatomy.errors import StorageFailure
from support.caller_table import NAME, UNDO, callers, write

FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.mark.parametrize("properties", [None, FEED], ids=["plain", "feed"])
def test_to_a_version_and_to_no_rows(tmp_path: Path, properties: dict[str, str] | None) -> None:
    write(tmp_path, "f", properties=properties)
    write(tmp_path, "g")
    write(tmp_path, "h", mode="overwrite")
    assert restore_table(str(tmp_path), NAME, 1, UNDO) == 3
    assert callers(tmp_path) == ["f", "g"]
    assert restore_table(str(tmp_path), NAME, None, UNDO) == 4
    assert callers(tmp_path) == []
    # What was undone can be had again.
    assert restore_table(str(tmp_path), NAME, 2, UNDO) == 5
    assert callers(tmp_path) == ["h"]


def test_the_history_says_who_did_it(tmp_path: Path) -> None:
    write(tmp_path, "f")
    write(tmp_path, "g")
    restore_table(str(tmp_path), NAME, 0, UNDO)
    restore_table(str(tmp_path), NAME, None, UNDO)
    told = [
        decode_stamp(each.get("userMetadata"))
        for each in DeltaTable(location(str(tmp_path), NAME)).history(2)
    ]
    assert [(each.run_id, each.sequence, each.operation) for each in told if each is not None] == [
        ("run-8", -1, "restore"),
        ("run-8", -1, "restore"),
    ]


def test_what_is_not_there_cannot_be_brought_back(tmp_path: Path) -> None:
    with pytest.raises(StorageFailure, match=f"{NAME} at .* cannot be restored to version 0"):
        restore_table(str(tmp_path), NAME, 0, UNDO)
    write(tmp_path, "f")
    with pytest.raises(StorageFailure, match="cannot be restored to version 7") as caught:
        restore_table(str(tmp_path), NAME, 7, UNDO)
    assert "check that its data files exist" in caught.value.hint
    write(tmp_path, "g", mode="overwrite")
    for path in Path(location(str(tmp_path), NAME)).glob("*.parquet"):
        path.unlink()
    with pytest.raises(StorageFailure, match="cannot be restored to version 0"):
        restore_table(str(tmp_path), NAME, 0, UNDO)
    # Nothing has to be read to have no rows.
    restore_table(str(tmp_path), NAME, None, UNDO)
    assert callers(tmp_path) == []
