"""Running scip-python: the real one on traps, and impostors for the ways in which it can fail."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from codeanatomy.config import SCIP_VARIABLE
from codeanatomy.extract.scip.documents import document_cells
from codeanatomy.extract.scip.index_file import IndexScan, read_document, scan_index
from codeanatomy.extract.scip.schema import Document, Index, Metadata
from codeanatomy.extract.tools import scip_python
from codeanatomy.extract.tools.external_tool import ToolExit, run_limited
from codeanatomy.extract.tools.scip_python import (
    MAX_LEFT_OUT,
    IndexResult,
    find_scip_python,
    index_with_scip_python,
)
from codeanatomy.sources.source_file import Source, decode
from support import scip_tool

SOURCES: dict[str, bytes] = {
    "plain.py": b"import crlf\n\ndef f(a):\n    return a\n\nname = f(crlf.one)\n",
    "wide.py": 'x = "é"; name = 1\ny = "😀😀"; other = name; naïve = other\n'.encode(),
    "crlf.py": b"one = 1\r\ntwo = one\r\n",
    "cr.py": b"one = 1\rtwo = one\rthree = two\r",
    "feeds.py": 'a = "\x0c\u2028\x0b\x85"; b = a\n# \u2028 \x0c\nc = b\n\x0cd = c\n'.encode(),
    "mark.py": b"\xef\xbb\xbffirst = 1; second = first\nthird = second\n",
    "latin.py": "# coding: latin-1\ne = 'é'; after = 1\nname = 2\nother = name\n".encode("latin-1"),
    "empty.py": b"",
    "comment.py": b"# nothing",
    "broken.py": b"def (:\n",
    "python2.py": b"name = 1\nprint name\n",
    "src/pkg/__init__.py": b"",
    "src/pkg/inside.py": b"def g():\n    return 1\n",
    ".hidden/user.py": b"from pkg.inside import g\ng()\n",
    "stub.pyi": b"def h(a: int) -> str: ...\n",
}


def put(folder: Path, files: Mapping[str, bytes]) -> Path:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its bytes and time of change."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def traps(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, IndexScan]:
    work = tmp_path_factory.mktemp("traps")
    assert scip_tool.run(put(work / "tree", SOURCES), work / "index.scip", "traps") == IndexResult("indexed")
    return work / "index.scip", scan_index(work / "index.scip")


def occurrences(traps: tuple[Path, IndexScan], path: str) -> tuple[Source, Any]:
    index, frames = traps
    source = decode(path, SOURCES[path])
    assert isinstance(source, Source)
    frame = next(frame for frame in frames.documents if frame.path == path)
    return source, document_cells(read_document(index, frame), source, frames.dialect, {})


def test_every_file_is_a_document(traps: tuple[Path, IndexScan]) -> None:
    assert {frame.path for frame in traps[1].documents} == set(SOURCES)
    assert traps[1].problems == ()


@pytest.mark.parametrize("path", sorted(set(SOURCES) - {"latin.py"}))
def test_the_text_below_each_span_is_the_name(traps: tuple[Path, IndexScan], path: str) -> None:
    source, said = occurrences(traps, path)
    assert said.problems == ()
    seen = said.cells["occurrences"]
    names = set()
    for symbol, start, end in zip(seen["symbol"], seen["bstart"], seen["bend"], strict=True):
        text = source.utf8[start:end].decode()
        last = re.search(r"`?([^`/#.:()]+)`?[/#.:()]*$", symbol)
        assert last
        if last[1] != "__init__":
            assert text == last[1], symbol
            names.add(text)
        else:
            assert text in {"", "crlf", "pkg.inside"}
    assigned = set(re.findall(r"(\w+) = ", source.text)) if path not in {"broken.py", "python2.py"} else set()
    assert assigned <= names


def test_of_a_file_in_latin_1_only_ascii_lines_have_spans(traps: tuple[Path, IndexScan]) -> None:
    source, said = occurrences(traps, "latin.py")
    seen = said.cells["occurrences"]
    placed = [
        (line, source.utf8[start:end].decode())
        for line, start, end in zip(seen["start_line"], seen["bstart"], seen["bend"], strict=True)
        if start is not None
    ]
    assert placed == [(0, ""), (2, "name"), (3, "other"), (3, "name")]
    assert [problem.message for problem in said.problems] == [
        "2 ranges cannot be placed in the file, the first: [1, 0, 1, 1]"
    ]


def test_folders_named_src_are_roots_of_imports(traps: tuple[Path, IndexScan]) -> None:
    _, inside = occurrences(traps, "src/pkg/inside.py")
    _, user = occurrences(traps, ".hidden/user.py")
    symbol = "scip-python python traps 0 `pkg.inside`/g()."
    assert inside.cells["occurrences"]["symbol"][-1] == symbol
    assert user.cells["occurrences"]["symbol"].count(symbol) == 2


def test_it_runs_nothing_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is run or imported below leaves a mark; modules, commands, configurations."""
    marks = tmp_path / "marks"
    marks.mkdir()
    trap = "import pathlib\npathlib.Path({!r}).touch()\nvalue = 1\n"
    modules = (
        "json",
        "os",
        "sys",
        "site",
        "sitecustomize",
        "usercustomize",
        "setup",
        "conftest",
        "pkg/__init__",
    )
    files = {f"{name}.py": trap.format(str(marks / name.replace("/", "-"))).encode() for name in modules}
    files["pyproject.toml"] = b'[project]\nname = "other"\nversion = "9"\n[tool.pyright]\nexclude = ["**"]\n'
    files["pyrightconfig.json"] = b'{"exclude": ["**"], "venvPath": ".", "venv": "venv"}'
    tree = put(tmp_path / "tree", files)
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ("python", "python3", "pip", "pip3", "git", "npm"):
        (commands / name).write_text(f"#!/bin/sh\ntouch {marks}/{name}\n")
        (commands / name).chmod(0o755)
    (tmp_path / "home").mkdir()
    scip_tool.installed()
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(tree))
    before = contents(tree)
    assert scip_tool.run(tree, tmp_path / "out" / "index.scip", "traps") == IndexResult("indexed")
    assert list(marks.iterdir()) == []
    assert contents(tree) == before
    assert list((tmp_path / "home").iterdir()) == []
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["index.scip"]
    frames = scan_index(tmp_path / "out" / "index.scip")
    assert {frame.path for frame in frames.documents} == {name for name in files if name.endswith(".py")}
    assert (frames.dialect.package, frames.dialect.package_version) == ("scip-python python traps ", "0")


@pytest.mark.system
def test_the_same_sources_give_the_same_bytes(tmp_path: Path, traps: tuple[Path, IndexScan]) -> None:
    again = put(tmp_path / "somewhere" / "else", SOURCES)
    assert scip_tool.run(again, tmp_path / "index.scip", "traps") == IndexResult("indexed")
    assert (tmp_path / "index.scip").read_bytes() == traps[0].read_bytes()


def test_the_lock_names_no_place_to_fetch_from() -> None:
    pinned = json.loads((scip_tool.PINS / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in pinned["packages"].items() if name}
    assert packages["node_modules/@sourcegraph/scip-python"]["version"] == "0.6.6"
    assert all("integrity" in entry and "resolved" not in entry for entry in packages.values())


# Impostors

DOCUMENTS = [
    Index(metadata=Metadata(project_root="file:///x")),
    Index(documents=[Document(relative_path="a.py")]),
]
WHOLE = b"".join(part.SerializeToString() for part in DOCUMENTS)
IMPOSTOR = """
import json, os, pathlib, subprocess, sys, time
options = dict(zip(sys.argv[2::2], sys.argv[3::2]))
tree, output = pathlib.Path(options["--cwd"]), pathlib.Path(options["--output"])
config = json.loads((tree / "scip-pyrightconfig.json").read_text())
note = pathlib.Path(os.environ["NOTE"])
with note.open("a") as file:
    seen = sys.argv[1:], config, os.environ["NODE_OPTIONS"], sorted(os.listdir(tree))
    file.write(json.dumps(seen) + "\\n")

def fail_on(*names):
    for name in names:
        if (tree / name).exists():
            output.write_bytes(whole)
            print("(12:00:00) Parse and emit SCIP", "", "", "Experienced Fatal Error: {", sep="\\n")
            print(f"  currentFilepath: '{tree / name}',\\n  error: TypeError: no\\n      at x")
            sys.exit(1)
"""


PATHS = ("a.py", "b.py", "sub/c.py", "data.txt", "../escapes.py", "/absolute.py")


class Impostor:
    """A command that is taken for scip-python."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.command = folder / "impostor"
        self.note = folder / "note"
        self.output = folder / "made" / "index.scip"
        self.tree = put(folder / "tree", {"a.py": b"", "b.py": b"", "sub/c.py": b"", "data.txt": b""})
        monkeypatch.setenv(SCIP_VARIABLE, str(self.command))
        monkeypatch.setenv("NOTE", str(self.note))

    def run(self, program: str, seconds: float = 60, paths: Iterable[str] = PATHS) -> IndexResult:
        self.command.write_text(f"#!{sys.executable}\nwhole = {WHOLE!r}\n{IMPOSTOR}\n{program}")
        self.command.chmod(0o755)
        return index_with_scip_python(self.tree, paths, self.output, "project", seconds)

    def runs(self) -> list[Any]:
        return [json.loads(line) for line in self.note.read_text().splitlines()]


@pytest.fixture
def impostor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Impostor:
    return Impostor(tmp_path, monkeypatch)


def said(made: IndexResult) -> list[tuple[str, str]]:
    return [(problem.error_type, problem.message) for problem in made.problems]


def test_what_it_is_asked(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_OPTIONS", "--no-warnings")
    assert impostor.run("output.write_bytes(whole)") == IndexResult("indexed")
    (arguments, config, node, linked) = impostor.runs()[0]
    assert arguments[0] == "index"
    assert arguments[arguments.index("--project-version") + 1] == "0"
    assert config["exclude"] == ["scip-pyrightconfig.json"]
    assert re.fullmatch(r"--no-warnings --max-old-space-size=\d+", node)
    assert linked == ["a.py", "b.py", "scip-pyrightconfig.json", "sub"]
    assert scan_index(impostor.output).documents[0].path == "a.py"
    assert b"file:///" not in impostor.output.read_bytes()
    monkeypatch.setenv("NODE_OPTIONS", "--max-old-space-size=99")
    impostor.run("output.write_bytes(whole)")
    assert impostor.runs()[1][2] == "--max-old-space-size=99"


def test_a_package_named_src_is_no_root(impostor: Impostor) -> None:
    paths = ["a/src/x/y.py", "b/src/__init__.py", "b/src/z.py", "src/pkg/src/c.py", "resrc/d.py"]
    put(impostor.tree, dict.fromkeys(paths, b""))
    impostor.run("output.write_bytes(whole)", paths=[*paths, "src/gone.py"])
    assert impostor.runs()[0][1]["extraPaths"] == ["a/src", "src", "src/pkg/src"]


def test_no_sources_and_no_index(impostor: Impostor) -> None:
    made = impostor.run("", paths=[])
    assert (made.status, said(made)) == ("failed", [("indexer_failed", "the indexer wrote no index")])
    assert impostor.run("output.write_bytes(b'')", paths=[]) == IndexResult("indexed")
    real = str(scip_tool.installed())
    assert impostor.run(f"os.execv({real!r}, [{real!r}, *sys.argv[1:]])", paths=[]) == IndexResult("indexed")
    assert (scan_index(impostor.output).documents, scan_index(impostor.output).problems) == ((), ())


def test_a_file_on_which_it_fails_is_left_out(impostor: Impostor) -> None:
    made = impostor.run("fail_on('sub/c.py', 'b.py')\noutput.write_bytes(whole)")
    assert made.status == "indexed"
    assert said(made) == [
        ("indexer_failed", "the indexer fails on sub/c.py: TypeError: no"),
        ("indexer_failed", "the indexer fails on b.py: TypeError: no"),
    ]
    assert ["b.py" in run[3] for run in impostor.runs()] == [True, True, False]


@pytest.mark.system
def test_the_real_indexer_goes_on_without_it(impostor: Impostor) -> None:
    put(impostor.tree, {"a.py": b"import b\nb.f()\n", "b.py": b"def f(): pass\n"})
    real = str(scip_tool.installed())
    made = impostor.run(f"fail_on('b.py')\nos.execv({real!r}, [{real!r}, *sys.argv[1:]])")
    assert (made.status, len(made.problems)) == ("indexed", 1)
    assert [frame.path for frame in scan_index(impostor.output).documents] == ["a.py", "sub/c.py"]


def test_after_some_files_the_partial_index_is_kept(impostor: Impostor) -> None:
    names = [f"{number}.py" for number in range(MAX_LEFT_OUT + 3)]
    put(impostor.tree, dict.fromkeys(names, b""))
    made = impostor.run(f"fail_on(*{names})", paths=names)
    assert (made.status, len(made.problems)) == ("partial", MAX_LEFT_OUT + 1)
    assert [frame.path for frame in scan_index(impostor.output).documents] == ["a.py"]


def test_a_file_that_it_was_not_given_is_not_believed(impostor: Impostor) -> None:
    for path in (
        "/etc/passwd",
        "{tree}/../environment.json",
        "{tree}/scip-pyrightconfig.json",
        "{tree}/x.py",
    ):
        impostor.note.unlink(missing_ok=True)
        made = impostor.run(f"print(f\"  currentFilepath: '{path}',\")\nsys.exit(1)")
        assert (made.status, len(impostor.runs())) == ("failed", 1)


def test_it_is_not_repeated_when_there_is_no_time(
    impostor: Impostor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run takes as long as the last one, which is taken to have lasted longer than is left."""

    def run_for_long(*arguments: Any) -> ToolExit:
        return replace(run_limited(*arguments), seconds=61.0)

    monkeypatch.setattr(scip_python, "run_limited", run_for_long)
    made = impostor.run("fail_on('a.py')\noutput.write_bytes(whole)", seconds=60)
    assert (made.status, len(impostor.runs())) == ("partial", 1)


def test_what_it_says_at_the_end_is_told(impostor: Impostor) -> None:
    made = impostor.run("print(*range(9), sep='\\n', flush=True)\nsys.exit('heap out of memory')")
    assert made.status == "failed"
    assert said(made) == [("indexer_failed", "the indexer ended with code 1: 5\n6\n7\n8\nheap out of memory")]
    assert not impostor.output.exists()


def test_at_the_time_limit_all_of_it_ends(impostor: Impostor) -> None:
    """The child would have ended, too, but only later."""
    program = """
output.write_bytes(whole + b"\\x12\\x05cut")
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
note.write_text(str(child.pid))
time.sleep(60)
"""
    begun = time.monotonic()
    made = impostor.run(program, seconds=2)
    assert time.monotonic() - begun < 20
    assert (made.status, said(made)) == ("partial", [("time_limit", "the indexer was ended after 2 s")])
    assert ended(int(impostor.note.read_text()))
    assert [frame.path for frame in scan_index(impostor.output).documents] == ["a.py"]


def ended(pid: int) -> bool:
    """Gone, or waiting for whoever adopted it to take note."""
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


def test_without_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SCIP_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_scip_python() is None
    made = index_with_scip_python(tmp_path, [], tmp_path / "index.scip", "p", 1)
    assert (made.status, made.problems[0].error_type) == ("missing_tool", "missing_tool")
    (tmp_path / "scip-python").write_text("#!/nowhere/node\n")
    (tmp_path / "scip-python").chmod(0o755)
    assert find_scip_python() == tmp_path / "scip-python"
    made = index_with_scip_python(tmp_path, [], tmp_path / "index.scip", "p", 1)
    assert made.status == "failed"
    assert "No such file or directory" in made.problems[0].message
