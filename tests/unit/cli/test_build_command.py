"""`codeanatomy build` and `codeanatomy errors` as a user meets them."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from support.commands import RunCommand, command_runner
from support.commands import run_process as run

BROKEN = "def broken(:\n"


ON_SPARK = ("build", "pkg", "--lake", "l", "--engine", "spark")
# A feature that only Spark writes.
TRACKED = ("--set", "tables.cpg_nodes.write.enable_features=row_tracking")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("command")
    (folder / "pkg").mkdir()
    (folder / "pkg" / "good.py").write_text("x = 1\n")
    (folder / "pkg" / "bad.py").write_text(BROKEN)
    (folder / "repos.txt").write_text("nowhere=missing\n")
    return folder


@pytest.fixture
def ask(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, work: Path) -> RunCommand:
    """Commands in this process: one of its own takes most of a second to start."""
    return command_runner(capfd, monkeypatch, work)


@pytest.fixture(scope="module")
def report(work: Path) -> dict[str, object]:
    """One repository is built, one of the file is not there."""
    flags = ("--lake", "lake", "--repos-file", "repos.txt", "--format", "json", "--until", "extract")
    done = run("--set", "runtime.cores=2", "build", "pkg", *flags, cwd=work)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("engine    local processes\n")
    assert "extract   " in done.stderr
    assert "files" in done.stderr
    report: dict[str, object] = json.loads(done.stdout)
    return report


def test_a_build_prints_its_result_and_not_its_tables(ask: RunCommand) -> None:
    code, out, err = ask("build", "one=pkg", "--lake", "printed", "--types", "off")
    assert code == 0, err
    header, repository, empty, wrote = out.splitlines()
    assert header.split() == ["repository", "status", "files", "failures", "error"]
    assert repository.split()[:3] == ["one", "succeeded", "2"]
    assert empty == ""
    assert re.fullmatch(r"wrote [\d,]+ rows of \d+ tables \(graph: [\d,]+ nodes, [\d,]+ edges\)", wrote)
    assert re.search(r"^run \S+ in [\d.]+ s$", err, re.MULTILINE)


def test_the_report_is_one_object(report: dict[str, object]) -> None:
    assert report["status"] == "failed"
    assert {"run_id", "lake", "repositories", "tables", "errors", "seconds"} < report.keys()
    repositories = report["repositories"]
    assert isinstance(repositories, dict)
    assert {name: each["status"] for name, each in repositories.items()} == {
        "pkg": "succeeded",
        "nowhere": "failed",
    }
    tables = report["tables"]
    assert isinstance(tables, dict)
    assert tables["ast_files_v1"] == {"version": 0, "rows": 2}
    assert set(report["seconds"]) >= {"list", "extract", "extract_commit", "publish", "total"}  # type: ignore[call-overload]


def test_errors_lists_them_with_their_place(ask: RunCommand, work: Path, report: dict[str, object]) -> None:
    done = run("errors", "--lake", "lake", "--format", "table", cwd=work)
    assert done.returncode == 0
    assert "bad.py:1" in done.stdout
    assert "missing" in done.stdout
    answer = json.loads(ask("errors", "--lake", "lake", "--repo-id", "pkg", "--format", "json")[1])
    assert {row["kind"] for row in answer["rows"]} == {
        "ast_files_v1",
        "bytecode_files_v1",
        "libcst_files_v1",
        "symtable_files_v1",
    }
    assert answer["total"] == 4
    assert answer["run_id"] == report["run_id"]
    assert "not shown" in ask("errors", "--lake", "lake", "--limit", "1", "--format", "table")[2]


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
        ((*TRACKED, "build", "pkg", "--lake", "l"), "remove tables.cpg_nodes.write.enable_features"),
        ((*TRACKED, "plan", "pkg", "--lake", "l"), "features that only Spark's writer has"),
        (("build", "pkg", "--lake", "l", "--master", "local[2]"), "set by the environment"),
        ((*ON_SPARK, "--master", "local[0]"), "is no master of Spark"),
        ((*ON_SPARK, "--master", "cluster"), "write local[*], local["),
        ((*ON_SPARK, "--master", "sc://h"), "build from Python: "),
        (
            ("build", "pkg", "--lake", "l", "--engine", "local", "--master", "local[2]"),
            "leave out --master, or add --engine spark",
        ),
        (("--set", "runtime.master=yarn", "plan", "pkg", "--lake", "l"), "--master is for builds on Spark"),
        (("build", "pkg", "--lake", "l", "--engine", "auto"), "'auto' is not one of 'spark', 'local'"),
        (("build", "pkg", "--lake", "l", "--readers", "old"), "'old' is not one of"),
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


def test_a_single_repository_that_is_missing(ask: RunCommand, work: Path) -> None:
    code, _, err = ask("build", "missing", "--lake", "l")
    assert code == 2
    assert "missing" in err
    assert not (work / "l").exists()


def test_the_engine_is_spark_unless_local_is_chosen(
    ask: RunCommand, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan shows it, and needs no session; neither has anything been written."""
    monkeypatch.delenv("CODEANATOMY_RUNTIME__ENGINE")
    command = ("plan", "pkg", "--lake", "new")
    facts = {
        "engine": "spark",
        "master": "local[*]",
        "session_kind": "own",
        "spark_version": version("pyspark"),
        "delta_version": version("delta-spark"),
    }
    code, out, _ = ask(*command, "--format", "json")
    assert (code, json.loads(out)["engine_facts"]) == (0, facts)
    for options, text in [
        ((), f"spark on local[*], Spark {facts['spark_version']}, Delta {facts['delta_version']}"),
        (("--master", "local[2]"), "spark on local[2], Spark "),
        (("--engine", "local"), "local processes"),
    ]:
        code, out, _ = ask(*command, *options)
        assert (code, out.splitlines()[0].startswith(f"engine {text}")) == (0, True), out
    monkeypatch.setenv("CODEANATOMY_RUNTIME__ENGINE", "local")
    assert ask(*command)[1].startswith("engine local processes\n")
    assert ask(*command, "--engine", "spark", "--master", "local[2]")[1].startswith(
        "engine spark on local[2]"
    )
    assert not (work / "new").exists()


def test_the_engine_of_a_run_is_shown(ask: RunCommand, report: dict[str, object]) -> None:
    run_id, lake = str(report["run_id"]), ("--lake", "lake")
    shown = ask("runs", "show", run_id, *lake, "--format", "table")[1]
    assert "engine        local processes" in shown
    facts = {"engine": "local", **dict.fromkeys(("master", "session_kind", "spark_version", "delta_version"))}
    assert (
        json.loads(ask("runs", "show", run_id, *lake, "--format", "json")[1])["line"]["engine_facts"] == facts
    )
    assert "engine of its newest build: local processes" in ask("status", *lake)[2]
    assert json.loads(ask("status", *lake, "--format", "json")[1])["engine_facts"] == facts


def test_a_lake_is_born_for_the_readers_of_the_option(ask: RunCommand, work: Path) -> None:
    for options, readers in [((), "all"), (("--readers", "modern"), "Spark with Delta, codeanatomy without")]:
        lake = ("--lake", f"lake-{len(options)}")
        code, _, err = ask("build", "pkg", *lake, "--until", "extract", "--types", "off", *options)
        assert code == 0, err
        assert f"readers of its tables: {readers}" in ask("status", *lake)[2]
    # An existing lake keeps what it has, and names the command that changes it.
    (work / "pkg" / "more.py").write_text("y = 1\n")
    build = ("build", "pkg", *lake, "--until", "extract", "--types", "off")
    code, _, err = ask(*build, "--readers", "all")
    assert code != 0
    assert "maintain --readers all" in err
    assert ask(*build)[0] == 0
    assert "readers of its tables: Spark with Delta, codeanatomy without" in ask("status", *lake)[2]
    (work / "pkg" / "more.py").unlink()
