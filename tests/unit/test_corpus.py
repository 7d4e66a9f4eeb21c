from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from codeanatomy.errors import EnvironmentProblem, UnknownName
from support import corpus

BUILD_SYSTEM = "[build-system]\nrequires = ['setuptools']\nbuild-backend = 'setuptools.build_meta'\n"


def test_a_package_is_fetched_once_and_then_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    source = corpus.package("requests")
    assert (source / "requests" / "api.py").is_file()
    monkeypatch.setattr(corpus, "_wheel", None)
    assert corpus.package("requests") == source
    assert not list(source.parent.glob(".fetch-*/*.whl"))


@pytest.mark.parametrize(("lock", "count"), [(corpus.LOCK, 9), (corpus.SDISTS_LOCK, 1)])
def test_the_lock_pins_every_package_by_hash(lock: Path, count: int) -> None:
    lines = [line for line in lock.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == len(corpus._pins(lock)) == count


def test_an_unknown_package_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="did you mean flask"):
        corpus.package("flasks")


@pytest.mark.parametrize("entry", ["../evil.py", "/evil.py", "a/../../evil.py", "..\\evil.py"])
def test_an_archive_cannot_write_outside_of_its_folder(tmp_path: Path, entry: str) -> None:
    wheel = tmp_path / "bad.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(entry, "")
    with pytest.raises(ValueError, match="outside of itself"):
        corpus.unpack(wheel, tmp_path / "out")
    assert not (tmp_path / "evil.py").exists()


def archive_of(path: Path, files: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as file:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            file.addfile(entry, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize(
    ("build", "fetched"), [(BUILD_SYSTEM, True), ("", False)], ids=["setuptools", "setup.py alone"]
)
def test_a_source_distribution_is_fetched_without_running_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: str, fetched: bool
) -> None:
    files = {
        "PKG-INFO": "Metadata-Version: 2.1\nName: Thing\nVersion: 1.0\n",
        "setup.py": f"open({str(tmp_path / 'ran')!r}, 'w').close()\n",
        "tests/test_thing.py": "",
    }
    if build:
        files["pyproject.toml"] = build
    archive = archive_of(
        tmp_path / "thing-1.0.tar.gz", {f"thing-1.0/{name}": text for name, text in files.items()}
    )
    lock = tmp_path / "sdists.lock"
    lock.write_text(f"thing==1.0 --hash=sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}\n")
    monkeypatch.setattr(corpus, "SDISTS_LOCK", lock)
    monkeypatch.setattr(corpus, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    if fetched:
        source = corpus.sdist("thing")
        assert source == tmp_path / "cache" / "corpus" / "thing-1.0-sdist"
        assert (source / "tests" / "test_thing.py").is_file()
    else:
        with pytest.raises(EnvironmentProblem, match=r"thing==1\.0 could not be fetched"):
            corpus.sdist("thing")
    assert not (tmp_path / "ran").exists()
    assert not list((tmp_path / "cache" / "corpus").glob(".fetch-*"))


@pytest.mark.parametrize("entry", ["../evil.py", "a/../../../evil.py"])
def test_a_source_distribution_cannot_write_outside_of_its_folder(tmp_path: Path, entry: str) -> None:
    archive = archive_of(tmp_path / "bad-1.tar.gz", {"bad-1/a.py": "", f"bad-1/../{entry}": ""})
    with pytest.raises(tarfile.OutsideDestinationError):
        corpus.unpack_sdist(archive, tmp_path / "out")
    assert not (tmp_path / "evil.py").exists()
