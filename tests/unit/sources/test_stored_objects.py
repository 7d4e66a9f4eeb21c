"""Listing of objects: the entries of a local folder with the same files, and keys that resist."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.listing import Entry, Listing
from codeanatomy.sources.reading import read_entries
from codeanatomy.sources.stored_objects import StoredObject, copy_name, heads_needed, list_objects

DEFAULT = ExtractOptions()
URI = "s3a://bucket/src"
FILES = {
    ".git/HEAD": "ref: refs/heads/main\n",
    ".git/info/exclude": "/private.py\n",
    ".gitignore": "/build/\n*.gen.py\n",
    "LICENSE": "MIT\n",
    "build/x.py": "pass\n",
    "deep/er/.codeanatomyignore": "!kept.gen.py\nlost.py\n",
    "deep/er/kept.gen.py": "pass\n",
    "deep/er/lost.py": "pass\n",
    "empty.py": "",
    "env/lib/a.py": "pass\n",
    "env/pyvenv.cfg": "",
    "node_modules/tool": "#!/usr/bin/python\n",
    "pkg/api.py": "import os\n",
    "pkg/api.pyi": "import os\n",
    "pkg/data.json": "{}",
    "pkg/large.py": "x = 1\n" * 100,
    "private.py": "pass\n",
    "tool": "#!/usr/bin/env python3\n",
    "übung.py": "pass\n",
}


def stored(files: Mapping[str, str], tag: str = "1") -> list[StoredObject]:
    return [StoredObject(key, len(text.encode()), 7, tag) for key, text in files.items()]


def listed(
    files: Mapping[str, str],
    options: ExtractOptions = DEFAULT,
    copies: str = "/c",
    lost: tuple[str, ...] = (),
) -> Listing:
    objects = stored(files)
    heads = {
        key: files[key].encode()[:size] for key, size in heads_needed(objects).items() if key not in lost
    }
    return list_objects(URI, copies, objects, heads, options)


def facts(entry: Entry) -> tuple[object, ...]:
    return entry.path, entry.size_bytes, entry.is_stub, entry.skipped_reason


@pytest.mark.parametrize(
    "options",
    [
        DEFAULT,
        ExtractOptions(max_file_size=200),
        ExtractOptions(include=("pkg/",), exclude=("*.pyi",)),
    ],
)
def test_entries_are_those_of_a_local_folder(tmp_path: Path, options: ExtractOptions) -> None:
    for key, text in FILES.items():
        path = tmp_path / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    here, there = list_source(tmp_path, options), listed(FILES, options)
    assert [facts(entry) for entry in there.entries] == [facts(entry) for entry in here.entries]
    assert (there.kind, there.uri, there.root) == ("copies", URI, "/c")
    assert len({entry.skipped_reason for entry in there.entries}) > 4


def test_files_are_read_from_their_copies(tmp_path: Path) -> None:
    listing = listed({"a.py": "A = 1\n", "b.py": "B = 1\n", "c.py": "C = 1\n"}, copies=str(tmp_path))
    names = [entry.location.partition("/")[0] for entry in listing.entries]
    (tmp_path / names[0]).write_bytes(b"A = 1\n")
    (tmp_path / names[1]).write_bytes(b"B =")
    a, b, c = read_entries(listing.kind, listing.root, listing.entries, DEFAULT)
    assert (a.raw, a.mtime_ns, a.failure) == (b"A = 1\n", 7, None)
    assert b.failure
    assert b.failure.reason == "damaged"
    assert c.failure
    assert c.failure.reason == "vanished"


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("../a.py", "(unsafe)/a.py"),
        ("pkg/../../a.py", "(unsafe)/pkg/a.py"),
        ("/etc/a.py", "(unsafe)/etc/a.py"),
        ("pkg//a.py", "(unsafe)/pkg/a.py"),
        ("C:a.py", "(unsafe)/C%3aa.py"),
        ("pkg\\a.py", "(unsafe)/pkg/a.py"),
        ("a\0.py", "(unsafe)/a%00.py"),
        ("/".join("x" * 120) + ".py", None),
    ],
)
def test_a_hostile_key_is_an_entry_that_is_never_read(tmp_path: Path, key: str, shown: str | None) -> None:
    listing = listed({key: "pass\n", "pkg/good.py": "pass\n"}, copies=str(tmp_path))
    bad, good = listing.entries
    assert bad.skipped_reason == "unsafe_path"
    assert shown is None or bad.path == shown
    assert (good.path, good.skipped_reason) == ("pkg/good.py", None)
    reading = next(read_entries(listing.kind, listing.root, listing.entries, DEFAULT))
    assert reading.failure
    assert reading.failure.reason == "unsafe_path"


@pytest.mark.parametrize("location", ["../../etc/passwd", "", "0" * 39 + "/a.py", "/etc/passwd"])
def test_a_forged_location_is_not_opened(tmp_path: Path, location: str) -> None:
    entry = Entry("a.py", location, 1, 7, False, None)
    (reading,) = read_entries("copies", str(tmp_path), [entry], DEFAULT)
    assert reading.failure
    assert reading.failure.reason == "unsafe_path"


def test_objects_of_folders_are_no_entries() -> None:
    files = {"": "", "pkg": "", "pkg/a.py": "pass\n", "void": ""}
    assert [entry.path for entry in listed(files, lost=("pkg", "void")).entries] == ["pkg/a.py"]
    # An empty file that can be read is an entry, as in a folder.
    assert [entry.path for entry in listed(files, lost=("pkg",)).entries] == ["pkg/a.py", "void"]


def test_a_name_may_be_of_a_file_and_of_a_folder() -> None:
    files = {"run": "#!/usr/bin/python\n", "run/a.py": "pass\n"}
    assert [(entry.path, entry.skipped_reason) for entry in listed(files).entries] == [
        ("run", None),
        ("run/a.py", None),
    ]


def test_little_is_read_before_the_listing() -> None:
    needed = heads_needed(stored({**FILES, "../LICENSE": "", ".git/objects/ab": "x"}))
    assert sorted(needed) == [
        ".git/info/exclude",
        ".gitignore",
        "LICENSE",
        "deep/er/.codeanatomyignore",
        "tool",
    ]


def test_another_content_has_another_copy() -> None:
    same = copy_name("a.py", 1, "x")
    assert same == copy_name("a.py", 1, "x")
    assert len({same, copy_name("a.py", 1, "y"), copy_name("a.py", 2, "x"), copy_name("b.py", 1, "x")}) == 4
