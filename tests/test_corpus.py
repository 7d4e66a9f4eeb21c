from __future__ import annotations

import time
import zipfile
from pathlib import Path

import pytest

import corpus
from codeanatomy.errors import UnknownName


def test_a_package_is_fetched_once_and_then_at_hand() -> None:
    source = corpus.package("requests")
    assert (source / "requests" / "api.py").is_file()
    begun = time.perf_counter()
    assert corpus.package("requests") == source
    assert time.perf_counter() - begun < 1
    assert not list(source.parent.glob(".fetch-*/*.whl"))


def test_the_lock_pins_every_package_by_hash() -> None:
    lines = [line for line in corpus.LOCK.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == len(corpus._pins()) == 6


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
