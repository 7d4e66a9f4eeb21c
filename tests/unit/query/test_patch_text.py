"""Diffs as text: parsed, mapped to definitions; malformed and hostile ones. And differences of two runs."""

from __future__ import annotations

import doctest
import subprocess
from pathlib import Path

import pytest

from codeanatomy.errors import UsageError
from codeanatomy.query.diff import patch_text
from codeanatomy.query.diff.changed_between_runs import changed_between_runs
from codeanatomy.query.diff.patch_text import MAX_PATCH_CHARS, parse_patch, patched_symbols
from codeanatomy.query.lake import Lake
from support.light_builds import clean_lake, refreshed

OLD = '''\
"""A module."""

RATE = 2


def price(item):
    return item * RATE


def sell(item):
    # First the price.
    total = price(item)
    return total


def gone():
    return price(1)
'''
NEW = OLD.replace("RATE = 2", "RATE = 3").replace("    return total", "    total += 1\n    return total")
NEW = NEW[: NEW.index("def gone")].rstrip() + "\n\n\ndef added():\n    return sell(2)\n"


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lake, Lake]:
    """Return a lake before and after a change; the second run has a new file, too."""
    folder = tmp_path_factory.mktemp("patch")
    source = folder / "app"
    (source / "pkg").mkdir(parents=True)
    (source / "pkg" / "m.py").write_text(OLD, encoding="utf-8")
    (source / "pkg" / "old.py").write_text("def last():\n    return 1\n", encoding="utf-8")
    (source / "broken.py").write_text("def f(:\n    return 1\n", encoding="utf-8")
    clean_lake(folder / "lake", {"app": source})
    before = Lake.open(str(folder / "lake"))
    (source / "pkg" / "m.py").write_text(NEW, encoding="utf-8")
    (source / "pkg" / "old.py").unlink()
    (source / "pkg" / "new.py").write_text("def first():\n    return 1\n", encoding="utf-8")
    refreshed(folder / "lake", {"app": source})
    return before, Lake.open(str(folder / "lake"))


def diff_of(tmp_path: Path, *options: str) -> str:
    """Return the difference of the two texts, as git prints it."""
    for name, text in (("a", OLD), ("b", NEW)):
        (tmp_path / name / "pkg").mkdir(parents=True)
        (tmp_path / name / "pkg" / "m.py").write_text(text, encoding="utf-8")
    command = ["git", "diff", "--no-index", "--no-prefix", *options, "a", "b"]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout


def names(lake: Lake, text: str) -> list[str]:
    return [symbol.symbol for symbol in patched_symbols(lake.reader, "app", text).symbols]


def test_examples() -> None:
    assert doctest.testmod(patch_text).failed == 0


@pytest.mark.parametrize("context", ["-U0", "-U3", "-U100"])
def test_both_sides_of_a_diff_of_git(lakes: tuple[Lake, Lake], tmp_path: Path, context: str) -> None:
    before, after = lakes
    text = diff_of(tmp_path, context)
    (file,) = parse_patch(text)
    old, new = OLD.splitlines(), NEW.splitlines()
    assert all(old[number] == line for number, line in file.old.lines.items())
    assert all(new[number] == line for number, line in file.new.lines.items())
    assert names(after, text) == ["pkg.m.RATE", "pkg.m.added", "pkg.m.sell"]
    assert names(before, text) == ["pkg.m.RATE", "pkg.m.gone", "pkg.m.sell"]
    assert any("as before the change" in note for note in patched_symbols(before.reader, "app", text).notes)


def test_lines_of_another_version_are_noted(lakes: tuple[Lake, Lake]) -> None:
    text = "--- a/pkg/m.py\n+++ b/pkg/m.py\n@@ -6,1 +6,1 @@\n-def cost(item):\n+def worth(item):\n"
    changes = patched_symbols(lakes[1].reader, "app", text)
    assert [symbol.symbol for symbol in changes.symbols] == ["pkg.m.price"]
    assert any("another version of pkg/m.py" in note for note in changes.notes)


def test_files_that_are_added_or_removed_are_changed_as_a_whole(lakes: tuple[Lake, Lake]) -> None:
    added = "--- /dev/null\n+++ b/pkg/new.py\n@@ -0,0 +1,2 @@\n+def first():\n+    return 1\n"
    assert names(lakes[1], added) == ["pkg.new"]
    removed = "--- a/pkg/old.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-def last():\n-    return 1\n"
    assert names(lakes[0], removed) == ["pkg.old"]
    assert "not in the lake: pkg/old.py" in patched_symbols(lakes[1].reader, "app", removed).notes


def test_paths_below_a_folder_of_the_repository(lakes: tuple[Lake, Lake], tmp_path: Path) -> None:
    text = diff_of(tmp_path).replace("a/pkg/m.py", "a/lib/src/pkg/m.py").replace("b/pkg", "b/lib/src/pkg")
    assert names(lakes[1], text) == ["pkg.m.RATE", "pkg.m.added", "pkg.m.sell"]


@pytest.mark.parametrize(
    "path",
    [
        "../../../etc/passwd.py",
        "/etc/passwd.py",
        "a/../../pkg/none.py",
        "<script>.py",
        "x" * 9000 + ".py",
        "\0.py",
    ],
)
def test_paths_are_looked_up_in_the_lake_only(lakes: tuple[Lake, Lake], path: str) -> None:
    text = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"
    changes = patched_symbols(lakes[1].reader, "app", text)
    assert changes.symbols == ()
    assert any(note.startswith("not in the lake: ") and len(note) <= 1000 for note in changes.notes)


def test_a_file_that_cannot_be_parsed_has_no_definitions(lakes: tuple[Lake, Lake]) -> None:
    text = "--- a/broken.py\n+++ b/broken.py\n@@ -1 +1 @@\n-def f(\n+def f(:\n"
    assert set(names(lakes[1], text)) <= {"broken"}


def test_binary_files_and_other_languages_are_left_out(lakes: tuple[Lake, Lake]) -> None:
    text = (
        "diff --git a/logo.png b/logo.png\nindex 1..2 100644\nBinary files a/logo.png and b/logo.png differ\n"
        "diff --git a/x.bin b/x.bin\nGIT binary patch\nliteral 3\nKcmZ\n\n"
        "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-a\n+b\n"
    )
    assert len(parse_patch(text)) == 2
    changes = patched_symbols(lakes[1].reader, "app", text)
    assert changes.symbols == ()
    assert changes.notes[0] == "the diff changes 0 Python files"
    binary = "Binary files a/pkg/m.py and b/pkg/m.py differ\n"
    assert names(lakes[1], binary) == ["pkg.m"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not a unified diff"),
        ("hello\nworld\n", "not a unified diff"),
        ("--- a/m.py\n", "not a unified diff"),
        ("@@ -1 +1 @@\n-a\n+b\n", "line 1 of the diff has a change without the file"),
        ("--- a/m.py\n+++ b/m.py\n@@ -1,3 +1,3 @@\n a\n", "line 5 of the diff does not fit"),
        ("--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-a\n-b\n", "line 5 of the diff does not fit"),
        ("--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n*a\n", "line 4 of the diff does not fit"),
        ("--- a/m.py\n+++ b/m.py\n@@ -1,999999999 +1,999999999 @@\n a\n", "line 5 of the diff does not fit"),
        ("diff --cc m.py\n--- a/m.py\n+++ b/m.py\n@@@ -1 -1 +1 @@@\n", "combined diff"),
        ("x" * (MAX_PATCH_CHARS + 1), "the maximum is 1,000,000"),
        ("--- a\n+++ b\n" * 1001, "more than 1,000 files"),
    ],
)
def test_malformed_diffs_are_explained(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_patch(text)


def test_ends_of_lines_quotes_and_missing_newlines() -> None:
    quoted, end = "/\\303\\274 x.py", "\\ No newline at end of file"
    lines = (
        f'--- "a{quoted}"',
        f'+++ "b{quoted}"',
        "@@ -1,3 +1,3 @@ def f():",
        " a",
        "",
        "-b",
        end,
        "+c",
        end,
    )
    text = "".join(f"{line}\r\n" for line in lines)
    (file,) = parse_patch(text)
    assert file.paths == ("ü x.py", "ü x.py")
    assert (file.old.changed, file.new.changed) == ((2,), (2,))
    assert file.new.lines == {0: "a", 1: "", 2: "c"}


def test_a_side_without_lines_is_represented_by_the_line_before() -> None:
    text = "--- a/m.py\n+++ b/m.py\n@@ -5,0 +6,2 @@\n+x\n+y\n@@ -9,2 +11,0 @@\n-p\n-q\n"
    (file,) = parse_patch(text)
    assert file.old.changed == (4, 8, 9)
    assert file.new.changed == (5, 6, 10)


def test_many_changed_lines_take_little_time(lakes: tuple[Lake, Lake]) -> None:
    text = "--- a/pkg/m.py\n+++ b/pkg/m.py\n@@ -0,0 +1,200000 @@\n" + "+x\n" * 200_000
    assert names(lakes[1], text) == ["pkg.m"]


def test_definitions_that_differ_between_two_runs(lakes: tuple[Lake, Lake]) -> None:
    before, after = lakes
    changes = changed_between_runs(before.reader, after.reader, "app")
    assert [symbol.symbol for symbol in changes.after.symbols] == [
        "pkg.m.RATE",
        "pkg.m.added",
        "pkg.m.sell",
        "pkg.new",
    ]
    assert [symbol.symbol for symbol in changes.before.symbols] == ["pkg.m.gone", "pkg.old"]
    assert changes.after.notes == ("3 files differ: pkg/m.py, pkg/new.py, pkg/old.py",)
    same = changed_between_runs(after.reader, after.reader, "app")
    assert (same.after.symbols, same.before.symbols) == ((), ())
