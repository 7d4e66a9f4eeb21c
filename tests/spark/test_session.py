from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from codeanatomy.config import RuntimeProfile, load_settings
from codeanatomy.delta.lake_tables import normalize_root
from codeanatomy.delta.store import Store
from codeanatomy.delta.store_policy import SET_BY_SPARK, StorePolicy
from codeanatomy.errors import EnvironmentProblem, RemotePathRefused, StorageMismatch, UsageError
from codeanatomy.spark import session as session_module
from codeanatomy.spark.session import clone_session, open_session, require_delta
from codeanatomy.spark.settings import session_settings

JARS = (Path("/jars/a.jar"), Path("/jars/b.jar"))


def run(program: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: this one has a session already."""
    command = [sys.executable, "-c", program]
    env = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False, env=env)


def test_settings_of_a_local_profile() -> None:
    settings = session_settings(RuntimeProfile(cores=3, driver_memory="2g"), JARS, ("-Xshare:auto",))
    assert settings["spark.master"] == "local[3]"
    assert settings["spark.driver.memory"] == "2g"
    assert settings["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar"
    assert settings["spark.driver.defaultJavaOptions"].endswith("-Xshare:auto")
    assert "spark.jars" not in settings
    assert "spark.jars.packages" not in settings
    # Whatever a defaults file of Spark has.
    assert settings["spark.sql.caseSensitive"] == "false"


def test_a_cluster_gets_the_jars_and_the_cores() -> None:
    settings = session_settings(RuntimeProfile(master="spark://h:7077", cores=8), JARS, ())
    named = RuntimeProfile(spark={"spark.master": "spark://h:7077"}, cores=8)
    assert session_settings(named, JARS, ()) == settings
    assert settings["spark.jars"] == "file:///jars/a.jar,file:///jars/b.jar"
    assert (settings["spark.master"], settings["spark.cores.max"]) == ("spark://h:7077", "8")


def test_connectors_come_after_the_jars_of_spark() -> None:
    """In `spark.jars`, so that the class path is the one of the class archive."""
    connector = (Path("/jars/my s3.jar"),)
    settings = session_settings(RuntimeProfile(), JARS, (), connector)
    assert settings["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar"
    assert settings["spark.jars"] == "local:/jars/my%20s3.jar"
    settings = session_settings(RuntimeProfile(master="spark://h:7077"), JARS, (), connector)
    assert settings["spark.jars"] == "file:///jars/a.jar,file:///jars/b.jar,file:///jars/my%20s3.jar"


def test_jars_of_the_user_are_added() -> None:
    profile = RuntimeProfile(
        master="yarn", spark={"spark.jars": "local:/opt/gcs.jar", "spark.ui.enabled": "true"}
    )
    settings = session_settings(profile, JARS, ())
    assert settings["spark.jars"] == "file:///jars/a.jar,file:///jars/b.jar,local:/opt/gcs.jar"
    assert settings["spark.ui.enabled"] == "true"
    assert (
        session_settings(RuntimeProfile(spark=profile.spark), JARS, ())["spark.jars"] == "local:/opt/gcs.jar"
    )


def test_executors_get_the_environment_a_cache_and_memory_for_python(tmp_path: Path) -> None:
    archive = tmp_path / "env.tar.gz"
    missing = RuntimeProfile(master="yarn", environment=str(archive))
    with pytest.raises(EnvironmentProblem, match=r"there is no .*env\.tar\.gz"):
        session_settings(missing, JARS, ())
    archive.touch()
    spark = {"spark.executor.cores": "4"}
    profile = RuntimeProfile(master="spark://h:7077", environment=str(archive), spark=spark)
    settings = session_settings(profile, JARS, ())
    assert settings["spark.archives"] == f"{archive.as_uri()}#environment"
    assert settings["spark.pyspark.python"] == "./environment/bin/python"
    # In the working folder of the executor.
    assert settings["spark.executorEnv.CODEANATOMY_CACHE"] == "codeanatomy-cache"
    assert settings["spark.executor.memoryOverhead"] == "4608m"
    stored = session_settings(RuntimeProfile(master="yarn", environment="s3a://bucket/env.tar.gz"), JARS, ())
    assert stored["spark.archives"] == "s3a://bucket/env.tar.gz#environment"
    own = RuntimeProfile(master="yarn", spark={"spark.executor.memoryOverhead": "2g"})
    assert session_settings(own, JARS, ())["spark.executor.memoryOverhead"] == "2g"
    local = session_settings(RuntimeProfile(environment=str(archive)), JARS, ())
    assert not {"spark.archives", "spark.pyspark.python", "spark.executor.memoryOverhead"} & local.keys()


def test_options_go_where_spark_delta_and_hadoop_look() -> None:
    profile = RuntimeProfile(
        delta={"snapshotPartitions": "4"},
        storage_options={"fs.s3a.endpoint": "here"},
        log_store_options={"s3a.impl": "some.Class"},
        spark={"spark.ui.enabled": "true"},
    )
    settings = session_settings(profile, JARS, ())
    assert settings["spark.databricks.delta.snapshotPartitions"] == "4"
    assert settings["spark.hadoop.fs.s3a.endpoint"] == "here"
    assert settings["spark.delta.logStore.s3a.impl"] == "some.Class"
    assert settings["spark.ui.enabled"] == "true"


@pytest.mark.parametrize(
    "root", ["s3a://b/lake", "hdfs://n/lake", "abfss://c@a/x", "hdfs:/lake", "S3A://b/l"]
)
def test_remote_roots_are_refused_where_paths_must_be_local(root: str) -> None:
    with pytest.raises(RemotePathRefused, match="remote"):
        normalize_root(root, require_local_paths=True)
    assert normalize_root(root, require_local_paths=False) == root


@pytest.mark.parametrize("root", ["/data/lake", "file:///data/lake", "file:/data/lake"])
def test_local_roots_are_not(root: str) -> None:
    assert normalize_root(f"{root}/", require_local_paths=True) == root


def test_relative_roots_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert normalize_root("lake", require_local_paths=True) == str(tmp_path / "lake")


def test_a_store_refuses_a_remote_root(spark: SparkSession) -> None:
    with pytest.raises(RemotePathRefused):
        Store(spark, "s3a://bucket/lake", require_local_paths=True)


def test_a_second_session_is_refused(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="already"):
        open_session(RuntimeProfile())


def test_a_clone_has_settings_of_its_own(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    clone = clone_session(spark, {"spark.sql.shuffle.partitions": "77"})
    assert (clone.conf.get("spark.sql.shuffle.partitions"), before) == ("77", "4")
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_a_callers_session_without_delta_is_refused(spark: SparkSession) -> None:
    require_delta(spark)

    class Conf:
        def get(self, key: str, default: str = "") -> str:
            return default

    class Plain:
        conf = Conf()

    with pytest.raises(EnvironmentProblem, match="does not support Delta"):
        require_delta(Plain())  # type: ignore[arg-type]


def test_the_session_runs_in_utc_without_hive_and_ui(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.catalogImplementation") == "in-memory"
    assert spark.sparkContext.uiWebUrl is None


@pytest.mark.system
def test_starting_stopping_and_starting_again_says_nothing(tmp_path: Path) -> None:
    program = (
        "from codeanatomy.config import RuntimeProfile\n"
        "from codeanatomy.spark.session import open_session\n"
        "spark = open_session(RuntimeProfile(cores=1, driver_memory='1g'))\n"
        "assert spark.range(3).count() == 3\n"
        "spark.stop()\n"
        "again = open_session(RuntimeProfile(cores=1, shuffle_partitions=3))\n"
        "assert again.conf.get('spark.sql.shuffle.partitions') == '3'\n"
        "assert again.range(3).count() == 3\n"
        "again.stop()\n"
    )
    ran = run(program, tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_a_master_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    program = (
        "from codeanatomy.config import RuntimeProfile\n"
        "from codeanatomy.errors import EnvironmentProblem\n"
        "from codeanatomy.spark.session import open_session\n"
        "try:\n"
        "    open_session(RuntimeProfile(master='nonsense[2]', driver_memory='1g'))\n"
        "except EnvironmentProblem as problem:\n"
        "    print(problem)\n"
    )
    ran = run(program, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "Spark did not start on nonsense[2]" in ran.stdout
    assert "codeanatomy doctor" in ran.stdout


OPEN = (
    "from codeanatomy.config import RuntimeProfile\n"
    "from codeanatomy.errors import EnvironmentProblem\n"
    "from codeanatomy.spark.session import open_session\n"
)


@pytest.mark.parametrize(
    ("master", "variables", "cause"),
    [
        ("local[0]", {}, "Asked to run locally with 0 threads"),
        ("local[1]", {"SPARK_LOCAL_DIRS": "/dev/null/folder"}, "exit code 53: it cannot create a folder in"),
    ],
)
def test_why_spark_does_not_start_is_named(
    tmp_path: Path, master: str, variables: dict[str, str], cause: str
) -> None:
    program = (
        f"{OPEN}try:\n"
        f"    open_session(RuntimeProfile(master='{master}', driver_memory='1g'))\n"
        "except EnvironmentProblem as problem:\n"
        "    print(problem)\n"
    )
    ran = run(program, tmp_path, **variables)
    assert ran.returncode == 0, ran.stderr
    assert f"Spark did not start on {master}: " in ran.stdout
    assert cause in ran.stdout


def test_tasks_on_this_machine_run_in_this_python(tmp_path: Path) -> None:
    """A variable that names another Python is for clusters."""
    program = (
        f"{OPEN}spark = open_session(RuntimeProfile(cores=1, driver_memory='1g'))\n"
        "frame = spark.range(1).mapInArrow(lambda batches: batches, 'id bigint')\n"
        "print(frame.count())\n"
    )
    ran = run(program, tmp_path, PYSPARK_PYTHON="/nowhere/python")
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr


SECRET = "w0rd-that-nobody-may-see"


def test_a_session_that_reaches_storage_otherwise_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    def store(*flags: str, root: str = str(tmp_path / "lake")) -> Store:
        return Store.from_settings(load_settings(flags, env={}, start=None), spark, root)

    store()
    # What the session has, whatever the case of a truth value.
    store("runtime.delta.snapshotPartitions=1")
    flags = (
        f"runtime.storage_options.fs.s3a.secret.key={SECRET}",
        f"runtime.log_store_options.s3a.impl={SECRET}",
        "runtime.delta.snapshotPartitions=7",
    )
    with pytest.raises(StorageMismatch) as told:
        store(*flags)
    for key in (
        "spark.hadoop.fs.s3a.secret.key",
        "spark.delta.logStore.s3a.impl",
        "spark.databricks.delta.snapshotPartitions",
    ):
        assert key in told.value.message
    assert SECRET not in str(told.value)
    assert "runtime.storage_options" in told.value.hint
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.s3a.secret.key", SECRET)
    try:
        # It was given to the session after it began.
        store(flags[0])
    finally:
        hadoop.unset("fs.s3a.secret.key")
    with pytest.raises(StorageMismatch, match=r"secret\.key"):
        store(flags[0])


def test_options_that_spark_sets_itself_do_not_count(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session has some for S3 from its start, whatever the settings."""
    names = [name for name, _ in spark.sparkContext.getConf().getAll()]
    own = [name for name in names if name.startswith(("spark.hadoop.fs.", "spark.delta.logStore."))]
    assert own
    assert all(name.startswith(SET_BY_SPARK) for name in own)
    monkeypatch.setattr(session_module, "require_file_system", lambda *_: None)
    for root in ("s3a://bucket/lake", "abfss://box@mine.dfs.core.windows.net/lake", "gs://bucket/lake"):
        StorePolicy().require_match(spark, root)
    with pytest.raises(StorageMismatch, match=r"fs\.s3a\.vectored\.read\.min\.seek\.size"):
        # If the settings have one, the session must have the same.
        StorePolicy({"fs.s3a.vectored.read.min.seek.size": "1K"}).require_match(spark, "s3a://bucket/lake")


@pytest.mark.parametrize(
    ("uri", "hint"),
    [
        ("s3://bucket/lake", "s3a://"),
        ("gs://bucket/lake", "spark.jars"),
        ("abfss://box@mine.dfs.core.windows.net/lake", "spark.jars"),
    ],
)
def test_a_session_without_the_file_system_of_a_lake_is_refused(
    spark: SparkSession, uri: str, hint: str
) -> None:
    with pytest.raises(EnvironmentProblem, match="no file system for") as told:
        StorePolicy().require_match(spark, uri)
    assert hint in told.value.hint


def test_a_session_without_the_connector_names_the_command(spark: SparkSession) -> None:
    if spark.conf.get("spark.jars", ""):
        pytest.skip("this session has the connector to S3")
    with pytest.raises(EnvironmentProblem, match="no file system for s3a://") as told:
        StorePolicy().require_match(spark, "s3a://bucket/lake")
    assert "codeanatomy setup --with s3" in told.value.hint
