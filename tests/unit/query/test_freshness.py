"""Whether a source has changed, found out from a few facts of its files."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.query.engines.statements import Query, Row
from codeanatomy.query.status import freshness
from codeanatomy.query.status.freshness import source_freshness
from codeanatomy.sources.detect import list_source
from codeanatomy.sources.digest import source_digest


class Known:
    """A reader that knows the files of a folder as they were."""

    def __init__(self, folder: Path) -> None:
        self.files: list[Row] = []
        for file in sorted(folder.rglob("*.py")):
            facts = file.stat()
            digest = sha256(file.read_bytes()).hexdigest()
            self.files.append((file.relative_to(folder).as_posix(), facts.st_size, facts.st_mtime_ns, digest))

    def rows(self, query: Query, limit: int | None = None) -> list[Row]:
        return self.files


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "pkg" / "deep").mkdir(parents=True)
    (folder / "a.py").write_text("x = 1\n")
    (folder / "pkg" / "deep" / "b.py").write_text("y = 1\n")
    return folder


def manifest(source: Path) -> RunManifest:
    digest = source_digest(list_source(source, ExtractOptions()), ExtractOptions())
    # Folders were written a while before.
    began = datetime.now(UTC) + timedelta(seconds=60)
    return RunManifest(
        run_id="r",
        repo_id="s",
        repo_root=str(source),
        source_digest=digest,
        status="succeeded",
        started_at=began,
        finished_at=began,
        profile_hash="p",
    )


@pytest.fixture
def no_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact way is not taken."""

    def refuse(*_: object) -> None:
        raise AssertionError("the source was listed")

    monkeypatch.setattr(freshness, "source_state", refuse)


@pytest.mark.usefixtures("no_listing")
def test_what_is_as_it_was_is_found_unchanged_without_listing(source: Path) -> None:
    assert source_freshness(Known(source), manifest(source)) == "unchanged"


@pytest.mark.usefixtures("no_listing")
def test_other_bytes_are_a_change(source: Path) -> None:
    known, row = Known(source), manifest(source)
    (source / "a.py").write_text("x = 2\n")
    os.utime(source / "a.py", ns=(1, 1))
    assert source_freshness(known, row) == "changed"


@pytest.mark.usefixtures("no_listing")
def test_a_touched_file_is_no_change(source: Path) -> None:
    known, row = Known(source), manifest(source)
    os.utime(source / "a.py", ns=(1, 1))
    assert source_freshness(known, row) == "unchanged"


def test_a_file_that_is_gone_is_a_change(source: Path) -> None:
    known, row = Known(source), manifest(source)
    (source / "pkg" / "deep" / "b.py").unlink()
    assert source_freshness(known, row) == "changed"


@pytest.mark.parametrize("new", ["c.py", "pkg/new/c.py", "pkg/deep/c.pyi"])
def test_a_new_file_is_a_change(source: Path, new: str) -> None:
    known, row = Known(source), manifest(source)
    (source / new).parent.mkdir(exist_ok=True)
    (source / new).write_text("z = 1\n")
    later = datetime.now(UTC).timestamp() + 120
    for folder in (source, source / "pkg", source / "pkg" / "deep"):
        os.utime(folder, (later, later))
    assert source_freshness(known, row) == "changed"


def test_a_new_file_that_is_ignored_is_a_row_of_the_lake_too(source: Path) -> None:
    (source / ".gitignore").write_text("made.py\n")
    known, row = Known(source), manifest(source)
    (source / "made.py").write_text("z = 1\n")
    later = datetime.now(UTC).timestamp() + 120
    os.utime(source, (later, later))
    assert source_freshness(known, row) == "changed"


@pytest.mark.usefixtures("no_listing")
def test_what_tools_leave_behind_is_no_change(source: Path) -> None:
    known, row = Known(source), manifest(source)
    (source / "__pycache__").mkdir()
    (source / ".cache").mkdir()
    (source / "notes.txt").write_text("")
    later = datetime.now(UTC).timestamp() + 120
    os.utime(source, (later, later))
    assert source_freshness(known, row) == "unchanged"


def test_a_source_that_is_gone_or_was_never_told(source: Path, tmp_path: Path) -> None:
    known, row = Known(source), manifest(source)
    source.rename(tmp_path / "elsewhere")
    assert source_freshness(known, row) == "gone"
    began = datetime.now(UTC)
    bare = RunManifest(
        run_id="r", repo_id="s", status="succeeded", started_at=began, finished_at=began, profile_hash="p"
    )
    assert source_freshness(known, bare) == "unknown"
