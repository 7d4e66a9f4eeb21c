"""Object stores by URI, and their errors in words that keep secrets; the real server is in tests/system."""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, PermissionDeniedError
from obstore.store import AzureStore, GCSStore, LocalStore, MemoryStore, S3Store

from codeanatomy.delta import object_store as module
from codeanatomy.delta import store_policy
from codeanatomy.delta.object_store import explain, object_store, storage_errors
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.errors import ConfigError, StorageFailure, UsageError
from codeanatomy.spark import jars

SECRET = "w0rd-that-nobody-may-see"
S3 = {
    "fs.s3a.access.key": "AKIANOBODY",
    "fs.s3a.secret.key": SECRET,
    "fs.s3a.endpoint": "http://127.0.0.1:9",
    "fs.s3a.endpoint.region": "eu-west-1",
    "fs.s3a.path.style.access": "true",
}


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test says of a lake is forgotten after it; requests are not repeated for long."""
    monkeypatch.setattr(store_policy, "_POLICIES", {})
    monkeypatch.setattr(jars, "_IN_USE", set())
    monkeypatch.setattr(module, "RETRY", {**module.RETRY, "max_retries": 2})
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    yield
    module._open.cache_clear()


def test_a_store_per_folder_with_the_options_of_its_lake() -> None:
    register_policy("s3a://bucket/lake", StorePolicy(S3))
    store = object_store("s3a://bucket/lake/graph/cpg_nodes/")
    assert isinstance(store, S3Store)
    assert (store.config["bucket"], store.prefix) == ("bucket", "lake/graph/cpg_nodes")
    assert store.config["region"] == "eu-west-1"
    assert store.config["endpoint"] == "http://127.0.0.1:9"
    assert object_store("s3a://bucket/lake/graph/cpg_nodes") is store
    # The name of the scheme makes no difference.
    register_policy("s3://bucket/lake", StorePolicy(S3))
    assert object_store("s3://bucket/lake/graph/cpg_nodes") == store
    assert SECRET not in repr(store)


def test_a_store_has_the_options_that_are_registered_now() -> None:
    before = object_store("s3a://bucket/lake")
    register_policy("s3a://bucket/lake", StorePolicy(S3))
    assert object_store("s3a://bucket/lake") != before


@pytest.mark.parametrize("path", ["my lake", "my%20lake", "a?b", "a#b", "ä/ö"])
def test_paths_are_literal(path: str) -> None:
    assert object_store(f"s3a://bucket/{path}").prefix == path


def test_a_bucket_can_be_the_lake() -> None:
    assert object_store("s3a://bucket").prefix is None


def test_azure_and_google() -> None:
    host = "mine.dfs.core.windows.net"
    for scheme in ("abfss", "abfs", "wasbs"):
        register_policy(f"{scheme}://box@{host}/lake", StorePolicy({f"fs.azure.account.key.{host}": "a2V5"}))
        azure = object_store(f"{scheme}://box@{host}/lake/graph")
        assert isinstance(azure, AzureStore)
        assert (azure.config["container_name"], azure.config["account_name"]) == ("box", "mine")
        assert azure.prefix == "lake/graph"
        assert azure.config["account_key"] == "a2V5"
    google = object_store("gs://bucket/lake")
    assert isinstance(google, GCSStore)
    assert (google.config["bucket"], google.prefix) == ("bucket", "lake")


def test_a_missing_key_file_is_reported() -> None:
    register_policy(
        "gs://bucket/lake", StorePolicy({"fs.gs.auth.service.account.json.keyfile": "/no/key.json"})
    )
    with pytest.raises(StorageFailure) as told:
        object_store("gs://bucket/lake")
    assert "keyfile" in told.value.hint


def test_a_local_folder_has_a_store_too(tmp_path: Path) -> None:
    for uri in (str(tmp_path), f"file:{tmp_path}"):
        store = object_store(uri)
        assert isinstance(store, LocalStore)
    store.put("a/b", b"x", mode="create")
    assert (tmp_path / "a" / "b").read_bytes() == b"x"


def test_a_scheme_without_a_store_is_refused() -> None:
    with pytest.raises(UsageError, match="hdfs://") as told:
        object_store("hdfs://name/lake")
    assert "s3a://" in told.value.hint


@pytest.mark.parametrize("endpoint", ["ftp://host", "http://", "http://host:9000/path", "http://a b"])
def test_an_endpoint_that_cannot_work_is_refused(endpoint: str) -> None:
    """The library would end in a panic for some of them."""
    register_policy("s3a://bucket/lake", StorePolicy({**S3, "fs.s3a.endpoint": endpoint}))
    with pytest.raises(ConfigError, match=r"fs\.s3a\.endpoint"):
        object_store("s3a://bucket/lake")


def test_a_role_is_for_spark_only() -> None:
    register_policy(
        "s3a://bucket/lake", StorePolicy({**S3, "fs.s3a.assumed.role.arn": "arn:aws:iam::1:role/r"})
    )
    with pytest.raises(ConfigError, match="only in Spark"):
        object_store("s3a://bucket/lake")


def test_a_fork_is_refused_a_store() -> None:
    object_store("s3a://bucket/lake")
    with warnings.catch_warnings():
        # Other threads may run in the test process.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            object_store("s3a://bucket/other")
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_what_callers_decide_on_is_passed_through() -> None:
    store = MemoryStore()
    with storage_errors("s3a://bucket/lake"):
        store.put("a", b"1", mode="create")
    with pytest.raises(AlreadyExistsError), storage_errors("s3a://bucket/lake"):
        store.put("a", b"2", mode="create")
    with pytest.raises(FileNotFoundError), storage_errors("s3a://bucket/lake"):
        store.get("b")
    assert store.get("a").bytes() == b"1"


def answer(status: int, code: str, kind: type[BaseError] = GenericError) -> BaseError:
    body = f"<Error><Code>{code}</Code><AWSAccessKeyId>AKIANOBODY</AWSAccessKeyId><x>{SECRET}</x></Error>"
    return kind(
        f"Error performing GET https://minio:9000/b/k?token={SECRET} in 1ms - "
        f"Server returned non-2xx status code: {status} X: {body if code else ''}"
    )


@pytest.mark.parametrize(
    ("problem", "message", "hint"),
    [
        (answer(403, "InvalidAccessKeyId"), "does not accept the credentials", "fs.s3a.secret.key"),
        (answer(403, "SignatureDoesNotMatch"), "does not accept the credentials", "AWS_ACCESS_KEY_ID"),
        (answer(400, "ExpiredToken"), "have expired", "get new ones"),
        (answer(403, "RequestTimeTooSkewed"), "clock", "NTP"),
        (answer(403, "AccessDenied"), "do not permit", "permission"),
        (answer(403, "", PermissionDeniedError), "do not permit", "permission"),
        (GenericError("DeleteObjects failed: no (code: AccessDenied)"), "do not permit", "permission"),
        (GenericError("source: MissingAccessKeyId,"), "incomplete", "fs.s3a.access.key"),
        (answer(404, "NoSuchBucket"), "no bucket bucket", "create the bucket"),
        (answer(400, "AuthorizationHeaderMalformed"), "another region", "fs.s3a.endpoint.region"),
        (answer(503, "SlowDown"), "overloaded", "later"),
        (answer(500, "InternalError"), "status 500", "log"),
        (answer(401, ""), "does not accept the credentials", "fs.s3a.access.key"),
        (GenericError("GET http://169.254.169.254/latest/api/token"), "no credentials", "fs.s3a.access.key"),
        (GenericError(f"something with {SECRET}"), "cannot be used", "doctor"),
    ],
)
def test_errors_have_a_hint_and_no_text_of_the_server(problem: BaseError, message: str, hint: str) -> None:
    with pytest.raises(StorageFailure) as told, storage_errors("s3a://bucket/lake"):
        raise problem
    assert message in told.value.message
    assert hint in told.value.hint
    assert told.value.__cause__ is None
    assert told.value.__suppress_context__
    assert SECRET not in str(told.value)
    assert "AKIANOBODY" not in str(told.value)


def read_from_lake() -> None:
    with storage_errors("s3a://bucket/lake"):
        object_store("s3a://bucket/lake").get("x")


def test_nobody_listens() -> None:
    register_policy("s3a://bucket/lake", StorePolicy(S3))
    with pytest.raises(StorageFailure, match=r"no server listens at 127\.0\.0\.1:9") as told:
        read_from_lake()
    assert "fs.s3a.endpoint" in told.value.hint
    assert SECRET not in str(told.value)


def test_an_unknown_host() -> None:
    register_policy(
        "s3a://bucket/lake", StorePolicy({**S3, "fs.s3a.endpoint": "http://no-such-host.invalid"})
    )
    with pytest.raises(StorageFailure, match="host name of the store is not known"):
        read_from_lake()


def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLIENT", {**module.CLIENT, "read_timeout": "1s"})
    monkeypatch.setattr(module, "RETRY", {**module.RETRY, "max_retries": 1})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        register_policy("s3a://bucket/lake", StorePolicy({**S3, "fs.s3a.endpoint": endpoint}))
        with pytest.raises(StorageFailure, match="does not answer"):
            read_from_lake()


def test_an_unencrypted_server_behind_https() -> None:
    problem = GenericError('performing GET https://h:1/b in 1s kind: Connect error: "tls handshake eof"')
    told = explain("s3a://b/l", problem)
    assert "no encrypted connection at h:1" in told.message
    assert "http://" in told.hint
