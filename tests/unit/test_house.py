"""The rules of the house that a machine can check; CONTRIBUTING.md has the others."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from support.folders import ROOT

PACKAGE = ROOT / "src" / "codeanatomy"
MODULES = sorted(PACKAGE.rglob("*.py"))
LONGEST = 600

# In pieces, so that this file does not contain them.
HOSTS = tuple(
    "".join(pieces)
    for pieces in (
        ("docker", ".io"),
        ("quay", ".io"),
        ("gh", "cr.io"),
        ("g", "cr.io"),
        ("azure", "cr.io"),
        ("j", "frog"),
        ("artifact", "ory"),
        ("nexus", "/repository"),
        ("dev", "pi/"),
        ("pkg", ".dev"),
        ("mirrors", ".aliyun"),
        ("tsing", "hua"),
        ("test", ".pypi"),
        ("index-", "url="),
        ("extra-", "index"),
    )
)
FOLDERS = tuple("/" + name + "/" for name in ("work", "root", "home/[a-z]+", "Users/[A-Za-z]+", "tmp/w"))
MACHINE = re.compile(rf"(?<![\w.}})])({'|'.join(FOLDERS)})")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def own_files() -> Iterator[Path]:
    """The files of the repository: what lies here and is neither ignored nor a tool's hidden folder."""
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text().split()]
    for folder, below, names in os.walk(ROOT):
        below[:] = [
            name for name in below if name == ".ci" or not any(fnmatch(name, p) for p in (".*", *ignored))
        ]
        yield from (
            Path(folder, name) for name in names if not any(fnmatch(name, p) for p in (".git", *ignored))
        )


@pytest.fixture(params=MODULES, ids=name_of)
def module(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_there_are_modules_to_check() -> None:
    assert {"src/codeanatomy/cli/main.py", "src/codeanatomy/delta/write/commit.py"} <= {
        name_of(path) for path in MODULES
    }


def test_no_module_is_too_long(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_a_module_tells_its_design(module: Path) -> None:
    doc = ast.get_docstring(parsed(module))
    assert doc
    assert doc.strip()


def test_named_tests_exist(module: Path) -> None:
    doc = ast.get_docstring(parsed(module)) or ""
    for named in re.findall(r"`(tests/[\w/]+\.py)`", doc):
        assert (ROOT / named).is_file(), f"{name_of(module)} names {named}"


def test_nothing_is_printed(module: Path) -> None:
    assert "print" not in {node.func.id for node in calls(module) if isinstance(node.func, ast.Name)}


def test_only_storage_reads_and_writes_tables(module: Path) -> None:
    if PACKAGE / "storage" not in module.parents:
        assert list(boundary_breaks(parsed(module))) == []


@pytest.mark.parametrize(
    ("code", "broken"),
    [
        ("spark.read.parquet('x')", True),
        ("store.spark.read", True),
        ("session.readStream.load()", True),
        ("rows.write.format('delta').save('x')", True),
        ("rows.write.mode('append')", True),
        ("rows.writeTo('t').append()", True),
        ("rows.writeStream.start()", True),
        ("DeltaTable.forPath(spark, 'x')", True),
        ("from delta.tables import DeltaTable", True),
        ("import delta", True),
        ("table.write.zorder_by", False),
        ("click.echo(table.write.target_file_size)", False),
        ("file.read()", False),
        ("out.write('x')", False),
        ("path.read_text()", False),
    ],
)
def test_the_check_of_the_boundary_sees(code: str, broken: bool) -> None:
    assert bool(list(boundary_breaks(ast.parse(code)))) is broken


# Attributes of our own DeltaWritePolicy end in data; these are what a DataFrameWriter is asked for.
WRITER = {"bucketBy", "csv", "format", "insertInto", "jdbc", "json", "mode", "option", "options", "orc"}
WRITER |= {"parquet", "partitionBy", "save", "saveAsTable", "sortBy", "text"}


def boundary_breaks(tree: ast.AST) -> Iterator[str]:
    """Where code goes to Spark's readers and writers, or to Delta, by itself."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(
                attr="read", value=ast.Name(id="spark" | "session") | ast.Attribute(attr="spark")
            ):
                yield "spark.read"
            case ast.Attribute(attr="readStream" | "writeStream" | "writeTo" as name):
                yield name
            case ast.Attribute(attr=name, value=ast.Attribute(attr="write")) if name in WRITER:
                yield f"write.{name}"
            case ast.Name(id="DeltaTable"):
                yield "DeltaTable"
            case ast.ImportFrom(module=str(name)) if name.split(".")[0] == "delta":
                yield f"from {name}"
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name.split(".")[0] == "delta")


@pytest.mark.parametrize("word", ["utils", "helpers", "common", "manager", "base"])
def test_no_module_has_a_name_that_says_nothing(word: str) -> None:
    assert word not in {path.stem for path in MODULES}


def test_every_table_is_declared_once() -> None:
    """A second place that restates a table is a bug."""
    declared: dict[str, list[str]] = {}
    for path in MODULES:
        for call in calls(path):
            match call:
                case ast.Call(func=ast.Name(id="Table"), args=[ast.Constant(value=str(name)), *_]):
                    declared.setdefault(name, []).append(name_of(path))
    assert declared
    assert {name: places for name, places in declared.items() if len(places) > 1} == {}


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    files = list(own_files())
    assert {"Makefile", ".ci/run", "docs/tables.md", "tests/unit/test_house.py"} <= {
        name_of(path) for path in files
    }
    found = []
    for path in files:
        text = path.read_bytes().decode("utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            hosts = [host for host in HOSTS if host in line]
            if hosts or MACHINE.search(line):
                found.append(f"{name_of(path)}:{number}: {line.strip()[:120]}")
    assert found == []


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("see " + "/wo" + "rk/shared", True),
        ("'" + "/ro" + "ot/.cache'", True),
        ("/ho" + "me/me/x", True),
        ("src/wo" + "rk/x", False),
        ("{tmp}" + "/wo" + "rk/x", False),
        ("/usr/bin/java", False),
    ],
)
def test_the_check_of_paths_sees(line: str, known: bool) -> None:
    assert bool(MACHINE.search(line)) is known


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def calls(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
