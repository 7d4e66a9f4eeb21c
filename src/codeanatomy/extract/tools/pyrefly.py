"""Run the type checker pyrefly on links to the sources, for `type_checker_files_v1`.

    result = check_with_pyrefly(tool, folder, ["requests/api.py", ...], work, 600)
    result.version         # pyrefly 1.4.0; a report is in work / "report" unless there are problems

It runs on a folder of links to just the listed files (`tools.external_tool`), with a configuration of ours:

- `skip-interpreter-query`, no site packages and fixed versions: otherwise it would query a Python for its
  packages. What is not in the repository or in its copy of typeshed is unknown to it on every machine;
- all platforms: code for one would be unreachable on any other, and left out;
- no excludes and no ignore files: what is listed is what is checked, hidden folders too;
- folders named `src` are roots of imports, before the repository's own root, unless they are packages;
- its environment variables (`PYREFLY_*`) are removed.

The JSON report is the one made for another analyser, Pysa, hence the name of the option. The exit code is 1
if there are type errors, which are not a failure here; they are not read.

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
from codeanatomy.extract.pyrefly.report import PROJECT, Project, read_report_file
from codeanatomy.extract.tools.external_tool import (
    ToolExit,
    import_roots,
    link_sources,
    run_limited,
    tool_version,
)

PYREFLY = "pyrefly"
# As for scip-python: more code uses what newer versions have removed than what they have added.
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
# Exit codes without and with type errors.
FINISHED = (0, 1)


class CheckResult(Struct, frozen=True):
    """The result of a check: there is a report unless there are problems."""

    version: str
    problems: tuple[Problem, ...] = ()


def find_pyrefly() -> Path | None:
    """Find the checker: installed beside our Python, else on the PATH."""
    tool = shutil.which(PYREFLY, path=sysconfig.get_path("scripts")) or shutil.which(PYREFLY)
    return Path(tool) if tool else None


def check_with_pyrefly(
    tool: Path, folder: Path, paths: Iterable[str], work: Path, seconds: float
) -> CheckResult:
    """Check files of a folder, given by relative paths, within a time limit."""
    deadline = time.monotonic() + seconds
    sources = link_sources(folder.absolute(), paths, work / "tree")
    (work / "pyrefly.toml").write_text(CONFIGURATION, encoding="utf-8")
    version = tool_version(tool)
    result = run_limited(_command(tool, work, sources), _environment(work), work / "log", deadline, cwd=work)
    problem = _failure(result, work)
    return CheckResult(version, () if problem is None else (problem,))


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


def _failure(result: ToolExit, work: Path) -> Problem | None:
    if result.code is None:
        return _problem("time_limit", f"the type checker was ended after {result.seconds:.0f} s")
    if result.code not in FINISHED or not (work / "report" / PROJECT).is_file():
        message = f"the type checker ended with code {result.code}: {result.last_lines}"
        return _problem("checker_failed", message)
    project = read_report_file(work / "report" / PROJECT, Project)
    return project if isinstance(project, Problem) else None


def _problem(error_type: str, message: str) -> Problem:
    return Problem("error", "check", error_type, message[:MESSAGE_CHARS])
