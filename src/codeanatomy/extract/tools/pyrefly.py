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

It crashes on files that are nested too deeply, and does not name them. Such a file is found by checking
halves of the files, and left out; a few times, and within the time limit.

The JSON report is the one made for another analyser, Pysa, hence the name of the option. The exit code is 1
if there are type errors, which are not a failure here; they are not read.

Tests: `tests/unit/extract/test_pyrefly.py`.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
import time
from collections.abc import Callable, Iterable, Sequence
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
# Exit codes without and with type errors; that of a panic (a stack overflow is a signal).
FINISHED = (0, 1)
PANIC = 101
# Files that may be left out: each costs as many checks as the number of files can be halved.
MAX_LEFT_OUT = 5


class CheckResult(Struct, frozen=True):
    """The result of a check: there is a report unless there are problems."""

    version: str
    problems: tuple[Problem, ...] = ()
    # Files that the tool crashes on, which the report lacks.
    left_out: tuple[str, ...] = ()


def find_pyrefly() -> Path | None:
    """Find the checker: installed beside our Python, else on the PATH."""
    tool = shutil.which(PYREFLY, path=sysconfig.get_path("scripts")) or shutil.which(PYREFLY)
    return Path(tool) if tool else None


def check_with_pyrefly(
    tool: Path, folder: Path, paths: Iterable[str], work: Path, seconds: float, package: str = ""
) -> CheckResult:
    """Check files of a folder, given by relative paths, within a time limit; the folder may be a package."""
    deadline = time.monotonic() + seconds
    version = tool_version(tool)

    def check(some: Iterable[str], work: Path) -> ToolExit:
        sources = link_sources(folder.absolute(), some, linked_tree(work, package))
        (work / "pyrefly.toml").write_text(CONFIGURATION, encoding="utf-8")
        command = _command(tool, work, package, sources)
        return run_limited(command, _environment(work), work / "log", deadline, cwd=work)

    kept, left_out = sorted(set(paths)), list[str]()
    result = check(kept, work)
    while _has_crashed(result) and kept and len(left_out) < MAX_LEFT_OUT:
        left_out.append(_crashing_file(kept, work / "half", check))
        kept.remove(left_out[-1])
        for name in ("tree", "report"):
            shutil.rmtree(work / name, ignore_errors=True)
        result = check(kept, work)
    problem = _failure(result, work)
    return CheckResult(version, () if problem is None else (problem,), tuple(left_out))


def _crashing_file(paths: Sequence[str], work: Path, check: Callable[[Sequence[str], Path], ToolExit]) -> str:
    """Return a file that the tool crashes on, by checking halves of the files in a folder of its own."""
    while len(paths) > 1:
        half = paths[: len(paths) // 2]
        work.mkdir()
        crashed = _has_crashed(check(half, work))
        shutil.rmtree(work)
        paths = half if crashed else paths[len(half) :]
    return paths[0]


def _has_crashed(result: ToolExit) -> bool:
    return result.code is not None and (result.code < 0 or result.code == PANIC)


def linked_tree(work: Path, package: str) -> Path:
    """Return the folder of the links to the sources: a package is imported from the folder above it."""
    return work / "tree" / package


def _command(tool: Path, work: Path, package: str, sources: Sequence[str]) -> list[str]:
    roots = [linked_tree(work, package) / root for root in import_roots(sources)]
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
