"""Run a real S3 server for tests: MinIO, built from source once, on a free port of this machine.

    with running_minio(tmp_path, ("lakes",)) as server:
        server.storage_options                    # Hadoop options, as `runtime.storage_options` takes them
        server.flags                              # the same as `--set` flags of the command line
        server.uri("lakes", "requests")           # s3a://lakes/requests

`go install` checks the module's hash. The data of the server lies in the test's folder; a folder in it is a
bucket. Tests are skipped where neither the server nor Go is there.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import pytest

from codeanatomy.spark.jars import cache_folder, lock

MODULE = "github.com/minio/minio"
VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
BUILD_SECONDS, START_SECONDS = 1800, 30
ATTEMPTS = 3
REGION = "us-east-1"
# The variables of S3 clients, which would change what a test configures.
CLIENT_VARIABLES = ("AWS_", "MINIO_")


@dataclass(frozen=True)
class Minio:
    """A running server, and the keys of its only user."""

    port: int
    access_key: str
    secret_key: str
    log: Path

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

    def uri(self, bucket: str, path: str) -> str:
        return f"s3a://{bucket}/{path}"


def option_flags(options: dict[str, str]) -> tuple[str, ...]:
    """Return storage options as flags of the command line."""
    settings = (f'runtime.storage_options."{name}"={value}' for name, value in options.items())
    return tuple(part for setting in settings for part in ("--set", setting))


@cache
def installed() -> Path:
    """Return the server's command; build it the first time, which takes minutes."""
    folder = cache_folder() / "bin" / f"minio-{VERSION}"
    command = folder / "minio"
    if command.is_file():
        return command
    if not shutil.which("go"):
        pytest.skip(f"the object-store tests need MinIO: install Go, or put the server at {command}")
    folder.mkdir(parents=True, exist_ok=True)
    with lock(folder):
        if not command.is_file():
            # GOBIN gets the finished file by a rename.
            subprocess.run(
                ["go", "install", f"{MODULE}@{VERSION}"],
                env={**os.environ, "GOBIN": str(folder)},
                check=True,
                stdin=subprocess.DEVNULL,
                timeout=BUILD_SECONDS,
            )
    return command


@contextmanager
def running_minio(folder: Path, buckets: Iterable[str]) -> Iterator[Minio]:
    """Start a server with empty buckets, whose data lies below the folder; stop it at the end."""
    command = installed()
    for bucket in buckets:
        (folder / "data" / bucket).mkdir(parents=True)
    for attempt in range(ATTEMPTS):
        server = Minio(
            _free_port(), "test-user", "test-password-never-shown", folder / f"minio-{attempt}.log"
        )
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
