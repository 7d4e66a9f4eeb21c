"""What a source is: the same for the same bytes, different for any other."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import pytest

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.digest import source_digest

OPTIONS = ExtractOptions()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "__init__.py").write_bytes(b"")
    (folder / "pkg" / "api.py").write_bytes(b"import os\r\n")
    (folder / "LICENSE").write_bytes(b"free\n")
    return folder


def digest(path: Path, options: ExtractOptions = OPTIONS) -> str:
    return source_digest(list_source(path, options), options)


def test_is_the_same_elsewhere_and_later(source: Path, tmp_path: Path) -> None:
    before = digest(source)
    copy = tmp_path / "elsewhere" / "other name"
    shutil.copytree(source, copy)
    os.utime(copy / "pkg" / "api.py", (1, 1))
    (copy / "data.json").write_text("{}")
    assert digest(copy) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "pkg" / "api.py").write_bytes(b"import os\n"),
        lambda folder: (folder / "pkg" / "new.py").write_bytes(b""),
        lambda folder: (folder / "pkg" / "__init__.py").unlink(),
        lambda folder: (folder / "pkg" / "api.py").rename(folder / "pkg" / "api.pyi"),
        lambda folder: (folder / ".gitignore").write_text("api.py\n"),
        lambda folder: (folder / "link.py").symlink_to("pkg/api.py"),
    ],
    ids=["newlines", "added", "removed", "stub", "ignored", "link"],
)
def test_tells_any_change(source: Path, change: object) -> None:
    before = digest(source)
    change(source)  # type: ignore[operator]
    assert digest(source) != before


def test_archives_count_by_their_members(source: Path, tmp_path: Path) -> None:
    def packed(name: str, compression: int) -> Path:
        path = tmp_path / name
        with zipfile.ZipFile(path, "w", compression) as archive:
            for file in sorted(source.rglob("*.py")):
                archive.write(file, file.relative_to(source))
        return path

    plain = digest(packed("a.zip", zipfile.ZIP_STORED))
    assert digest(packed("b.zip", zipfile.ZIP_DEFLATED)) == plain
    (source / "pkg" / "api.py").write_bytes(b"import sys\n")
    assert digest(packed("c.zip", zipfile.ZIP_STORED)) != plain


def test_what_is_not_read_counts_by_its_reason(source: Path) -> None:
    small = ExtractOptions(max_file_size=4)
    assert digest(source, small) != digest(source)
    (source / "pkg" / "api.py").write_bytes(b"import sys\r\n")
    longer = digest(source, small)
    (source / "pkg" / "api.py").write_bytes(b"import re\r\n")
    # Only its size is known of a file that is too large.
    assert digest(source, small) != longer
