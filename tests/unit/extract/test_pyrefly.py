"""The type checker on small programs; as a task: `test_tool_tasks.py`; in builds: `test_pyrefly_build.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.evidence import SkippedSteps
from codeanatomy.extract.tools.pyrefly import CheckResult, check_with_pyrefly
from codeanatomy.extract.tools.tool_tasks import tool_chunks
from codeanatomy.extract.type_checker_files import TYPES, TypesPartition, extract_types
from codeanatomy.pipeline.tools import tool_tasks
from codeanatomy.plan.build_request import ScipChoice
from codeanatomy.sources.detect import list_source
from support.folders import write_sources
from support.typed_program import PROGRAM

Json = dict[str, Any]
NOTHING_SILENCED: SkippedSteps = {}


def checked_rows(folder: Path) -> dict[str, Json]:
    """The rows of a folder, made without a child process and without Spark."""
    options = ExtractOptions()
    (task,) = tool_tasks({"r": list_source(folder, options)}, "auto", ScipChoice())
    rows = {}
    for chunk in tool_chunks(task, options):
        assert isinstance(chunk, TypesPartition)
        assert chunk.problems == ()
        for row in extract_types(chunk, options, NOTHING_SILENCED, _nothing):
            rows[row["file"]["path"]] = row[TYPES]
    return rows


def _nothing(file: int, step: int) -> None:
    pass


def calls(row: Json, text: str) -> dict[str, set[tuple[str, str | None]]]:
    """By the source text that calls: form and target."""
    cells = row["call_targets"]
    found: dict[str, set[tuple[str, str | None]]] = {}
    for place, form in enumerate(cells["call_form"]):
        at = slice(cells["call_bstart"][place], cells["call_bend"][place])
        target = form, cells["target_name"][place]
        found.setdefault(text.encode()[at].decode(), set()).add(target)
    return found


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Json]:
    folder = tmp_path_factory.mktemp("program")
    return checked_rows(write_sources(folder / "source", PROGRAM))


def test_calls_through_attributes_of_instances(program: dict[str, Json]) -> None:
    row = program["src/shop/use.py"]
    found = calls(row, PROGRAM["src/shop/use.py"])
    assert found["self.base.run()"] == {("call", "shop.base.Base.run")}
    assert found["é.strip()"] == {("call", "builtins.str.strip")}
    assert found["self.base.size"] == {("property", "shop.base.Base.size")}
    assert found["Child(path)"] == {("init", "shop.base.Base.__init__")}
    assert found["inner()"] == {("call", "shop.use.outer.inner")}
    assert ("iteration", "shop.use.Holder.__iter__") in found["holder"]
    assert ("argument", "shop.use.outer.inner") in found["map(inner, [])"]
    assert ("reference", "shop.use.outer.inner") in found["inner"]
    cells = row["call_targets"]
    (place,) = (n for n, name in enumerate(cells["target_name"]) if name == "shop.base.Base.__init__")
    at = slice(cells["target_bstart"][place], cells["target_bend"][place])
    assert PROGRAM[cells["target_path"][place]].encode()[at] == b"__init__"
    assert cells["receiver_class"][place] == "shop.base.Child"


def test_what_others_return(program: dict[str, Json]) -> None:
    found = calls(program["src/shop/base.py"], PROGRAM["src/shop/base.py"])
    assert found['os.path.join("a", "b")'] == {("call", "posixpath.join")}
    assert found['os.path.join("a", "b").upper()'] == {("call", "builtins.str.upper")}
    assert found["self.path.stat()"] == {("call", "pathlib.Path.stat")}
    assert found["super().run()"] == {("call", "shop.base.Base.run")}


def test_modules_are_found_below_src_and_without_a_name(program: dict[str, Json]) -> None:
    assert calls(program["script.py"], PROGRAM["script.py"])["u.outer('x')"] == {("call", "shop.use.outer")}
    row = program["odd-name.py"]
    assert calls(row, PROGRAM["odd-name.py"])["g()"] == {("call", "odd-name.g")}
    assert row["call_targets"]["target_path"] == ["odd-name.py"]


def test_receivers_have_classes(program: dict[str, Json]) -> None:
    types, text = program["src/shop/use.py"]["expression_types"], PROGRAM["src/shop/use.py"].encode()
    spans = zip(types["bstart"], types["bend"], types["class_names"], strict=True)
    known = {text[bstart:bend].decode(): names for bstart, bend, names in spans}
    assert (known["self.base"], known["holder"]) == (["shop.base.Base"], ["shop.use.Holder"])


def test_the_unresolved_is_told(program: dict[str, Json]) -> None:
    cells = program["src/shop/use.py"]["unresolved_calls"]
    text = PROGRAM["src/shop/use.py"].encode()
    spans = zip(cells["call_bstart"], cells["call_bend"], cells["reason"], strict=True)
    found = {text[bstart:bend].decode(): reason for bstart, bend, reason in spans}
    assert found["unknown(each)"] == "UnexpectedPyreflyTarget"


@pytest.mark.system
def test_same_bytes_same_rows(program: dict[str, Json], tmp_path: Path) -> None:
    assert checked_rows(write_sources(tmp_path / "again", PROGRAM)) == program


@pytest.mark.system
def test_the_project_does_not_steer_it(
    program: dict[str, Json], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does the environment; and no Python is asked."""
    note, commands = tmp_path / "note", tmp_path / "commands"
    commands.mkdir()
    for name in ("python", "python3", "conda", "git"):
        (commands / name).write_text(f"#!/bin/sh\necho {name} >> {note}\n")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYREFLY_CONFIG", str(tmp_path / "nowhere.toml"))
    steering = {
        "pyproject.toml": "[tool.pyrefly]\nreplace-imports-with-any = ['shop.*']\n",
        "pyrefly.toml": "project-excludes = ['**']\n",
        ".gitignore": "",
    }
    source = write_sources(tmp_path / "source", PROGRAM | steering)
    before = sorted(source.rglob("*"))
    assert checked_rows(source) == program
    assert sorted(source.rglob("*")) == before
    assert not note.exists()


@pytest.mark.system
def test_files_that_are_hard_to_read(tmp_path: Path) -> None:
    broken = "def f(:\n  pass\nopen('x')\n"
    source = write_sources(tmp_path / "source", {"good.py": "open('x')\n", "broken.py": broken})
    (source / "latin.py").write_bytes("# coding: latin-1\nname = 'é'\n".encode("latin-1"))
    (source / "bom.py").write_bytes(b"\xef\xbb\xbfopen('x')\r\n\x0copen('y')\n")
    (source / "deep.py").write_text("x = " + "(" * 20_000 + ")" * 20_000 + "\n")
    found = checked_rows(source)
    assert found["latin.py"]["errors"]["error_type"] == ["undecodable"]
    assert found["bom.py"]["call_targets"]["call_bstart"] == [0, 12]
    assert found["broken.py"]["call_targets"]["target_name"] == ["builtins.open"]
    assert found["deep.py"]["errors"]["error_type"] == []
    assert found["good.py"]["witness_version"].startswith("pyrefly 1.")


class Impostor:
    """A tool of ours in its place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.command = folder / "impostor"
        self.source = write_sources(folder / "source", {"a.py": "x = 1\n"})

    def checked(self, script: str, seconds: float = 20, files: Sequence[str] = ("a.py",)) -> CheckResult:
        self.command.write_text(f"#!{sys.executable}\nimport sys, time\nfrom pathlib import Path\n{script}\n")
        self.command.chmod(0o755)
        work = self.folder / "work"
        work.mkdir()
        return check_with_pyrefly(self.command, self.source, files, work, seconds)


@pytest.fixture
def impostor(tmp_path: Path) -> Impostor:
    return Impostor(tmp_path)


@pytest.mark.parametrize(
    ("script", "error", "said"),
    [
        ("print('panicked'); sys.exit(101)", "checker_failed", "ended with code 101: panicked"),
        ("import os; os.abort()", "checker_failed", "ended with code -6"),
        ("sys.exit(0)", "checker_failed", "ended with code 0"),
    ],
)
def test_a_crash_is_a_problem(impostor: Impostor, script: str, error: str, said: str) -> None:
    (problem,) = impostor.checked(script).problems
    assert problem.error_type == error
    assert said in problem.message


# Crashes on a file with the word "deep", and writes how often it has checked.
CRASHING = """
if "check" in sys.argv:
    with open(Path(__file__).parent / "runs", "a") as runs:
        runs.write("x")
    if any("deep" in path.read_text() for path in Path("tree").rglob("*.py")):
        import os; os.abort()
    report = Path(sys.argv[sys.argv.index("--report-pysa") + 1])
    report.mkdir()
    (report / "pyrefly.pysa.json").write_text('{"format_version": 1, "modules": {}}')
"""


def test_files_that_it_crashes_on_are_left_out(impostor: Impostor) -> None:
    texts = {f"m{number:02}.py": "x = 1\n" for number in range(16)}
    write_sources(impostor.source, texts | {"m03.py": "deep\n", "m11.py": "deep\n"})
    checked = impostor.checked(CRASHING, files=list(texts))
    assert checked.problems == ()
    assert sorted(checked.left_out) == ["m03.py", "m11.py"]
    # Three of all files, and for each of the two as often as the files can be halved.
    assert len((impostor.folder / "runs").read_text()) == 3 + 2 * 4


@pytest.mark.system
def test_a_file_that_is_nested_too_deeply_costs_no_evidence_of_others(tmp_path: Path) -> None:
    deep = "x = " + "-" * 200_000 + "1\n"
    found = checked_rows(write_sources(tmp_path / "source", {"good.py": "open('x')\n", "deep.py": deep}))
    assert found["good.py"]["call_targets"]["target_name"] == ["builtins.open"]
    assert found["deep.py"]["errors"]["error_type"] == ["checker_failed"]
    assert "call_targets" not in found["deep.py"]


def test_another_format_is_a_problem(impostor: Impostor) -> None:
    report = "report = Path(sys.argv[sys.argv.index('--report-pysa') + 1])"
    write_it = "report.mkdir(); (report / 'pyrefly.pysa.json').write_text('{\"format_version\": 7}')"
    (problem,) = impostor.checked(f"if 'check' in sys.argv:\n  {report}\n  {write_it}").problems
    assert problem.error_type == "unknown_format"


def test_time_is_limited(impostor: Impostor) -> None:
    (problem,) = impostor.checked("time.sleep(60 * ('check' in sys.argv))", 1).problems
    assert problem.error_type == "time_limit"


def test_a_tool_that_cannot_be_run_is_a_problem(impostor: Impostor) -> None:
    work = impostor.folder / "work"
    work.mkdir()
    checked = check_with_pyrefly(impostor.folder / "nowhere", impostor.source, ["a.py"], work, 5)
    assert [problem.error_type for problem in checked.problems] == ["checker_failed"]
