"""Run the type-aware indexer scip-python on links to the sources, for `scip_index_v1`.

    result = index_with_scip_python(folder, ["requests/api.py", ...], Path("index.scip"), "requests", 600)
    result.status    # indexed, partial, failed or missing_tool; the first two have an index

The analysed code must not run, and nothing may be written beside it. So the indexer runs on a temporary
folder of links to just the listed files, with a configuration of ours instead of the repository's:

- `--environment` with an empty list: otherwise it would query pip for the installed packages; -
`--project-version`: otherwise it would query git, and the commit would be in every symbol; - a `python3` and
a `python` of ours, first on its PATH: it runs `python3 -c` in the repository's folder to get
  `sys.path`. Ours only print an empty one. What is not in the repository or in its copy of typeshed is
  unknown to it, on every machine;
- folders named `src` are roots of imports, unless they are packages: `src/pkg/a.py` is `pkg.a`.

It fails to write the index if it fails on one file. The link to that file is then removed (excluding it is
not enough: it comes back when another file imports it) and the run is repeated, a few times and within the
time limit; what was written until then is the partial index.

In the index, only the path of the folder depends on where it was made. It is removed, so that the same
sources give the same bytes.

Tests: `tests/unit/extract/test_scip_python.py`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from codeanatomy.config import SCIP_VARIABLE
from codeanatomy.extract.evidence import MESSAGE_CHARS, Problem
from codeanatomy.extract.scip.documents import PROJECT_VERSION
from codeanatomy.extract.scip.index_file import SCIP_PYTHON, copy_without_root, scan_index
from codeanatomy.extract.tools.external_tool import ToolExit, import_roots, link_sources, run_limited

# The newest version that scip-python 0.6 supports.
PYTHON_VERSION = "3.11"
CONFIGURATION = "scip-pyrightconfig.json"
# One output for both of its queries, for search paths and for the version.
PYTHON = """#!/bin/sh
echo '{"path": [], "prefix": "", "major": 3, "minor": 11}'
"""
# Files that may be left out one after the other: each costs a whole run.
MAX_LEFT_OUT = 5
# Part of the machine's memory; Node's default is 4 GB or less, too little for a few thousand files.
HEAP_FRACTION = 0.5
FAILED_ON = re.compile(r"^\s*currentFilepath: '(.*)',$", re.MULTILINE)
ERROR = re.compile(r"^\s*error: (.*)$", re.MULTILINE)


class IndexResult(Struct, frozen=True):
    """The result of indexing; an index may lack the files named in the problems."""

    status: Literal["indexed", "partial", "failed", "missing_tool"]
    problems: tuple[Problem, ...] = ()


def find_scip_python(command: str | None = None) -> Path | None:
    """Find the indexer: the given command, or named by the environment variable, else on the PATH."""
    tool = shutil.which(command or os.environ.get(SCIP_VARIABLE) or SCIP_PYTHON)
    return Path(tool) if tool else None


def index_with_scip_python(
    folder: Path, paths: Iterable[str], output: Path, project: str, seconds: float, command: str | None = None
) -> IndexResult:
    """Index files of a folder, given by relative paths, within a time limit."""
    tool = find_scip_python(command)
    if tool is None:
        message = f"there is no {SCIP_PYTHON} on PATH, and {SCIP_VARIABLE} names none"
        return IndexResult("missing_tool", (_problem("missing_tool", message),))
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="codeanatomy-scip-") as name:
        work = Path(name).resolve()
        sources = link_sources(folder.absolute(), paths, work / "tree")
        return _run_with_retries(tool, work, sources, output, project, deadline)


def _run_with_retries(
    tool: Path, work: Path, sources: Sequence[str], output: Path, project: str, deadline: float
) -> IndexResult:
    _configure(work, sources)
    problems: list[Problem] = []
    while True:
        run = run_limited(_command(tool, work, project), _environment(work), work / "log", deadline)
        if run.code == 0:
            return _publish_index("indexed", work, output, problems)
        path = _failed_path(run, work / "tree")
        problems.append(_run_problem(run, path))
        in_time = time.monotonic() + run.seconds < deadline
        if path is None or len(problems) > MAX_LEFT_OUT or not in_time:
            return _publish_index("partial", work, output, problems)
        (work / "tree" / path).unlink()


def _configure(work: Path, sources: Iterable[str]) -> None:
    configuration = {
        "include": ["."],
        # An empty list would select its default, which excludes hidden folders.
        "exclude": [CONFIGURATION],
        "extraPaths": import_roots(sources),
        "pythonVersion": PYTHON_VERSION,
        # Code for one platform would be unreachable on any other, and left out.
        "pythonPlatform": "All",
    }
    (work / "tree" / CONFIGURATION).write_text(json.dumps(configuration), encoding="utf-8")
    (work / "environment.json").write_text("[]", encoding="utf-8")
    (work / "bin").mkdir(exist_ok=True)
    for name in ("python3", "python"):
        (work / "bin" / name).write_text(PYTHON, encoding="utf-8")
        (work / "bin" / name).chmod(0o755)


def _command(tool: Path, work: Path, project: str) -> list[str]:
    return [
        *(str(tool), "index"),
        *("--cwd", str(work / "tree")),
        *("--project-name", project),
        *("--project-version", PROJECT_VERSION),
        *("--environment", str(work / "environment.json")),
        *("--output", str(work / "index.scip")),
    ]


def _environment(work: Path) -> dict[str, str]:
    inherited = dict(os.environ)
    options = inherited.get("NODE_OPTIONS", "")
    if "max-old-space-size" not in options:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024**2
        options = f"{options} --max-old-space-size={int(memory * HEAP_FRACTION)}".strip()
    path = os.pathsep.join((str(work / "bin"), inherited.get("PATH", os.defpath)))
    return inherited | {"PATH": path, "NODE_OPTIONS": options, "TMPDIR": str(work)}


def _failed_path(run: ToolExit, tree: Path) -> str | None:
    """Return the path of the file that made the indexer fail, according to its log, if it is one of ours."""
    match = FAILED_ON.search(run.output)
    path = Path(match[1]) if match and run.code is not None else None
    if path is None or not path.is_symlink() or not path.is_relative_to(tree):
        return None
    return path.relative_to(tree).as_posix()


def _run_problem(run: ToolExit, path: str | None) -> Problem:
    if run.code is None:
        return _problem("time_limit", f"the indexer was ended after {run.seconds:.0f} s")
    if path is not None:
        error = ERROR.search(run.output)
        return _problem(
            "indexer_failed", f"the indexer fails on {path}: {error[1] if error else 'no reason'}"
        )
    return _problem("indexer_failed", f"the indexer ended with code {run.code}: {run.last_lines}")


def _publish_index(
    status: Literal["indexed", "partial"], work: Path, output: Path, problems: Sequence[Problem]
) -> IndexResult:
    """Copy the index to its target; a partial one needs a document to be useful."""
    index = work / "index.scip"
    if not index.is_file() or (status == "partial" and not scan_index(index).documents):
        missing = _problem("indexer_failed", "the indexer wrote no index")
        return IndexResult("failed", tuple(problems) or (missing,))
    output.parent.mkdir(parents=True, exist_ok=True)
    copy_without_root(index, output)
    return IndexResult(status, tuple(problems))


def _problem(error_type: str, message: str) -> Problem:
    return Problem("error", "index", error_type, message[:MESSAGE_CHARS])
