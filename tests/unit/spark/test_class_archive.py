"""The archive's name, options and upkeep; a real one is made by `codeanatomy setup`."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.spark import class_archive as archive
from codeanatomy.spark.class_archive import archive_path, java_options, train_archive
from codeanatomy.spark.java import Java


@pytest.fixture
def java(tmp_path: Path) -> Java:
    return Java(tmp_path / "java", 17, "17.0.15")


@pytest.fixture
def jars(tmp_path: Path) -> tuple[Path, ...]:
    (tmp_path / "a.jar").write_bytes(b"a")
    return (tmp_path / "a.jar",)


def pretend(path: Path, size: int = 4) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"dump")
    path.with_suffix(".size").write_text(str(size))


def test_the_name_changes_with_everything_the_dump_depends_on(
    tmp_path: Path, java: Java, jars: tuple[Path, ...]
) -> None:
    names = {archive_path(tmp_path, java, jars)}
    names.add(archive_path(tmp_path, Java(java.path, 17, "17.0.16"), jars))
    names.add(archive_path(tmp_path, Java(tmp_path / "other", 17, java.text), jars))
    jars[0].write_bytes(b"ab")
    names.add(archive_path(tmp_path, java, jars))
    assert len(names) == 4


def test_options_only_for_a_whole_archive(tmp_path: Path, java: Java, jars: tuple[Path, ...]) -> None:
    path = archive_path(tmp_path, java, jars)
    assert java_options(tmp_path, java, jars) == ()
    pretend(path, size=5)
    assert java_options(tmp_path, java, jars) == ()
    pretend(path)
    options = java_options(tmp_path, java, jars)
    assert options[0] == f'"-XX:SharedArchiveFile={path}"'
    assert "-Xlog:cds=off" in options


def test_the_log_is_silenced_by_the_tags_of_its_java(tmp_path: Path, jars: tuple[Path, ...]) -> None:
    newer = Java(tmp_path / "java", 25, "25.0.3")
    pretend(archive_path(tmp_path, newer, jars))
    assert "-Xlog:aot=off" in java_options(tmp_path, newer, jars)


def test_a_training_that_fails_is_no_error(
    tmp_path: Path, java: Java, jars: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive.sys, "executable", "/bin/false")
    assert train_archive(tmp_path, java, jars) is None
    assert [entry.name for entry in (tmp_path / "archives").iterdir()] == [".lock"]


def test_an_archive_that_is_there_is_not_made_again(
    tmp_path: Path, java: Java, jars: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive_path(tmp_path, java, jars)
    pretend(path)
    monkeypatch.setattr(archive, "_train", None)
    assert train_archive(tmp_path, java, jars) == path


def test_only_the_newest_archives_are_kept(
    tmp_path: Path, java: Java, jars: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        pretend(tmp_path / "archives" / f"old{number}.jsa")
    monkeypatch.setattr(archive, "_train", lambda fresh, java, cache: fresh.write_bytes(b"dump"))
    path = train_archive(tmp_path, java, jars)
    kept = [entry.name for entry in (tmp_path / "archives").iterdir() if entry.name != ".lock"]
    assert path is not None
    assert path.name in kept
    assert len(kept) == 2 * archive.KEPT
