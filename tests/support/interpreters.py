"""Make interpreters that lack something, for the Python workers of foreign Spark sessions.

python = interpreter_without(tmp_path, "pyarrow")       # this Python, with all packages but one
python = other_interpreter()                            # another minor version, or the test is skipped
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

# Workers start elsewhere with the path of their driver: packages of it would be found there.
LAUNCHER = """#!/bin/sh
unset PYTHONPATH
exec {python} "$@"
"""
MINORS = tuple(f"3.{number}" for number in range(11, 16))


def interpreter_without(folder: Path, *modules: str) -> Path:
    """Return an interpreter with the packages of this one, except files that begin with these names."""
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    here, (there,) = Path(sysconfig.get_path("purelib")), environment.glob("lib/python*/site-packages")
    for entry in here.iterdir():
        # Code of ours is that of this checkout, whichever is installed.
        if not entry.name.lstrip("_").startswith((*modules, "codeanatomy")):
            (there / entry.name).symlink_to(entry)
    checker = Path(sysconfig.get_path("scripts"), "pyrefly")
    if checker.exists() and "pyrefly" not in modules:
        (environment / "bin/pyrefly").symlink_to(checker)
    if "codeanatomy" not in modules:
        (there / "checkout.pth").write_text(f"{Path(__file__).parents[2] / 'src'}\n")
    launcher = folder / "python"
    launcher.write_text(LAUNCHER.format(python=environment / "bin/python"))
    launcher.chmod(0o755)
    return launcher


def other_interpreter() -> Path:
    """Return an interpreter of another minor version than this one; skip the test if there is none."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    for minor in MINORS:
        for python in _candidates(minor):
            done = subprocess.run([python, "-V"], capture_output=True, text=True, check=False)
            if minor != own and done.returncode == 0 and done.stdout.startswith(f"Python {minor}."):
                return python
    pytest.skip(f"needs another Python than {own}")


def _candidates(minor: str) -> Iterator[Path]:
    found = shutil.which(f"python{minor}")
    if found is not None:
        yield Path(found)
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(root.glob(f"versions/{minor}.*/bin/python"))
