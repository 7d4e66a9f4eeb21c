"""Run a real S3 server for tests: MinIO, built from source once, on a free port of this machine.

    with running_minio(tmp_path, ("lakes",)) as server:
        server.storage_options                    # Hadoop options, as `runtime.storage_options` takes them
        server.flags                              # the same as `--set` flags of the command line
        server.limited_options("s3:GetObject")    # the same with credentials that permit only this
        server.open_here(monkeypatch)             # this process may use its buckets, and no others
        upload(folder, "s3a://lakes/sources")

`go install` checks the module's hash. The data of the server lies in the test's folder; a folder in it is a
bucket. Tests are skipped where neither the server nor Go is there.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from codeanatomy.delta import store_policy
from codeanatomy.delta.object_store import object_store
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.spark.jars import cache_folder, lock

MODULE = "github.com/minio/minio"
VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
BUILD_SECONDS, START_SECONDS = 1800, 30
ATTEMPTS = 3
REGION = "us-east-1"
# Hadoop uses a session token only if it is told to.
TEMPORARY = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
# The variables of S3 clients, which would change what a test configures.
CLIENT_VARIABLES = ("AWS_", "MINIO_")


@dataclass(frozen=True)
class Minio:
    """A running server, and the keys of its only user."""

    port: int
    access_key: str
    secret_key: str
    log: Path
    buckets: tuple[str, ...]

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def storage_options(self) -> dict[str, str]:
        """The Hadoop options of this server, as `runtime.storage_options` has them."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": REGION,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": self.access_key,
            "fs.s3a.secret.key": self.secret_key,
        }

    @property
    def flags(self) -> tuple[str, ...]:
        return option_flags(self.storage_options)

    def open_here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let this process use the buckets of this server, and forget all other stores."""
        forget_stores(monkeypatch)
        for bucket in self.buckets:
            register_policy(f"s3a://{bucket}", StorePolicy(self.storage_options))

    def limited_options(self, *actions: str) -> dict[str, str]:
        """Options with temporary credentials that permit only these actions, on all buckets."""
        statement = {"Effect": "Allow", "Action": actions, "Resource": ["arn:aws:s3:::*"]}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        answer = ""
        end = time.monotonic() + START_SECONDS
        while not answer:
            try:
                answer = self._assume_role({"Policy": policy, "DurationSeconds": "900"})
            except HTTPError:
                # For some time after the start there is no user yet.
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

        def value(tag: str) -> str:
            match = re.search(f"<{tag}>([^<]+)</{tag}>", answer)
            assert match, tag
            return match[1]

        return {
            **self.storage_options,
            "fs.s3a.access.key": value("AccessKeyId"),
            "fs.s3a.secret.key": value("SecretAccessKey"),
            "fs.s3a.session.token": value("SessionToken"),
            "fs.s3a.aws.credentials.provider": TEMPORARY,
        }

    def _assume_role(self, parameters: dict[str, str]) -> str:
        """Call the server's token service, with a signature of version 4."""
        body = urlencode({"Action": "AssumeRole", "Version": "2011-06-15", **parameters}).encode()
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{now[:8]}/{REGION}/sts/aws4_request"
        digest = hashlib.sha256(body).hexdigest()
        headers = {"host": f"127.0.0.1:{self.port}", "x-amz-content-sha256": digest, "x-amz-date": now}
        names = ";".join(headers)
        lines = [f"{name}:{value}" for name, value in headers.items()]
        canonical = "\n".join(["POST", "/", "", *lines, "", names, digest])
        text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = f"AWS4{self.secret_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        headers["content-type"] = "application/x-www-form-urlencoded"
        opener = build_opener(ProxyHandler({}))
        with opener.open(Request(f"{self.endpoint}/", body, headers), timeout=START_SECONDS) as response:
            return str(response.read(), "utf-8")


def option_flags(options: dict[str, str]) -> tuple[str, ...]:
    """Return storage options as flags of the command line."""
    settings = (f"runtime.storage_options.{name}={value}" for name, value in options.items())
    return tuple(part for setting in settings for part in ("--set", setting))


def forget_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process use no store: neither those of other tests nor those of the environment."""
    monkeypatch.setattr(store_policy, "_POLICIES", {})
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)


def upload(folder: Path, uri: str) -> str:
    """Copy the files below a folder to a place on a store; return the place."""
    store = object_store(uri)
    for path in folder.rglob("*"):
        if path.is_file():
            store.put(path.relative_to(folder).as_posix(), path)
    return uri


@cache
def installed(*, build: bool = True) -> Path:
    """Return the server's command; build it the first time, which takes minutes, or skip the test."""
    folder = cache_folder() / "bin" / f"minio-{VERSION}"
    command = folder / "minio"
    if command.is_file():
        return command
    if not build:
        pytest.skip("MinIO is not built: run `make minio`, which takes some minutes")
    if not shutil.which("go"):
        pytest.skip(f"the object-store tests need MinIO: install Go, or put the server at {command}")
    folder.mkdir(parents=True, exist_ok=True)
    with lock(folder):
        if not command.is_file():
            # GOBIN gets the finished file by a rename.
            built = subprocess.run(
                ["go", "install", f"{MODULE}@{VERSION}"],
                env={**os.environ, "GOBIN": str(folder)},
                check=False,
                stdin=subprocess.DEVNULL,
                timeout=BUILD_SECONDS,
            )
            if built.returncode:
                pytest.skip("MinIO cannot be built: `go install` failed, see above")
    return command


@contextmanager
def running_minio(folder: Path, buckets: Iterable[str], *, build: bool = True) -> Iterator[Minio]:
    """Start a server with empty buckets, whose data lies below the folder; stop it at the end."""
    command = installed(build=build)
    names = tuple(buckets)
    for bucket in names:
        (folder / "data" / bucket).mkdir(parents=True)
    for attempt in range(ATTEMPTS):
        log_file = folder / f"minio-{attempt}.log"
        server = Minio(_free_port(), "test-user", "test-password-never-shown", log_file, names)
        with server.log.open("wb") as log:
            process = subprocess.Popen(
                [
                    str(command),
                    "server",
                    "--quiet",
                    *("--address", f"127.0.0.1:{server.port}"),
                    *("--certs-dir", str(folder / "certs")),
                    str(folder / "data"),
                ],
                env=_environment(server, folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            # Another process may have taken the port meanwhile.
            if _is_ready(process, server):
                yield server
                return
        finally:
            process.terminate()
            process.wait(timeout=START_SECONDS)
    raise AssertionError(f"MinIO did not start: {server.log.read_text(errors='replace')[-2000:]}")


def _environment(server: Minio, home: Path) -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(CLIENT_VARIABLES)}
    return {
        **inherited,
        "HOME": str(home),
        "MINIO_ROOT_USER": server.access_key,
        "MINIO_ROOT_PASSWORD": server.secret_key,
        "MINIO_REGION": REGION,
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
    }


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _is_ready(process: subprocess.Popen[bytes], server: Minio) -> bool:
    """Wait until the server answers; return False if it ended or does not."""
    opener = build_opener(ProxyHandler({}))
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with opener.open(f"{server.endpoint}/minio/health/ready", timeout=2):
                return True
        except (URLError, OSError):
            time.sleep(0.1)
    return False
