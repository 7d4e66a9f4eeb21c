"""The lake that the tests of questions ask: small labelled repositories, and flask.

`tests/cases/ask/shop` is written for the questions, one folder for each group of them; `depot` has symbols of
the same names. The lake has two published runs: in the first, `depot` had one module more (`old.py`); the
second is a refresh. Both are made without Spark, whose rows are the same (`test_incremental_spark`).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.checks.verify import verify
from codeanatomy.query.engines.light import LightReader
from support import corpus
from support.clean import clean_lake, refreshed
from support.folders import CASES

SOURCES = CASES / "ask"


def build_ask_lake(folder: Path) -> Path:
    """Build it: flask, shop and depot, and depot again without its old module."""
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
    """What reads it without a JVM."""
    return LightReader(Snapshot.open(str(lake), as_of))
