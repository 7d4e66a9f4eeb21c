"""Fetch real Python packages for tests and benchmarks, once, by pinned version and hash.

    source = corpus.package("requests")  # <cache>/corpus/requests-2.34.2
    (source / "requests" / "api.py").read_bytes()
    corpus.sdist("django")               # <cache>/corpus/django-5.2.19-sdist: with its tests

`packages.lock` pins wheels: a wheel is an archive of the sources, and unpacking it runs none of them.
`sdists.lock` pins source distributions. pip gets the metadata of one from its build backend before it saves
the archive, so a backend that runs nothing is put in the place of setuptools: `sdist_backend`.
pip downloads and checks the hash; the archive is unpacked beside its place and then renamed, so a folder
under `<cache>/corpus` is complete by being there.

Tests: `tests/unit/test_corpus.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from codeanatomy.errors import EnvironmentProblem, UnknownName
from codeanatomy.spark.jars import cache_folder

LOCK = Path(__file__).with_name("packages.lock")
SDISTS_LOCK = Path(__file__).with_name("sdists.lock")
BACKEND = Path(__file__).with_name("sdist_backend.py")


def package(name: str) -> Path:
    """Return the folder with the unpacked sources of a pinned package."""
    version, requirement = _pin(name, LOCK)
    return _fetched(f"{name}-{version}", lambda work: unpack(_wheel(work, requirement), work / "unpacked"))


def sdist(name: str) -> Path:
    """Return the folder with the unpacked source distribution of a pinned package."""
    version, requirement = _pin(name, SDISTS_LOCK)
    return _fetched(
        f"{name}-{version}-sdist", lambda work: unpack_sdist(_sdist(work, requirement), work / "unpacked")
    )


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a wheel, refusing any entry that would land outside the folder."""
    with zipfile.ZipFile(archive) as wheel:
        for entry in wheel.namelist():
            path = PurePosixPath(entry)
            if path.is_absolute() or ".." in path.parts or "\\" in entry:
                raise ValueError(f"{archive.name} has an entry outside of itself: {entry}")
        wheel.extractall(folder)


def unpack_sdist(archive: Path, folder: Path) -> None:
    """Unpack the one folder of a source distribution as that folder; entries outside of it are refused."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as work, tarfile.open(archive) as sdist:
        sdist.extractall(work, filter="data")
        (top,) = Path(work).iterdir()
        top.rename(folder)


def _pin(name: str, lock: Path) -> tuple[str, str]:
    """The version of a package, and its whole requirement line."""
    pins = _pins(lock)
    if name not in pins:
        raise UnknownName("package", name, pins)
    return pins[name]


def _pins(lock: Path) -> dict[str, tuple[str, str]]:
    """Name -> version and whole requirement line."""
    found = re.findall(r"^(([\w.-]+)==(\S+) --hash=.+)$", lock.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: (version, line) for line, name, version in found}


def _fetched(name: str, fetch: Callable[[Path], None]) -> Path:
    """The folder of that name in the cache; where it is missing, what `fetch` leaves as `unpacked`."""
    folder = cache_folder() / "corpus" / name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as work:
        fetch(Path(work))
        try:
            Path(work, "unpacked").rename(folder)
        except OSError:
            if not folder.is_dir():  # Otherwise another process was first, with the same bytes.
                raise
    return folder


def _wheel(work: Path, requirement: str) -> Path:
    return _download(work, requirement, "*.whl", ("--only-binary", ":all:"), os.environ)


def _sdist(work: Path, requirement: str) -> Path:
    backend = work / "backend" / "setuptools"
    backend.mkdir(parents=True)
    (backend / "__init__.py").touch()
    shutil.copyfile(BACKEND, backend / "build_meta.py")
    # Without isolation the backend is found on the path, ours before the true one; setup.py is never run.
    options = ("--no-binary", ":all:", "--no-build-isolation", "--use-pep517")
    environment = {**os.environ, "PYTHONPATH": str(backend.parent)}
    return _download(work, requirement, "*.tar.gz", options, environment)


def _download(
    work: Path, requirement: str, pattern: str, kind: tuple[str, ...], environment: Mapping[str, str]
) -> Path:
    (work / "wanted.txt").write_text(requirement, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "download",
    ]
    options = ["--no-deps", *kind, "--require-hashes", "--dest", str(work)]
    done = subprocess.run(
        [*command, *options, "--requirement", str(work / "wanted.txt")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    archives = sorted(work.glob(pattern))
    if done.returncode or not archives:
        output = done.stderr.strip().splitlines() or ["pip printed nothing"]
        raise EnvironmentProblem(
            f"{requirement.split(maxsplit=1)[0]} could not be fetched: {output[-1]}",
            "check the network and pip's settings",
        )
    return archives[0]
