from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from codeanatomy.cli import doctor
from codeanatomy.cli.doctor import Check, available_memory, examine, parse_memory
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.extract.tools import pyrefly
from codeanatomy.spark.jars import JARS, Jar

NAMES = [
    "python",
    "java",
    "packages",
    "cache",
    "jars",
    "archive",
    "worker",
    "memory",
    "disk",
    "scip",
    "types",
]


def result_of(name: str, driver_memory: str = "1m") -> Check:
    return next(check for check in examine(driver_memory) if check.name == name)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder in force for the test."""
    monkeypatch.setenv("CODEANATOMY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    return tmp_path / "cache"


def test_every_concern_is_always_reported_in_order(cache: Path) -> None:
    checks = examine("1m")
    assert [check.name for check in checks] == NAMES
    assert all(check.next_step for check in checks if check.status != "ok")
    assert not any(check.next_step for check in checks if check.status == "ok")


def test_nothing_raises_when_everything_is_missing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CODEANATOMY_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "no-python"))
    status = {check.name: check.status for check in examine("999999g")}
    failing = [name for name in NAMES if status[name] == "fail"]
    assert failing == ["java", "cache", "jars", "archive", "worker", "memory", "disk"]
    assert status["scip"] == "warn"


def test_the_packages_must_be_the_pair(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert result_of("packages").status == "ok"
    monkeypatch.setattr(doctor, "PACKAGES", (("pyspark", "9.9"), ("no-such-package", "1")))
    check = result_of("packages")
    assert check.status == "fail"
    assert "no-such-package missing (1 needed)" in check.detail
    assert check.next_step == "pip install pyspark==9.9 no-such-package==1"


def test_a_damaged_jar_fails_by_its_full_hash(cache: Path) -> None:
    (cache / "jars").mkdir(parents=True)
    (cache / "jars" / JARS[0].name).write_bytes(b"not a jar")
    check = result_of("jars")
    assert (check.status, check.next_step) == ("fail", "codeanatomy setup")
    assert JARS[0].name in check.detail


def test_right_jars_pass(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    monkeypatch.setattr(doctor, "invalid_jars", lambda folder: [Jar("g", "a", "1", empty)][1:])
    assert result_of("jars").status == "ok"


def test_no_archive_only_warns(cache: Path) -> None:
    assert result_of("archive").status == "warn"


def test_the_workers_python_is_run(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert result_of("worker").status == "ok"
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 3.8 18.0.0\n")
    other.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    check = result_of("worker")
    assert check.status == "fail"
    assert f"is Python 3.8, the driver's is 3.{sys.version_info.minor}" in check.detail
    other.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'pyarrow'\" >&2; exit 1\n")
    check = result_of("worker")
    assert check.detail.endswith("No module named 'pyarrow'")
    assert "PYSPARK_PYTHON" in check.next_step


@pytest.mark.parametrize(("driver_memory", "status"), [("2g", "ok"), ("3g", "warn"), ("5g", "fail")])
def test_memory_is_compared_with_the_drivers(
    cache: Path, monkeypatch: pytest.MonkeyPatch, driver_memory: str, status: str
) -> None:
    monkeypatch.setattr(doctor, "available_memory", lambda: int(3.5 * 1024**3))
    assert result_of("memory", driver_memory).status == status


def test_unknown_memory_only_warns(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "available_memory", lambda: None)
    assert result_of("memory").status == "warn"


def test_this_machine_reports_its_memory() -> None:
    assert (available_memory() or 0) > 0


@pytest.mark.parametrize(
    ("text", "size"),
    [("1k", 1024), ("2m", 2 * 1024**2), ("3GB", 3 * 1024**3), ("1t", 1024**4), ("7", 7 * 1024**2)],
)
def test_memory_settings(text: str, size: int) -> None:
    assert parse_memory(text) == size


def test_a_memory_setting_that_is_none_is_refused(cache: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="not an amount of memory"):
        parse_memory("much")
    assert result_of("memory", "much").status == "fail"


@pytest.mark.parametrize(("free", "status"), [(10 * 1024**3, "ok"), (1024**3, "warn"), (1024, "fail")])
def test_disk_space(cache: Path, monkeypatch: pytest.MonkeyPatch, free: int, status: str) -> None:
    usage = SimpleNamespace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    assert result_of("disk").status == status


def test_scip_tools_are_optional(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    monkeypatch.setenv("PATH", str(bin_folder))
    check = result_of("scip")
    assert (check.status, check.detail[:26]) == ("warn", "no node and no scip-python")
    for tool in ("node", "scip-python"):
        (bin_folder / tool).write_text("#!/bin/sh\necho 1.2.3\n")
        (bin_folder / tool).chmod(0o755)
    assert result_of("scip") == Check("scip", "ok", "node 1.2.3, scip-python 1.2.3")


def test_the_type_checker_is_optional(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = result_of("types")
    assert (check.status, check.detail[:8]) == ("ok", "pyrefly ")
    monkeypatch.setattr(pyrefly, "find_pyrefly", lambda: None)
    check = result_of("types")
    assert (check.status, check.next_step) == ("warn", "pip install 'codeanatomy[types]'")
