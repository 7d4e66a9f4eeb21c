"""Build the lake that the tests of queries read: small labelled repositories, and flask.

`tests/cases/ask/shop` is written for the queries, one folder for each group of them; `depot` has symbols of
the same names. The lake has two published runs: in the first, `depot` had one module more (`old.py`); the
second is a refresh. Both are made without Spark, whose rows are the same (`tests/spark/test_incremental.py`).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.checks.verify import verify
from codeanatomy.query.engines.light import LightReader
from support import corpus
from support.folders import CASES
from support.light_builds import clean_lake, refreshed

SOURCES = CASES / "ask"


def build_ask_lake(folder: Path) -> Path:
    """Build flask, shop and depot, and depot again without its old module."""
    lake, depot = folder / "lake", folder / "depot"
    shutil.copytree(SOURCES / "depot", depot)
    shutil.copytree(SOURCES / "shop", folder / "shop")
    (depot / "old.py").write_text("def retired():\n    return 1\n", encoding="utf-8")
    sources = {"shop": folder / "shop", "depot": depot, "flask": corpus.package("flask")}
    assert clean_lake(lake, sources).status == "succeeded"
    (depot / "old.py").unlink()
    assert refreshed(lake, {"depot": depot}).status == "succeeded"
    assert not verify(str(lake)).findings
    return lake


def reader_of(lake: Path, as_of: str | None = None) -> LightReader:
    """Return a reader of a lake without a JVM."""
    return LightReader(Snapshot.open(str(lake), as_of))
