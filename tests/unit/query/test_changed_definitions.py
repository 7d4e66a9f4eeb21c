"""The definitions that differ from a commit, in copies of what the lake was built from."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from codeanatomy.errors import UsageError
from codeanatomy.query.diff.changed_definitions import ChangedSymbols, changed_symbols, differing_lines
from codeanatomy.query.engines.light import LightReader
from codeanatomy.query.verbs.impact import impact
from support.ask_lake import SOURCES, reader_of

VALUES = "shop/paths/values.py"
LIMITS = "shop/paths/limits.py"


@pytest.fixture(scope="module")
def reader(ask_lake: Path) -> LightReader:
    return reader_of(ask_lake)


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the lake, committed; no test changes them."""
    folder = tmp_path_factory.mktemp("committed") / "shop"
    shutil.copytree(SOURCES / "shop", folder)
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder)
    return folder


@pytest.fixture
def source(committed: Path, tmp_path: Path) -> Path:
    """A copy of them, to be changed."""
    return shutil.copytree(committed, tmp_path / "work" / "shop")


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def commit(folder: Path) -> None:
    git(folder, "add", "--all", ".")
    git(folder, "commit", "--quiet", "--message", "More")


def edit(folder: Path, path: str, old: str, new: str) -> None:
    text = (folder / path).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (folder / path).write_text(text.replace(old, new), encoding="utf-8")


def names(changes: ChangedSymbols) -> list[tuple[str, str]]:
    return [(symbol.symbol, symbol.kind) for symbol in changes.symbols]


def test_nothing_differs(reader: LightReader, committed: Path) -> None:
    changes = changed_symbols(reader, committed, "main", repo_id="shop")
    assert changes.symbols == ()
    assert changes.notes == (
        "main and the work tree: 0 files differ",
        "no definition in the lake differs",
    )


def test_the_lake_was_built_before_the_change(reader: LightReader, source: Path) -> None:
    edit(source, VALUES, "LIMIT = 3\n", "# More of them.\n\nLIMIT = 4\n")
    edit(source, VALUES, "return keep(self.item)", "return keep(self.item or 0)")
    changes = changed_symbols(reader, source, "HEAD", repo_id="shop")
    assert names(changes) == [
        ("shop.paths.values.LIMIT", "BINDING"),
        ("shop.paths.values.Shelf.show", "FUNCTION"),
    ]
    assert changes.notes == (
        "HEAD and the work tree: 1 files differ",
        f"the lake has {VALUES} as of HEAD: line numbers are of that version",
    )
    found = impact(reader, changes.symbols, notes=changes.notes)
    assert {row[0] for row in reader.rows(found.query)} >= {
        "shop.paths.values.bounded",
        "tests.test_paths.test_twice",
    }
    nearest = "tests that reach it: 1, the nearest: tests.test_paths.test_twice (depth 2)"
    assert found.notes == (*changes.notes, nearest)


def test_a_function_that_is_a_whole_file(reader: LightReader, source: Path) -> None:
    edit(source, "shop/ends/whole.py", "return paper.fold()", "return paper.fold(1)")
    changes = changed_symbols(reader, source, "HEAD", repo_id="shop")
    assert names(changes) == [("shop.ends.whole.wrap", "FUNCTION")]


def test_the_lake_was_built_after_the_change(reader: LightReader, source: Path) -> None:
    edit(source, VALUES, "def give(amount):\n    copied = amount\n", "def give(amount):\n")
    edit(source, LIMITS, "@marked\n", "@marked\n@marked\n")
    commit(source)
    for path in (VALUES, LIMITS):
        shutil.copy(SOURCES / "shop" / path, source / path)
    changes = changed_symbols(reader, source, "main", repo_id="shop")
    assert names(changes) == [
        ("shop.paths.limits.twice", "FUNCTION"),
        ("shop.paths.values.give", "FUNCTION"),
    ]
    assert changes.notes == ("main and the work tree: 2 files differ",)


def test_between_two_commits(reader: LightReader, source: Path) -> None:
    edit(source, LIMITS, "    return function\n", "    return function or None\n")
    commit(source)
    edit(source, VALUES, "LIMIT = 3", "LIMIT = 5")
    for typed in ("HEAD~1..HEAD", "HEAD~1.."):
        changes = changed_symbols(reader, source, typed, repo_id="shop")
        assert names(changes) == [("shop.paths.limits.marked", "FUNCTION")]
    with pytest.raises(UsageError, match="merge base"):
        changed_symbols(reader, source, "HEAD~1...main", repo_id="shop")


def test_comments_docstrings_and_blank_lines_of_a_module_do_not_count(
    reader: LightReader, source: Path
) -> None:
    edit(source, LIMITS, "a decorator.", "a decorator, too.")
    edit(source, LIMITS, "\n\ndef marked", "\n# Nothing.\n\ndef marked")
    changes = changed_symbols(reader, source, "main", repo_id="shop")
    assert names(changes) == []


def test_an_import_is_the_name_it_binds(reader: LightReader, source: Path) -> None:
    edit(source, LIMITS, "from shop.paths import values\n", "from shop.paths import values as values\n")
    changes = changed_symbols(reader, source, "main", repo_id="shop")
    assert names(changes) == [("shop.paths.limits.values", "BINDING")]


def test_files_that_are_new_or_gone(reader: LightReader, source: Path) -> None:
    (source / "shop" / "extra.py").write_text("def extra():\n    return 1\n", encoding="utf-8")
    (source / "shop" / "unknown.py").write_text("x = 1\n", encoding="utf-8")
    git(source, "add", "shop/extra.py")
    (source / LIMITS).unlink()
    (source / "notes.txt").write_text("not a source", encoding="utf-8")
    changes = changed_symbols(reader, source, "main", repo_id="shop")
    assert names(changes) == [("shop.paths.limits", "MODULE")]
    assert "not in the lake: shop/extra.py" in changes.notes


def test_a_lake_that_knows_neither_side_says_so(reader: LightReader, source: Path) -> None:
    edit(source, VALUES, "LIMIT = 3", "LIMIT = 4")
    commit(source)
    edit(source, VALUES, "LIMIT = 4", "LIMIT = 5")
    changes = changed_symbols(reader, source, "main", repo_id="shop")
    assert names(changes) == [("shop.paths.values.LIMIT", "BINDING")]
    assert changes.notes[1].startswith("the lake has another version of ")
    assert changes.notes[1].endswith(": line numbers may be wrong; build again")


def test_a_folder_below_the_work_tree(reader: LightReader, source: Path) -> None:
    """What the lake was built from may be a part of what git has."""
    shutil.rmtree(source / ".git")
    git(source.parent, "init", "--quiet", "--initial-branch=main")
    (source.parent / "other.py").write_text("x = 1\n", encoding="utf-8")
    commit(source.parent)
    (source.parent / "other.py").write_text("x = 2\n", encoding="utf-8")
    edit(source, VALUES, "LIMIT = 3", "LIMIT = 4")
    assert names(changed_symbols(reader, source, "main", repo_id="shop")) == [
        ("shop.paths.values.LIMIT", "BINDING")
    ]


@pytest.mark.parametrize(
    "typed",
    ["nowhere", "", "--output=stolen", "-x..main", "main..nowhere", "main:shop/cart.py", "a\0b", "x" * 5000],
)
def test_what_is_no_commit_is_refused(reader: LightReader, committed: Path, typed: str) -> None:
    with pytest.raises(UsageError, match=r"is not a commit|has no commit") as refused:
        changed_symbols(reader, committed, typed, repo_id="shop")
    assert len(str(refused.value)) < 600
    assert not (committed / "stolen").exists()


def test_no_repository_and_no_source(reader: LightReader, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read as a git repository"):
        changed_symbols(reader, tmp_path, "main", repo_id="shop")
    with pytest.raises(UsageError, match="does not exist any more"):
        changed_symbols(reader, tmp_path / "nowhere", "main", repo_id="shop")


def test_nothing_that_a_repository_brings_along_is_run(reader: LightReader, source: Path) -> None:
    trap = source.parent / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch '{source.parent}/sprung'\ncat\n", encoding="utf-8")
    trap.chmod(0o755)
    for setting in (
        "core.fsmonitor",
        "core.pager",
        "diff.external",
        "diff.trap.command",
        "diff.trap.textconv",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "core.sshCommand",
    ):
        git(source, "config", setting, str(trap))
    (source / ".gitattributes").write_text("*.py diff=trap filter=trap\n", encoding="utf-8")
    (source / ".git" / "hooks").mkdir(exist_ok=True)
    shutil.copy(trap, source / ".git" / "hooks" / "post-index-change")
    edit(source, VALUES, "LIMIT = 3", "LIMIT = 4")
    index = (source / ".git" / "index").read_bytes()
    changes = changed_symbols(reader, source, "main", repo_id="shop")
    assert names(changes) == [("shop.paths.values.LIMIT", "BINDING")]
    assert not (source.parent / "sprung").exists()
    assert (source / ".git" / "index").read_bytes() == index


def test_a_link_out_of_the_work_tree_is_not_followed(reader: LightReader, source: Path) -> None:
    secret = source.parent / "secret.py"
    secret.write_text("LIMIT = 9\n", encoding="utf-8")
    (source / VALUES).unlink()
    (source / VALUES).symlink_to(secret)
    # As if it were gone.
    assert names(changed_symbols(reader, source, "main", repo_id="shop")) == [("shop.paths.values", "MODULE")]


def test_texts_that_differ_too_much_differ_as_a_whole() -> None:
    old = b"first\n" + b"".join(b"%d\n" % n for n in range(10_000))
    new = b"first\n" + b"".join(b"%d\n" % -n for n in range(1, 10_000))
    left, right = differing_lines(old, new)
    assert (left[0], left[-1], right[0], right[-1]) == (1, 10_000, 1, 9_999)
    assert differing_lines(b"", b"x\n") == ((0,), (0,))
    assert differing_lines(b"x\r\ny", b"x\ny\n") == ((), ())
