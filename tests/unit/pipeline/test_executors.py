"""Local processes run the passes of a build: whatever their number, the rows are the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import Any

import pytest

from codeanatomy.extract.file_rows import FAILURES
from codeanatomy.pipeline.executors import local_process
from codeanatomy.pipeline.executors.executor import Group, groups_of, piece_order
from codeanatomy.pipeline.executors.local_executor import HELD, LocalExecutor
from codeanatomy.pipeline.executors.local_process import Worker, count_finished
from codeanatomy.pipeline.tasks.pieces import Piece, counts_piece, cut
from codeanatomy.query.checks.compare import compare_lakes
from support.edits import GARBAGE, write_tree
from support.light_builds import SameProcess, clean_lake

TREE = {
    **{
        f"part{number % 3}/m{number}.py": b"import m1\n\n\ndef f%d(a):\n    return a\n" % number
        for number in range(12)
    },
    "part0/__init__.py": b"from .m0 import f0\n\n\nclass A:\n    def run(self):\n        return f0(self)\n",
    "use.py": b"from part0 import A, f0\nfrom missing import h\n\nA().run()\nf0(h)\n",
    "broken.py": b"def broken(:\n",
    "garbage.py": GARBAGE,
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of two repositories and of a lake that one process has built."""
    work = tmp_path_factory.mktemp("executors")
    write_tree(work / "one", TREE)
    write_tree(work / "two", {path: text for path, text in TREE.items() if "part1" not in path})
    clean_lake(work / "lake", sources(work), "refresh.processes=1", "extract.partitions=1")
    return work


def sources(work: Path) -> dict[str, Path]:
    return {name: work / name for name in ("one", "two")}


@pytest.mark.parametrize(
    "settings",
    [
        ("refresh.processes=2",),
        pytest.param(("refresh.processes=2", "extract.partitions=2"), marks=pytest.mark.system),
        pytest.param(("refresh.processes=1", "extract.partitions=7"), marks=pytest.mark.system),
        ("refresh.processes=3", "extract.partitions=7"),
    ],
    ids=" ".join,
)
def test_rows_do_not_depend_on_processes_and_partitions(
    settings: tuple[str, ...], base: Path, tmp_path: Path
) -> None:
    clean_lake(tmp_path / "lake", sources(base), *settings)
    compared = compare_lakes(str(tmp_path / "lake"), str(base / "lake"))
    assert not compared.tables, (compared.tables, compared.differences[:5])
    assert sum(compared.rows.values()) > 0


def first_letter(encoded: bytes) -> Iterator[Piece]:
    """A task: a piece for each byte, in the chunk of its value."""
    for number, value in enumerate(encoded):
        yield from cut("r", chr(value), "letter", bytes([value]), f"{number}")


def joined_letters(groups: Iterator[Group]) -> Iterator[Piece]:
    for group in groups:
        data = b"".join(piece.data for piece in group.pieces)
        yield from cut(group.repo_id, group.chunk, "word", data)


@pytest.fixture
def executor() -> LocalExecutor:
    run: Any = SimpleNamespace(progress=SimpleNamespace(update=lambda *_, **__: None), files_of=lambda _: 0)
    return LocalExecutor(run, SameProcess(), processes=1)


def test_pieces_are_grouped_named_and_released(executor: LocalExecutor) -> None:
    held = executor.map_tasks("extract", [b"abca", b"ab"], first_letter, 2)
    assert len(executor.results(held, "letter")) == 6
    assert executor.results(held, "other") == []
    by_chunk = executor.map_groups("graph", [held], ("letter",), "chunk", joined_letters)
    words = {piece.chunk: piece.data for piece in executor.results(by_chunk, "word")}
    assert words == {"a": b"aaa", "b": b"bb", "c": b"c"}
    by_repository = executor.map_groups("relate", [held, by_chunk], ("letter",), "repo_id", joined_letters)
    assert [piece.data for piece in executor.results(by_repository, "word")] == [b"aaabbc"]
    assert HELD
    executor.release()
    assert not HELD
    # Twice is as good as once.
    executor.release()


def test_files_are_counted_while_the_worker_runs() -> None:
    with Worker() as worker:
        assert worker.finished == (0, 0)
        worker.call(count_finished, 3, 1)
        worker.call(count_finished, 4, 0)
        assert worker.finished == (7, 1)
    assert worker.finished == (7, 1), "also while it is stopped"


def finished(encoded: bytes) -> Iterator[Piece]:
    """A task: the byte is the number of its files, of which one has failed."""
    yield counts_piece({"r": {"repo_files_v1": encoded[0], FAILURES: 1}})


def finished_group(groups: Iterator[Group]) -> Iterator[Piece]:
    for group in groups:
        yield counts_piece({group.repo_id: {"graph_files": 2}})


def test_files_of_all_calls_of_a_step_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[tuple[str, str]] = []

    def update(step: str, text: str, *, last: bool = False) -> None:
        reports.append((step, f"{text}!" if last else text))

    with TemporaryFile() as counts:
        worker = SameProcess()
        worker._counts = counts.fileno()
        monkeypatch.setattr(local_process, "COUNTS_FILE", [counts.fileno()])
        run: Any = SimpleNamespace(progress=SimpleNamespace(update=update), files_of=lambda _: 2)
        executor = LocalExecutor(run, worker, processes=1)
        executor.map_tasks("extract", [b"\1", b"\2"], finished, 3)
        held = executor.map_tasks("extract", [b"\3"], finished, 3)
        executor.map_groups("graph", [held], ("counts",), "chunk", finished_group)
        executor.map_groups("graph", [held], ("nothing",), "chunk", finished_group)
    assert [text for _, text in reports if text.endswith("!")] == [
        "3/3 files, 2 failures!",
        "6/6 files, 3 failures!",
        "2/2 files!",
    ]


def test_groups_of_pieces() -> None:
    pieces = sorted(
        (
            piece
            for repo_id, chunk in (("s", "b"), ("r", "b"), ("r", "a"), ("r", "b"))
            for piece in cut(repo_id, chunk, "letter", b"x")
        ),
        key=piece_order,
    )
    chunks = [(repo_id, chunk, len(list(each))) for repo_id, chunk, each in groups_of(pieces, "chunk")]
    assert chunks == [("r", "a", 1), ("r", "b", 2), ("s", "b", 1)]
    whole = [(repo_id, chunk, len(list(each))) for repo_id, chunk, each in groups_of(pieces, "repo_id")]
    assert whole == [("r", "", 3), ("s", "", 1)]
