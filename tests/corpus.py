"""Real Python packages for tests and benchmarks, fetched once by pinned version and hash.

    source = corpus.package("requests")  # <cache>/corpus/requests-2.34.2
    (source / "requests" / "api.py").read_bytes()

`packages.lock` pins wheels: a wheel is an archive of the sources, and unpacking it runs none of them.
pip downloads and checks the hash; the archive is unpacked beside its place and then renamed, so a folder
under `<cache>/corpus` is complete by being there.

Tests: `tests/test_corpus.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from codeanatomy.errors import EnvironmentProblem, UnknownName
from codeanatomy.storage.jars import cache_folder

LOCK = Path(__file__).with_name("packages.lock")


def package(name: str) -> Path:
    """The folder with the unpacked sources of a pinned package."""
    pins = _pins()
    if name not in pins:
        raise UnknownName("package", name, pins)
    version, requirement = pins[name]
    folder = cache_folder() / "corpus" / f"{name}-{version}"
    if not folder.is_dir():
        _fetch(folder, requirement)
    return folder


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a wheel, refusing any entry that would land outside the folder."""
    with zipfile.ZipFile(archive) as wheel:
        for entry in wheel.namelist():
            path = PurePosixPath(entry)
            if path.is_absolute() or ".." in path.parts or "\\" in entry:
                raise ValueError(f"{archive.name} has an entry outside of itself: {entry}")
        wheel.extractall(folder)


def _pins() -> dict[str, tuple[str, str]]:
    """Name -> version and whole requirement line."""
    found = re.findall(r"^(([\w.-]+)==(\S+) --hash=.+)$", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: (version, line) for line, name, version in found}


def _fetch(folder: Path, requirement: str) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as name:
        work = Path(name)
        unpack(_download(work, requirement), work / folder.name)
        try:
            (work / folder.name).rename(folder)
        except OSError:
            if not folder.is_dir():  # Otherwise another process was first, with the same bytes.
                raise


def _download(work: Path, requirement: str) -> Path:
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
    options = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--dest", str(work)]
    done = subprocess.run(
        [*command, *options, "--requirement", str(work / "wanted.txt")],
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = sorted(work.glob("*.whl"))
    if done.returncode or not wheels:
        said = done.stderr.strip().splitlines() or ["pip said nothing"]
        raise EnvironmentProblem(
            f"{requirement.split(maxsplit=1)[0]} could not be fetched: {said[-1]}",
            "check the network and pip's settings",
        )
    return wheels[0]
