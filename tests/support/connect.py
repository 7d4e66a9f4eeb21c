"""Run a real server of Spark Connect for tests, with PySpark's own jars and Delta's, on a free port.

    with running_server(tmp_path) as url:            # sc://127.0.0.1:43359
        with remote_session(url) as session: ...     # a session of it in this process

PySpark refuses a second kind of session in a process with a classic one only in its builder, and looks for
functions by a variable of the environment; so the session is made by Connect's own builder, and the variable
is set as long as it is open.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pyspark
from pyspark.sql import SparkSession

from codeanatomy.spark.jars import cache_folder, ensure_jars
from codeanatomy.spark.java import find_java
from codeanatomy.spark.settings import DELTA_CATALOG, DELTA_EXTENSION

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
START_SECONDS = 120
# As `docs/ask.md` names them.
DELTA_SETTINGS = {
    "spark.sql.extensions": DELTA_EXTENSION,
    "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
}
SMALL = {
    "spark.ui.enabled": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    # Classes are not in an archive here: to verify them costs seconds.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    " -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
}
# Variables that would change which Spark is started, or how.
SPARK_VARIABLES = ("SPARK_", "PYSPARK_")


@contextmanager
def running_server(
    folder: Path,
    settings: Mapping[str, str] = DELTA_SETTINGS,
    connectors: Sequence[Path] = (),
    python: Path | None = None,
) -> Iterator[str]:
    """Start a server with two cores, and the jars of connectors to stores; yield its URL, and stop it.

    `python` runs its Python tasks; without it, that is the first one on the PATH, as where nothing is set.
    """
    java = find_java()
    jars = (*ensure_jars(cache_folder(), java), *connectors)
    port = free_port()
    conf = {
        **SMALL,
        **settings,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
    }
    command = [
        str(Path(pyspark.__file__).parent / "bin/spark-submit"),
        *("--class", SERVER, "--master", "local[2]", "--driver-memory", "1g"),
        *("--driver-class-path", os.pathsep.join(map(str, jars))),
        *(part for name, value in conf.items() for part in ("--conf", f"{name}={value}")),
        "spark-internal",
    ]
    log = folder / "server.log"
    env = {name: value for name, value in os.environ.items() if not name.startswith(SPARK_VARIABLES)}
    env["SPARK_LOCAL_IP"] = "127.0.0.1"
    # Code of ours is sent to the server: it has no checkout.
    env.pop("PYTHONPATH", None)
    if python is not None:
        env["PYSPARK_PYTHON"] = str(python)
    with log.open("w") as output:
        server = subprocess.Popen(command, cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait(server, port, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@contextmanager
def remote_session(url: str) -> Iterator[SparkSession]:
    """Open a session of a server in this process."""
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    with patch.dict(os.environ, {"SPARK_CONNECT_MODE_ENABLED": "1"}):
        session = RemoteSession.builder.remote(url).create()
        try:
            yield session  # type: ignore[misc]
        finally:
            session.stop()


def free_port() -> int:
    """Return a port of this machine that nothing listens to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until a server accepts connections."""
    end = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    lines = log.read_text(errors="replace").splitlines()
    raise AssertionError("the server of Spark Connect did not start:\n" + "\n".join(lines[-20:]))
