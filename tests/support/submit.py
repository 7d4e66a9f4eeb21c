"""Run `examples/build_job.py` under spark-submit, in a session that is not ours.

done = submit_build(lake, source, settings={"spark.pyspark.python": "/opt/python"})
done.returncode, done.stderr
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from codeanatomy.spark.jars import cache_folder, ensure_jars
from codeanatomy.spark.java import find_java
from codeanatomy.spark.settings import DELTA_CATALOG, DELTA_EXTENSION

ROOT = Path(__file__).parents[2]
JOB = ROOT / "examples/build_job.py"
DELTA = {"spark.sql.extensions": DELTA_EXTENSION, "spark.sql.catalog.spark_catalog": DELTA_CATALOG}
SMALL = {
    # Else the Python of the executors is that of the driver, too.
    "spark.pyspark.driver.python": sys.executable,
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
SECONDS = 600


def submit_build(
    lake: str | Path,
    *sources: str | Path,
    master: str = "local[2]",
    settings: Mapping[str, str] = {},
    delta: Mapping[str, str] = DELTA,
    with_jars: bool = True,
    options: tuple[str, ...] = (),
    environment: Mapping[str, str] = {},
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the job; return its exit code, and what it has printed."""
    java = find_java()
    jars = ",".join(str(each) for each in ensure_jars(cache_folder(), java))
    conf = {**SMALL, **delta, **settings}
    command = [
        str(Path(pyspark.__file__).parent / "bin/spark-submit"),
        *("--master", master, "--driver-memory", "1g"),
        *(("--jars", jars) if with_jars else ()),
        *(part for name, value in conf.items() for part in ("--conf", f"{name}={value}")),
        *options,
        *map(str, (JOB, lake, *sources)),
    ]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    own = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": sys.executable,
        # The driver runs this code, as if it were installed.
        "PYTHONPATH": str(ROOT / "src"),
    }
    return subprocess.run(
        command,
        env={**kept, **own, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
