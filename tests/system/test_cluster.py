"""The same command on a standalone Spark cluster of two workers gives the same rows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.worker import extract_tables
from codeanatomy.spark.java import find_java
from support import corpus
from support.spark_builds import rows, timeless

DEPLOY = "org.apache.spark.deploy"
START_SECONDS = 60


@contextmanager
def cluster(work: Path) -> Iterator[str]:
    """A master and two workers of one core each; gives the master's URL."""
    home = Path(pyspark.__file__).parent
    java = find_java().path
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(Path(java).resolve().parents[1]),
        "SPARK_WORKER_DIR": str(work / "work"),
        "SPARK_LOCAL_DIRS": str(work / "local"),
    }
    spark_class = str(home / "bin" / "spark-class")
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        said = work / f"{name}.log"
        with said.open("wb") as log:
            command = [spark_class, *arguments]
            started.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=work))
        return said

    try:
        log = start(
            "master", f"{DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"
        )
        url = wait_for(log, r"Starting Spark master at (spark://\S+)")
        for name in ("one", "two"):
            options = ["--cores", "1", "--memory", "2g", "--host", "127.0.0.1", "--webui-port", "0"]
            wait_for(start(name, f"{DEPLOY}.worker.Worker", *options, url), "(Successfully registered)")
        yield url
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def wait_for(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.2)
    raise AssertionError(f"{log.name} never said {pattern}: {log.read_text(errors='replace')[-2000:]}")


def build(source: Path, lake: Path, master: str) -> dict[str, object]:
    command = [sys.executable, "-m", "codeanatomy", "--set", "runtime.executor_memory=1g"]
    command += ["build", f"requests={source}", "--lake", str(lake), "--master", master, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "files" in done.stderr
    report: dict[str, object] = json.loads(done.stdout)
    return report


@pytest.mark.system
def test_a_cluster_gives_the_same_rows(tmp_path: Path) -> None:
    source = corpus.package("requests")
    with cluster(tmp_path) as master:
        far = build(source, tmp_path / "far", master)
    near = build(source, tmp_path / "near", "local[2]")
    assert far["tables"] == near["tables"]
    for name in extract_tables(EXTRACTORS):
        assert timeless(rows(tmp_path / "far", name)) == timeless(rows(tmp_path / "near", name)), name
