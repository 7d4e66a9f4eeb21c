r"""Find the Java runtime that Spark will start, and check that it is supported.

Spark's launcher takes `$JAVA_HOME/bin/java`, or the `java` on PATH when JAVA_HOME is not set; this
module looks in the same order, so what it reports is what runs. Spark 4.2 supports Java 17, 21 and
25; of 25 the releases before 25.0.3 are refused, because their garbage collector could corrupt data.

The version comes from `java -version`, whose text differs by vendor and age:

>>> parse_version('openjdk version "17.0.15" 2025-04-15')
(17, 0, 15)
>>> parse_version('java version "1.8.0_402"')
(8, 0, 402)
>>> parse_version('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21-ea" 2023-09-19')
(21,)

A runtime reduced to a few modules lacks `jdk.incubator.vector`, which Spark's launcher requires. The
`release` file beside the runtime lists its modules, so such a Java is rejected here rather than by the JVM.

Tests: `tests/unit/spark/test_java.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from msgspec import Struct

from codeanatomy.errors import EnvironmentProblem

SUPPORTED = (17, 21, 25)
OLDEST_25 = (25, 0, 3)
VECTOR_MODULE = "jdk.incubator.vector"
HOW_TO_INSTALL = (
    "install Java 17 or 21 (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17; elsewhere: sdk install java 17.0.15-tem), "
    "set JAVA_HOME if it is not the first on PATH, and check with: codeanatomy doctor; "
    "codeanatomy build --engine local needs no Java"
)
# Timeout of `java -version`.
VERSION_SECONDS = 30


class Java(Struct, frozen=True):
    """A Java runtime that can run Spark."""

    path: Path
    major: int
    # Output of `java -version`, without the lines that only repeat environment variables.
    text: str


def find_java() -> Java:
    """Return the Java that Spark will start. Raise EnvironmentProblem if none is supported."""
    path = _locate()
    text = _version_text(path)
    version = parse_version(text)
    if not version:
        raise EnvironmentProblem(f"{path} -version printed no version: {text[:200]!r}", HOW_TO_INSTALL)
    _check_version(path, version)
    _check_modules(path)
    return Java(path, version[0], text)


def parse_version(text: str) -> tuple[int, ...]:
    """Return the version in the output of `java -version` as numbers, major first; empty if there is none."""
    match = re.search(r'version "(\d+(?:[._]\d+)*)', text)
    if match is None:
        return ()
    numbers = tuple(int(part) for part in re.split(r"[._]", match[1]))
    return numbers[1:] if numbers[0] == 1 and len(numbers) > 1 else numbers


def _locate() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        path = Path(home, "bin", "java")
        if not os.access(path, os.X_OK):
            raise EnvironmentProblem(
                f"JAVA_HOME is {home}, but there is no {path}",
                f"set JAVA_HOME to the folder of a Java runtime or unset it; or {HOW_TO_INSTALL}",
            )
        return path
    on_path = shutil.which("java")
    if on_path is None:
        raise EnvironmentProblem("no Java: JAVA_HOME is not set and there is no java on PATH", HOW_TO_INSTALL)
    return Path(on_path)


def _version_text(path: Path) -> str:
    try:
        done = subprocess.run(
            [path, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=VERSION_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise EnvironmentProblem(f"{path} does not run: {problem}", HOW_TO_INSTALL) from problem
    lines = (done.stderr + done.stdout).splitlines()
    text = "\n".join(line.strip() for line in lines if line.strip() and not line.startswith("Picked up "))
    if done.returncode:
        # macOS has a /usr/bin/java that only reports that Java is missing.
        raise EnvironmentProblem(f"{path} does not run: {text[:200]}", HOW_TO_INSTALL)
    return text


def _check_version(path: Path, version: tuple[int, ...]) -> None:
    number = ".".join(map(str, version))
    if version[0] not in SUPPORTED:
        known = ", ".join(map(str, SUPPORTED))
        raise EnvironmentProblem(f"{path} is Java {number}; Spark 4.2 runs on Java {known}", HOW_TO_INSTALL)
    if OLDEST_25[:1] <= version < OLDEST_25:
        raise EnvironmentProblem(
            f"{path} is Java {number}, which can corrupt data; Spark 4.2 requires 25.0.3 or newer",
            HOW_TO_INSTALL,
        )


def _check_modules(path: Path) -> None:
    release = path.resolve().parent.parent / "release"
    try:
        text = release.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return  # Not every vendor ships the file; without it the start of Spark reports the error.
    modules = re.search(r'^MODULES="([^"]*)"', text, re.MULTILINE)
    if modules and VECTOR_MODULE not in modules[1].split():
        raise EnvironmentProblem(
            f"{path} is a reduced Java without the module {VECTOR_MODULE}, which Spark needs", HOW_TO_INSTALL
        )
