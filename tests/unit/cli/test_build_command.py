"""`codeanatomy build` and `codeanatomy errors` as a user meets them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import RunCommand, command_runner

BROKEN = "def broken(:\n"


# A feature that only Spark writes.
TRACKED = ("--set", "tables.cpg_nodes.write.enable_features=row_tracking")


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "codeanatomy", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("command")
    (folder / "pkg").mkdir()
    (folder / "pkg" / "good.py").write_text("x = 1\n")
    (folder / "pkg" / "bad.py").write_text(BROKEN)
    (folder / "repos.txt").write_text("listed=pkg\nnowhere=missing\n")
    return folder


@pytest.fixture
def ask(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, work: Path) -> RunCommand:
    """Commands in this process: one of its own takes most of a second to start."""
    return command_runner(capfd, monkeypatch, work)


@pytest.fixture(scope="module")
def report(work: Path) -> dict[str, object]:
    """Two repositories are built, one is not there."""
    flags = ("--lake", "lake", "--repos-file", "repos.txt", "--format", "json", "--until", "extract")
    done = run("--set", "runtime.cores=2", "build", "pkg", *flags, cwd=work)
    assert done.returncode == 1, done.stderr
    assert "extract   " in done.stderr
    assert "files" in done.stderr
    report: dict[str, object] = json.loads(done.stdout)
    return report


def test_the_report_is_one_object(report: dict[str, object]) -> None:
    assert report["status"] == "failed"
    assert {"run_id", "lake", "repositories", "tables", "errors", "seconds"} < report.keys()
    repositories = report["repositories"]
    assert isinstance(repositories, dict)
    assert {name: each["status"] for name, each in repositories.items()} == {
        "pkg": "succeeded",
        "listed": "succeeded",
        "nowhere": "failed",
    }
    tables = report["tables"]
    assert isinstance(tables, dict)
    assert tables["ast_files_v1"] == {"version": 0, "rows": 4}
    assert set(report["seconds"]) >= {"list", "extract", "extract_commit", "publish", "total"}  # type: ignore[call-overload]


def test_errors_lists_them_with_their_place(work: Path, report: dict[str, object]) -> None:
    done = run("errors", "--lake", "lake", "--format", "table", cwd=work)
    assert done.returncode == 0
    assert "bad.py:1" in done.stdout
    assert "missing" in done.stdout
    answer = json.loads(
        run("errors", "--lake", "lake", "--repo-id", "pkg", "--format", "json", cwd=work).stdout
    )
    assert {row["kind"] for row in answer["rows"]} == {
        "ast_files_v1",
        "bytecode_files_v1",
        "libcst_files_v1",
        "symtable_files_v1",
    }
    assert answer["total"] == 4
    assert answer["run_id"] == report["run_id"]
    few = run("errors", "--lake", "lake", "--limit", "1", "--format", "table", cwd=work)
    assert "not shown" in few.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("build", "--lake", "l"), "nothing to build"),
        (("build", "a", "b", "--lake", "l", "--repo-id", "x"), "names one repository"),
        (("build", "x=a", "x=b", "--lake", "l"), "several sources are named x"),
        (("build", "pkg", "--lake", "l", "--until", "nope"), "unknown stage 'nope'"),
        (("build", "pkg", "pkg2", "--lake", "l", "--scip", "i.scip"), "does not name its repository"),
        (("build", "pkg"), "--lake"),
        (("build", "pkg", "--lake", "l/a[b]"), "use a folder with another name"),
        ((*TRACKED, "build", "pkg", "--lake", "l", "--engine", "local"), "use --engine spark (or auto)"),
        (
            (*TRACKED, "plan", "pkg", "--lake", "l", "--engine", "local"),
            "features that only Spark writes",
        ),
        (("--set", "extract.partitions=0", "build", "pkg", "--lake", "l"), "extract.partitions"),
        (("--set", "extract.max_file_size=huge", "build", "pkg", "--lake", "l"), "is not a size"),
    ],
)
def test_wrong_use_is_refused_before_spark_starts(
    ask: RunCommand, work: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, _, err = ask(*arguments)
    assert code == 2
    assert message in err
    assert not (work / "l").exists()


def test_errors_of_no_lake(ask: RunCommand) -> None:
    code, _, err = ask("errors", "--lake", "nowhere")
    assert code == 6
    assert "never written" in err


def test_a_single_repository_that_is_missing(work: Path) -> None:
    done = run("build", "missing", "--lake", "l", cwd=work)
    assert done.returncode == 2
    assert "missing" in done.stderr
    assert not (work / "l").exists()
