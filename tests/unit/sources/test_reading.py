"""Reading of what was listed, after somebody has changed it."""

from __future__ import annotations

import os
import random
import shutil
import socket
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources import reading
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.listing import Entry, Listing
from codeanatomy.sources.reading import Reading, read_entries
from codeanatomy.sources.source_file import Unreadable
from support import corpus
from support.archives import PACKERS, contents, patched, stored, tar_bytes, zip_bytes

DEFAULT = ExtractOptions()
SMALL = ExtractOptions(max_file_size=100)


def listed(root: Path, *names: str, options: ExtractOptions = DEFAULT) -> Listing:
    """A folder with these files, each with its name as its text, and its listing."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return list_source(root, options)


def read(found: Listing, options: ExtractOptions = DEFAULT) -> list[Reading]:
    return list(read_entries(found.kind, found.root, found.entries, options))


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted in /proc")


# Folders


def test_a_package_is_read_byte_for_byte_and_in_order() -> None:
    root = corpus.package("requests")
    found = list_source(root, DEFAULT)
    wanted = [entry for entry in found.entries if entry.skipped_reason is None]
    random.Random(1).shuffle(wanted)
    readings = list(read_entries(found.kind, found.root, wanted, DEFAULT))
    assert len(wanted) > 15
    assert [each.entry for each in readings] == wanted
    for each in readings:
        path = root / each.entry.path
        assert (each.raw, each.mtime_ns, each.failure) == (path.read_bytes(), path.stat().st_mtime_ns, None)


def test_an_empty_file_and_one_as_large_as_allowed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"")
    (tmp_path / "b.py").write_bytes(b"x" * 100)
    assert contents(list_source(tmp_path, SMALL), SMALL) == {"a.py": b"", "b.py": b"x" * 100}


def test_what_was_skipped_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "b.py").write_text("x")
    entry = Entry("a.py", str(tmp_path / "b.py"), None, None, False, "ignored")
    (only,) = read_entries("folder", str(tmp_path), [entry], DEFAULT)
    assert (only.raw, only.failure) == (None, Unreadable("ignored", "skipped when it was listed"))


def vanish(path: Path) -> None:
    path.unlink()


def grow(path: Path) -> None:
    path.write_bytes(b"x" * 101)


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("b.py"))


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def listen(path: Path) -> None:
    path.unlink()
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (vanish, "vanished"),
        (grow, "too_large"),
        (link, "symlink"),
        (pipe, "not_a_file"),
        (folder, "not_a_file"),
        (listen, "not_a_file"),
    ],
)
def test_a_file_that_changes_after_it_was_listed(
    tmp_path: Path, change: Callable[[Path], None], reason: str
) -> None:
    found = listed(tmp_path, "a.py", "b.py", options=SMALL)
    change(tmp_path / "a.py")
    started = time.monotonic()
    first, second = read(found, SMALL)
    assert time.monotonic() - started < 60
    assert (first.raw, first.failure and first.failure.reason) == (None, reason)
    assert first.failure is not None
    assert first.failure.message
    assert second.raw == b"b.py"


def test_a_file_that_was_rewritten_is_read_as_it_is_now(tmp_path: Path) -> None:
    found = listed(tmp_path, "a.py")
    (tmp_path / "a.py").write_text("new text")
    os.utime(tmp_path / "a.py", ns=(5, 5))
    (only,) = read(found)
    assert (only.raw, only.mtime_ns) == (b"new text", 5)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_folder_on_the_way_may_become_a_link(tmp_path: Path, depth: int) -> None:
    found = listed(tmp_path / "root", "a/b/c/d.py", "e.py")
    listed(tmp_path / "outside", "d.py", "c/d.py", "b/c/d.py")
    swapped = (tmp_path / "root").joinpath(*"abc"[:depth])
    shutil.rmtree(swapped)
    swapped.symlink_to(
        tmp_path / "outside" if depth == 1 else tmp_path / "outside" / "/".join("bc"[: 3 - depth])
    )
    assert contents(found) == {"a/b/c/d.py": "symlink", "e.py": b"e.py"}


def test_a_folder_that_is_gone_or_a_file(tmp_path: Path) -> None:
    found = listed(tmp_path, "a/b.py", "c/d.py", "e.py")
    shutil.rmtree(tmp_path / "a")
    shutil.rmtree(tmp_path / "c")
    (tmp_path / "c").write_text("")
    assert contents(found) == {"a/b.py": "vanished", "c/d.py": "vanished", "e.py": b"e.py"}


@pytest.mark.parametrize("where", ["../outside.py", "a/../../outside.py", "./a.py", "", "b//c.py", "x\0.py"])
def test_a_location_must_be_below_the_root(tmp_path: Path, where: str) -> None:
    root = tmp_path / "root"
    listed(root, "a.py", "b/c.py")
    (tmp_path / "outside.py").write_text("secret")
    for location in (f"{root}/{where}", str(tmp_path / "outside.py"), f"{root}x/a.py"):
        entry = Entry("a.py", location, None, None, False, None)
        (only,) = read_entries("folder", str(root), [entry], DEFAULT)
        assert (only.raw, only.failure and only.failure.reason) == (None, "unsafe_path")


def test_a_root_that_is_gone(tmp_path: Path) -> None:
    found = listed(tmp_path / "root", "a.py", "b.py")
    shutil.rmtree(tmp_path / "root")
    assert contents(found) == {"a.py": "vanished", "b.py": "vanished"}


def failing(problem: Exception, name: str) -> Callable[..., Any]:
    real = os.open

    def fail(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if path == name:
            raise problem
        return real(path, flags, *rest, **named)

    return fail


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (PermissionError(13, "Permission denied"), "unreadable"),
        (OSError(5, "Input/output error"), "unreadable"),
        (MemoryError(), "unreadable"),
        (FileNotFoundError(2, "No such file"), "vanished"),
    ],
)
def test_what_the_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception, reason: str
) -> None:
    found = listed(tmp_path, "a.py", "b.py")
    monkeypatch.setattr(os, "open", failing(problem, "a.py"))
    assert contents(found) == {"a.py": reason, "b.py": b"b.py"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permissions_of_the_system(tmp_path: Path) -> None:
    found = listed(tmp_path, "a.py", "b.py")
    (tmp_path / "a.py").chmod(0)
    assert contents(found) == {"a.py": "unreadable", "b.py": b"b.py"}


# While it is read


def changing(path: Path, times: int, count: list[int]) -> Callable[[int, int], bytes]:
    """An `os.read` during which the file is written to, the first so many times it is opened."""
    real = os.read

    def read_and_change(fd: int, size: int) -> bytes:
        raw = real(fd, size)
        if not raw:
            count.append(len(count))
            if len(count) <= times:
                with path.open("ab") as file:
                    file.write(b"+")
        return raw

    return read_and_change


@pytest.mark.parametrize("times", [0, 1, 3, 4])
def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    found = listed(tmp_path, "a.py")
    monkeypatch.setattr(reading, "PAUSE_SECONDS", 0.001)
    count: list[int] = []
    monkeypatch.setattr(os, "read", changing(tmp_path / "a.py", times, count))
    expected: bytes | str = b"a.py" + b"+" * times if times <= reading.RETRIES else "changing"
    assert contents(found) == {"a.py": expected}
    assert len(count) == min(times, reading.RETRIES) + 1


def test_a_change_of_the_same_size_is_seen_by_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = listed(tmp_path, "a.py")
    real, seen = os.read, []

    def read_and_change(fd: int, size: int) -> bytes:
        raw = real(fd, size)
        seen.append(raw)
        if len(seen) == 1:
            (tmp_path / "a.py").write_text("PY.a")
            os.utime(tmp_path / "a.py", ns=(7, 7))
        return raw

    monkeypatch.setattr(os, "read", read_and_change)
    assert contents(found) == {"a.py": b"PY.a"}


def test_a_file_that_grows_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = listed(tmp_path, "a.py", options=SMALL)
    monkeypatch.setattr(os, "read", lambda _, size: b"x" * min(size, 10))
    assert contents(found, SMALL) == {"a.py": "too_large"}


# Archives


def test_members_of_a_zip_come_in_order(tmp_path: Path) -> None:
    path = stored(tmp_path, zip_bytes((f"{number}.py", b"%d" % number) for number in range(50)))
    found = list_source(path, DEFAULT)
    wanted = random.Random(3).sample(found.entries, 20)
    readings = list(read_entries("zip", found.root, wanted, DEFAULT))
    assert [(each.entry, each.raw, each.mtime_ns) for each in readings] == [
        (entry, entry.path.removesuffix(".py").encode(), entry.mtime_ns) for entry in wanted
    ]


@pytest.mark.parametrize("packer", PACKERS)
def test_some_members_of_a_tar(tmp_path: Path, packer: str) -> None:
    raw = tar_bytes((f"{number}.py", b"%d" % number * 300) for number in range(50))
    found = list_source(stored(tmp_path, PACKERS[packer](raw)), DEFAULT)
    wanted = random.Random(3).sample(found.entries, 20)
    readings = list(read_entries("tar", found.root, wanted, DEFAULT))
    assert {each.entry.path: each.raw for each in readings} == {
        entry.path: entry.path.removesuffix(".py").encode() * 300 for entry in wanted
    }
    assert len(readings) == 20


@pytest.mark.parametrize("pack", [zip_bytes, tar_bytes])
def test_an_archive_that_is_gone_or_another(tmp_path: Path, pack: Callable[..., bytes]) -> None:
    path = stored(tmp_path, pack([("a.py", b"a"), ("b.py", b"b")]))
    found = list_source(path, SMALL)
    path.write_bytes(pack([("a.py", b"x" * 101), ("c.py", b"c")]))
    assert contents(found, SMALL) == {"a.py": "too_large", "b.py": "vanished"}
    path.write_bytes(b"no archive")
    assert contents(found, SMALL) == {"a.py": "damaged", "b.py": "damaged"}
    path.unlink()
    assert contents(found, SMALL) == {"a.py": "vanished", "b.py": "vanished"}


def test_damage_costs_one_member_of_a_zip(tmp_path: Path) -> None:
    noise = random.Random(5).randbytes(1000)
    raw = bytearray(zip_bytes([("a.py", noise), ("b.py", noise)]))
    raw[500] ^= 1
    found = list_source(stored(tmp_path, bytes(raw)), DEFAULT)
    assert contents(found) == {"a.py": "damaged", "b.py": noise}


def test_members_that_became_encrypted_or_of_an_unknown_method(tmp_path: Path) -> None:
    raw = zip_bytes([("a.py", b"a"), ("b.py", b"b")])
    found = list_source(stored(tmp_path, raw), DEFAULT)
    stored(tmp_path, patched(raw, 6, 8, "<H", 1))
    assert contents(found) == {"a.py": "encrypted", "b.py": b"b"}
    stored(tmp_path, patched(raw, 8, 10, "<H", 97))
    assert contents(found) == {"a.py": "unreadable", "b.py": b"b"}


@pytest.mark.parametrize(
    ("packer", "overwritten"), [("gz", b""), ("bz2", b""), ("xz", b""), ("bz2", bytes(1000))]
)
def test_damage_of_a_packed_tar(tmp_path: Path, packer: str, overwritten: bytes) -> None:
    """Cut off in the middle, or overwritten there: bzip2 has a checksum for each block."""
    chance = random.Random(5)
    size = 200_000 if packer == "bz2" else 20_000
    files = {f"{number}.py": chance.randbytes(size).hex().encode() for number in range(5)}
    raw = PACKERS[packer](tar_bytes(files.items()))
    path = stored(tmp_path, raw)
    found = list_source(path, DEFAULT)
    half = len(raw) // 2
    path.write_bytes(raw[:half] + (overwritten + raw[half + len(overwritten) :] if overwritten else b""))
    read = contents(found)
    assert (read["0.py"], read["4.py"]) == (files["0.py"], "damaged")
    assert all(raw in {files[name], "damaged"} for name, raw in read.items())


def test_nothing_is_read_of_a_tar_after_its_stream_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = list_source(stored(tmp_path, tar_bytes([("a.py", b"a"), ("b.py", b"b")])), DEFAULT)
    tried = []

    def fail(*arguments: Any) -> Any:
        tried.append(arguments[-1].path)
        raise zlib.error("invalid data")

    monkeypatch.setattr(reading, "_read_tar_member", fail)
    assert contents(found) == {"a.py": "damaged", "b.py": "damaged"}
    assert tried == ["a.py"]


def test_a_member_of_a_tar_whose_place_was_lost(tmp_path: Path) -> None:
    path = stored(tmp_path, tar_bytes([("a.py", b"a")]))
    entry = Entry("a.py", "a.py", 1, None, False, None)
    (only,) = read_entries("tar", str(path), [entry], DEFAULT)
    assert only.failure is not None
    assert only.failure.reason == "vanished"


def test_a_kind_nobody_knows_raises_nothing(tmp_path: Path) -> None:
    found = listed(tmp_path, "a.py")
    (only,) = read_entries("floppy", found.root, found.entries, DEFAULT)
    assert only.raw is None
    assert only.failure is not None


@needs_proc
@pytest.mark.parametrize("kind", ["folder", "zip", "tar", "gz"])
def test_no_file_stays_open(tmp_path: Path, kind: str) -> None:
    members = [(f"{number}.py", b"x") for number in range(5)]
    if kind == "folder":
        found = listed(tmp_path, *(name for name, _ in members))
    else:
        raw = zip_bytes(members) if kind == "zip" else PACKERS[kind](tar_bytes(members))
        found = list_source(stored(tmp_path, raw), DEFAULT)
    before = open_files()
    list_source(Path(found.root), DEFAULT)
    assert len(read(found)) == 5
    half = read_entries(found.kind, found.root, found.entries, DEFAULT)
    next(half)
    half.close()  # type: ignore[attr-defined]
    broken = [Entry(entry.path, entry.location + "x", 1, 1, False, None, 7) for entry in found.entries]
    assert all(each.failure for each in read_entries(found.kind, found.root, broken, DEFAULT))
    assert open_files() == before
