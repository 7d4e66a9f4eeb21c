"""How storage is reached: one policy for Spark and for those without a JVM, and no value of it anywhere."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deltalake
import msgspec
import pytest
from click.testing import CliRunner
from msgspec import structs

from codeanatomy import catalog
from codeanatomy.cli.main import cli
from codeanatomy.config import RuntimeProfile
from codeanatomy.delta import store_policy as policy
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.log import remote_folder
from codeanatomy.delta.read import light
from codeanatomy.delta.store_policy import (
    StorePolicy,
    is_local,
    policy_for,
    register_policy,
    store_options,
)
from codeanatomy.delta.write import restore
from codeanatomy.delta.write.small_rows import append_small
from codeanatomy.errors import CodeAnatomyError, RemotePathRefused, StorageMismatch
from codeanatomy.spark import jars
from codeanatomy.spark.settings import session_settings

SECRET = "w0rd-that-nobody-may-see"
S3 = {
    "fs.s3a.access.key": "AKIA",
    "fs.s3a.secret.key": SECRET,
    "fs.s3a.session.token": f"token-{SECRET}",
    "fs.s3a.endpoint": "minio:9000",
    "fs.s3a.endpoint.region": "eu-west-1",
    "fs.s3a.connection.ssl.enabled": "false",
    "fs.s3a.path.style.access": "true",
    "fs.s3a.bucket.other.access.key": "OTHER",
}


@pytest.fixture(autouse=True)
def nothing_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test says of a lake is forgotten after it."""
    monkeypatch.setattr(policy, "_POLICIES", {})
    monkeypatch.setattr(jars, "_IN_USE", set())


def test_a_policy_has_what_the_session_gets() -> None:
    profile = RuntimeProfile(
        storage_options={"fs.s3a.access.key": "A", "fs.s3a.endpoint": "e"},
        log_store_options={"s3a.impl": "io.delta.storage.S3SingleDriverLogStore"},
        delta={"vacuum.parallelDelete.enabled": "true"},
        # By the full name: that is what wins in the session.
        spark={"spark.hadoop.fs.s3a.endpoint": "other", "spark.delta.logStore.gs.impl": "G"},
        require_local_paths=True,
    )
    found = StorePolicy.from_profile(profile)
    assert found.require_local_paths
    settings = session_settings(profile, (), ())
    told = {key: value for key, value in settings.items() if key in found.option_hashes()}
    assert told.keys() == found.option_hashes().keys()
    assert StorePolicy.from_profile(RuntimeProfile(spark=told, require_local_paths=True)) == found
    assert found.storage_options["fs.s3a.endpoint"] == "other"


def test_options_of_s3_for_deltalake() -> None:
    found = StorePolicy(S3)
    assert found.options_for("s3a://bucket/lake/graph/cpg_nodes") == {
        "aws_access_key_id": "AKIA",
        "aws_secret_access_key": SECRET,
        "aws_session_token": f"token-{SECRET}",
        "aws_endpoint_url": "http://minio:9000",
        "aws_allow_http": "true",
        "aws_region": "eu-west-1",
        "aws_virtual_hosted_style_request": "false",
        "aws_conditional_put": "etag",
    }
    assert found.options_for("s3://other/lake")["aws_access_key_id"] == "OTHER"
    plain = StorePolicy({"fs.s3a.endpoint": "s3.amazonaws.com"}).options_for("s3a://bucket/lake")
    assert plain == {"aws_endpoint_url": "https://s3.amazonaws.com", "aws_conditional_put": "etag"}


def test_options_of_azure_and_google_for_deltalake() -> None:
    azure = StorePolicy(
        {
            "fs.azure.account.key.mine.dfs.core.windows.net": "K",
            "fs.azure.account.key.theirs.dfs.core.windows.net": "T",
            "fs.azure.account.oauth2.client.id": "I",
            "fs.azure.account.oauth2.client.secret": "S",
            "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant-1/oauth2/token",
            "fs.azure.sas.fixed.token.mine.dfs.core.windows.net": "sas",
        }
    )
    assert azure.options_for("abfss://box@mine.dfs.core.windows.net/lake") == {
        "azure_storage_account_name": "mine",
        "azure_storage_account_key": "K",
        "azure_storage_sas_key": "sas",
        "azure_storage_client_id": "I",
        "azure_storage_client_secret": "S",
        "azure_storage_tenant_id": "tenant-1",
    }
    assert azure.options_for("s3a://bucket/lake") == {"aws_conditional_put": "etag"}
    google = StorePolicy({"google.cloud.auth.service.account.json.keyfile": "/keys/g.json"})
    assert google.options_for("gs://bucket/lake") == {"google_service_account": "/keys/g.json"}
    assert google.options_for("hdfs://name/lake") == {}


def test_deltalake_takes_these_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes where they say, which is a place that nothing listens at."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    options = StorePolicy({**S3, "fs.s3a.endpoint": "127.0.0.1:9"}).options_for("s3a://bucket/lake")
    with pytest.raises(Exception, match=r"127\.0\.0\.1:9") as told:
        deltalake.DeltaTable(
            "s3a://bucket/lake", storage_options={**options, "max_retries": "0", "timeout": "2s"}
        )
    assert SECRET not in str(told.value)


def test_the_policy_of_a_lake_is_that_of_its_tables() -> None:
    register_policy("s3a://bucket/lake/", StorePolicy(S3))
    assert store_options("s3a://bucket/lake/graph/cpg_nodes") == StorePolicy(S3).options_for("s3a://bucket/x")
    assert policy_for("s3a://bucket/lake") == StorePolicy(S3)
    # Another lake whose name begins alike.
    assert policy_for("s3a://bucket/lake2/graph/cpg_nodes") == StorePolicy()


def test_a_lake_is_opened_with_the_same_options_throughout() -> None:
    register_policy("s3a://bucket/lake", StorePolicy(S3))
    register_policy("s3a://bucket/lake/", StorePolicy(dict(S3)))
    for other in (StorePolicy(), StorePolicy({**S3, "fs.s3a.secret.key": "other"})):
        with pytest.raises(StorageMismatch, match=r"fs\.s3a\.secret\.key") as told:
            register_policy("s3a://bucket/lake", other)
        assert SECRET not in str(told.value)
        assert policy_for("s3a://bucket/lake") == StorePolicy(S3)
    with pytest.raises(StorageMismatch, match="require_local_paths"):
        register_policy("s3a://bucket/lake", StorePolicy(S3, require_local_paths=True))
    register_policy("s3a://bucket/other", StorePolicy())


def test_a_local_lake_has_no_options(tmp_path: Path) -> None:
    for root in (str(tmp_path), f"file:{tmp_path}", f"file://{tmp_path}"):
        register_policy(root, StorePolicy(S3))
        assert is_local(root)
        assert store_options(f"{root}/graph/cpg_nodes") is None
    assert policy._POLICIES == {}


def test_every_read_and_write_of_a_remote_lake_gets_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def refusing(uri: str) -> None:
        seen.append(uri)
        raise OSError(f"not today: {policy_for(uri).options_for(uri) == wanted}")

    monkeypatch.setattr(remote_folder, "object_store", refusing)
    root, table = "s3a://bucket/lake", catalog.table("plan_artifacts")
    register_policy(root, StorePolicy(S3))
    wanted = store_options(f"{root}/x")
    calls: list[Any] = [
        lambda: light.newest_version(root, "cpg_nodes"),
        lambda: append_small(root, table, [], Commit("r")),
        lambda: restore.restore_table(root, "cpg_nodes", 0, Commit("r")),
    ]
    for call in calls:
        before = len(seen)
        with pytest.raises(CodeAnatomyError) as told:
            call()
        assert len(seen) > before
        assert SECRET not in str(told.value)


def test_identity() -> None:
    one = StorePolicy({"a": "1", "b": "2"}, {"c": "3"})
    assert one.identity == StorePolicy({"b": "2", "a": "1"}, {"c": "3"}).identity
    others = [
        StorePolicy({"a": "1", "b": "3"}, {"c": "3"}),
        StorePolicy({"a": "1"}, {"b": "2", "c": "3"}),
        StorePolicy({"a": "1", "b": "2"}, {"c": "3"}, require_local_paths=True),
    ]
    assert len({one.identity, *(each.identity for each in others)}) == 4


def test_the_policy_is_part_of_the_runtime_identity() -> None:
    def profile(**options: str) -> RuntimeProfile:
        return RuntimeProfile(storage_options=options)

    assert profile(a="1", b="2").identity == profile(b="2", a="1").identity
    assert profile(a="1").identity != profile(a="2").identity
    changes: list[dict[str, Any]] = [
        {"storage_options": {"a": "1"}},
        {"log_store_options": {"a": "1"}},
        {"require_local_paths": True},
    ]
    found = {structs.replace(RuntimeProfile(), **change).identity for change in changes}
    assert len(found | {RuntimeProfile().identity}) == 4


def test_no_value_is_told() -> None:
    found = StorePolicy(S3, {"s3a.impl": SECRET}, {"k": SECRET})
    hashes = found.option_hashes()
    told = f"{found!r} {found} {hashes} {found.identity} {msgspec.json.encode(hashes)!r}"
    assert SECRET not in told
    assert "AKIA" not in told
    hashed = found.option_hashes()
    assert all(len(value) == 16 and int(value, 16) >= 0 for value in hashed.values())
    # The same value has the same hash: whether two runs had the same key can be seen.
    assert hashed["spark.delta.logStore.s3a.impl"] == hashed["spark.databricks.delta.k"]
    assert hashed["spark.hadoop.fs.s3a.secret.key"] == hashed["spark.databricks.delta.k"]


def test_a_command_reaches_a_remote_lake_by_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    secret = ("--set", f"runtime.storage_options.fs.s3a.secret.key={SECRET}")
    done = CliRunner().invoke(
        cli, [*secret, "--set", "runtime.require_local_paths=true", "runs", "--lake", "s3a://bucket/lake"]
    )
    assert isinstance(done.exception, RemotePathRefused)
    assert policy._POLICIES == {}
    # Nothing listens there.
    here = ("--set", "runtime.storage_options.fs.s3a.endpoint=http://127.0.0.1:9")
    seen: dict[str, str] = {}

    def closed(uri: str) -> None:
        seen.update(policy_for(uri).options_for(uri))
        raise OSError("closed")

    monkeypatch.setattr(remote_folder, "object_store", closed)
    done = CliRunner().invoke(cli, [*secret, *here, "runs", "--lake", "s3a://bucket/lake"])
    assert isinstance(done.exception, CodeAnatomyError)
    assert seen["aws_secret_access_key"] == SECRET
    assert SECRET not in f"{done.exception}{done.output}"


def test_options_that_only_the_session_has() -> None:
    """They count where the lake is remote, and they are about its scheme."""
    conf = {
        "spark.hadoop.fs.s3a.secret.key": SECRET,
        "spark.hadoop.fs.gs.x": "y",
        "spark.hadoop.io.size": "1",
    }
    session = SimpleNamespace(getConf=lambda: SimpleNamespace(getAll=lambda: list(conf.items())))
    spark: Any = SimpleNamespace(_jsparkSession=None, sparkContext=session)
    StorePolicy().require_match(spark, "/data/lake")
    StorePolicy().require_match(spark, "hdfs://name/lake")
    with pytest.raises(StorageMismatch, match=r"fs\.s3a\.secret\.key") as told:
        StorePolicy().require_match(spark, "s3a://bucket/lake")
    assert SECRET not in str(told.value)
    assert "fs.gs.x" not in str(told.value)
