"""scip-python, run on links to the sources: the type-aware indexer behind `scip_index_v1`.

    made = index_with_scip_python(folder, ["requests/api.py", ...], Path("index.scip"), "requests", 600)
    made.status    # indexed, partial, failed or missing_tool; an index is there after the first two

The analysed code must not run, and nothing may be written beside it. So the indexer sees a temporary folder
of links to just the files that were asked for, with a configuration of ours instead of the repository's:

- `--environment` with an empty list: it would ask pip for the installed packages otherwise;
- `--project-version`: it would ask git, and the commit would be in every symbol;
- a `python3` and a `python` of ours, before the others on its path: it runs `python3 -c` in the repository's
  folder to ask for `sys.path`. Ours only say that there is none. What is not in the repository or in its
  copy of typeshed is unknown to it, on every machine alike;
- folders named `src` are roots of imports, unless they are packages: `src/pkg/a.py` is `pkg.a`.

It gives up on the whole index when it fails on one file. The link to that file is then taken away (to exclude
it would not do: it comes back when another file imports it) and the run is repeated, a few times and within
the time limit; what was written until then is the partial index.

In the index, only the place of the folder depends on where it was made. That is taken out, so that the same
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
from codeanatomy.extract.scip.index_file import SCIP_PYTHON, copy_without_root, read_frames
from codeanatomy.extract.tools.external_tool import Ended, import_roots, link_sources, run_limited

# The newest that scip-python 0.6 knows.
PYTHON_VERSION = "3.11"
CONFIGURATION = "scip-pyrightconfig.json"
# One answer to both of its questions, for search paths and for the version.
PYTHON = """#!/bin/sh
echo '{"path": [], "prefix": "", "major": 3, "minor": 11}'
"""
# Files that may be left out one after the other: each costs a whole run.
MAX_LEFT_OUT = 5
# Of the machine's memory; Node's own limit is 4 GB or less, too little for a few thousand files.
HEAP_SHARE = 0.5
FAILED_ON = re.compile(r"^\s*currentFilepath: '(.*)',$", re.MULTILINE)
ERROR = re.compile(r"^\s*error: (.*)$", re.MULTILINE)


class Indexed(Struct, frozen=True):
    """How it ended; the index, unless there is none, may lack the files that the problems name."""

    status: Literal["indexed", "partial", "failed", "missing_tool"]
    problems: tuple[Problem, ...] = ()


def find_scip_python() -> Path | None:
    """The indexer: what the environment names, else what is on the path."""
    found = shutil.which(os.environ.get(SCIP_VARIABLE) or SCIP_PYTHON)
    return Path(found) if found else None


def index_with_scip_python(
    folder: Path, paths: Iterable[str], output: Path, project: str, seconds: float
) -> Indexed:
    """Index these files of a folder, given by their paths below it, within so many seconds."""
    tool = find_scip_python()
    if tool is None:
        said = f"there is no {SCIP_PYTHON} on PATH, and {SCIP_VARIABLE} names none"
        return Indexed("missing_tool", (_problem("missing_tool", said),))
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="codeanatomy-scip-") as name:
        work = Path(name).resolve()
        sources = link_sources(folder.absolute(), paths, work / "tree")
        return _repeated(tool, work, sources, output, project, deadline)


def _repeated(
    tool: Path, work: Path, sources: Sequence[str], output: Path, project: str, deadline: float
) -> Indexed:
    _configure(work, sources)
    problems: list[Problem] = []
    while True:
        run = run_limited(_command(tool, work, project), _environment(work), work / "log", deadline)
        if run.code == 0:
            return _kept("indexed", work, output, problems)
        path = _failed_on(run, work / "tree")
        problems.append(_ending(run, path))
        in_time = time.monotonic() + run.seconds < deadline
        if path is None or len(problems) > MAX_LEFT_OUT or not in_time:
            return _kept("partial", work, output, problems)
        (work / "tree" / path).unlink()


def _configure(work: Path, sources: Iterable[str]) -> None:
    configuration = {
        "include": ["."],
        # An empty list would stand for its own, which has hidden folders in it.
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
        options = f"{options} --max-old-space-size={int(memory * HEAP_SHARE)}".strip()
    path = os.pathsep.join((str(work / "bin"), inherited.get("PATH", os.defpath)))
    return inherited | {"PATH": path, "NODE_OPTIONS": options, "TMPDIR": str(work)}


def _failed_on(run: Ended, tree: Path) -> str | None:
    """The file on which the indexer says that it failed; only one of those that it was given."""
    found = FAILED_ON.search(run.said)
    path = Path(found[1]) if found and run.code is not None else None
    if path is None or not path.is_symlink() or not path.is_relative_to(tree):
        return None
    return path.relative_to(tree).as_posix()


def _ending(run: Ended, path: str | None) -> Problem:
    if run.code is None:
        return _problem("time_limit", f"the indexer was ended after {run.seconds:.0f} s")
    if path is not None:
        error = ERROR.search(run.said)
        return _problem(
            "indexer_failed", f"the indexer fails on {path}: {error[1] if error else 'no reason'}"
        )
    return _problem("indexer_failed", f"the indexer ended with code {run.code}: {run.last_lines}")


def _kept(
    status: Literal["indexed", "partial"], work: Path, output: Path, problems: Sequence[Problem]
) -> Indexed:
    """Put the index in its place; a part of one needs a document to be of use."""
    made = work / "index.scip"
    if not made.is_file() or (status == "partial" and not read_frames(made).documents):
        silent = _problem("indexer_failed", "the indexer wrote no index")
        return Indexed("failed", tuple(problems) or (silent,))
    output.parent.mkdir(parents=True, exist_ok=True)
    copy_without_root(made, output)
    return Indexed(status, tuple(problems))


def _problem(error_type: str, said: str) -> Problem:
    return Problem("error", "index", error_type, said[:MESSAGE_CHARS])
