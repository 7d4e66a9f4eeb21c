"""Fetch the real scip-python for tests, once, by pinned version and hash, and make an index.

    scip_tool.installed()          # <cache>/scip-python/<digest of the lock>/node_modules/.bin/scip-python
    scip_tool.index("requests")    # made once per test process; 20 s

`scip/package-lock.json` pins the packages; `npm ci` checks their hashes, and no script of theirs is run while
they are installed. The peers of `ts-node` (a compiler of 40 MB) are left out: the indexer is one bundle.
To change the version: edit `scip/package.json`, then in that folder
`npm install --package-lock-only --legacy-peer-deps --omit-lockfile-registry-resolved`.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from unittest import mock

import pytest

from codeanatomy.config import SCIP_VARIABLE
from codeanatomy.extract.tools.scip_python import IndexResult, index_with_scip_python
from codeanatomy.spark.jars import cache_folder, lock
from support import corpus

PINS = Path(__file__).with_name("scip")
NPM = ("ci", "--legacy-peer-deps", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
SECONDS = 600


@cache
def installed() -> Path:
    """The indexer's command; the test is skipped where there is no Node.js."""
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("scip-python needs Node.js: install node and npm")
    digest = hashlib.sha256((PINS / "package-lock.json").read_bytes()).hexdigest()[:16]
    folder = cache_folder() / "scip-python"
    folder.mkdir(exist_ok=True)
    place = folder / digest
    with lock(folder):
        if not place.is_dir():
            with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as name:
                fresh = Path(name) / digest
                shutil.copytree(PINS, fresh)
                subprocess.run(["npm", *NPM], cwd=fresh, check=True, stdin=subprocess.DEVNULL)
                fresh.rename(place)
    return place / "node_modules" / ".bin" / "scip-python"


@cache
def index(package: str) -> Path:
    """The index of a package of the corpus."""
    work = Path(tempfile.mkdtemp(prefix="codeanatomy-test-"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    made = run(corpus.package(package), work / "index.scip", package)
    assert made == IndexResult("indexed")
    return work / "index.scip"


def run(folder: Path, output: Path, project: str, seconds: float = SECONDS) -> IndexResult:
    """Index all sources below a folder with the pinned indexer."""
    paths = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.py*")) if path.is_file()]
    with mock.patch.dict("os.environ", {SCIP_VARIABLE: str(installed())}):
        return index_with_scip_python(folder, paths, output, project, seconds)
