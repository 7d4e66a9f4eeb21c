"""Spark Connect on lakes of a real package, in a folder and on MinIO: the rows of readers without a JVM."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from pyspark.sql import DataFrame, SparkSession

from codeanatomy import catalog
from codeanatomy.catalog.views import VIEWS
from codeanatomy.delta import store_policy
from codeanatomy.delta.store_policy import StorePolicy, register_policy
from codeanatomy.errors import SqlRefused
from codeanatomy.lake.snapshot import recorded_runs
from codeanatomy.query.ask import VERBS
from codeanatomy.query.diff.change_windows import feed_tables
from codeanatomy.query.engines.public_store import PublicStore
from codeanatomy.query.engines.spark import plain_value
from codeanatomy.query.engines.spark_lake import SparkLake
from codeanatomy.query.engines.views import view_query
from codeanatomy.query.lake import Lake
from codeanatomy.query.sql.spark import run_spark_sql
from codeanatomy.spark.jars import CONNECTORS, cache_folder, has_connector
from support import corpus
from support.connect import DELTA_SETTINGS, remote_session, running_server
from support.minio import Minio, running_minio

pytestmark = pytest.mark.system
MANY = 1_000_000
EDITS = {
    "requests/api.py": "\n\ndef fetch(url):\n    return get(url, timeout=3).json()\n",
    "requests/broken.py": "def f(:\n",
}
# A verb, names, options.
QUESTIONS: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    ("find", ("*Adapter*",), {}),
    ("show", ("Session.send",), {}),
    ("callers", ("Session.send",), {"depth": 3}),
    ("callees", ("requests.api.get",), {"depth": 3}),
    ("refs", ("Session",), {}),
    ("path", ("requests.api.fetch", "Session.send"), {}),
    ("impact", ("Session.request",), {"depth": 4}),
    ("flows", ("Session.send.request",), {"depth": 3}),
    ("explain", ("requests.api.get", "requests.api.request"), {}),
    ("unused", (), {"repo_id": "requests"}),
    ("cycles", (), {}),
    ("unresolved", (), {}),
    ("errors", (), {}),
    ("stats", (), {}),
)
STATEMENTS = (
    "SELECT caller, count(*) AS n FROM calls GROUP BY caller ORDER BY n DESC, caller",
    "SELECT kind, count(*) AS n, min(line) AS first FROM symbols GROUP BY kind ORDER BY kind",
    "SELECT symbol, c.path, c.line FROM symbols JOIN calls c ON callee_id = symbol_id ORDER BY 1, 2, 3",
)
FEW, FEWER = "(SELECT * FROM nodes LIMIT 2000)", "(SELECT * FROM nodes LIMIT 200)"
# For some seconds and no more: a task may not notice that it was cancelled, and keeps its core until it ends.
SLOW = f"SELECT count(*) FROM {FEW} a CROSS JOIN {FEW} b CROSS JOIN {FEWER} c"


@dataclass(frozen=True)
class Served:
    """A lake of two runs: with a session of Spark Connect, and without."""

    lake: SparkLake
    light: Lake
    runs: tuple[str, ...]


@pytest.fixture(scope="module")
def minio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Minio]:
    if not has_connector(cache_folder() / "jars", "s3"):
        pytest.skip("Spark needs the jars for S3: codeanatomy setup --with s3")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_policy, "_POLICIES", {})
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        with running_minio(tmp_path_factory.mktemp("minio"), ("lakes",)) as server:
            yield server


@pytest.fixture(scope="module")
def remote(minio: Minio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of a server that has credentials of its own."""
    options = {f"spark.hadoop.{name}": value for name, value in minio.storage_options.items()}
    connectors = [cache_folder() / "jars" / jar.name for jar in CONNECTORS["s3"]]
    folder = tmp_path_factory.mktemp("server")
    with (
        running_server(folder, {**DELTA_SETTINGS, **options}, connectors) as url,
        remote_session(url) as made,
    ):
        yield made


@pytest.fixture(scope="module", params=["folder", "minio"])
def served(
    request: pytest.FixtureRequest,
    remote: SparkSession,
    minio: Minio,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Served]:
    """The package, and the package after edits."""
    folder = tmp_path_factory.mktemp("work")
    shutil.copytree(corpus.package("requests") / "requests", folder / "sources" / "requests")
    root = str(folder / "lake") if request.param == "folder" else "s3a://lakes/requests"
    flags = () if request.param == "folder" else minio.flags
    build(folder, root, *flags)
    for name, text in EDITS.items():
        with (folder / "sources" / name).open("a") as file:
            file.write(text)
    build(folder, root, *flags)
    register_policy(root, StorePolicy(dict(minio.storage_options)))
    lake = Lake.open(root, spark=remote)
    assert isinstance(lake.reader.store, PublicStore)
    yield Served(lake, Lake.open(root), tuple(run.run_id for run in recorded_runs(root)))
    lake.close()


def build(folder: Path, root: str, *flags: str) -> None:
    options = ("--engine", "local", "--lake", root)
    command = [sys.executable, "-m", "codeanatomy", *flags, "build", "requests=sources", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return [{name: plain_value(row[name]) for name in frame.columns} for row in frame.collect()]


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True, default=str) for row in rows)


def test_tables(served: Served) -> None:
    pinned = [table for table in catalog.TABLES if table.name in served.lake.snapshot.pins]
    assert len(pinned) > 20
    for table in pinned:
        names = list(table.column_names)
        found = served.lake.table(table.name).select(*names).toArrow().to_pylist()
        expected = served.light.snapshot.rows(table.name, names).to_pylist()
        assert Counter(map(repr, found)) == Counter(map(repr, expected)), table.name


@pytest.mark.parametrize("name", [view.name for view in VIEWS])
def test_views(served: Served, name: str) -> None:
    view = next(each for each in VIEWS if each.name == name)
    expected = served.light.reader.rows(view_query(view, served.lake.snapshot))
    found = [tuple(map(plain_value, row)) for row in served.lake.view(name).collect()]
    assert Counter(map(repr, found)) == Counter(map(repr, expected)) != Counter()


def test_every_verb_is_in_the_questions() -> None:
    assert {verb for verb, _, _ in QUESTIONS} == VERBS.keys()


@pytest.mark.parametrize(("verb", "names", "options"), QUESTIONS, ids=[verb for verb, _, _ in QUESTIONS])
def test_verbs(served: Served, verb: str, names: tuple[str, ...], options: dict[str, Any]) -> None:
    answer = served.light.ask(verb, *names, limit=MANY, **options)
    assert answer.rows or verb == "cycles"
    assert rows_of(served.lake.ask(verb, *names, **options)) == list(answer.rows)


@pytest.mark.parametrize("text", STATEMENTS)
def test_statements(served: Served, text: str) -> None:
    light = served.light.sql(text, limit=10_000, seconds=120)
    assert light.rows
    assert rows_of(served.lake.sql(text)) == list(light.rows)
    limited = run_spark_sql(served.lake, text, limit=10_000, seconds=120)
    assert structs.replace(limited, sql="") == structs.replace(light, sql="")


def test_a_statement_has_a_time_limit(served: Served, remote: SparkSession) -> None:
    with pytest.raises(SqlRefused, match="no answer in 1 seconds"):
        run_spark_sql(served.lake, SLOW, limit=1, seconds=1)
    assert remote.getTags() == set()
    assert remote.range(3).count() == 3


def test_changes(served: Served) -> None:
    since = served.runs[0]
    changed = 0
    for name in feed_tables():
        expected = served.light.changes(name, since, limit=MANY)
        found = rows_of(served.lake.changes(name, since))
        for row in found:
            if row["was"] is not None:
                row["was"] = {key: value for key, value in row["was"].items() if value != row[key]}
        assert counted(found) == counted(list(expected)), name
        changed += len(found)
        every = served.light.changes(name, since, every_commit=True, limit=MANY)
        without_time = [
            {key: value for key, value in row.items() if key != "_commit_timestamp"} for row in every.rows
        ]
        frame = served.lake.changes(name, since, every_commit=True).drop("_commit_timestamp")
        assert counted(rows_of(frame)) == counted(without_time), name
    assert changed


def test_numbers_of_changes(served: Served) -> None:
    counts = served.light.change_counts(served.runs[0])
    expected = [structs.asdict(each) for each in counts.counts]
    assert counted(rows_of(served.lake.change_counts(served.runs[0]))) == counted(expected) != Counter()


def test_differences_of_runs(served: Served) -> None:
    diff = served.lake.diff(*served.runs, limit=MANY)
    assert diff == served.light.diff(*served.runs, limit=MANY)
    assert any("fetch" in str(row) for row in diff.rows)
