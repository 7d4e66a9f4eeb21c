"""The rules of the house that a machine can check; CONTRIBUTING.md has the others."""

from __future__ import annotations

import ast
import io
import os
import re
import tokenize
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from support.folders import ROOT

PACKAGE = ROOT / "src" / "codeanatomy"
MODULES = sorted(PACKAGE.rglob("*.py"))
FOLDERS_OF_SOURCE = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)
LONGEST = 800
MOST_MODULES = 16
# In identifiers, as one of the parts between underscores.
BANNED_NAMES = frozenset(
    re.findall(
        r"\w+",
        "told tell tells said say says heard hear hears asked found thing things nobody somebody mend mended "
        "word words kin whose",
    )
)
# In comments, docstrings, messages and pages.
BANNED_TEXT = re.compile(
    r"\b(told|tells?|said|says?|heard|hears?|asked|asks|things?|nobody|somebody|anybody|whoever|mend(s|ed)?)\b",
    re.IGNORECASE,
)
# Texts that are stored in tables or belong to other projects: they stay as they are.
STORED_TEXTS: dict[str, tuple[str, ...]] = {
    "src/codeanatomy/normalize/span_errors.py": ("nobody tells in which unit the columns count",),
    "src/codeanatomy/relate/witnesses/agreement.py": ("found {ours}, {witness} says",),
}
# Methods of Python's own interfaces.
PYTHON_NAMES = frozenset({"tell"})

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


def test_there_are_modules_to_check() -> None:
    assert {"src/codeanatomy/cli/main.py", "src/codeanatomy/delta/write/commit.py"} <= {
        name_of(path) for path in MODULES
    }


def test_every_module_has_a_docstring_and_names_tests_that_exist() -> None:
    for path in MODULES:
        doc = ast.get_docstring(parsed(path)) or ""
        assert doc.strip(), name_of(path)
        for named in re.findall(r"`(tests/[\w/]+\.py)`", doc):
            assert (ROOT / named).is_file(), f"{name_of(path)} names {named}"


def test_no_module_is_longer_than_one_concept_needs() -> None:
    long = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: lines for name, lines in long.items() if lines > LONGEST} == {}


def test_a_folder_has_few_modules() -> None:
    for folder in FOLDERS_OF_SOURCE:
        modules = [path for path in folder.glob("*.py") if not path.name.startswith("__")]
        assert len(modules) <= MOST_MODULES, name_of(folder)


def test_a_package_docstring_lists_the_modules_of_its_folder() -> None:
    for folder in FOLDERS_OF_SOURCE:
        doc = ast.get_docstring(parsed(folder / "__init__.py")) or ""
        listed = set(re.findall(r"^(?: {4})?(\w+)/? {2,}\S", doc, re.MULTILINE))
        modules = {path.stem for path in folder.glob("*.py") if not path.name.startswith("__")}
        packages = {path.parent.name for path in folder.glob("*/__init__.py")}
        assert listed == modules | packages, f"the docstring of {name_of(folder)}/__init__.py"


def test_a_class_name_has_one_meaning() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name_of(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_names_are_words_of_the_field() -> None:
    """The words that docs/glossary.md and the style guide replace; see BANNED_NAMES and BANNED_TEXT."""
    found = [f"{name_of(path)}:{line}: {text}" for path in MODULES for line, text in banned_words(path)]
    assert found == []


def test_pages_use_words_of_the_field() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = [
        f"{name_of(path)}:{number}: {line.strip()[:100]}"
        for path in pages
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if BANNED_TEXT.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "is_banned"),
    [
        ("def refusals_told(): ...", True),
        ("found = 1", True),
        ("x = 'nobody has it'", True),
        ("# what the log says", True),
        ("founded = 1", False),
        ("x = keyword", False),
        ("'the rows that were found'", False),
    ],
)
def test_the_check_of_words_sees(code: str, is_banned: bool, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(code + "\n", encoding="utf-8")
    assert bool(list(banned_words(path))) is is_banned


def banned_words(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of identifiers, comments and strings that use a banned word."""
    stored = STORED_TEXTS.get(name_of(path) if path.is_relative_to(ROOT) else "", ())
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.NAME:
            if token.string not in PYTHON_NAMES and BANNED_NAMES & set(
                token.string.lower().strip("_").split("_")
            ):
                yield token.start[0], token.string
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            for number, line in enumerate(token.string.split("\n"), token.start[0]):
                if BANNED_TEXT.search(line) and not any(text in line for text in stored):
                    yield number, line.strip()[:100]


def test_nothing_is_printed() -> None:
    for path in MODULES:
        names = {node.func.id for node in calls(path) if isinstance(node.func, ast.Name)}
        assert "print" not in names, name_of(path)


def test_only_the_delta_boundary_reads_and_writes_tables() -> None:
    """`maintain` optimizes and `lake` vacuums the lease; everyone else goes through `delta`."""
    inside = [PACKAGE / name for name in ("delta", "lake", "maintain", "spark")]
    for path in MODULES:
        if not any(folder in path.parents for folder in inside):
            assert list(boundary_breaks(parsed(path))) == [], name_of(path)


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


def test_no_module_has_a_name_without_meaning() -> None:
    names = {path.stem for path in MODULES}
    assert names.isdisjoint({"utils", "helpers", "common", "manager", "base"})
    assert not {name for name in names if name.endswith("_more")}


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
