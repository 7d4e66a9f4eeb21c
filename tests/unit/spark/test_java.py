from __future__ import annotations

from pathlib import Path

import pytest

from codeanatomy.errors import EnvironmentProblem
from codeanatomy.spark.java import find_java, parse_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)', (17, 0, 15)),
        ('openjdk version "21" 2023-09-19', (21,)),
        ('openjdk version "17-ea" 2021-09-14', (17,)),
        ('openjdk version "25.0.3.1" 2026-04-21 LTS', (25, 0, 3, 1)),
        ('java version "1.8.0_402"\nJava(TM) SE Runtime Environment (build 1.8.0_402-b08)', (8, 0, 402)),
        ('java version "17.0.10" 2024-01-16 LTS\nJava(TM) SE Runtime Environment', (17, 0, 10)),
        ('Picked up _JAVA_OPTIONS: -Xmx2g\nopenjdk version "11.0.22" 2024-01-16', (11, 0, 22)),
        ('WARNING: version of something\nopenjdk version "21.0.1-internal" 2023-10-17', (21, 0, 1)),
        ("no Java here", ()),
        ("", ()),
    ],
)
def test_the_version_is_read_from_any_vendors_text(text: str, version: tuple[int, ...]) -> None:
    assert parse_version(text) == version


def fake_java(folder: Path, script: str) -> Path:
    """A Java home whose `java` is a shell script."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return folder


def says(version: str) -> str:
    return f"""echo 'openjdk version "{version}"' >&2"""


def test_the_real_java_is_found() -> None:
    java = find_java()
    assert java.major in {17, 21, 25}
    assert "version" in java.text


def test_no_java_names_the_command_that_installs_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem) as problem:
        find_java()
    assert "no java on PATH" in problem.value.message
    assert "apt-get install openjdk-17-jre-headless" in problem.value.hint
    assert problem.value.exit_code == 4


def test_java_home_comes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = fake_java(tmp_path, f"echo 'Picked up _JAVA_OPTIONS: -Xmx1g' >&2; {says('21.0.4')}")
    monkeypatch.setenv("JAVA_HOME", str(home))
    java = find_java()
    assert (java.path, java.major, java.text) == (home / "bin" / "java", 21, 'openjdk version "21.0.4"')


def test_a_java_home_without_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="JAVA_HOME is"):
        find_java()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (says("1.8.0_402"), "is Java 8.0.402; Spark 4.2 runs on Java 17, 21, 25"),
        (says("11.0.22"), "is Java 11.0.22"),
        (says("23"), "is Java 23"),
        (says("25.0.2"), "can corrupt data"),
        (says("25-ea"), "can corrupt data"),
        ("echo hello", "-version printed no version: 'hello'"),
        ("echo 'Unable to locate a Java Runtime.' >&2; exit 1", "does not run: Unable to locate"),
    ],
)
def test_an_unfit_java_is_refused_with_the_next_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, message: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, script)))
    with pytest.raises(EnvironmentProblem, match=message) as problem:
        find_java()
    assert "install Java 17 or 21" in problem.value.hint


def test_a_runtime_without_the_vector_module_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = fake_java(tmp_path, says("17.0.15"))
    (home / "release").write_text('JAVA_VERSION="17.0.15"\nMODULES="java.base java.logging"\n')
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(EnvironmentProblem, match=r"without the module jdk\.incubator\.vector"):
        find_java()
    (home / "release").write_text('MODULES="java.base jdk.incubator.vector"\n')
    assert find_java().major == 17
