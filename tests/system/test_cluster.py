"""Builds on a standalone cluster whose executors share only the network and the object store with the driver.

The workers are those of `support.cluster`: other users, other folders, no checkout. The environment is
shipped with the job, sources and lake are on MinIO. All tables have the rows of a local clean build, with and
without executors and drivers that are killed; all commands print what they print of a local lake.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codeanatomy.errors import EXIT_ENVIRONMENT
from codeanatomy.lake.snapshot import Snapshot, recorded_runs
from codeanatomy.query.checks.compare import compare_lakes
from support import corpus
from support.cluster import Deployment, running_deployment
from support.commands import PROCESS_SECONDS, run_process
from support.minio import upload
from support.processes import left_over, members
from support.submit import submit_build

pytestmark = pytest.mark.system

# The file of each repository that is edited.
EDITED = {"requests": "requests/utils.py", "flask": "flask/helpers.py", "click": "click/utils.py"}
EDIT = "\n\ndef added_{number}(value: int) -> str:\n    return str(value)\n"
# A line of progress by which each pass has started.
PASSES = {"first pass": "extract", "solve": "relate", "second pass": "graph"}
SEED = 25
# Lines of progress of a build, in one of which its driver is killed.
STEPS = ("extract", "relate", "commit", "graph")
# What is killed of the driver, which is Python and its JVM: in two builds, of which none publishes. Then the
# engine of the build that completes.
KILLS = ((("driver", "both"), "local"), (("JVM", "driver"), "local"), (("both", "JVM"), "spark"))
# Processes that a killed one leaves have ended by then.
ORPHAN_SECONDS = 60
# What differs between two lakes with the same rows: places, runs, times.
OWN = {
    *("lake", "source", "source_state", "seconds", "published_at", "built_at", "started_at"),
    *("run_id", "run_a", "run_b", "runs", "since", "until", "engine_facts"),
}
QUESTIONS = (
    "status",
    "errors",
    "stats",
    "verify",
    "find send",
    "show requests.api.get",
    "callers requests.sessions.Session.send --depth 2",
    "callees flask.app.Flask.wsgi_app --depth 2",
    "refs click.core.Command",
    "path requests.api.get requests.adapters.HTTPAdapter.send",
    "path requests.api.get requests.adapters.HTTPAdapter.send --by flow",
    "impact requests.utils.to_key_val_list",
    "flows requests.api.get.url",
    "explain requests.api.get requests.api.request",
    "unused",
    "cycles",
    "cycles --by calls",
    "unresolved",
    "callgraph",
)
STATEMENT = "SELECT kind, count(*) AS number FROM symbols GROUP BY kind ORDER BY kind"
EXPORTS = ("dot", "graphml", "jsonl", "networkx-json", "svg", "html")


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with running_deployment(tmp_path_factory.mktemp("deployment")) as running:
        yield running


@dataclass(frozen=True)
class Lakes:
    """Lakes of the three repositories.

    The remote lake was built and refreshed by the cluster, the twin by local processes; the clean lake was
    built once, after the edits.
    """

    remote: str
    twin: str
    clean: str
    sources: Mapping[str, Path]


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(corpus.package(name), folder / name))


def edit(sources: Mapping[str, Path], number: int) -> None:
    for name, folder in sources.items():
        with (folder / EDITED[name]).open("a") as stream:
            stream.write(EDIT.format(number=number))


def uploaded(sources: Mapping[str, Path], place: str) -> list[str]:
    """Copy sources to the store; return them as arguments of a build."""
    return [f"{name}={upload(folder, f's3a://sources/{place}/{name}')}" for name, folder in sources.items()]


def built(*arguments: str) -> None:
    done = run_process(*arguments)
    assert done.returncode == 0, done.stderr


def built_here(lake: Path, sources: Mapping[str, Path]) -> str:
    """Build sources of this machine by local processes."""
    named = (f"{name}={folder}" for name, folder in sources.items())
    built("build", *named, "--lake", str(lake), "--engine", "local")
    return str(lake)


def assert_same_rows(here: str | Snapshot, clean: str | Snapshot) -> None:
    comparison = compare_lakes(here, clean)
    assert (comparison.total, comparison.differences) == (0, ())
    assert comparison.rows["type_checker_files_v1"] > 0
    assert comparison.rows["cpg_edges"] > 10_000


def is_clean(lake: str, sources: Mapping[str, Path], folder: Path) -> None:
    """Compare a lake with a clean local one of the same sources."""
    clean = folder / "clean"
    shutil.rmtree(clean, ignore_errors=True)
    assert_same_rows(lake, built_here(clean, sources))


@pytest.fixture(scope="module")
def lakes(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Lakes:
    folder = tmp_path_factory.mktemp("lakes")
    sources = {name: copied(name, folder) for name in EDITED}
    remote, twin = "s3a://lakes/three", folder / "twin"
    for number in range(2):
        if number:
            edit(sources, number)
        named = uploaded(sources, "three")
        built(*deployment.flags, "build", *named, "--lake", remote, "--engine", "spark")
        built_here(twin, sources)
    return Lakes(remote, str(twin), built_here(folder / "clean", sources), sources)


def first_run(lake: str) -> str:
    return recorded_runs(lake)[0].run_id


def test_executors_without_the_environment_are_reported(deployment: Deployment, tmp_path: Path) -> None:
    (named,) = uploaded({"requests": copied("requests", tmp_path)}, "none")
    done = run_process(
        *deployment.bare_flags, "build", named, "--lake", "s3a://lakes/none", "--engine", "spark"
    )
    assert done.returncode == 4, done.stderr
    assert "the executors have no Python at" in done.stderr
    assert "codeanatomy environment --output env.tar.gz" in done.stderr
    assert "Traceback" not in done.stderr


def submitted(
    deployment: Deployment, folder: Path, lake: str, *sources: str
) -> subprocess.CompletedProcess[str]:
    """Build as a job that another program has made: with the environment, and with settings from a file."""
    options = "".join(f'"{name}" = "{value}"\n' for name, value in deployment.minio.storage_options.items())
    (folder / "codeanatomy.toml").write_text(f"[runtime.storage_options]\n{options}")
    settings = {
        "spark.pyspark.python": "./environment/bin/python",
        "spark.executor.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.executorEnv.CODEANATOMY_CACHE": "cache",
    }
    return submit_build(
        lake,
        *sources,
        master=deployment.cluster.url,
        settings=settings,
        options=("--archives", f"{deployment.environment}#environment"),
        # The code that was packed.
        environment={"PYTHONPATH": os.environ["PYTHONPATH"]},
        folder=folder,
    )


def test_a_job_of_spark_submit_builds_the_rows_of_a_local_build(
    deployment: Deployment, tmp_path: Path
) -> None:
    source = copied("requests", tmp_path)
    lake = "s3a://lakes/submitted"
    done = submitted(deployment, tmp_path, lake, *uploaded({"requests": source}, "submitted"))
    assert done.returncode == 0, done.stdout + done.stderr
    is_clean(lake, {"requests": source}, tmp_path)


def test_a_folder_that_executors_do_not_have_is_named(deployment: Deployment, tmp_path: Path) -> None:
    source = copied("requests", tmp_path)
    done = submitted(deployment, tmp_path, "s3a://lakes/folders", f"requests={source}")
    assert done.returncode == EXIT_ENVIRONMENT, done.stdout + done.stderr
    assert f"the source {source} is, for the executor on" in done.stdout
    assert "missing, or not readable" in done.stdout
    (named,) = uploaded({"requests": source}, "folders")
    done = submitted(deployment, tmp_path, str(tmp_path / "lake"), named)
    assert done.returncode == EXIT_ENVIRONMENT, done.stdout + done.stderr
    assert f"the folder of the lake {tmp_path / 'lake'} is, for the executor on" in done.stdout
    assert not (tmp_path / "lake").exists()


def test_a_cluster_builds_and_refreshes_the_rows_of_local_builds(lakes: Lakes) -> None:
    first, twin = (Snapshot.open(lake, first_run(lake)) for lake in (lakes.remote, lakes.twin))
    assert_same_rows(first, twin)
    modes = {name: row.mode for name, row in Snapshot.open(lakes.remote).repositories.items()}
    assert modes == dict.fromkeys(EDITED, "incremental")
    assert_same_rows(lakes.remote, lakes.clean)


def answers(deployment: Deployment, lakes: tuple[str, str], *question: str) -> list[str]:
    """What a command prints of a remote and of a local lake."""

    def answer(flags: tuple[str, ...], lake: str) -> str:
        done = run_process(*flags, *question, "--lake", lake)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with ThreadPoolExecutor() as pool:
        return list(pool.map(answer, (deployment.flags, ()), lakes))


def without_own(answer: Any) -> Any:
    """Leave out of a decoded answer what is a lake's own."""
    if isinstance(answer, dict):
        return {key: without_own(value) for key, value in answer.items() if key not in OWN}
    return [without_own(each) for each in answer] if isinstance(answer, list) else answer


def assert_same_answer(texts: list[str]) -> None:
    there, here = (without_own(json.loads(text)) for text in texts)
    assert there == here
    assert there


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_have_the_answers_of_a_clean_lake(
    deployment: Deployment, lakes: Lakes, question: str
) -> None:
    both = (lakes.remote, lakes.clean)
    assert_same_answer(answers(deployment, both, *question.split(), "--format", "json"))


def test_sql_has_the_rows_of_a_clean_lake(deployment: Deployment, lakes: Lakes) -> None:
    question, both = ("sql", STATEMENT, "--format", "json"), (lakes.remote, lakes.clean)
    texts = answers(deployment, both, *question)
    assert_same_answer(texts)
    on_cluster = run_process(
        *deployment.flags, *question, "--lake", lakes.remote, "--engine", "spark", "--seconds", "300"
    )
    assert on_cluster.returncode == 0, on_cluster.stderr
    assert json.loads(on_cluster.stdout)["rows"] == json.loads(texts[1])["rows"]


def test_exports_have_the_bytes_of_a_clean_lake(deployment: Deployment, lakes: Lakes) -> None:
    both = (lakes.remote, lakes.clean)
    runs = [Snapshot.open(lake).run_id for lake in both]
    for form in EXPORTS:
        texts = answers(deployment, both, "export", form, "--focus", "requests.api.get")
        # Pictures name the run.
        there, here = (text.replace(run, "RUN") for text, run in zip(texts, runs, strict=True))
        assert there == here, form
        assert len(there) > 1000, form


def test_runs_are_compared_as_in_a_local_lake(deployment: Deployment, lakes: Lakes) -> None:
    """Both lakes have two runs."""
    for command in (("diff",), ("changes", "--since"), ("changes", "relations_v1", "--since")):
        texts = []
        for flags, lake in ((deployment.flags, lakes.remote), ((), lakes.twin)):
            done = run_process(*flags, *command, first_run(lake), "--lake", lake, "--format", "json")
            assert done.returncode == 0, done.stderr
            texts.append(done.stdout)
        assert_same_answer(texts)
    for command in (("runs",), ("observe",)):
        shown = run_process(*deployment.flags, *command, "--lake", lakes.remote, "--format", "json")
        assert shown.returncode == 0, shown.stderr
        assert all(run.run_id in shown.stdout for run in recorded_runs(lakes.remote))


def test_maintenance_keeps_all_rows(deployment: Deployment, lakes: Lakes, tmp_path: Path) -> None:
    """What rewrites rows runs on the cluster, for some tables; the rest does not need it."""

    def call(flags: tuple[str, ...], *command: str) -> str:
        done = run_process(*flags, *command, "--lake", lakes.remote)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    alone = deployment.minio.flags
    first, second = (run.run_id for run in recorded_runs(lakes.remote))
    call(deployment.flags, "optimize", "relations_v1", "cpg_nodes")
    call(deployment.flags, "zorder", "cpg_nodes", "cpg_edges_by_src")
    for operation in ("checkpoint", "vacuum", "cleanup-log"):
        call(alone, operation)
    call(alone, "maintain", "--dry-run")
    call(alone, "features")
    call(alone, "properties")
    assert_same_rows(lakes.remote, lakes.clean)
    call(alone, "export-snapshot", "--to", str(tmp_path / "snapshot"))
    assert_same_rows(str(tmp_path / "snapshot"), lakes.clean)
    call(alone, "restore", "--run", first)
    assert_same_rows(lakes.remote, Snapshot.open(lakes.twin, first_run(lakes.twin)))
    call(alone, "restore", "--run", second)
    assert_same_rows(lakes.remote, lakes.clean)
    named = [f"{name}=s3a://sources/three/{name}" for name in lakes.sources]
    assert json.loads(call(alone, "plan", *named, "--format", "json"))["nothing_to_do"]
    # No other process uses the lake; the first run need not be restored any more.
    call(alone, "vacuum", "--retention-hours", "0", "--unsafe", "--keep-needed")
    assert_same_rows(lakes.remote, lakes.clean)
    call(alone, "verify")


def test_lost_executors_cost_time_only(deployment: Deployment, tmp_path: Path) -> None:
    """In each pass an executor is killed, at a random moment after the pass has started."""
    sources, lake = {"requests": copied("requests", tmp_path)}, "s3a://lakes/lost"
    chance = random.Random(SEED)
    lines: list[str] = []
    killed: dict[str, int] = {}
    with build_process(
        *deployment.flags, "build", *uploaded(sources, "lost"), "--lake", lake, "--engine", "spark"
    ) as process:
        limit = threading.Timer(PROCESS_SECONDS, process.kill)
        limit.start()
        for line in process.stderr or ():
            lines.append(line)
            step = line.partition(" ")[0]
            if step in PASSES.values() and step not in killed:
                time.sleep(chance.uniform(0, 1))
                killed[step] = deployment.cluster.kill_executor()
        limit.cancel()
    assert process.returncode == 0, "".join(lines)
    assert set(killed) == set(PASSES.values())
    assert len(set(killed.values())) == len(PASSES)
    is_clean(lake, sources, tmp_path)


def build_process(*arguments: str) -> subprocess.Popen[str]:
    """Start a build in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "codeanatomy", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill_driver(process: subprocess.Popen[str], part: str) -> None:
    if part != "JVM":
        os.kill(process.pid, signal.SIGKILL)
    for number, name in members(process.pid).items() if part != "driver" else ():
        if name == "java":
            os.kill(number, signal.SIGKILL)


@pytest.mark.parametrize(("parts", "last"), KILLS)
def test_killed_drivers_publish_nothing(
    deployment: Deployment, tmp_path: Path, parts: tuple[str, str], last: str
) -> None:
    """Readers see the old lake; the next build completes, with the rows of a clean one."""
    place = "-".join(("killed", *parts))
    sources, lake = {"click": copied("click", tmp_path)}, f"s3a://lakes/{place}"
    question = (*deployment.minio.flags, "find", "added_*", "--lake", lake, "--format", "json")

    def build(engine: str) -> tuple[str, ...]:
        flags = deployment.flags if engine == "spark" else deployment.minio.flags
        return (*flags, "build", *uploaded(sources, place), "--lake", lake, "--engine", engine)

    def seen() -> list[Any]:
        done = run_process(*question)
        assert done.returncode == 0, done.stderr
        return [(row["symbol"], row["line"]) for row in json.loads(done.stdout)["rows"]]

    edit(sources, 0)
    built(*build("local"))
    before = seen()
    assert len(before) == 1
    chance = random.Random(f"{SEED} {place}")
    for number, (part, step) in enumerate(zip(parts, chance.sample(STEPS, len(parts)), strict=True), 1):
        edit(sources, number)
        with ThreadPoolExecutor() as pool, build_process(*build("spark"), "--full") as process:
            lines = []
            for line in process.stderr or ():
                lines.append(line)
                if line.startswith(step):
                    break
            during = pool.submit(seen)
            time.sleep(chance.uniform(0, 1))
            assert process.poll() is None, f"the build has ended: {''.join(lines)}"
            kill_driver(process, part)
            lines += process.stderr or ()
        assert process.returncode == (5 if part == "JVM" else -signal.SIGKILL), "".join(lines)
        assert left_over(process.pid, ORPHAN_SECONDS) == {}
        assert (during.result(), seen()) == (before, before)
    built(*build(last))
    assert len(seen()) == 1 + len(parts)
    is_clean(lake, sources, tmp_path)
