"""Start the JVM of a session beside everything else, and connect to it.

    jvm = StartingJvm(jvm_settings(profile))      # returns at once; the JVM starts meanwhile
    spark = open_session(profile, jvm)
    jvm.stop()                                    # if it is not needed

PySpark's own way runs three programs one after the other before there is a JVM to talk to: `spark-submit`, a
JVM that writes the command line, and SparkSubmit. On a local master with nothing but settings of ours, the
command line is known, and the gateway's server can be started alone: 1.3 s instead of 2.1 s on a quiet
machine. With jars of the user's or Spark's own defaults file, and for clusters, `spark-submit` is used.

The JVM ends with this process: it reads its standard input to the end. Tests:
`tests/unit/spark/test_gateway.py`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from codeanatomy.config import RuntimeProfile
from codeanatomy.spark.class_archive import java_options
from codeanatomy.spark.jars import cache_folder, connector_jars, ensure_jars, pyspark_folder
from codeanatomy.spark.java import Java, find_java
from codeanatomy.spark.settings import is_local_master, secret_settings, session_settings

SERVER = "org.apache.spark.api.python.PythonGatewayServer"
# The file to which the server writes its port and secret.
CONNECTION = "_PYSPARK_DRIVER_CONN_INFO_PATH"
POLL_SECONDS = 0.02
# A JVM that refuses connections has ended within this time.
END_SECONDS = 5.0
# Exit codes of Spark whose reason only its log has.
REASONS = {53: "it cannot create a folder in SPARK_LOCAL_DIRS or spark.local.dir"}
# Settings by which a user adds jars or files, which `spark-submit` resolves.
SUBMITTED = ("spark.jars", "spark.archives", "spark.files", "spark.submit", "spark.driver.extraLibraryPath")
# What Spark's launcher gives every JVM; a test compares it with the launcher's own.
MODULES = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
)


class JvmSettings(Struct, frozen=True):
    """What a session is started with."""

    java: Java
    settings: Mapping[str, str]
    # Settings that are given to the session when it is there: all users can read a command line.
    secrets: Mapping[str, str]
    log_level: str

    @property
    def shown(self) -> dict[str, str]:
        """The settings without the secrets."""
        return {key: value for key, value in self.settings.items() if key not in self.secrets}


def jvm_settings(profile: RuntimeProfile, options: Sequence[str] = ()) -> JvmSettings:
    """Find Java and the jars, and compute the settings; the options are for a local master."""
    java, cache = find_java(), cache_folder()
    jars = ensure_jars(cache, java)
    is_local = is_local_master(profile.session_master)
    given = (*java_options(cache, java, jars), *(options if is_local else ()))
    settings = session_settings(profile, jars, given, connector_jars(cache))
    return JvmSettings(java, settings, secret_settings(settings) if is_local else {}, profile.log_level)


def has_jvm() -> bool:
    """Whether this process has a JVM already; PySpark keeps the first one."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return context is not None and context._gateway is not None


class StartingJvm:
    """A JVM that starts while this process does something else; it and its children get further variables."""

    def __init__(self, given: JvmSettings, environment: Mapping[str, str] = {}) -> None:
        self.given = given
        self._folder = tempfile.mkdtemp(prefix="codeanatomy-")
        self._file = Path(self._folder, "connection")
        # For error messages: the launcher's warnings cannot be switched off.
        self._output = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  (closed by connect or stop)
        output = self._output if given.log_level == "off" else None
        self.process = subprocess.Popen(
            jvm_command(given.shown, given.java),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env={
                **os.environ,
                **environment,
                "SPARK_HOME": str(pyspark_folder()),
                "SPARK_CONNECT_MODE": "0",
                CONNECTION: str(self._file),
            },
            # Ctrl-C is for the group of this process, which stops the JVM.
            process_group=0,
        )

    def lines(self) -> list[str]:
        """Return what the JVM has printed."""
        if self._output.closed:
            return []
        self._output.seek(0)
        return self._output.readlines()

    def end_text(self) -> str:
        """Return how the JVM has ended, if that is so; else an empty text."""
        with suppress(subprocess.TimeoutExpired):
            code = self.process.wait(END_SECONDS)
            return (
                f"its JVM ended with exit code {code}: {REASONS.get(code, 'the log of Spark has the reason')}"
            )
        return ""

    def connect(self) -> Any:
        """Wait until the JVM has started, and return its gateway."""
        # Imported here: starting the JVM comes first.
        from pyspark.java_gateway import launch_gateway
        from pyspark.serializers import UTF8Deserializer, read_int

        while not self._file.exists() and self.process.poll() is None:
            time.sleep(POLL_SECONDS)
        try:
            with self._file.open("rb") as info:
                port, secret = read_int(info), UTF8Deserializer().loads(info)  # type: ignore[no-untyped-call]
        except OSError:
            raise RuntimeError("its JVM ended while it started") from None
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        known = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
        os.environ.update(known)
        try:
            gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            for name in known:
                del os.environ[name]
        gateway.proc = self.process
        self._output.close()
        return gateway

    def stop(self) -> None:
        """End the JVM."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self._output.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def jvm_command(settings: Mapping[str, str], java: Java) -> list[str]:
    """Return the command line of the JVM of a session."""
    spark = pyspark_folder()
    if not is_plain(settings):
        pairs = (part for key, value in settings.items() for part in ("--conf", f"{key}={value}"))
        arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        return [str(spark / "bin" / "spark-submit"), *pairs, *arguments]
    options = shlex.split(settings.get("spark.driver.defaultJavaOptions", ""))
    options += shlex.split(settings.get("spark.driver.extraJavaOptions", ""))
    # First what Spark would find twice; then the folder, in the order of the file system, as Spark has it.
    paths = [*sorted(map(str, spark.glob("jars/slf4j-api-*.jar"))), f"{spark / 'jars'}/*"]
    class_path = [settings.get("spark.driver.extraClassPath", ""), str(spark / "conf"), *paths]
    memory = f"-Xmx{settings['spark.driver.memory']}"
    return [
        str(java.path),
        "-cp",
        os.pathsep.join(filter(None, class_path)),
        memory,
        *options,
        *MODULES,
        SERVER,
    ]


def is_plain(settings: Mapping[str, str]) -> bool:
    """Whether a session needs nothing of `spark-submit`: a local master, no files, no defaults."""
    defaults = Path(os.environ.get("SPARK_CONF_DIR", pyspark_folder() / "conf"))
    return (
        is_local_master(settings["spark.master"])
        and not any(key.startswith(SUBMITTED) for key in settings)
        and "PYSPARK_SUBMIT_ARGS" not in os.environ
        and not any((defaults / name).exists() for name in ("spark-defaults.conf", "spark-env.sh"))
        and sys.platform != "win32"
    )
