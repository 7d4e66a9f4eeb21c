"""The lake that the tests of questions ask: small labelled repositories, and flask.

`tests/ask/shop` is written for the questions, one folder for each group of them; `depot` has symbols of the
same names. The lake has two published runs: in the first, `depot` had one module more (`old.py`).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

import corpus
from builds import built
from codeanatomy.query.lanes.light import LightReader
from codeanatomy.query.snapshot import Snapshot

SOURCES = Path(__file__).with_name("ask")


def build_ask_lake(spark: SparkSession, folder: Path) -> Path:
    """Build it: flask, shop and depot, and depot again without its old module."""
    lake, depot = folder / "lake", folder / "depot"
    shutil.copytree(SOURCES / "depot", depot)
    shutil.copytree(SOURCES / "shop", folder / "shop")
    (depot / "old.py").write_text("def retired():\n    return 1\n", encoding="utf-8")
    sources = {"shop": folder / "shop", "depot": depot, "flask": corpus.package("flask")}
    assert built(spark, lake, sources, until=None).status == "succeeded"
    (depot / "old.py").unlink()
    assert built(spark, lake, {"depot": depot}, until=None).status == "succeeded"
    return lake


def reader_of(lake: Path, as_of: str | None = None) -> LightReader:
    """What reads it without a JVM."""
    return LightReader(Snapshot.open(str(lake), as_of))
