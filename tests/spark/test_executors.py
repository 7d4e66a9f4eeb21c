"""Spark beside local processes: equal rows from the same passes, however the work is divided and resumed."""

from __future__ import annotations

import ast
import io
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.extract.scip.schema import Document, Index, Metadata, Occurrence, SymbolInformation
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.lake.manifest import read_manifest
from codeanatomy.pipeline.context import Run
from codeanatomy.pipeline.executors import spark_executor
from codeanatomy.pipeline.tasks.pieces import PIECE_BYTES
from codeanatomy.plan.build_request import ScipChoice
from codeanatomy.plan.steps import EXTRACT, GRAPH, NORMALIZE, RELATE
from codeanatomy.progress import Progress
from codeanatomy.query.checks.compare import compare_lakes
from codeanatomy.query.checks.verify import verify
from codeanatomy.run.build import build
from codeanatomy.run.report import BuildReport
from support import two_repositories
from support.edits import Tree, repository, script, write_tree
from support.folders import write_sources
from support.light_builds import clean_lake, order, refreshed
from support.marks import quick
from support.sessions import SharedSession
from support.spark_builds import rows

STEPS = (EXTRACT, NORMALIZE, RELATE, GRAPH)
# The larger repository is not the first by name.
TREE = repository(seed=5)
INDEX = "index.scip"


def by_spark(
    spark: SparkSession, lake: Path | str, sources: Mapping[str, Path], *settings: str, **options: Any
) -> BuildReport:
    """Build on Spark, with the settings of `support.light_builds`."""
    request = order(Path("lake"), sources, *settings, **{"engine": "spark", **options})
    report = build(structs.replace(request, lake=str(lake)), Progress(io.StringIO()), SharedSession(spark))
    assert report.status == "succeeded"
    return report


def assert_equal_rows(lake: Path, expected: Path, steps: tuple[str, ...] = STEPS) -> None:
    """Check that all tables of two lakes have the same rows, that no step is empty, and that counts agree."""
    found = compare_lakes(str(lake), str(expected))
    assert not found.tables, found.differences[:5]
    assert {catalog.table(name).stage for name, rows in found.rows.items() if rows} == set(steps)
    one, other = (
        {row.repo_id: (row.row_counts, row.error_counts) for row in newest(each)} for each in (lake, expected)
    )
    assert one == other
    if GRAPH in steps:
        assert not verify(str(lake)).findings


def newest(lake: Path) -> list[Any]:
    """The newest row of each repository in the manifest."""
    rows = {row.repo_id: row for row in sorted(read_manifest(str(lake)), key=lambda row: row.finished_at)}
    return list(rows.values())


def write_index(folder: Path, tree: Tree, *without: str) -> Path:
    """Write an index by hand: functions of the tree by name alone, and a document of no file."""
    documents = [Document(relative_path="elsewhere.py", language="python", occurrences=[])]
    for path, raw in tree.items():
        if path in without or not path.endswith(".py"):
            continue
        try:
            module = ast.parse(raw)
        except (SyntaxError, ValueError):
            continue
        seen = []
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and node.col_offset == 0:
                start = [node.lineno - 1, 4, 4 + len(node.name)]
                seen.append(Occurrence(range=start, symbol=symbol(node.name), symbol_roles=1))
            elif isinstance(node, ast.Name):
                start = [node.lineno - 1, node.col_offset, node.end_col_offset]
                seen.append(Occurrence(range=start, symbol=symbol(node.id)))
        documents.append(Document(relative_path=path, language="python", occurrences=seen))
    metadata = Metadata(tool_info={"name": "by-hand", "version": "1"})
    folder.mkdir(exist_ok=True)
    place = folder / INDEX
    place.write_bytes(Index(metadata=metadata, documents=documents).SerializeToString())
    return place


def symbol(name: str) -> str:
    return f"scip-python python app 0 `core`/{name}()."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("executors")


@pytest.fixture(scope="module")
def sources(folder: Path) -> dict[str, Path]:
    """A small repository and a larger one; no test edits them."""
    write_tree(folder / "app", TREE)
    return {"a": two_repositories.put(folder, "a"), "app": folder / "app"}


@pytest.fixture(scope="module")
def local(folder: Path, sources: dict[str, Path]) -> Path:
    """Their lake by local processes."""
    clean_lake(folder / "local", sources)
    return folder / "local"


@pytest.fixture
def many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divide files into many chunks, as those of a large repository: of a few files, of one, or of none."""
    monkeypatch.setattr(Run, "chunk_count", lambda run, repo_id: 40)


@pytest.mark.parametrize("partitions", quick([1, 2, 7], 2))
@pytest.mark.system
def test_the_number_of_tasks_does_not_matter(
    spark: SparkSession,
    sources: dict[str, Path],
    local: Path,
    tmp_path: Path,
    many_chunks: None,
    partitions: int,
) -> None:
    by_spark(spark, tmp_path, sources, f"extract.partitions={partitions}")
    assert_equal_rows(tmp_path, local)


@pytest.mark.system
@pytest.mark.parametrize("with_index", [False, True])
def test_steps_one_by_one(
    spark: SparkSession,
    sources: dict[str, Path],
    local: Path,
    tmp_path: Path,
    many_chunks: None,
    with_index: bool,
) -> None:
    """Each pass reads what others have committed, and with an index normalize runs in pass two."""
    index = write_index(tmp_path, TREE)
    scip = ScipChoice(given={"app": index} if with_index else {})
    expected = local
    if with_index:
        expected = tmp_path / "expected"
        clean_lake(expected, sources, scip=scip)
        by_spark(spark, tmp_path / "once", sources, scip=scip)
        assert_equal_rows(tmp_path / "once", expected)
    for step in STEPS:
        report = by_spark(spark, tmp_path / "lake", sources, scip=scip, until=step)
        done = {name for name, each in report.steps.items() if "run" in each.values()}
        # Relate adds to a table of normalize, which is made again for it.
        assert done == ({NORMALIZE, RELATE} if step == RELATE else {step})
    assert_equal_rows(tmp_path / "lake", expected)


@pytest.mark.system
@pytest.mark.parametrize("with_index", [False, True])
def test_a_refresh_on_spark_is_that_of_local_processes(
    spark: SparkSession, tmp_path: Path, many_chunks: None, with_index: bool
) -> None:
    """Both redo the same files, for the same reasons, and leave the rows of a clean build."""
    sources = {"a": two_repositories.put(tmp_path, "a"), "app": tmp_path / "app"}
    lakes = [tmp_path / "local", tmp_path / "spark"]

    def options() -> dict[str, Any]:
        # As it was before an edit, where a file was broken or is gone.
        index = write_index(tmp_path, TREE, *skipped)
        return {"scip": ScipChoice(given={"app": index})} if with_index else {}

    skipped: list[str] = []
    write_tree(sources["app"], TREE)
    clean_lake(lakes[0], sources, **options())
    shutil.copytree(lakes[0], lakes[1])
    for tree in (edited_tree(), TREE):
        write_tree(sources["app"], tree)
        # Documents that go, and come back.
        skipped[:] = ["app/text11.py", "rules10.py"] if not skipped else []
        reports = [
            refreshed(lakes[0], sources, **options()),
            by_spark(spark, lakes[1], sources, **options()),
        ]
        assert reports[0].steps == reports[1].steps
        assert {each["app"] for each in reports[1].steps.values()} == {"refresh"}
        assert reports[0].redone == reports[1].redone
        assert len(reports[1].redone["app"]) > 3
        assert reports[0].errors == reports[1].errors
        written = [{name: each.rows for name, each in report.tables.items()} for report in reports]
        assert written[0] == written[1]
        shutil.rmtree(tmp_path / "clean", ignore_errors=True)
        clean_lake(tmp_path / "clean", sources, **options())
        for lake in lakes:
            assert_equal_rows(lake, tmp_path / "clean")


def edited_tree() -> Tree:
    """Return the tree after edits: names and a class that go, broken files, values that others read."""
    tree = TREE
    for edit in script(5, 11):
        tree = edit.apply(tree)
    return tree


@pytest.mark.system
def test_rows_longer_than_a_piece(spark: SparkSession, tmp_path: Path) -> None:
    """A stream of rows that is cut into parts is put together by whoever reads or writes it."""
    source = write_sources(tmp_path / "source", {"m.py": "def f(): ...\nf()\n"})
    text = random.Random(3).randbytes(PIECE_BYTES).hex()
    symbols = [SymbolInformation(symbol=symbol("f"), documentation=[text])]
    seen = [Occurrence(range=[0, 4, 5], symbol=symbol("f"), symbol_roles=1)]
    document = Document(relative_path="m.py", language="python", occurrences=seen, symbols=symbols)
    index = tmp_path / INDEX
    index.write_bytes(Index(metadata=Metadata(), documents=[document]).SerializeToString())
    options = {"scip": ScipChoice(given={"r": index})}
    clean_lake(tmp_path / "local", {"r": source}, **options)
    by_spark(spark, tmp_path / "spark", {"r": source}, **options)
    assert_equal_rows(tmp_path / "spark", tmp_path / "local")
    (row,) = [each for each in rows(tmp_path / "spark", SCIP) if each["row_kind"] == "document"]
    is_whole = row["symbols"][0]["documentation"] == [text]
    assert is_whole


def test_the_largest_repository_is_first(
    spark: SparkSession, sources: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[dict[str, int]] = []
    largest_first = spark_executor.largest_first

    def watched(sizes: Mapping[str, int], most: int) -> dict[str, int]:
        numbers.append(largest_first(sizes, most))
        return numbers[-1]

    monkeypatch.setattr(spark_executor, "largest_first", watched)
    by_spark(spark, tmp_path, sources, until=RELATE)
    assert numbers[0] == {"app": 0, "a": 1}
