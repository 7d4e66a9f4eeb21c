from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import codeanatomy
from codeanatomy.errors import EnvironmentProblem, UsageError
from codeanatomy.spark import environment
from codeanatomy.spark.environment import (
    LAUNCHER,
    code_digest,
    pack_code,
    pack_environment,
    required_packages,
)

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


def test_only_required_packages_are_packed() -> None:
    names = {each.name.lower() for each in required_packages()}
    assert {"codeanatomy", "pyspark", "py4j", "pyarrow", "libcst", "obstore", "numpy"} <= names
    assert not names & {"pytest", "ruff", "mypy", "hypothesis", "polars"}


def test_files_of_packages_have_their_place() -> None:
    files = dict(environment._files(required_packages()))
    site = f"lib/{VERSION}/site-packages"
    assert files[f"bin/{VERSION}"].is_file()
    assert files[f"{site}/codeanatomy/__init__.py"] == Path(codeanatomy.__file__)
    assert f"{site}/pyspark/daemon.py" in files
    assert f"lib/{VERSION}/os.py" in files
    assert not [name for name in files if name.startswith((f"{site}/pyspark/jars", f"{site}/pytest"))]
    assert not [name for name in files if ".." in name or name.endswith(".pth")]
    if shutil.which("pyrefly", path=str(Path(sys.prefix, "bin"))):
        assert "bin/pyrefly" in files


def test_an_archive_has_the_files_and_a_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "module.py"
    file.write_text("x = 1\n")
    monkeypatch.setattr(environment, "_files", lambda _: iter([("lib/module.py", file)] * 2))
    packed = pack_environment(tmp_path / "env.tar.gz", force=False)
    assert (packed.files, packed.packages["codeanatomy"]) == (2, codeanatomy.__version__)
    with tarfile.open(tmp_path / "env.tar.gz") as archive:
        assert archive.getnames() == ["lib/module.py", "bin/python"]
        assert archive.getmember("bin/python").mode == 0o755
    with pytest.raises(UsageError, match="exists"):
        pack_environment(tmp_path / "env.tar.gz", force=False)
    pack_environment(tmp_path / "env.tar.gz", force=True)


def test_the_launcher_starts_the_interpreter_beside_it(tmp_path: Path) -> None:
    """Through a relative path and in a folder with a space, as an executor may have it."""
    folder = tmp_path / "my work" / "environment"
    (folder / "bin").mkdir(parents=True)
    launcher, interpreter = folder / "bin" / "python", folder / "bin" / VERSION
    launcher.write_text(LAUNCHER.format(version=VERSION))
    interpreter.write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH" "$PYTHONPATH" "$@"\n')
    for each in (launcher, interpreter):
        each.chmod(0o755)
    run = subprocess.run(
        ["./environment/bin/python", "-m", "pyspark.daemon"],
        cwd=tmp_path / "my work",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": "/spark.zip"},
        capture_output=True,
        text=True,
        check=True,
    )
    site = f"{folder}/lib/{VERSION}/site-packages"
    assert run.stdout.strip() == f"{folder}/lib {site}:/spark.zip -m pyspark.daemon"


def test_other_systems_cannot_pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(EnvironmentProblem, match="darwin"):
        pack_environment(tmp_path / "env.tar.gz", force=False)


def test_the_digest_is_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = code_digest()
    copy = tmp_path / "copy"
    shutil.copytree(Path(codeanatomy.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(environment, "files", lambda _: copy)
    assert code_digest.__wrapped__() == here
    (copy / "ids.py").write_text("")
    assert code_digest.__wrapped__() != here


def test_packed_code_is_imported_from_its_zip(tmp_path: Path) -> None:
    """Compiled, with what modules read beside them, and with the digest of this code."""
    code = tmp_path / "code.zip"
    pack_code(code)
    script = """
import codeanatomy
from codeanatomy.extract.tree_sitter_files import PACKS
from codeanatomy.spark.environment import code_digest
print(codeanatomy.__file__, len(PACKS), code_digest())
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(code)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == [f"{code}/codeanatomy/__init__.pyc", "4", code_digest()]
