"""The JVM of a session is started without Spark's launcher where nothing needs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from codeanatomy.config import RuntimeProfile
from codeanatomy.spark.gateway import MODULES, SERVER, JvmSettings, StartingJvm, is_plain, jvm_command
from codeanatomy.spark.jars import pyspark_folder
from codeanatomy.spark.java import Java, find_java
from codeanatomy.spark.settings import session_settings

JARS = (Path("/cache/jars/delta spark.jar"),)


def settings(**fields: object) -> dict[str, str]:
    return session_settings(RuntimeProfile(**fields), JARS, ('"-XX:SharedArchiveFile=/a b.jsa"',))  # type: ignore[arg-type]


def test_a_local_session_starts_the_server_alone() -> None:
    command = jvm_command(settings(driver_memory="3g"), Java(Path("/jre/bin/java"), 17, ""))
    assert (command[0], command[1], command[-1]) == ("/jre/bin/java", "-cp", SERVER)
    # Delta's jars first, as the class archive has them.
    assert command[2].split(os.pathsep)[0] == str(JARS[0])
    assert {"-Xmx3g", "-XX:SharedArchiveFile=/a b.jsa", "--add-modules=jdk.incubator.vector"} <= {*command}


@pytest.mark.parametrize(
    ("fields", "variables"),
    [
        ({"master": "spark://h:7077"}, {}),
        ({"master": "local-cluster[1,1,1024]"}, {}),
        ({"spark": {"spark.jars": "/x.jar"}}, {}),
        ({"spark": {"spark.jars.packages": "a:b:1"}}, {}),
        ({}, {"PYSPARK_SUBMIT_ARGS": "--jars x.jar pyspark-shell"}),
        ({}, {"SPARK_CONF_DIR": "CONF"}),
    ],
)
def test_whatever_spark_has_to_resolve_is_submitted(
    fields: dict[str, object], variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.ui.port 4041\n")
    for name, value in variables.items():
        monkeypatch.setenv(name, str(tmp_path) if value == "CONF" else value)
    given = settings(**fields)
    assert not is_plain(given)
    command = jvm_command(given, Java(Path("/jre/bin/java"), 17, ""))
    assert command[0] == str(pyspark_folder() / "bin" / "spark-submit")
    assert f"spark.master={given['spark.master']}" in command
    assert command[-1] == "pyspark-shell"


def test_the_options_are_those_of_sparks_launcher(tmp_path: Path) -> None:
    """Spark's launcher prints the command line that it would run; ours has the same options for modules."""
    spark = pyspark_folder()
    # The launcher looks for a distribution of Spark.
    (tmp_path / "jars").symlink_to(spark / "jars")
    (tmp_path / "RELEASE").write_text("")
    launcher = ["-cp", str(spark / "jars" / "*"), "org.apache.spark.launcher.Main"]
    submit = ["org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]
    done = subprocess.run(
        [str(find_java().path), "-Xmx128m", *launcher, *submit],
        env={**os.environ, "SPARK_HOME": str(tmp_path), "SPARK_SCALA_VERSION": "2.13"},
        capture_output=True,
        check=True,
        timeout=60,
    )
    options = [part.decode() for part in done.stdout.split(b"\0")]
    first = options.index(MODULES[0])
    assert tuple(options[first : first + len(MODULES)]) == MODULES


def test_a_jvm_that_does_not_start_says_why(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'Error: Could not reserve enough space' >&2\nexit 1\n")
    java.chmod(0o755)
    jvm = StartingJvm(JvmSettings(Java(java, 17, ""), settings(), {}, "off"))
    with pytest.raises(RuntimeError, match="ended"):
        jvm.connect()
    assert "Error: Could not reserve enough space\n" in jvm.lines()
    jvm.stop()


def test_secrets_are_not_on_the_command_line(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nsleep 30\n")
    java.chmod(0o755)
    given = settings(storage_options={"fs.s3a.secret.key": "hush"})
    secret = {"spark.hadoop.fs.s3a.secret.key": "hush"}
    jvm = StartingJvm(JvmSettings(Java(java, 17, ""), given, secret, "off"))
    assert "hush" not in " ".join(map(str, jvm.process.args))  # type: ignore[arg-type]
    jvm.stop()
    assert jvm.process.poll() is not None
