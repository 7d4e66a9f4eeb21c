"""Pack the running Python environment as an archive that Spark unpacks on every executor.

    packed = pack_environment(Path("env.tar.gz"), force=False)
    packed.size_bytes                          # about 250 MB

    env.tar.gz
      bin/python                 a script: finds its own folder, then starts the interpreter with it
      bin/python3.11, lib/       the interpreter, its standard library, and libraries that it loads
      lib/python3.11/site-packages
                                 codeanatomy and the packages that it requires; PySpark without its jars

    --set runtime.environment=env.tar.gz       sets spark.archives, and the Python of the executors

Packed are only the packages that codeanatomy requires, with the type checker if it is installed, not all of
the environment. The executors must have the same kind of processor and a C library that is not older; they
need no Python of their own. Libraries of the system other than the C library are packed, too.

`pack_code` packs codeanatomy alone, for the workers of Spark Connect, to which a client can send files.
`code_digest` identifies the code of codeanatomy, so that a session can compare executors with the driver.

Tests: `tests/unit/spark/test_environment.py`, `tests/system/test_cluster.py`.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import MAGIC_NUMBER, source_hash
from io import BytesIO
from pathlib import Path, PurePosixPath
from types import CodeType

from msgspec import Struct

import codeanatomy
from codeanatomy.atomic_output import atomic_file
from codeanatomy.errors import EnvironmentProblem

NAME = "codeanatomy"
# Name of the unpacked archive in the working folder of an executor, and its Python.
FOLDER = "environment"
PYTHON = f"./{FOLDER}/bin/python"
# Optional packages of ours that executors use.
EXTRAS = ("types",)
# Gzip at level 1 takes a third of the time of level 6 and makes the archive an eighth larger.
COMPRESSION = 1
# Folders of the standard library that no executor needs.
UNUSED_STANDARD = frozenset(
    {"test", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages", "dist-packages"}
)
# Parts of packages that no executor needs: Spark's jars are part of the cluster.
UNUSED = (
    "pyspark/jars",
    "pyspark/examples",
    "pyspark/data",
    "pyarrow/include",
    "pyarrow/tests",
    "pandas/tests",
)
# Libraries that belong to the system and must not be replaced by those of another.
SYSTEM_LIBRARIES = re.compile(
    r"(ld-linux.*|linux-vdso|lib(c|m|dl|rt|util|pthread|resolv|nsl|crypt|gcc_s|stdc\+\+))\.so.*"
)
LAUNCHER = """\
#!/bin/sh
# Start the packed interpreter, wherever the archive was unpacked.
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd -P)
export LD_LIBRARY_PATH="$here/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
export PYTHONPATH="$here/lib/{version}/site-packages${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONNOUSERSITE=1
exec "$here/bin/{version}" "$@"
"""
READ_ONLY, EXECUTABLE = 0o644, 0o755
# Flags of compiled code that is identified by the hash of its source, which is not checked.
UNCHECKED = (1).to_bytes(4, "little")
# Equal code makes an equal zip.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


class Packed(Struct, frozen=True):
    """An archive that was written."""

    path: str
    size_bytes: int
    files: int
    # Names and versions.
    packages: dict[str, str]
    python: str


def pack_environment(path: Path, *, force: bool) -> Packed:
    """Write the archive; an existing file is replaced only with `force`."""
    if sys.platform != "linux":
        raise EnvironmentProblem(
            f"an environment for executors cannot be packed on {sys.platform}",
            "run the command on Linux, with the kind of processor that the executors have",
        )
    packages = required_packages()
    names: set[str] = set()
    with (
        atomic_file(path, force=force) as stream,
        tarfile.open(fileobj=stream, mode="w:gz", compresslevel=COMPRESSION, dereference=True) as archive,
    ):
        for name, file in _files(packages):
            if name not in names:
                names.add(name)
                archive.add(file, name, recursive=False, filter=_normalized)
        launcher = LAUNCHER.format(version=_version()).encode()
        entry = tarfile.TarInfo("bin/python")
        entry.size, entry.mode = len(launcher), EXECUTABLE
        archive.addfile(entry, BytesIO(launcher))
    return Packed(
        str(path),
        path.stat().st_size,
        len(names) + 1,
        {each.name: each.version for each in packages},
        sys.version.split()[0],
    )


def required_packages() -> list[Distribution]:
    """Return codeanatomy and the installed packages that it requires, directly or not, in order of names."""
    waiting: list[tuple[str, tuple[str, ...]]] = [(NAME, EXTRAS)]
    packages: dict[str, Distribution] = {}
    while waiting:
        name, extras = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in packages:
            continue
        try:
            packages[key] = distribution(name)
        except PackageNotFoundError:
            # Required on other systems or versions of Python, or of an extra that is not installed.
            continue
        waiting += [(each, ()) for each in _requirements(packages[key], extras)]
    return [packages[key] for key in sorted(packages)]


def _requirements(package: Distribution, extras: tuple[str, ...]) -> Iterator[str]:
    """Yield the names of required packages, with those of some extras."""
    for requirement in package.requires or ():
        text, _, marker = requirement.partition(";")
        name = re.match(r"[\w.-]+", text.strip())
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
        if name and (extra is None or extra[1] in extras):
            yield name[0]


def _files(packages: list[Distribution]) -> Iterator[tuple[str, Path]]:
    """Yield the files of the archive: the name there, and the path here."""
    interpreter = Path(sys.base_prefix, "bin", _version())
    if not interpreter.is_file():
        interpreter = Path(getattr(sys, "_base_executable", sys.executable))
    interpreter = interpreter.resolve()
    yield f"bin/{_version()}", interpreter
    standard = Path(sysconfig.get_path("stdlib"))
    binaries = [interpreter]
    for file in _walk(standard):
        inside = file.relative_to(standard)
        if inside.parts[0] in UNUSED_STANDARD or inside.parts[0].startswith("config-"):
            continue
        if file.suffix == ".so":
            binaries.append(file)
        yield f"lib/{_version()}/{inside.as_posix()}", file
    for library in shared_libraries(binaries):
        yield f"lib/{library.name}", library
    site = f"lib/{_version()}/site-packages"
    own = Path(codeanatomy.__file__).parent
    for file in _walk(own):
        yield f"{site}/{NAME}/{file.relative_to(own).as_posix()}", file
    for package in packages:
        yield from _package_files(package, site)


def _package_files(package: Distribution, site: str) -> Iterator[tuple[str, Path]]:
    if package.files is None:
        raise EnvironmentProblem(
            f"the package {package.name} has no list of its files",
            "install codeanatomy with pip into an environment of its own",
        )
    for listed in package.files:
        file, name = Path(os.path.normpath(str(listed.locate()))), listed.as_posix()
        if name.startswith(UNUSED) or name.endswith(".pth") or not file.is_file():
            continue
        if not name.startswith("../"):
            yield f"{site}/{name}", file
        elif file.parent == Path(sysconfig.get_path("scripts")) and _is_binary(file):
            # Scripts name the interpreter of this machine; a command that is a program works anywhere.
            yield f"bin/{file.name}", file


def shared_libraries(binaries: list[Path]) -> list[Path]:
    """Return the libraries that programs load, without those of the system; the first of each name."""
    done = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True, check=False)
    libraries: dict[str, Path] = {}
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", done.stdout, re.MULTILINE):
        if not SYSTEM_LIBRARIES.fullmatch(name):
            libraries.setdefault(name, Path(path))
    return [libraries[name] for name in sorted(libraries)]


def pack_code(path: Path) -> None:
    """Write codeanatomy as a zip from which another Python of this version imports it.

    Modules are there compiled, too: a worker that compiled them would start seconds later. What they read is
    read as a resource of their package. Packages that codeanatomy requires are not in it.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name, file in _resources(files(NAME), NAME):
            content = file.read_bytes()
            parts = {name: content}
            if name.endswith(".py"):
                # As a file of compiled code begins whose source is not looked at: number, flags, hash.
                lead = MAGIC_NUMBER + UNCHECKED + source_hash(content)
                parts[f"{name}c"] = lead + marshal.dumps(_compiled(name, file, content))
            for each, data in parts.items():
                archive.writestr(zipfile.ZipInfo(each, ZIP_TIME), data, zipfile.ZIP_DEFLATED, COMPRESSION)


def _compiled(name: str, file: Traversable, content: bytes) -> CodeType:
    """Return the code of a module; of one that was imported from a folder it is in a cache beside it."""
    code = SourceFileLoader(name, str(file)).get_code(name) if isinstance(file, Path) else None
    return code or compile(content, name, "exec", dont_inherit=True)


@cache
def code_digest() -> str:
    """Return a hash of the modules of codeanatomy, the same wherever the same code is installed or zipped."""
    digest = hashlib.sha256()
    for name, file in _resources(files(NAME), NAME):
        if name.endswith(".py"):
            digest.update(name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _resources(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    """Yield the files of a package, in a folder or in a zip, with their paths; no compiled modules."""
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        path = f"{name}/{each.name}"
        if each.is_dir():
            if each.name != "__pycache__":
                yield from _resources(each, path)
        elif not path.endswith(".pyc"):
            yield path, each


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder in the order of their paths."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _normalized(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Give a file no owner and no link; times stay, because compiled modules are checked by them."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    is_executable = bool(entry.mode & 0o100) or PurePosixPath(entry.name).parent.name == "bin"
    entry.mode = EXECUTABLE if is_executable else READ_ONLY
    return entry


def _is_binary(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def _version() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"
