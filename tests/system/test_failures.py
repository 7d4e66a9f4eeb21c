"""Builds that fail, are stopped or killed: readers see what they saw, and the next build goes on."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.delta.read.light import light_files
from codeanatomy.errors import CodeAnatomyError, LeaseHeld, StepFailed, StorageFailure, UsageError
from codeanatomy.lake.lease import Lease, acquire, read_lease
from codeanatomy.lake.snapshot import Snapshot, recorded_runs
from codeanatomy.pipeline import commits
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.executors.spark_executor import SparkExecutor
from codeanatomy.plan.steps import EXTRACT, GRAPH, NORMALIZE, RELATE
from codeanatomy.query.checks.verify import verify
from codeanatomy.run import build as building
from codeanatomy.run.signals import Terminated
from support.processes import left_over, members
from support.published_rows import Figures, counted, current, published
from support.spark_builds import built
from support.two_repositories import apart_lake, built_lake, copied_lake, put


@pytest.fixture(params=["apart", pytest.param("at_once", marks=pytest.mark.system)])
def lake(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Version 0 of `a`, and `b`: in files of their own, or in files that have rows of both."""
    apart = request.param == "apart"
    made = apart_lake(spark, tmp_path_factory) if apart else built_lake(spark, tmp_path_factory, 0)
    return copied_lake(tmp_path, made)


@pytest.fixture(scope="module")
def clean(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Figures]:
    """What there must be, by version of `a`."""
    lakes = (apart_lake(spark, tmp_path_factory), built_lake(spark, tmp_path_factory, 1))
    return {version: current(lake) for version, lake in enumerate(lakes)}


def within_step(monkeypatch: pytest.MonkeyPatch, step: str, work: Callable[[Run], None]) -> None:
    """Do something first wherever a step or a part of it is run."""
    run_step = building._run_step

    @contextmanager
    def working(run: Run, lease: Lease, later: AbstractSet[str], name: str, **more: Any) -> Iterator[None]:
        with run_step(run, lease, later, name, **more):
            if name == step:
                work(run)
            yield

    monkeypatch.setattr(building, "_run_step", working)


def failing(monkeypatch: pytest.MonkeyPatch, step: str, problem: BaseException) -> None:
    def work(run: Run) -> None:
        raise problem

    within_step(monkeypatch, step, work)


def last_error(lake: Path) -> tuple[str, str | None]:
    row = recorded_runs(str(lake))[-1].rows[0]
    return row.status, row.error


def journal(lake: Path) -> tuple[str, ...]:
    """The steps that the last run has left in the lease, which nobody holds."""
    row = read_lease(str(lake))
    assert row is not None
    assert row.state == "released"
    return tuple(done.step_name for done in row.done)


def actions(report: building.BuildReport, repo_id: str) -> dict[str, str]:
    return {step: done[repo_id] for step, done in report.steps.items()}


def below(figures: Figures, *stages: str) -> Figures:
    """Those of the tables of some stages."""
    return {name: each for name, each in figures.items() if catalog.table(name).stage in stages}


def sources(folder: Path, version: int) -> dict[str, Path]:
    return {"a": put(folder, "a", version), "b": put(folder, "b")}


def test_a_step_that_fails_stops_the_run_and_the_next_goes_on(
    spark: SparkSession,
    lake: Path,
    clean: dict[int, Figures],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, base = published(lake), Snapshot.open(str(lake)).run_id
    with monkeypatch.context() as patched:
        failing(patched, GRAPH, OSError("the disk is on fire"))
        with pytest.raises(StepFailed, match="step graph failed: the disk is on fire") as caught:
            built(spark, lake, sources(tmp_path, 1), until=None)
    assert "the published snapshot is unchanged" in caught.value.hint
    assert last_error(lake) == ("failed", "step graph failed: the disk is on fire")
    assert journal(lake) == (EXTRACT, RELATE, NORMALIZE) or journal(lake) == (EXTRACT, NORMALIZE, RELATE)
    assert Snapshot.open(str(lake)).run_id == base
    assert published(lake) == before
    assert not verify(str(lake)).findings
    report = built(spark, lake, sources(tmp_path, 1), until=None)
    assert actions(report, "a") == {EXTRACT: "resume", NORMALIZE: "resume", RELATE: "resume", GRAPH: "run"}
    assert set(actions(report, "b").values()) == {"skip"}
    assert journal(lake) == ()
    assert current(lake) == clean[1]
    assert not counted(lake)
    # The failures that a run has found that failed itself are told.
    made = Snapshot.open(str(lake)).repositories["a"].artifact_ids
    assert made[EXTRACT].partition("/")[0] not in (report.run_id, base)
    assert made[GRAPH] == f"{report.run_id}/graph"


def test_what_a_dead_run_left_is_undone(
    spark: SparkSession,
    lake: Path,
    clean: dict[int, Figures],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        failing(patched, NORMALIZE, RuntimeError("a bug"))
        failing(patched, RELATE, RuntimeError("a bug"))
        with pytest.raises(RuntimeError, match="a bug") as caught:
            built(spark, lake, sources(tmp_path, 1), until=None)
    step = caught.value.__notes__[0].removeprefix("in step ")
    assert step in (NORMALIZE, RELATE)
    assert last_error(lake) == ("failed", f"RuntimeError: a bug; in step {step}")
    # The source is as it was: nothing to build, but rows of version 1 to take out.
    report = built(spark, lake, sources(tmp_path, 0), until=None)
    assert set(actions(report, "a").values()) == {"skip"}
    assert current(lake) == clean[0]
    assert published(lake)["extract_error_artifacts"] == clean[0]["extract_error_artifacts"]
    assert not counted(lake)
    again = built(spark, lake, sources(tmp_path, 0), until=None)
    assert again.status == "unchanged"


def test_half_of_the_tables_of_a_new_lake(
    spark: SparkSession, clean: dict[int, Figures], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopt, tried = commits.commit_files, []

    def half(store: Any, name: str, *rest: Any, **more: Any) -> Any:
        tried.append(name)
        if len(tried) == 5:
            raise StorageFailure(f"{name} cannot be written", "")
        return adopt(store, name, *rest, **more)

    lake = tmp_path / "lake"
    with monkeypatch.context() as patched:
        patched.setattr(commits, "commit_files", half)
        with pytest.raises(StorageFailure, match=r"step extract failed: \w+ cannot be written"):
            built(spark, lake, sources(tmp_path, 1))
    assert last_error(lake)[0] == "failed"
    assert journal(lake) == ()
    with pytest.raises(CodeAnatomyError, match="no build has succeeded"):
        Snapshot.open(str(lake))
    built(spark, lake, sources(tmp_path, 1))
    assert current(lake) == below(clean[1], EXTRACT, "meta")
    assert not counted(lake)


@pytest.mark.parametrize(
    ("number", "expected"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_signal_stops_the_jobs_of_all_steps(
    spark: SparkSession,
    lake: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    expected: type[BaseException],
) -> None:
    before, told = published(lake), []

    def slow_rows(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(60)
            yield batch

    def map_slowly(executor: SparkExecutor, *_: object) -> None:
        os.kill(os.getpid(), number)
        told.append(time.monotonic())
        # A step goes on from job to job; each would take a minute.
        for _ in range(3):
            executor._session.range(2).mapInArrow(slow_rows, "id long").toArrow()

    monkeypatch.setattr(SparkExecutor, "map_tasks", map_slowly)
    with pytest.raises(expected):
        built(spark, lake, {"a": put(tmp_path, "a", 1)})
    assert time.monotonic() - told[0] < 15
    assert last_error(lake) == ("cancelled", "stopped by the user in step extract")
    assert journal(lake) == ()
    assert published(lake) == before
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


# Processes.


ENGINES = pytest.mark.parametrize("engine", ["spark", "local"])


def command(lake: Path, named: dict[str, Path], *options: str, engine: str = "spark") -> list[str]:
    given = [f"{name}={path}" for name, path in named.items()]
    program = [sys.executable, "-m", "codeanatomy", "build", *given, "--lake", str(lake)]
    return [*program, "--types", "off", "--engine", engine, "--log-format", "json", *options]


@pytest.fixture
def started() -> Iterator[Callable[[Sequence[str]], subprocess.Popen[str]]]:
    """Starts a command in a session of its own, of which nothing is left in the end."""
    running: list[subprocess.Popen[str]] = []

    def start(wanted: Sequence[str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            wanted, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        running.append(process)
        return process

    yield start
    for process in running:
        for pid in members(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def until_said(process: subprocess.Popen[str], message: str) -> None:
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if line.startswith("{") and json.loads(line)["message"] == message:
            return
    raise AssertionError("".join(said))


@ENGINES
def test_sigkill_costs_nothing_but_time(
    spark: SparkSession,
    lake: Path,
    clean: dict[int, Figures],
    tmp_path: Path,
    started: Callable[[Sequence[str]], subprocess.Popen[str]],
    engine: str,
) -> None:
    before = published(lake)
    process = started(command(lake, sources(tmp_path, 1), engine=engine))
    until_said(process, "step done")
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(20) == -signal.SIGKILL
    assert published(lake) == before
    assert not verify(str(lake)).findings
    # At once, while what the dead run has started may still be dying.
    report = built(spark, lake, sources(tmp_path, 1), until=None)
    assert actions(report, "a")[EXTRACT] == "resume"
    assert current(lake) == clean[1]
    assert not counted(lake)
    assert not left_over(process.pid, seconds=20)


@ENGINES
def test_sigterm_ends_the_command_and_all_it_has_started(
    lake: Path, tmp_path: Path, started: Callable[[Sequence[str]], subprocess.Popen[str]], engine: str
) -> None:
    before = published(lake)
    process = started(command(lake, {"a": put(tmp_path, "a", 1)}, engine=engine))
    until_said(process, "step begins")
    began = time.monotonic()
    process.terminate()
    assert process.wait(30) == 143
    assert time.monotonic() - began < 30
    assert not left_over(process.pid, seconds=20)
    status, said = last_error(lake)
    assert status == "cancelled"
    assert said.startswith("stopped by the user in ")
    assert published(lake) == before


def test_sigterm_while_the_jvm_starts(
    lake: Path, tmp_path: Path, started: Callable[[Sequence[str]], subprocess.Popen[str]]
) -> None:
    """PySpark forgets a JVM that has not said where it listens: it would live for ever."""
    process = started(command(lake, {"a": put(tmp_path, "a", 1)}))
    while "java" not in members(process.pid).values():
        assert process.poll() is None
        time.sleep(0.02)
    process.terminate()
    assert process.wait(60) == 143
    assert not left_over(process.pid, seconds=20)
    assert journal(lake) == ()


def test_one_that_waits_can_be_stopped(
    lake: Path, tmp_path: Path, started: Callable[[Sequence[str]], subprocess.Popen[str]]
) -> None:
    source = {"a": put(tmp_path, "a", 1)}
    with acquire(str(lake), "other", ["b"], wait=False, report=print, base_run_id=None):
        refused = started(command(lake, source, "--no-wait"))
        waiting = started(command(lake, source))
        assert refused.wait(60) == 5
        assert refused.stderr is not None
        said = refused.stderr.read()
        assert "is being written by run other since" in said
        assert f"process {os.getpid()}), building b" in said
        assert "next: wait until it has finished, or stop that run" in said
        assert waiting.stderr is not None
        while "waiting: lake" not in waiting.stderr.readline():
            assert waiting.poll() is None
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(20) == 130
    with (
        pytest.raises(LeaseHeld),
        acquire(str(lake), "third", ["b"], wait=False, report=print, base_run_id=None),
    ):
        acquire(str(lake), "fourth", ["b"], wait=False, report=print, base_run_id=None)


def test_two_builds_at_once(spark: SparkSession, tmp_path: Path, clean: dict[int, Figures]) -> None:
    lake, named = tmp_path / "lake", sources(tmp_path, 1)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(built, spark, lake, {"b": named["b"]})
        assert built(spark, lake, {"a": named["a"]}).status == "succeeded"
        assert other.result().status == "succeeded"
    assert current(lake) == below(clean[1], EXTRACT, "meta")
    assert set(Snapshot.open(str(lake)).repositories) == {"a", "b"}
    assert not counted(lake)
    assert built(spark, lake, named).status == "unchanged"


# Disks.


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Mounts a little disk of its own in a folder, or mounts it anew with other options."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(*options: str) -> None:
        wanted = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(place)]
        done = subprocess.run(wanted, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"this user may not mount a disk: {done.stderr.strip()}")

    if shutil.which("mount") is None:
        pytest.skip("there is no mount command here")
    yield mount
    subprocess.run(["umount", str(place)], capture_output=True, check=False)


def test_a_disk_that_is_read_only(lake: Path, tmp_path: Path, disk: Callable[..., None]) -> None:
    disk("size=64m")
    place = Path(shutil.copytree(lake, tmp_path / "disk" / "lake"))
    before = published(place)
    disk("remount", "ro")
    source = put(tmp_path, "a", 1)
    asked = command(place, {"a": source})
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 5, done.stderr
    assert "Read-only file system" in done.stderr
    assert "next: mount the file system of the lake writable, or use another lake" in done.stderr
    assert published(place) == before


def test_a_disk_that_is_full(
    spark: SparkSession,
    lake: Path,
    tmp_path: Path,
    disk: Callable[..., None],
    clean: dict[int, Figures],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk("size=64m")
    place = Path(shutil.copytree(lake, tmp_path / "disk" / "lake"))
    before = published(place)
    # Room for the lease, and for few files; not for what cannot be packed.
    rest = shutil.disk_usage(place).free - 400 * 1024
    (tmp_path / "disk" / "filler").write_bytes(bytes(rest))
    named = sources(tmp_path, 1)
    large = named["a"] / "large.py"
    large.write_text(f"x = '{random.Random(1).randbytes(500_000).hex()}'\n")
    with pytest.raises((StorageFailure, StepFailed)) as caught:
        built(spark, place, named)
    assert "No space left on device" in caught.value.message
    assert caught.value.message.startswith("step extract failed: ")
    assert caught.value.hint
    assert published(place) == before
    assert not verify(str(place)).findings
    (tmp_path / "disk" / "filler").unlink()
    large.unlink()
    # The lease could not be given back either; others know by the end of the process that it is free.
    monkeypatch.setattr("codeanatomy.lake.lease._has_ended", lambda process: True)
    built(spark, place, named)
    assert below(current(place), EXTRACT, "meta") == below(clean[1], EXTRACT, "meta")


def test_a_lake_below_a_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailure, match="Not a directory") as caught:
        built(spark, tmp_path / "file" / "lake", {"b": put(tmp_path, "b")})
    assert caught.value.hint
    with pytest.raises(UsageError, match="is a file"):
        built(spark, tmp_path / "file", {"b": put(tmp_path, "b")})


def test_a_table_folder_that_is_a_file(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    folder = lake / catalog.table("libcst_files_v1").path
    shutil.rmtree(folder)
    folder.touch()
    with pytest.raises(
        StorageFailure, match=r"libcst_files_v1 at .* cannot be read: .*Not a directory"
    ) as caught:
        built(spark, lake, sources(tmp_path, 0))
    assert caught.value.hint
    assert "\x1b" not in caught.value.message
    assert len(Snapshot.open(str(lake)).rows("cpg_nodes", ["node_id"]))


def test_a_published_file_that_is_deleted(
    spark: SparkSession,
    lake: Path,
    clean: dict[int, Figures],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "relations_v1"
    place = lake / catalog.table(name).path
    for file in light_files(str(lake), name, Snapshot.open(str(lake)).pins[name].version):
        (place / file.path).unlink()
    with pytest.raises(
        StorageFailure, match="relations_v1 is damaged or missing, and has rows of b too"
    ) as caught:
        built(spark, lake, {"a": put(tmp_path, "a")}, until=RELATE)
    assert caught.value.hint == "build a, b in one run, so that no rows are lost"
    # A run that dies while it mends leaves a version that cannot be brought back either.
    with monkeypatch.context() as patched:
        failing(patched, RELATE, RuntimeError("a bug"))
        with pytest.raises(RuntimeError, match="a bug"):
            built(spark, lake, sources(tmp_path, 0), until=RELATE)
    report = built(spark, lake, sources(tmp_path, 0), until=RELATE)
    assert actions(report, "b")[EXTRACT] == "skip"
    assert (actions(report, "a")[NORMALIZE], actions(report, "a")[RELATE]) == ("skip", "run")
    assert current(lake) == clean[0]
    assert not counted(lake)


def test_a_table_that_is_deleted(
    spark: SparkSession, lake: Path, clean: dict[int, Figures], tmp_path: Path
) -> None:
    shutil.rmtree(lake / catalog.table("ast_files_v1").path)
    report = built(spark, lake, sources(tmp_path, 0))
    assert actions(report, "a") == actions(report, "b") == {EXTRACT: "run"}
    assert current(lake) == clean[0]
    assert not counted(lake)
