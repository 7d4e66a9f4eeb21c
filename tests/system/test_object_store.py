"""A real S3 server: its errors, its conditional puts, what `doctor --lake` finds, and Spark's connector."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import deltalake
import msgspec
import pyarrow as pa
import pytest
from obstore.exceptions import AlreadyExistsError

from codeanatomy.cli.doctor import Check
from codeanatomy.delta.object_store import object_store, storage_errors
from codeanatomy.delta.store_policy import StorePolicy, register_policy, store_options
from codeanatomy.errors import StorageFailure
from codeanatomy.spark.jars import CONNECTORS, cache_folder, has_connector
from support.minio import Minio, forget_stores, option_flags, running_minio

WRITERS, ROUNDS = 8, 25


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minio]:
    with running_minio(tmp_path_factory.mktemp("minio"), ("lakes",)) as server:
        yield server


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_stores(monkeypatch)


def doctor(options: dict[str, str], lake: str) -> tuple[int, dict[str, Check]]:
    """Exit code and checks of the command, which must not print a secret."""
    command = [sys.executable, "-m", "codeanatomy", *option_flags(options), "doctor", "--lake", lake]
    done = subprocess.run(
        [*command, "--format=json"], capture_output=True, text=True, check=False, timeout=120
    )
    shown = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    for text in (done.stdout, done.stderr, shown.stdout, shown.stderr):
        assert not any(options[name] in text for name in options if name.endswith((".key", ".token")))
    assert done.returncode == shown.returncode
    checks = msgspec.json.decode(done.stdout, type=tuple[Check, ...])
    assert len(shown.stdout.splitlines()) == len(checks) + 1
    return done.returncode, {check.name: check for check in checks}


def test_objects_are_created_once_by_many_writers(minio: Minio) -> None:
    uri = "s3a://lakes/races"
    register_policy(uri, StorePolicy(minio.storage_options))
    store = object_store(uri)
    start = threading.Barrier(WRITERS)

    def create(writer: int, turn: int) -> bool:
        start.wait()
        try:
            with storage_errors(uri):
                store.put(f"{turn}.json", f"{writer}".encode(), mode="create")
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        for turn in range(ROUNDS):
            writers = [pool.submit(create, writer, turn) for writer in range(WRITERS)]
            created = [writer for writer, done in enumerate(writers) if done.result()]
            assert len(created) == 1
            assert store.get(f"{turn}.json").bytes() == f"{created[0]}".encode()


def test_deltalake_commits_with_conditional_puts(minio: Minio) -> None:
    uri = "s3a://lakes/deltalake"
    register_policy(uri, StorePolicy(minio.storage_options))
    options = store_options(uri)
    assert options is not None
    assert options["aws_conditional_put"] == "etag"
    rows = pa.table({"n": [1]})
    deltalake.write_deltalake(uri, rows, storage_options=options)
    with ThreadPoolExecutor(4) as pool:
        commits = [
            pool.submit(deltalake.write_deltalake, uri, rows, mode="append", storage_options=options)
            for _ in range(8)
        ]
    for commit in commits:
        commit.result()
    table = deltalake.DeltaTable(uri, storage_options=options)
    assert (table.version(), table.to_pyarrow_table().num_rows) == (8, 9)
    names = sorted(each["path"] for each in object_store(f"{uri}/_delta_log").list().collect())
    assert names == [f"{version:020}.json" for version in range(9)]


def test_the_doctor_approves(minio: Minio) -> None:
    code, checks = doctor(minio.storage_options, "s3a://lakes/doctor")
    jars = checks.pop("jars")
    assert (jars.status == "ok") is has_connector(cache_folder() / "jars", "s3")
    assert {check.status for check in checks.values()} == {"ok"}
    assert code == (0 if jars.status == "ok" else 4)
    register_policy("s3a://lakes/doctor", StorePolicy(minio.storage_options))
    assert object_store("s3a://lakes/doctor").list().collect() == []


@pytest.mark.parametrize(
    ("changed", "lake", "name", "detail", "hint"),
    [
        ({}, "s3a://elsewhere/lake", "bucket", "no bucket elsewhere", "create the bucket"),
        (
            {"fs.s3a.access.key": "unknown-user"},
            "s3a://lakes/lake",
            "credentials",
            "InvalidAccessKeyId",
            "fs.s3a.access.key",
        ),
        (
            {"fs.s3a.secret.key": "wrong-secret"},
            "s3a://lakes/lake",
            "credentials",
            "SignatureDoesNotMatch",
            "fs.s3a.secret.key",
        ),
        (
            {"fs.s3a.session.token": "no-token-of-this-server"},
            "s3a://lakes/lake",
            "credentials",
            "InvalidTokenId",
            "fs.s3a.access.key",
        ),
        (
            {"fs.s3a.endpoint.region": "eu-north-1"},
            "s3a://lakes/lake",
            "region",
            "another region",
            "fs.s3a.endpoint.region",
        ),
        (
            {"fs.s3a.endpoint": "http://127.0.0.1:9"},
            "s3a://lakes/lake",
            "endpoint",
            "no server listens at 127.0.0.1:9",
            "fs.s3a.endpoint",
        ),
    ],
)
def test_each_mistake_has_its_own_hint(
    minio: Minio, changed: dict[str, str], lake: str, name: str, detail: str, hint: str
) -> None:
    options = {**minio.storage_options, **changed}
    code, checks = doctor(options, lake)
    assert code == 4
    assert checks[name].status == "fail"
    assert detail in checks[name].detail
    assert hint in checks[name].next_step
    assert checks["write"].status == "skip"
    # Readers without a JVM report the same.
    register_policy(lake, StorePolicy(options))
    with pytest.raises(StorageFailure) as told, storage_errors(lake):
        object_store(lake).list().collect()
    assert detail in told.value.message
    assert hint in told.value.hint
    assert options["fs.s3a.secret.key"] not in str(told.value)


def test_https_for_a_server_without_it(minio: Minio) -> None:
    options = {**minio.storage_options, "fs.s3a.endpoint": minio.endpoint.replace("http:", "https:")}
    code, checks = doctor(options, "s3a://lakes/lake")
    assert code == 4
    assert "no encrypted connection" in checks["endpoint"].detail
    assert "http://" in checks["endpoint"].next_step


def test_credentials_that_permit_too_little(minio: Minio) -> None:
    register_policy("s3a://lakes/readable", StorePolicy(minio.storage_options))
    object_store("s3a://lakes/readable").put("graph/file", b"x")
    code, checks = doctor(minio.limited_options("s3:GetObject", "s3:ListBucket"), "s3a://lakes/readable")
    assert code == 4
    assert (checks["list"].status, checks["read"].status, checks["write"].status) == ("ok", "ok", "fail")
    assert "permission" in checks["write"].next_step
    code, checks = doctor(minio.limited_options("s3:GetObject", "s3:PutObject"), "s3a://lakes/kept")
    assert (checks["list"].status, checks["write"].status, checks["delete"].status) == ("fail", "ok", "fail")
    assert "is left in the lake" in checks["delete"].detail


SPARK = """
import sys, msgspec
from codeanatomy.config import RuntimeProfile
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.spark.session import close_session, open_session

uri, options = sys.argv[1], msgspec.json.decode(sys.argv[2], type=dict[str, str])
profile = RuntimeProfile(cores=1, driver_memory="1g", shuffle_partitions=1, storage_options=options)
policy = StorePolicy.from_profile(profile)
register_policy(uri, policy)
spark = open_session(profile)
policy.require_match(spark, uri)
spark.range(10).write.format("delta").save(uri)
print(spark.read.format("delta").load(uri).count())
close_session(spark)
"""


def test_spark_writes_with_the_connector(minio: Minio, tmp_path: Path) -> None:
    if not has_connector(cache_folder() / "jars", "s3"):
        size = len(CONNECTORS["s3"])
        pytest.skip(f"Spark needs {size} jars for S3: codeanatomy setup --with s3")
    uri = "s3a://lakes/spark"
    options = msgspec.json.encode(minio.storage_options).decode()
    done = subprocess.run(
        [sys.executable, "-c", SPARK, uri, options], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout) == (0, "10\n"), done.stderr
    register_policy(uri, StorePolicy(minio.storage_options))
    table = deltalake.DeltaTable(uri, storage_options=store_options(uri))
    assert table.to_pyarrow_table().num_rows == 10
