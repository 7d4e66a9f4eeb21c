"""pyrefly, run on links to the sources: the type checker behind `type_checker_files_v1`.

    made = check_with_pyrefly(tool, folder, ["requests/api.py", ...], work, 600)
    made.version           # pyrefly 1.4.0; a report is in work / "report" unless there are problems

It sees a folder of links to just the files that were asked for (`foreign`), and a configuration of ours:

- `skip-interpreter-query`, no site packages and fixed versions: it would ask a Python for its
  packages otherwise. What is not in the repository or in its copy of typeshed is unknown to it everywhere;
- all platforms: code for one would be unreachable on any other, and left out;
- no excludes and no ignore files: what is listed is what is checked, hidden folders too;
- folders named `src` are roots of imports, before the repository's own root, unless they are packages;
- settings of its own in the environment are taken away.

The report is in JSON, for which the tool has one word: that of another analyser, Pysa. It ends with code 1 if
it has found type errors, which are no failure here; what they are is not read.

Tests: `tests/unit/extract/test_pyrefly.py`.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from codeanatomy.extract.evidence import MESSAGE_CHARS, Problem
from codeanatomy.extract.pyrefly.report import PROJECT, Project, read_part
from codeanatomy.extract.tools.external_tool import (
    Ended,
    import_roots,
    link_sources,
    run_limited,
    tool_version,
)

PYREFLY = "pyrefly"
# As for scip-python: of older code more is known to it than of the newest is unknown.
PYTHON_VERSION = "3.11"
CONFIGURATION = f"""\
project-includes = ["tree"]
project-excludes = []
disable-project-excludes-heuristics = true
use-ignore-files = false
disable-search-path-heuristics = true
skip-interpreter-query = true
site-package-path = []
python-version = "{PYTHON_VERSION}"
python-platform = "all"
check-unannotated-defs = true
ignore-errors-in-generated-code = false
"""
# With type errors, and without.
FINISHED = (0, 1)


class Checked(Struct, frozen=True):
    """How it ended: there is a report unless there are problems."""

    version: str
    problems: tuple[Problem, ...] = ()


def find_pyrefly() -> Path | None:
    """The checker: what is installed beside our Python, else what is on the path."""
    found = shutil.which(PYREFLY, path=sysconfig.get_path("scripts")) or shutil.which(PYREFLY)
    return Path(found) if found else None


def check_with_pyrefly(tool: Path, folder: Path, paths: Iterable[str], work: Path, seconds: float) -> Checked:
    """Check these files of a folder, given by their paths below it, within so many seconds."""
    deadline = time.monotonic() + seconds
    sources = link_sources(folder.absolute(), paths, work / "tree")
    (work / "pyrefly.toml").write_text(CONFIGURATION, encoding="utf-8")
    version = tool_version(tool)
    ended = run_limited(_command(tool, work, sources), _environment(work), work / "log", deadline, cwd=work)
    problem = _failure(ended, work)
    return Checked(version, () if problem is None else (problem,))


def _command(tool: Path, work: Path, sources: Sequence[str]) -> list[str]:
    roots = [work / "tree" / root for root in import_roots(sources)]
    return [
        *(str(tool), "check"),
        *("--config", str(work / "pyrefly.toml")),
        *("--preset", "default"),
        *(flag for root in (*roots, work / "tree") for flag in ("--search-path", str(root))),
        *("--report-pysa", str(work / "report")),
        *("--report-pysa-format", "json"),
        *("--output-format", "omit-errors"),
        *("--progress-bar", "no"),
        *("--color", "never"),
    ]


def _environment(work: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYREFLY_")}
    return kept | {"TMPDIR": str(work)}


def _failure(ended: Ended, work: Path) -> Problem | None:
    if ended.code is None:
        return _problem("time_limit", f"the type checker was ended after {ended.seconds:.0f} s")
    if ended.code not in FINISHED or not (work / "report" / PROJECT).is_file():
        said = f"the type checker ended with code {ended.code}: {ended.last_lines}"
        return _problem("checker_failed", said)
    project = read_part(work / "report" / PROJECT, Project)
    return project if isinstance(project, Problem) else None


def _problem(error_type: str, said: str) -> Problem:
    return Problem("error", "check", error_type, said[:MESSAGE_CHARS])
