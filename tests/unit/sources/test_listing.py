"""Listing of folders: made trees, git as the judge of ignore files, and trees that resist."""

from __future__ import annotations

import os
import random
import re
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.errors import UsageError
from codeanatomy.sources import listing
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.ignore_rules import Rules
from codeanatomy.sources.listing import (
    IGNORE_BYTES,
    SUFFIXES,
    Entry,
    Listing,
    SkippedReason,
    decode_location,
    encode_location,
    is_python_script,
    sorted_by_path,
)

DEFAULT = ExtractOptions()
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge")


def grow(root: Path, files: Mapping[str, bytes | str]) -> Path:
    """Make files; a path that ends with "/" is an empty folder."""
    for path, content in files.items():
        place = root / path
        if path.endswith("/"):
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def reasons(root: Path, options: ExtractOptions = DEFAULT) -> dict[str, str | None]:
    return {entry.path: entry.skipped_reason for entry in list_source(root, options).entries}


def to_read(root: Path, options: ExtractOptions = DEFAULT) -> set[str]:
    return {path for path, reason in reasons(root, options).items() if reason is None}


def test_the_repository_of_the_docstring(tmp_path: Path) -> None:
    files = ("build/x.py", "pkg/api.py", "pkg/api.pyi", "pkg/data.json", "LICENSE", ".git/hooks/a.py")
    grow(tmp_path, dict.fromkeys(files, "pass\n"))
    grow(tmp_path, {".gitignore": "/build/\n", "tool": "#!/usr/bin/env python3\n", "pyproject.toml": ""})
    (tmp_path / "pkg/latest").symlink_to("api.py")
    found = list_source(tmp_path, DEFAULT)
    assert (found.root, found.kind) == (str(tmp_path), "folder")
    assert [(entry.path, entry.skipped_reason, entry.is_stub) for entry in found.entries] == [
        (".git", "junk_folder", False),
        ("LICENSE", "not_python", False),
        ("build", "ignored", False),
        ("pkg/api.py", None, False),
        ("pkg/api.pyi", None, True),
        ("pkg/latest", "symlink", False),
        ("pyproject.toml", None, False),
        ("tool", None, False),
    ]
    entry = found.entries[3]
    status = (tmp_path / "pkg/api.py").stat()
    assert (entry.size_bytes, entry.mtime_ns) == (status.st_size, status.st_mtime_ns)
    assert Path(entry.location) == tmp_path / "pkg/api.py"


def test_an_empty_folder(tmp_path: Path) -> None:
    assert list_source(tmp_path, DEFAULT).entries == ()


def test_a_root_by_another_name_gives_the_same_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = grow(tmp_path / "root", {"pkg/a.py": "", "b.py": ""})
    (tmp_path / "link").symlink_to("root")
    monkeypatch.chdir(root)
    expected = list_source(root, DEFAULT)
    assert expected.entries
    for other in (tmp_path / "link", Path(), Path("../link/pkg/..")):
        assert list_source(other, DEFAULT) == expected


@pytest.mark.parametrize("what", ["missing", "text", "pipe", "loop", "nul\0"])
def test_what_cannot_be_listed_is_a_usage_error(tmp_path: Path, what: str) -> None:
    grow(tmp_path, {"text": "import os\n"})
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError) as caught:
        list_source(tmp_path / what, DEFAULT)
    assert what in caught.value.message
    assert caught.value.hint


# Python files


@pytest.mark.parametrize(
    ("name", "considered"),
    [
        ("a.py", True),
        ("a.pyw", True),
        ("A.PY", True),
        ("a.PyI", True),
        (".py", True),
        ("a.b.py", True),
        ("a.py.txt", False),
        ("a.pyc", False),
        ("a.pyx", False),
        (".bashrc", False),
        ("a.", False),
        ("py", None),
        ("pyproject.toml", True),
        ("PyProject.toml", False),
        ("setup.cfg", True),
        ("entry_points.txt", False),
        ("x-1.dist-info/entry_points.txt", True),
        ("x-1.dist-info/METADATA.txt", False),
    ],
)
def test_which_names_are_considered(tmp_path: Path, name: str, considered: bool | None) -> None:
    grow(tmp_path, {name: ""})
    expected = {True: {name: None}, False: {}, None: {name: "not_python"}}[considered]
    assert reasons(tmp_path) == expected


def test_stubs(tmp_path: Path) -> None:
    grow(tmp_path, dict.fromkeys(("a.pyi", "b.PYI", "c.py"), ""))
    assert [entry.is_stub for entry in list_source(tmp_path, DEFAULT).entries] == [True, True, False]


def test_a_folder_may_be_named_like_a_file(tmp_path: Path) -> None:
    grow(tmp_path, {"x.py/y.py": ""})
    assert reasons(tmp_path) == {"x.py/y.py": None}


PYTHON = (
    "#!/usr/bin/env python3",
    "#!/usr/bin/python",
    "#! python -u",
    "#!python",
    "#!/usr/bin/env -S python3 -u",
    "#!/usr/bin/env -Spython3.11 -I",
    "#!/usr/bin/env -S PYTHONPATH=x python2.7",
    "#!/usr/bin/env\tpython3\r",
    "#!/usr/local/bin/pypy3",
    "#!/usr/bin/python3.13t",
    "#!/usr/bin/python3-dbg".replace("-dbg", "d"),
    "#!pythonw",
    "#!/usr/bin/env -S uv run --script",
    "#!/usr/bin/env -S pipx run",
    "#!C:/Python27/python",
)
OTHERS = (
    "",
    "#",
    "#!",
    "#!/bin/sh",
    "#!/usr/bin/env",
    "#!/usr/bin/env -S",
    "#!/usr/bin/env bash python",
    "#!/usr/bin/env node",
    "#!/opt/python/bin/ruby",
    "#!/usr/bin/python-config",
    "#!/usr/bin/pythonish",
    "#!\npython",
    "#!/usr/bin/env\npython",
    " #!python",
    "#python",
    "python",
    "#!uv",
    "#!uv pip",
)


@pytest.mark.parametrize(("line", "is_python"), [*((x, True) for x in PYTHON), *((x, False) for x in OTHERS)])
def test_shebangs(tmp_path: Path, line: str, is_python: bool) -> None:
    assert is_python_script(line.encode()) is is_python
    grow(tmp_path, {"tool": f"{line}\nimport os\n"})
    assert reasons(tmp_path) == {"tool": None if is_python else "not_python"}


def test_a_shebang_is_sought_in_the_first_bytes_only(tmp_path: Path) -> None:
    grow(
        tmp_path,
        {"near": b"#!" + b" " * 240 + b"python", "far": b"#!" + b" " * 260 + b"python", "bin": b"\x7fELF"},
    )
    assert reasons(tmp_path) == {"near": None, "far": "not_python", "bin": "not_python"}


def test_too_large(tmp_path: Path) -> None:
    grow(tmp_path, {"a.py": b"x" * 10, "b.py": b"x" * 11, "tool": "#!python\n\n\n", "LICENSE": "x" * 99})
    assert reasons(tmp_path, ExtractOptions(max_file_size=10)) == {
        "a.py": None,
        "b.py": "too_large",
        "tool": "too_large",
        "LICENSE": "not_python",
    }


# Folders that are skipped

JUNK_FOLDER = (
    ".git .hg .svn .bzr __pycache__ .tox .nox .venv node_modules site-packages .mypy_cache .pytest_cache "
    ".ruff_cache .hypothesis .eggs pkg.egg-info .ipynb_checkpoints .idea .vscode"
)


@pytest.mark.parametrize("name", JUNK_FOLDER.split())
def test_junk_is_one_entry_at_any_depth_but_not_as_the_root(tmp_path: Path, name: str) -> None:
    grow(tmp_path, {f"{name}/a.py": "", f"x/{name}/b/c.py": "", f"y/not{name}/d.py": "", f"z/{name}.py": ""})
    found = reasons(tmp_path)
    assert found.pop(f"z/{name}.py") is None
    assert found == {name: "junk_folder", f"x/{name}": "junk_folder"} | (
        {f"y/not{name}": "junk_folder"} if name.endswith(".egg-info") else {f"y/not{name}/d.py": None}
    )
    assert to_read(tmp_path / name) == {"a.py"}


@pytest.mark.parametrize("name", ["build", "dist", "venv", "env", ".env", "lib", ".github"])
def test_these_may_be_sources(tmp_path: Path, name: str) -> None:
    grow(tmp_path, {f"{name}/a.py": ""})
    assert reasons(tmp_path) == {f"{name}/a.py": None}


@pytest.mark.parametrize("mark", ["pyvenv.cfg", "conda-meta/"])
def test_virtual_environments(tmp_path: Path, mark: str) -> None:
    grow(tmp_path, {"env/bin/a.py": "", f"env/{mark}": "", "b.py": ""})
    assert reasons(tmp_path) == {"env": "virtual_environment", "b.py": None}
    assert to_read(tmp_path / "env") == {"bin/a.py"}


# Links and special files


def test_links_are_told_and_never_followed(tmp_path: Path) -> None:
    root = grow(tmp_path / "root", {"real/a.py": "", "a.py": ""})
    grow(tmp_path, {"outside/secret.py": ""})
    links = {
        "file.py": "a.py",
        "folder": "real",
        "out": "../outside",
        "abs.py": str(tmp_path / "outside/secret.py"),
        "loop": "loop",
        "up": "..",
        "gone.py": "nowhere",
        "data.json": "a.py",
        "__pycache__": "real",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    assert reasons(root) == {"real/a.py": None, "a.py": None, **dict.fromkeys(links, "symlink")}
    entry = next(entry for entry in list_source(root, DEFAULT).entries if entry.path == "file.py")
    assert (entry.size_bytes, entry.mtime_ns) == (None, None)


def test_special_files_do_not_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pipe", "pipe.py", ".gitignore", "pipe.txt"):
        os.mkfifo(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.py")
        found = reasons(tmp_path)
    assert found == dict.fromkeys(("pipe", "pipe.py", ".gitignore", "pipe.txt", "socket.py"), "not_a_file")


def test_a_folder_that_becomes_a_link_while_we_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = grow(tmp_path / "root", {"a/b/c.py": "", "d.py": ""})
    grow(tmp_path, {"outside/b/secret.py": ""})
    opened = listing.open_below

    def swapping(root_fd: int, folder: str) -> int:
        if folder == "a/b" and not (root / "a").is_symlink():
            (root / "a").rename(tmp_path / "gone")
            (root / "a").symlink_to(tmp_path / "outside")
        return opened(root_fd, folder)

    monkeypatch.setattr(listing, "open_below", swapping)
    assert reasons(root) == {"a/b": "symlink", "d.py": None}


def test_what_vanishes_while_we_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(tmp_path, {"a/b.py": "", "c.py": "", "tool": "#!python"})
    visit = listing._FolderWalk.visit

    def visit_and_lose(walk: Any, folder: Any, folder_fd: int) -> Any:
        below = visit(walk, folder, folder_fd)
        shutil.rmtree(tmp_path / "a")
        return below

    monkeypatch.setattr(listing._FolderWalk, "visit", visit_and_lose)
    monkeypatch.setattr(listing, "read_head", raising(FileNotFoundError(2, "gone")))
    assert reasons(tmp_path) == {"a": "vanished", "c.py": None, "tool": "vanished"}


def raising(problem: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise problem

    return fail


def refuse_to_open(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Permissions that hold for root too."""
    real = os.open

    def refusing(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if path in names:
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refusing)


def test_what_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(tmp_path, {"locked/a.py": "", "script": "#!python", ".gitignore": "b.py", "b.py": "", "c.py": ""})
    refuse_to_open(monkeypatch, "locked", "script", ".gitignore")
    # That c.py cannot be opened is seen when it is read.
    assert reasons(tmp_path) == {"locked": "unreadable", "script": "unreadable", "b.py": None, "c.py": None}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permissions_of_the_system(tmp_path: Path) -> None:
    grow(tmp_path, {"locked/a.py": "", "b.py": ""})
    (tmp_path / "locked").chmod(0)
    assert reasons(tmp_path) == {"locked": "unreadable", "b.py": None}
    (tmp_path / "locked").chmod(stat.S_IRWXU)


def test_a_root_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_to_open(monkeypatch, ".")
    with pytest.raises(UsageError, match="Permission denied"):
        list_source(tmp_path, DEFAULT)


# Names


def test_names_with_anything_in_them(tmp_path: Path) -> None:
    names = [
        "new\nline.py",
        "tab\t.py",
        "esc\x1b[31m.py",
        "back\\slash.py",
        "é😀.py",
        " .py",
        "-.py",
        "q'\".py",
    ]
    grow(tmp_path, dict.fromkeys(names, ""))
    grow(tmp_path, {f"{name}.d/x.py": "" for name in names})
    assert reasons(tmp_path) == {**dict.fromkeys(names), **{f"{name}.d/x.py": None for name in names}}


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"r\xff")
    bad = os.fsdecode(b"caf\xe9.py")
    grow(root, {bad: "a", os.fsdecode(b"d\xfe/x.py"): "b", r"caf\xe9.py": "c", r"caf\xe9.py~2": "no suffix"})
    found = list_source(root, DEFAULT)
    texts = {entry.path: Path(decode_location(entry.location)).read_text() for entry in found.entries}
    # The one whose name really has a backslash keeps its path.
    assert texts == {r"caf\xe9.py": "c", r"caf\xe9.py~2": "a", r"d\xfe/x.py": "b"}
    assert Path(decode_location(found.root)) == root
    assert msgpack.decode(msgpack.encode(found), type=Listing) == found


@given(st.binary(min_size=1).filter(lambda raw: b"\0" not in raw))
def test_a_portable_location_is_utf8_and_comes_back(raw: bytes) -> None:
    name = "/" + os.fsdecode(raw)
    assert decode_location(encode_location(name).encode().decode()) == name


@given(st.lists(st.sampled_from(["a", "a~2", "a~3", "a~2~2", "b"])))
def test_paths_are_made_unique(paths: list[str]) -> None:
    entries = [Entry(path, f"{number}{path}", None, None, False, None) for number, path in enumerate(paths)]
    made = sorted_by_path(entries)
    assert [entry.path for entry in made] == sorted({entry.path for entry in made})
    assert sorted(entry.location for entry in made) == sorted(entry.location for entry in entries)
    assert {entry.path for entry in made} >= set(paths)


def test_many_of_one_path_take_no_more_than_their_number(tmp_path: Path) -> None:
    started = time.process_time()
    made = sorted_by_path(Entry("a", str(number), None, None, False, None) for number in range(100_000))
    assert len({entry.path for entry in made}) == 100_000
    assert time.process_time() - started < 10


def test_a_tree_that_is_deeper_than_a_path_may_be_long(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    name = "d" * 200
    for _ in range(30):
        os.mkdir(name, dir_fd=fd)
        below = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("deep.py", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
    assert reasons(tmp_path) == {"/".join([name] * 30 + ["deep.py"]): None}


def test_a_listing_is_sorted_and_always_the_same(tmp_path: Path) -> None:
    names = [f"{a}{b}/{c}.py" for a in "ab" for b in ("", ".", "-", "é") for c in "xyz"]
    random.Random(1).shuffle(names)
    grow(tmp_path, dict.fromkeys(names, ""))
    found = list_source(tmp_path, DEFAULT)
    assert [entry.path for entry in found.entries] == sorted(names)
    assert list_source(tmp_path, DEFAULT) == found


def test_every_reason_is_tested() -> None:
    """Here or with archives and readings, where some of them come from."""
    tests = ("test_listing.py", "test_archives.py", "test_reading.py")
    text = "".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in tests)
    assert [reason for reason in get_args(SkippedReason) if f'"{reason}"' not in text] == []


# The user's globs


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        ((), (), {"a.py", "src/b.py", "src/gen/c.py", "test/d.py"}),
        (("src/",), (), {"src/b.py", "src/gen/c.py"}),
        (("src/", "!src/gen/"), (), {"src/b.py"}),
        (("src/", "!gen/", "c.py"), (), {"src/b.py", "src/gen/c.py"}),
        (("/*.py",), (), {"a.py"}),
        (("*.py",), ("gen/",), {"a.py", "src/b.py", "test/d.py"}),
        (("src/**",), ("b.py",), {"src/gen/c.py"}),
        ((), ("/src", "!/src/b.py"), {"a.py", "test/d.py"}),
        ((), ("*", "!*/", "!d.py"), {"test/d.py"}),
        (("nothing",), (), set()),
        ((), ("# a.py", ""), {"a.py", "src/b.py", "src/gen/c.py", "test/d.py"}),
    ],
)
def test_include_and_exclude(
    tmp_path: Path, include: tuple[str, ...], exclude: tuple[str, ...], expected: set[str]
) -> None:
    grow(tmp_path, dict.fromkeys(("a.py", "src/b.py", "src/gen/c.py", "test/d.py"), ""))
    assert to_read(tmp_path, ExtractOptions(include=include, exclude=exclude)) == expected


def test_reasons_of_globs(tmp_path: Path) -> None:
    grow(tmp_path, dict.fromkeys(("a.py", "b/c.py", "d.py", "e.py", "f.py", "LICENSE"), ""))
    grow(tmp_path, {".gitignore": "d.py\nf.py\n/b/\n"})
    options = ExtractOptions(include=("a.py", "d.py"), exclude=("b/",))
    assert reasons(tmp_path, options) == {
        "a.py": None,
        "b": "excluded",
        "d.py": "ignored",
        "e.py": "not_included",
        "f.py": "ignored",
        "LICENSE": "not_included",
    }


# Ignore files


def test_our_own_ignore_file_wins_over_gits_in_its_folder(tmp_path: Path) -> None:
    grow(tmp_path, dict.fromkeys(("a.py", "b.py", "sub/a.py", "sub/b.py"), ""))
    grow(
        tmp_path,
        {".gitignore": "a.py\n", ".codeanatomyignore": "!/a.py\nb.py\n", "sub/.gitignore": "!b.py\n"},
    )
    assert to_read(tmp_path) == {"a.py", "sub/b.py"}


def test_the_ignore_files_of_a_larger_work_tree(tmp_path: Path) -> None:
    grow(tmp_path, {".git/info/exclude": "x.py\n/top/root/y.py\n", ".gitignore": "/top/root/a.py\nb.py\n"})
    grow(tmp_path, {"top/.gitignore": "root/sub/c.py\n!x.py\n"})
    files = ("a.py", "b.py", "x.py", "y.py", "sub/c.py", "d.py")
    root = grow(tmp_path / "top/root", dict.fromkeys(files, ""))
    assert to_read(root) == {"x.py", "d.py"}
    # Above the folder with .git, nothing counts.
    grow(root, {".git/HEAD": ""})
    assert to_read(root) == set(files)


@pytest.mark.parametrize(
    "ignoring", [{".gitignore": "top/"}, {"top/.gitignore": "*"}, {".git/info/exclude": "top"}]
)
def test_a_root_that_is_itself_ignored_was_named_on_purpose(tmp_path: Path, ignoring: dict[str, str]) -> None:
    grow(tmp_path, {".git/HEAD": "", **ignoring})
    root = grow(tmp_path / "top/root", {"a.py": "", "b.py": "", ".gitignore": "b.py\n"})
    assert to_read(root) == {"a.py"}


@pytest.mark.parametrize(
    "broken",
    [
        b"\xff\xfe\n[\n[z-\n[[:what:]]\na\\\n\\\n!\n/\n//\n\0\n",
        "\ufeff[\r\n".encode(),
        "[\n".encode("utf-16"),
        b"\0" * 1000,
        random.Random(2).randbytes(5000).replace(b"*", b"x"),
    ],
)
def test_a_broken_ignore_file_does_not_stop_us(tmp_path: Path, broken: bytes) -> None:
    grow(tmp_path, {"a.py": "", "b.py": "", ".gitignore": broken + b"\n/b.py\n"})
    assert to_read(tmp_path) == {"a.py"}


def test_an_ignore_file_that_is_no_file(tmp_path: Path) -> None:
    grow(tmp_path, {"one/.gitignore/x.py": "", "two/a.py": "", "patterns": "*.py\n", "three/.gitignore": ""})
    (tmp_path / "two/.gitignore").symlink_to("../patterns")
    found = reasons(tmp_path)
    assert found == {
        "one/.gitignore/x.py": None,
        "patterns": "not_python",
        "two/.gitignore": "symlink",
        "two/a.py": None,
    }


def test_an_endless_ignore_file_is_read_to_a_limit(tmp_path: Path) -> None:
    head, tail = "first.py\n#", "\nsecret.py"
    text = head + "x" * (IGNORE_BYTES - len(head) - len(tail)) + tail
    # The line that the limit cuts in two says nothing.
    grow(tmp_path, {".gitignore": text + "_or_not\nlast.py\n"})
    grow(tmp_path, dict.fromkeys(("first.py", "secret.py", "last.py"), ""))
    assert to_read(tmp_path) == {"secret.py", "last.py"}


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        ("*\n!*/\n!*.py", "a/b.py", False),
        ("a/**", "a/b", True),
        ("a**/b", "ab", True),
        ("a**/b", "axy/b", True),
        ("x/a**b", "x/a/b", None),
        ("/a", "b/a", None),
        ("a/b", "c/a/b", None),
        ("**/a/b", "c/a/b", True),
        ("\ufeffa", "a", True),
        ("a ", "a", True),
        ("a\\ ", "a ", True),
        ("a\r\nb", "a", True),
        ("\\#a\n\\!b", "#a", True),
        ("\\#a\n\\!b", "!b", True),
        ("a\n!a\na", "a", True),
        ("?", "é", None),
        ("??", "é", True),
        ("[!a]b", "/b", None),
        ("//a", "a", None),
        ("a/", "a", None),
    ],
)
def test_patterns_as_git_has_them(text: str, path: str, said: bool | None) -> None:
    """The judge below agrees; these are here to be read."""
    assert Rules(text.encode()).decide(path.encode(), False) is said


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (b"*a" * 100 + b"*b", b"a" * 255),
        (b"?*" * 100 + b"b", b"a" * 255),
        (b"**/a/" * 50 + b"b", b"a/" * 1000 + b"c"),
        (b"**/" * 100 + b"x", b"a/" * 1000 + b"c"),
        (b"**/*a*a*a*a*a*b/**/*c*c*d", (b"ac" * 100 + b"/") * 20 + b"e"),
        (b"a/**\\/b/**\\/c/**\\/d", b"a/" + b"b/c/" * 500),
        (b"[!b]*" * 50 + b"[b]", b"a" * 255),
    ],
)
def test_no_pattern_takes_long(pattern: bytes, path: bytes) -> None:
    """A matcher that tries every way would be at it for years."""
    rules = Rules(pattern)
    started = time.thread_time()
    assert rules.decide(path, False) is None
    assert time.thread_time() - started < 1


# Git as the judge


ENVIRONMENT = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


def git(folder: Path, *arguments: str, given: bytes = b"") -> list[bytes]:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, input=given, capture_output=True, check=False, env=ENVIRONMENT
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout.split(b"\0")[:-1]


PIECES = ["a", "b", "c", "z", "ab", ".py", "é", "#", "\t", "\r", "!", "^", "-", "\\", "\\*", "?", "*", "**"]
PIECES += ["/", "/", "/", "**/", "/**/", "/**", "[", "]", "[ab]", "[!a]", "[^b-]", "[a-c]", "[z-a]", "[]a]"]
PIECES += [
    "[[:alpha:]]",
    "[[:punct:]x]",
    "[[:space:]]",
    "[[:x:]]",
    "[:a:]",
    "[\\]]",
    "[a\\-c]",
    "[--b]",
    "[[a]",
]
PIECES += ["[a-", "[a-c-e]", "[[:digit:]-z]", "[!]]", "[/]"]
NAMES = [b"a", b"b", b"ab", b"abc", b"a.py", b"b.py", b"c", "é".encode(), b"a b", b" a", b"a ", b"#a", b"!a"]
NAMES += [b"[a]", b"\\a", b"*", b"-", b"]", b"a\xff", b"a\tb", b"a\rb", b"z", b"a\nb", b"aab", b"a\\"]


def some_pattern(chance: random.Random) -> bytes:
    pieces = chance.choices(PIECES, k=chance.choice((1, 2, 2, 3, 3, 4, 5, 6)))
    text = "".join(pieces).encode() + chance.choice((b"", b"", b"", b" ", b"\\ ", b"\xff"))
    lead, end = chance.choice((b"", b"", b"!", b"/", b"!/")), chance.choice((b"", b"", b"", b"/"))
    return lead + text + end


def some_tree(root: Path, chance: random.Random, names: Sequence[bytes], count: int) -> None:
    for _ in range(count):
        place = root.joinpath(*map(os.fsdecode, chance.choices(names, k=chance.randint(1, 4))))
        # What is a file cannot be a folder, nor the other way round.
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()


def judged(root: Path, ignore_text: bytes, paths: Sequence[bytes]) -> list[bool | None]:
    """For each path: ignored, kept by a `!` pattern, or not mentioned."""
    (root / ".gitignore").write_bytes(ignore_text)
    cells = git(
        root, "check-ignore", "-z", "-v", "-n", "--no-index", "--stdin", given=b"\0".join(paths) + b"\0"
    )
    rows = [cells[at : at + 4] for at in range(0, len(cells), 4)]
    assert [row[3] for row in rows] == list(paths)
    return [not pattern.startswith(b"!") if source else None for source, _, pattern, _ in rows]


def decided(rules: Rules, path: bytes, is_dir: bool) -> bool | None:
    """As a walk would: what lies in an ignored folder is ignored."""
    parts = path.split(b"/")
    said = None
    for count in range(1, len(parts) + 1):
        said = rules.decide(b"/".join(parts[:count]), is_dir or count < len(parts))
        if said:
            break
    return said


@needs_git
@pytest.mark.parametrize(
    "seeds", [range(200), pytest.param(range(200, 5000), marks=pytest.mark.system)], ids=str
)
def test_patterns_mean_what_they_mean_to_git(tmp_path: Path, seeds: range) -> None:
    git(tmp_path, "init", "-q")
    some_tree(tmp_path, random.Random(7), NAMES, 80)
    paths = sorted(
        (os.fsencode(path.relative_to(tmp_path)), path.is_dir())
        for path in tmp_path.rglob("*")
        if ".git" not in path.parts
    )
    counts = {True: 0, False: 0, None: 0}
    for seed in seeds:
        chance = random.Random(seed)
        lines = [some_pattern(chance) for _ in range(chance.randint(1, 6))]
        text = chance.choice((b"\n", b"\n", b"\r\n")).join(lines) + chance.choice((b"", b"\n"))
        rules = Rules(text)
        for (path, is_dir), said in zip(
            paths, judged(tmp_path, text, [path for path, _ in paths]), strict=True
        ):
            assert decided(rules, path, is_dir) is said, (seed, text, path)
            counts[said] += 1
    # Neither git nor we say always the same.
    assert min(counts.values()) > 50, counts


@needs_git
@pytest.mark.parametrize(
    "seeds", [range(25), pytest.param(range(25, 400), marks=pytest.mark.system)], ids=str
)
def test_trees_are_walked_as_git_does(tmp_path: Path, seeds: range) -> None:
    """Nested ignore files, .git/info/exclude, and a root that lies somewhere inside the work tree."""
    skipped = 0
    for seed in seeds:
        work = tmp_path / str(seed)
        work.mkdir()
        git(work, "init", "-q")
        chance = random.Random(seed)
        for root in (work, chance.choice(wood(work, chance))):
            lead = "" if root == work else f"{root.relative_to(work).as_posix()}/"
            kept = git(work, "ls-files", "-z", "-o", "-c", "--exclude-standard", "--", f"./{lead}")
            expected = {path.decode().removeprefix(lead) for path in kept if path.endswith(b".py")}
            if expected or root == work:
                assert to_read(root) == expected, (seed, lead)
                skipped += len(reasons(root)) - len(expected)
    # Something was ignored.
    assert skipped > len(seeds)


def wood(work: Path, chance: random.Random) -> list[Path]:
    """Grow folders with ignore files in them; returns the folders."""
    for _ in range(40):
        place = work.joinpath(*chance.choices(("a", "b", "ab", "e"), k=chance.randint(0, 4)))
        place.mkdir(parents=True, exist_ok=True)
        (place / chance.choice(("c.py", "d.py", "ab.py", "x.txt"))).touch()
    (work / ".git/info/exclude").write_text("ab.py\n/b/a/\n")
    folders = [path for path in sorted(work.rglob("*")) if path.is_dir() and ".git" not in path.parts]
    atoms = ("a", "b", "ab", "e", "*", "**", "*.py", "[ab]", "[!a]", "c.py", "?", "a*", "*/", "x/../a")
    for folder in (work, *folders):
        if folder == work or chance.random() < 0.25:
            count = chance.randint(1, 4)
            lines = [chance.choices(atoms, k=chance.choice((1, 1, 2, 3))) for _ in range(count)]
            signed = (chance.choice(("", "", "/", "!", "!/")) + "/".join(line) + "\n" for line in lines)
            (folder / ".gitignore").write_text("".join(signed))
    return folders


def test_the_reasons_have_their_meaning_beside_them() -> None:
    text = Path(listing.__file__).read_text(encoding="utf-8")
    for reason in get_args(SkippedReason):
        assert re.search(rf'^    "{reason}",  # \w', text, re.MULTILINE), reason
    assert set(SUFFIXES) == {".py", ".pyi", ".pyw"}


@pytest.mark.system
def test_twenty_thousand_files_take_seconds(tmp_path: Path) -> None:
    for number in range(200):
        grow(tmp_path, {f"p{number % 20}/q{number}/m{name}.py": "" for name in range(100)})
    (tmp_path / ".gitignore").write_text("\n".join(f"thing{number}*" for number in range(100)))
    started = time.monotonic()
    assert len(list_source(tmp_path, DEFAULT).entries) == 20_000
    assert time.monotonic() - started < 5
