"""Write two small repositories, build lakes of them once for all test modules, and copy the lakes.

    lake = copied_lake(tmp_path, apart_lake(spark, tmp_path_factory))
    put(tmp_path, "a", 1)                   # files of `a` are edited, added and removed

A copy of a lake is a lake: nothing in it contains its own path. Where two repositories were built at once,
their rows share data files: to replace those of one, Spark writes every table anew, which takes four times as
long as to swap files. So most tests use a copy of a lake whose repositories were built apart; a few
test shared files.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.spark_builds import built

FILES: dict[str, dict[str, bytes]] = {
    "a": {
        "one/__init__.py": b"from one.calls import f\n",
        "one/calls.py": b"import two.shapes\n\n\ndef f(x, *args):\n    return two.shapes.G(x).run(args)\n",
        "two/__init__.py": b"",
        "two/shapes.py": b"class G:\n    def __init__(self, x):\n        self.x = x\n\n"
        b"    def run(self, args):\n        return [self.x + arg for arg in args]\n",
        "broken.py": b"x = = 1\ny = 2\n",
        "bytes.py": b"x = '\xff'\n",
    },
    "b": {"m.py": b"def g():\n    return g()\n", "n.py": b"z = (1 2)\nw = 3\n"},
}
# Files of version 1 that differ; None: the file is missing.
CHANGED: dict[str, bytes | None] = {
    "one/calls.py": b"def f(x):\n    return x\n",
    "two/shapes.py": None,
    "new.py": b"import one\n\none.f(1)\n",
    "new_broken.py": b"return )\nv = 4\n",
}


def put(folder: Path, name: str, version: int = 0) -> Path:
    """Write one version of a repository below a folder, and return its path."""
    place = folder / name
    shutil.rmtree(place, ignore_errors=True)
    changed = CHANGED if version else {}
    for path, raw in {**FILES[name], **changed}.items():
        if raw is not None:
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(raw)
    return place


LAKES: dict[int | None, Path] = {}


def built_lake(spark: SparkSession, factory: pytest.TempPathFactory, version: int) -> Path:
    """Return a lake with one version of `a` and with `b`, built at once."""
    if version not in LAKES:
        folder = factory.mktemp(f"little-{version}")
        sources = {"a": put(folder, "a", version), "b": put(folder, "b")}
        assert built(spark, folder / "lake", sources, until=None).status == "succeeded"
        LAKES[version] = folder / "lake"
    return LAKES[version]


def apart_lake(spark: SparkSession, factory: pytest.TempPathFactory) -> Path:
    """Return a lake with version 0 of `a` and, built after it, `b`: no data file has rows of both."""
    if None not in LAKES:
        folder = factory.mktemp("little-apart")
        for name in ("a", "b"):
            source = {name: put(folder, name)}
            assert built(spark, folder / "lake", source, until=None).status == "succeeded"
        LAKES[None] = folder / "lake"
    return LAKES[None]


def copied_lake(folder: Path, lake: Path) -> Path:
    """Copy a lake below a folder of the test."""
    return Path(shutil.copytree(lake, folder / "lake"))
