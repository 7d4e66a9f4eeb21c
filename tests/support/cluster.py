"""Run a standalone Spark cluster in which the workers share only the network with this process.

    with running_cluster() as cluster:
        cluster.url                       # spark://127.0.0.1:41234
        cluster.executors()               # process ids of the executors' JVMs
        cluster.kill_executor()           # the worker starts another

    with running_deployment(tmp_path) as deployment:    # with MinIO as the store, and a packed environment
        run_process(*deployment.flags, "build", ..., "--engine", "spark")

Each of the two workers runs as a user of its own and in a mount namespace of its own: /tmp and the folders of
the checkout, of its Python environment and of the cache are empty there, and they have their own home,
working and temporary folders. Spark is a copy of PySpark's folder. Tests are skipped where that is forbidden.

A deployment works with a copy of the code: executors with other code than the driver are refused, and someone
may edit the checkout while tests run.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from codeanatomy.spark.jars import cache_folder, has_connector, pyspark_folder
from codeanatomy.spark.java import find_java
from support.commands import run_process
from support.folders import ROOT
from support.minio import Minio, running_minio

DEPLOY = "org.apache.spark.deploy"
EXECUTOR = "CoarseGrainedExecutorBackend"
START_SECONDS, STOP_SECONDS = 180, 30
BUCKETS = ("lakes", "sources")
# Users of every system, of which neither owns a file.
USERS = ("nobody", "daemon")
# Executors of one address would read each other's files of a shuffle directly.
HOSTS = ("127.0.0.1", "127.0.0.2")
# The folder of an executor has 1.4 GB of jars and environment, which Spark keeps for a week by default.
CLEANUP = " ".join(
    f"-Dspark.worker.cleanup.{name}" for name in ("enabled=true", "interval=20", "appDataTtl=1")
)
# Not below /tmp, which is hidden.
SHARED_PARENT = "/var/tmp"
ENTER = """
for folder in {hidden}; do mount -t tmpfs -o mode=1777 none "$folder"; done
exec setpriv --reuid={user} --regid={group} --clear-groups -- "$@"
"""


@dataclass
class Cluster:
    """A running master and its workers."""

    url: str
    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def executors(self) -> list[int]:
        """Return the process ids of the executors of this cluster, the oldest first."""
        started: dict[int, int] = {}
        for number, command in self.members():
            if EXECUTOR in command:
                with suppress(OSError):
                    started[number] = Path(f"/proc/{number}").stat().st_ctime_ns
        return sorted(started, key=started.__getitem__)

    def members(self) -> Iterator[tuple[int, str]]:
        """Yield the living processes that were started by the cluster, with their command lines."""
        for process in Path("/proc").iterdir():
            if process.name.isdecimal():
                with suppress(OSError):
                    environment = (process / "environ").read_bytes()
                    if f"CLUSTER_FOLDER={self.folder}".encode() in environment:
                        command = (process / "cmdline").read_bytes().replace(b"\0", b" ")
                        yield int(process.name), command.decode(errors="replace")

    def kill_executor(self) -> int:
        """Kill an executor, as the system does that has no memory left; return its process id.

        The oldest one is at work; a new one may still be fetching the environment.
        """
        end = time.monotonic() + START_SECONDS
        while not (executors := self.executors()):
            assert time.monotonic() < end, "the cluster has started no executor"
            time.sleep(0.1)
        os.kill(executors[0], signal.SIGKILL)
        return executors[0]


@dataclass(frozen=True)
class Deployment:
    """A cluster, a store, and the environment for executors."""

    cluster: Cluster
    minio: Minio
    environment: Path

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of a command that uses the cluster."""
        return (*self.bare_flags, "--set", f"runtime.environment={self.environment}")

    @property
    def bare_flags(self) -> tuple[str, ...]:
        """The same without an environment."""
        settings = {"runtime.master": self.cluster.url, "runtime.executor_memory": "1g"}
        return (*self.minio.flags, *(part for pair in settings.items() for part in ("--set", "=".join(pair))))


@contextmanager
def running_deployment(folder: Path) -> Iterator[Deployment]:
    """Start a cluster and MinIO, and pack an environment; let this process and its commands use them."""
    if not has_connector(cache_folder() / "jars", "s3"):
        pytest.skip("Spark needs the jars for S3: codeanatomy setup --with s3")
    code, environment = folder / "code", folder / "env.tar.gz"
    shutil.copytree(ROOT / "src" / "codeanatomy", code / "codeanatomy")
    with (
        running_cluster() as cluster,
        running_minio(folder / "minio", BUCKETS) as minio,
        pytest.MonkeyPatch.context() as monkeypatch,
    ):
        minio.open_here(monkeypatch)
        monkeypatch.setenv("PYTHONPATH", str(code))
        packed = run_process("environment", "--output", str(environment))
        assert packed.returncode == 0, packed.stderr
        yield Deployment(cluster, minio, environment)


def hidden_folders() -> list[Path]:
    """Return the folders of this machine that workers must not see."""
    folders = [Path("/tmp"), ROOT, Path(sys.prefix), Path(sys.base_prefix), cache_folder()]
    kept: list[Path] = []
    for folder in sorted({each.resolve() for each in folders}):
        # A Python of the system cannot be hidden without the rest of it.
        if folder not in (Path("/usr"), Path("/usr/local")) and not any(
            folder.is_relative_to(each) for each in kept
        ):
            kept.append(folder)
    return kept


@contextmanager
def running_cluster(cores: int = 1, memory: str = "2g") -> Iterator[Cluster]:
    """Start a master and two workers, and stop them at the end."""
    _require_namespaces()
    folder = Path(tempfile.mkdtemp(prefix="codeanatomy-cluster-", dir=SHARED_PARENT))
    cluster = Cluster("", folder)
    try:
        folder.chmod(0o755)
        _copy_spark(folder / "spark")
        master = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        log = _start(cluster, "master", USERS[0], f"{DEPLOY}.master.Master", *master)
        cluster.url = _wait_for(log, r"Starting Spark master at (spark://\S+)")
        for user, host in zip(USERS, HOSTS, strict=True):
            options = ("--cores", str(cores), "--memory", memory, "--host", host, "--webui-port", "0")
            log = _start(cluster, user, user, f"{DEPLOY}.worker.Worker", *options, cluster.url)
            _wait_for(log, "(Successfully registered)")
        yield cluster
    finally:
        # A worker that ends by itself waits for its executors, for half a minute; nothing of them is kept.
        for process in reversed(cluster.processes):
            process.kill()
        for process in cluster.processes:
            process.wait(STOP_SECONDS)
        for number, _ in list(cluster.members()):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def _require_namespaces() -> None:
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("setpriv"):
        pytest.skip("workers of other users need root, unshare and setpriv (package util-linux)")
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"mount namespaces are not permitted here: {tried.stderr.strip()}")


def _copy_spark(folder: Path) -> None:
    """Copy PySpark's folder without its Python part, by hard links where that is possible."""

    def link(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:
            shutil.copy2(source, target)

    for name in ("bin", "sbin", "jars"):
        shutil.copytree(pyspark_folder() / name, folder / name, copy_function=link)


def _start(cluster: Cluster, name: str, user: str, *arguments: str) -> Path:
    """Start a process of Spark as a user, with folders of its own; return its log."""
    own = cluster.folder / name
    for each in (own, own / "home", own / "work", own / "local"):
        each.mkdir(mode=0o700)
        os.chown(each, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
    environment = {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(own / "home"),
        "JAVA_HOME": str(find_java().path.resolve().parents[1]),
        "SPARK_HOME": str(cluster.folder / "spark"),
        "SPARK_WORKER_DIR": str(own / "work"),
        "SPARK_LOCAL_DIRS": str(own / "local"),
        "SPARK_WORKER_OPTS": CLEANUP,
        "CLUSTER_FOLDER": str(cluster.folder),
    }
    hidden = " ".join(f"'{each}'" for each in hidden_folders())
    enter = ENTER.format(hidden=hidden, user=user, group=pwd.getpwnam(user).pw_gid)
    command: Sequence[str] = [
        *("unshare", "--mount", "sh", "-e", "-c", enter, "sh"),
        *(str(cluster.folder / "spark" / "bin" / "spark-class"), *arguments),
    ]
    log = cluster.folder / f"{name}.log"
    with log.open("wb") as stream:
        cluster.processes.append(
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=own,
            )
        )
    return log


def _wait_for(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        match = re.search(pattern, log.read_text(errors="replace"))
        if match:
            return match[1]
        time.sleep(0.2)
    raise AssertionError(f"{log.name} has no {pattern}: {log.read_text(errors='replace')[-2000:]}")
