"""Archives: the same rows as the folder they were made from, and archives that were made to harm."""

from __future__ import annotations

import gzip
import io
import os
import random
import stat
import struct
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
from msgspec import msgpack

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.errors import UsageError
from codeanatomy.sources.archives import safe_path
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.listing import Entry, Listing
from codeanatomy.sources.reading import read_entries
from support import corpus
from support.archives import DEFAULT, PACKERS, WHEN, contents, patched, stored, tar_bytes, zip_bytes


def tar_info(kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo()
    info.type, info.linkname = kind, target
    return info


def reasons(path: Path, options: ExtractOptions = DEFAULT) -> dict[str, str | None]:
    return {entry.path: entry.skipped_reason for entry in list_source(path, options).entries}


def of_folder(root: Path) -> list[tuple[str, bytes]]:
    return [
        (path.relative_to(root).as_posix(), path.read_bytes()) for path in root.rglob("*") if path.is_file()
    ]


def without_location(entries: Iterable[Entry]) -> list[tuple[object, ...]]:
    return [(entry.path, entry.size_bytes, entry.is_stub, entry.skipped_reason) for entry in entries]


# The same as a folder


@pytest.fixture(scope="module")
def requests() -> Path:
    return corpus.package("requests")


def test_a_wheel_has_the_entries_of_its_folder(requests: Path, tmp_path: Path) -> None:
    wheel = list_source(stored(tmp_path, zip_bytes(of_folder(requests)), "requests.whl"), DEFAULT)
    folder = list_source(requests, DEFAULT)
    assert (wheel.kind, wheel.root) == ("zip", str(tmp_path / "requests.whl"))
    expected = [entry for entry in folder.entries if ".dist-info/" not in entry.path]
    assert len(expected) > 15
    assert without_location(wheel.entries) == without_location(expected)
    assert {entry.mtime_ns for entry in wheel.entries if entry.skipped_reason is None} == {WHEN * 10**9}
    assert contents(wheel) == {path: (requests / path).read_bytes() for path in contents(wheel)}


@pytest.mark.parametrize("packer", PACKERS)
def test_an_sdist_has_the_paths_of_its_repository(requests: Path, tmp_path: Path, packer: str) -> None:
    files = [(path, raw) for path, raw in of_folder(requests) if ".dist-info/" not in path]
    raw = tar_bytes([("requests-2/PKG-INFO", b"x"), *((f"requests-2/{path}", raw) for path, raw in files)])
    # By its bytes, not by its name.
    sdist = list_source(stored(tmp_path, PACKERS[packer](raw), "x.whl"), DEFAULT)
    assert sdist.kind == "tar"
    folder = list_source(requests, DEFAULT)
    expected = [entry for entry in folder.entries if ".dist-info/" not in entry.path]
    shipped = [entry for entry in sdist.entries if entry.path != "PKG-INFO"]
    assert without_location(shipped) == without_location(expected)
    read = contents(sdist)
    assert read.pop("PKG-INFO") == "not_python"
    assert read == {path: raw for path, raw in contents(folder).items() if ".dist-info/" not in path}


TREE = {
    "a.py": b"import a",
    "b.PYI": b"",
    "c.txt": b"",
    "tool": b"#!/usr/bin/env python3",
    "LICENSE": b"free",
    "big.py": b"#" * 2000,
    "pkg/__init__.py": b"",
    "pkg/__pycache__/x.py": b"",
    "pkg/venv/__init__.py": b"",
    "pkg.egg-info/x.py": b"",
    "env/pyvenv.cfg": b"",
    "env/lib/x.py": b"",
    "conda/conda-meta/history": b"",
    "conda/x.py": b"",
    "src/gen/d.py": b"",
    "src/e.py": b"",
    "new\nline/é😀.py": b"",
    ".gitignore": b"*",
    "node_modules/x/y.py": b"",
}


@pytest.mark.parametrize(
    "options",
    [
        ExtractOptions(max_file_size=1000),
        ExtractOptions(include=("src/", "!gen/", "a.py")),
        ExtractOptions(exclude=("src/gen/", "pkg", "*.pyi", "!a.py")),
    ],
    ids=["all", "include", "exclude"],
)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_a_tree_in_an_archive_is_judged_as_in_a_folder(
    tmp_path: Path, options: ExtractOptions, kind: str
) -> None:
    root = tmp_path / "root"
    for path, content in TREE.items():
        if path != ".gitignore":
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
    raw = zip_bytes(TREE.items()) if kind == "zip" else tar_bytes(TREE.items())
    archive, folder = list_source(stored(tmp_path, raw), options), list_source(root, options)
    assert without_location(archive.entries) == without_location(folder.entries)
    assert contents(archive, options) == contents(folder, options)


def test_folders_that_are_members_are_judged_too(tmp_path: Path) -> None:
    expected = {".git": "junk_folder", "a.py": None}
    assert reasons(stored(tmp_path, zip_bytes([("./", b""), (".git/", b""), ("a.py", b"")]))) == expected
    members = [(".", tar_info(tarfile.DIRTYPE)), (".git", tar_info(tarfile.DIRTYPE)), ("./a.py", b"")]
    assert reasons(stored(tmp_path, tar_bytes(members))) == expected


def test_scripts_of_a_wheel(tmp_path: Path) -> None:
    files = {"x-1.data/scripts/run": b"#!python\n", "x-1.dist-info/RECORD": b"", "x-1.dist-info/a.py": b""}
    assert reasons(stored(tmp_path, zip_bytes(files.items()))) == {"x-1.data/scripts/run": None}


def test_entry_points_of_a_wheel(tmp_path: Path) -> None:
    raw = b"[console_scripts]\nx = x:run\n"
    files = {"x-1.dist-info/entry_points.txt": raw, "x-1.dist-info/top_level.txt": b"x", "x.py": b""}
    found = contents(list_source(stored(tmp_path, zip_bytes(files.items())), DEFAULT))
    assert found == {"x-1.dist-info/entry_points.txt": raw, "x.py": b""}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("x-1/PKG-INFO", "x-1/a.py"), "a.py"),
        (("./x-1/PKG-INFO", "./x-1/a.py"), "a.py"),
        (("x-1/a.py",), "x-1/a.py"),
        (("x-1/PKG-INFO", "x-1/a.py", "b.py"), "x-1/a.py"),
        (("PKG-INFO", "a.py"), "a.py"),
        (("x-1/x.egg-info/PKG-INFO", "x-1/a.py"), "x-1/a.py"),
        (("x-1/PKG-INFO", "x-1/a.py", "/etc/passwd"), "x-1/a.py"),
        (("x-1/PKG-INFO", "x-1/a.py", "x-1"), "x-1/a.py"),
    ],
)
def test_when_the_top_folder_is_left_out(tmp_path: Path, names: tuple[str, ...], expected: str) -> None:
    members = [(name, name.encode()) for name in names]
    found = contents(list_source(stored(tmp_path, tar_bytes(members)), DEFAULT))
    assert {path for path in found if path.endswith("a.py")} == {expected}
    assert found[expected] == next(name for name in names if name.endswith("a.py")).encode()
    # Never that of a zip.
    zipped = list_source(stored(tmp_path, zip_bytes(members)), DEFAULT)
    assert ("a.py" in contents(zipped)) is ("a.py" in names)


# What an archive is


def test_a_zip_behind_a_script_and_a_tar_before_a_zip(tmp_path: Path) -> None:
    inner = zip_bytes([("z.py", b"")], zipfile.ZIP_STORED)
    assert reasons(stored(tmp_path, b"#!/usr/bin/env python3\n" + inner)) == {"z.py": None}
    assert reasons(stored(tmp_path, tar_bytes([("t.py", b""), ("inner.zip", inner)])[: 512 * 4])) == {
        "t.py": None
    }


def test_an_old_tar_without_magic(tmp_path: Path) -> None:
    raw = bytearray(tar_bytes([("old.py", b"x")], tarfile.USTAR_FORMAT))
    raw[257:265] = bytes(8)
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw[:512])
    assert reasons(stored(tmp_path, bytes(raw))) == {"old.py": None}


def test_archives_without_members(tmp_path: Path) -> None:
    assert reasons(stored(tmp_path, zip_bytes([]))) == {}
    assert reasons(stored(tmp_path, gzip.compress(tar_bytes([])))) == {}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"import os\n",
        bytes(1000),
        b"PK",
        b"PK\x03\x04" + bytes(100),
        gzip.compress(b"import os\n"),
        gzip.compress(b""),
        b"\x1f\x8b",
        b"BZh9" + bytes(50),
        b"\xfd7zXZ\0" + bytes(50),
        zip_bytes([("a.py", b"x" * 100)])[:-10],
        PACKERS["gz"](tar_bytes([("a.py", random.Random(1).randbytes(5000))]))[:-2000],
        PACKERS["xz"](tar_bytes([("a.py", random.Random(1).randbytes(5000))]))[:-2000],
        tar_bytes([("a.py", b"x" * 5000)])[:3000],
        tar_bytes([("a.py", b"x"), ("b.py", b"y")])[:1300],
    ],
    ids=range(15),
)
def test_what_is_damaged_or_no_archive_is_a_usage_error(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(UsageError) as caught:
        list_source(stored(tmp_path, raw), DEFAULT)
    assert str(tmp_path / "archive") in caught.value.message
    assert ".whl" in caught.value.hint


def test_a_checksum_at_the_end_of_a_tar_is_checked(tmp_path: Path) -> None:
    raw = bytearray(PACKERS["gz"](tar_bytes([("a.py", b"x")])))
    raw[-6] ^= 1
    with pytest.raises(UsageError, match="CRC"):
        list_source(stored(tmp_path, bytes(raw)), DEFAULT)


def test_a_broken_header_is_not_the_end(tmp_path: Path) -> None:
    raw = bytearray(tar_bytes([("a.py", b"x"), ("b.py", b"y"), ("c.py", b"z")]))
    raw[1024 + 150] ^= 1
    with pytest.raises(UsageError, match="no header at 1024"):
        list_source(stored(tmp_path, bytes(raw)), DEFAULT)


# Names

UNSAFE = (
    "../a.py",
    "x/../../a.py",
    "x/..",
    "..",
    "/a.py",
    "//a.py",
    "C:a.py",
    "c:/a.py",
    "a\\b.py",
    "..\\a.py",
    "\\\\host\\a.py",
    "a/" * 200 + "a.py",
    "a" * 5000 + ".py",
)


@pytest.mark.parametrize("name", UNSAFE)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_unsafe_names_are_told_and_never_opened(tmp_path: Path, name: str, kind: str) -> None:
    members = [(name, b"evil"), ("ok.py", b"ok")]
    found = list_source(
        stored(tmp_path, zip_bytes(members) if kind == "zip" else tar_bytes(members)), DEFAULT
    )
    unsafe, ok = found.entries
    assert (ok.path, unsafe.skipped_reason, unsafe.location) == ("ok.py", "unsafe_path", name)
    assert unsafe.path.startswith("(unsafe)/")
    assert safe_path(unsafe.path) == unsafe.path
    assert contents(found) == {"ok.py": b"ok", unsafe.path: "unsafe_path"}


def test_a_nul_in_a_name(tmp_path: Path) -> None:
    raw = zip_bytes([("aXb.py", b"")]).replace(b"aXb.py", b"a\0b.py")
    assert reasons(stored(tmp_path, raw)) == {"(unsafe)/a%00b.py": "unsafe_path"}


def test_unsafe_paths_are_unique_and_take_no_other(tmp_path: Path) -> None:
    names = ("../a.py", "../../a.py", "/a.py", "(unsafe)/a.py", "a.py", "!/../b.py", "(unsafe)/!/b.py")
    found = list_source(stored(tmp_path, zip_bytes((name, name.encode()) for name in names)), DEFAULT)
    assert contents(found) == {
        "(unsafe)/!/b.py": b"(unsafe)/!/b.py",
        "(unsafe)/!/b.py~2": "unsafe_path",
        "(unsafe)/a.py": b"(unsafe)/a.py",
        "(unsafe)/a.py~2": "unsafe_path",
        "(unsafe)/a.py~3": "unsafe_path",
        "(unsafe)/a.py~4": "unsafe_path",
        "a.py": b"a.py",
    }


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_of_several_with_one_name_the_last_counts(tmp_path: Path, kind: str) -> None:
    members = [("a.py", b"one"), ("./a.py", b"two!"), ("b.py", b"b"), ("a.py", b"three")]
    found = list_source(
        stored(tmp_path, zip_bytes(members) if kind == "zip" else tar_bytes(members)), DEFAULT
    )
    assert contents(found) == {"a.py": b"three", "b.py": b"b"}
    assert found.entries[0].size_bytes == 5


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_and_strange_names_in_a_tar(tmp_path: Path, form: int) -> None:
    names = ["x" * 150 + "/y.py", "é😀.py", "new\nline.py", os.fsdecode(b"caf\xe9.py")]
    found = list_source(
        stored(tmp_path, tar_bytes(((name, name.encode("utf-8", "replace")) for name in names), form)),
        DEFAULT,
    )
    shown = [*names[:3], r"caf\xe9.py"]
    assert contents(found) == {
        path: name.encode("utf-8", "replace") for path, name in zip(shown, names, strict=True)
    }
    assert msgpack.decode(msgpack.encode(found), type=Listing) == found


# Members that are no files


def test_links_and_devices_in_a_tar(tmp_path: Path) -> None:
    kinds = {
        "sym": tar_info(tarfile.SYMTYPE, "/etc/passwd"),
        "hard.py": tar_info(tarfile.LNKTYPE, "a.py"),
        "fifo.py": tar_info(tarfile.FIFOTYPE),
        "dev": tar_info(tarfile.CHRTYPE),
        "odd.py": tar_info(b"Z"),
    }
    assert reasons(stored(tmp_path, tar_bytes([("a.py", b""), *kinds.items()]))) == {
        "a.py": None,
        "sym": "symlink",
        "hard.py": "symlink",
        "fifo.py": "not_a_file",
        "dev": "not_a_file",
        "odd.py": "not_a_file",
    }


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (stat.S_IFLNK, "symlink"),
        (stat.S_IFIFO, "not_a_file"),
        (stat.S_IFREG, None),
        (stat.S_IFDIR, "no entry"),
    ],
)
def test_kinds_of_members_in_a_zip(tmp_path: Path, kind: int, reason: str | None) -> None:
    found = reasons(stored(tmp_path, zip_bytes([("a.py", b"/etc/passwd")], attr=kind | 0o644)))
    assert found.get("a.py", "no entry") == reason


def test_sparse_files_in_a_tar(tmp_path: Path) -> None:
    """GNU tar's old form: a map of the pieces in the header."""
    header = bytearray(tar_bytes([("s.py", b"")], tarfile.GNU_FORMAT)[:512])
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[124:136] = b"%011o\0" % 4
    header[386:410] = b"%011o\0" % 3 + b"%011o\0" % 4
    header[483:495] = b"%011o\0" % 10
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    found = list_source(stored(tmp_path, bytes(header) + b"pass".ljust(512, b"\0") + bytes(1024)), DEFAULT)
    assert contents(found) == {"s.py": b"\0\0\0pass\0\0\0"}


def test_encrypted_members(tmp_path: Path) -> None:
    raw = patched(zip_bytes([("a.py", b"x"), ("b.py", b"y")]), 6, 8, "<H", 1)
    found = list_source(stored(tmp_path, raw), DEFAULT)
    assert contents(found) == {"a.py": "encrypted", "b.py": b"y"}
    script = patched(zip_bytes([("script", b"#!python")]), 6, 8, "<H", 1)
    assert reasons(stored(tmp_path, script)) == {"script": "encrypted"}


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 99])
def test_methods_that_are_not_unpacked(tmp_path: Path, method: int) -> None:
    known = method if method != 99 else zipfile.ZIP_STORED
    raw = patched(zip_bytes([("a.py", b"x"), ("script", b"#!python")], known), 8, 10, "<H", method)
    assert reasons(stored(tmp_path, raw))["a.py"] == "unreadable"


def test_a_script_whose_beginning_is_damaged(tmp_path: Path) -> None:
    raw = bytearray(zip_bytes([("script", b"#!python\n" * 100), ("a.py", b"")]))
    start = 30 + len("script")
    raw[start : start + 5] = b"\xff" * 5
    assert reasons(stored(tmp_path, bytes(raw))) == {"script": "damaged", "a.py": None}


# Times


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_times_do_not_depend_on_the_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for raw in (zip_bytes([("a.py", b"")]), tar_bytes([("a.py", b"")])):
            assert list_source(stored(tmp_path, raw), DEFAULT).entries[0].mtime_ns == WHEN * 10**9
    finally:
        monkeypatch.undo()
        time.tzset()


def test_times_that_are_none(tmp_path: Path) -> None:
    raw = patched(zip_bytes([("a.py", b"")]), 12, 14, "<H", 0)
    assert list_source(stored(tmp_path, raw), DEFAULT).entries[0].mtime_ns is None
    for mtime, expected in ((1.5, 1_500_000_000), (-1, -1_000_000_000), (1e300, None), (float("nan"), None)):
        info = tarfile.TarInfo("a.py")
        info.pax_headers = {"mtime": str(mtime)}
        found = list_source(stored(tmp_path, tar_bytes([("a.py", info)])), DEFAULT)
        assert found.entries[0].mtime_ns == expected


# Limits


@pytest.mark.parametrize("pack", [zip_bytes, tar_bytes])
def test_limits_on_what_is_declared(tmp_path: Path, pack: Callable[..., bytes]) -> None:
    path = stored(tmp_path, pack([("a.py", b"x" * 600), ("b.txt", b"x" * 400)]))
    exact = ExtractOptions(max_archive_entries=2, max_archive_size=1000, max_file_size=600)
    assert reasons(path, exact) == {"a.py": None}
    assert reasons(path, ExtractOptions(max_file_size=599)) == {"a.py": "too_large"}
    for options in (ExtractOptions(max_archive_entries=1), ExtractOptions(max_archive_size=999)):
        with pytest.raises(UsageError) as caught:
            list_source(path, options)
        assert "extract.max_archive" in caught.value.hint


def bomb(header: Mapping[str, str], size: int) -> bytes:
    """A member with an extended header, of which there follow so many bytes."""
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, size
    text = b"".join(b"%d %s=%s\n" % (len(f"{k}={v}") + 4, k.encode(), v.encode()) for k, v in header.items())
    return info.tobuf(tarfile.USTAR_FORMAT) + text.ljust(size, b"\0")


def endless_pax() -> bytes:
    return bomb({}, 50 * 1024 * 1024) + tar_bytes([("a.py", b"")])


def endless_long_name() -> bytes:
    info = tar_info(tarfile.GNUTYPE_LONGNAME)
    info.name, info.size = "././@LongLink", 50 * 1024 * 1024
    return info.tobuf(tarfile.GNU_FORMAT) + b"a" * info.size + tar_bytes([("a.py", b"")])


def headers_upon_headers() -> bytes:
    return bomb({}, 512) * 5000 + tar_bytes([("a.py", b"")])


def endless_end() -> bytes:
    return tar_bytes([("a.py", b"")]) + bytes(50 * 1024 * 1024)


def negative_size() -> bytes:
    raw = bytearray(tar_bytes([("a.py", b"x"), ("b.py", b"y")], tarfile.GNU_FORMAT))
    raw[1024 + 124 : 1024 + 136] = b"\xff" * 10 + struct.pack(">h", -1024)
    raw[1024 + 148 : 1024 + 156] = b" " * 8
    raw[1024 + 148 : 1024 + 156] = b"%06o\0 " % sum(raw[1024:1536])
    return bytes(raw)


def huge_size() -> bytes:
    info = tarfile.TarInfo("a.py")
    info.size = 2**40
    return info.tobuf(tarfile.GNU_FORMAT) + bytes(4096)


def sparse_map_without_end() -> bytes:
    info = tarfile.TarInfo("a.py")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a.py"}
    head = tar_bytes([("a.py", info)])[: 512 * 3]
    return head + b"99999999\n" + b"0\n" * (10 * 1024 * 1024)


SMALL = ExtractOptions(max_archive_size=1024 * 1024, max_archive_entries=1000)


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (endless_pax, DEFAULT, "at once"),
        (endless_long_name, DEFAULT, "at once"),
        (sparse_map_without_end, DEFAULT, "at once"),
        (headers_upon_headers, DEFAULT, "at once|recursion"),
        (negative_size, DEFAULT, "negative size"),
        (huge_size, DEFAULT, "unpacks to more"),
        (endless_end, SMALL, "unpacks to more"),
    ],
)
def test_tars_that_were_made_to_harm(
    tmp_path: Path, make: Callable[[], bytes], options: ExtractOptions, said: str
) -> None:
    path = stored(tmp_path, PACKERS["gz"](make()))
    started = time.process_time()
    with pytest.raises(UsageError, match=said):
        list_source(path, options)
    assert time.process_time() - started < 5


def test_a_directory_of_a_zip_that_is_too_large(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for number in range(20):
            info = zipfile.ZipInfo(f"{number}.py")
            info.comment = b"x" * 60_000
            archive.writestr(info, b"")
    path = stored(tmp_path, made.getvalue())
    assert len(reasons(path)) == 20
    with pytest.raises(UsageError, match="directory"):
        list_source(path, ExtractOptions(max_archive_entries=30))


def test_a_bomb_that_tells_its_size_is_not_opened(tmp_path: Path) -> None:
    path = stored(tmp_path, zip_bytes([("a.py", b"\0" * 50_000_000), ("b.py", b"b")]))
    assert path.stat().st_size < 60_000
    assert contents(list_source(path, DEFAULT)) == {"a.py": "too_large", "b.py": b"b"}


def test_a_bomb_that_lies_about_its_size_yields_no_more_than_it_says(tmp_path: Path) -> None:
    raw = patched(zip_bytes([("a.py", b"\0" * 50_000_000), ("b.py", b"b")]), 22, 24, "<I", 1000)
    assert contents(list_source(stored(tmp_path, raw), DEFAULT)) == {"a.py": "damaged", "b.py": b"b"}


def test_a_member_that_is_shorter_than_it_says(tmp_path: Path) -> None:
    raw = patched(zip_bytes([("a.py", b"short"), ("b.py", b"b")]), 22, 24, "<I", 1000)
    assert contents(list_source(stored(tmp_path, raw), DEFAULT)) == {"a.py": "damaged", "b.py": b"b"}


@pytest.mark.parametrize(
    "seeds", [range(150), pytest.param(range(150, 5000), marks=pytest.mark.system)], ids=str
)
@pytest.mark.parametrize("kind", ["zip", "tar", "gz"])
def test_random_damage_is_an_error_or_an_entry(tmp_path: Path, kind: str, seeds: range) -> None:
    members = [*TREE.items(), ("x" * 120 + "/long.py", b"pass\n" * 50)]
    whole = zip_bytes(members) if kind == "zip" else PACKERS[kind](tar_bytes(members))
    options = ExtractOptions(max_archive_size=1024 * 1024, max_archive_entries=100)
    listed = 0
    for seed in seeds:
        chance = random.Random(seed)
        raw = bytearray(whole)
        for _ in range(chance.choice((1, 2, 10))):
            raw[chance.randrange(len(raw))] = chance.choice((0, 0x2F, 0x5C, 0xFF, chance.randrange(256)))
        path = stored(tmp_path, bytes(raw[: chance.choice((len(raw), len(raw), chance.randrange(len(raw))))]))
        try:
            found = list_source(path, options)
        except UsageError:
            continue
        listed += 1
        read = list(read_entries(found.kind, found.root, found.entries, options))
        assert {reading.entry.path for reading in read} == {entry.path for entry in found.entries}
        assert len(read) == len(found.entries)
        assert all((reading.raw is None) != (reading.failure is None) for reading in read)
    assert listed > 0 or kind == "gz"
