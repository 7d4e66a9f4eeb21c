"""What the optional witnesses say of a folder, in this process: cells by path.

    scip_cells(corpus.package("requests"), "requests")["requests/api.py"]["occurrences"]["symbol"]
    pyrefly_cells(corpus.package("requests"))["requests/api.py"]["call_targets"]["target_name"]

The tools see the same files as our analysis, through the same functions as in a build.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from codeanatomy.extract.pyrefly.cells import module_cells
from codeanatomy.extract.pyrefly.names import ReportNames
from codeanatomy.extract.pyrefly.report import PROJECT, Project, ReportedModule, read_report_file
from codeanatomy.extract.scip.documents import document_cells
from codeanatomy.extract.scip.index_file import read_document, scan_index
from codeanatomy.extract.tools.pyrefly import check_with_pyrefly, find_pyrefly
from codeanatomy.sources.source_file import Source, decode
from support import scip_tool
from support.relate_stage import sources_below

SECONDS = 600
Cells: TypeAlias = Mapping[str, Any]


def scip_cells(folder: Path, project: str) -> dict[str, Cells]:
    """What scip-python says of each file."""
    sources = _sources(folder)
    with tempfile.TemporaryDirectory(prefix="codeanatomy-bench-") as name:
        index = Path(name) / "index.scip"
        made = scip_tool.run(folder, index, project, SECONDS)
        if not index.is_file():
            raise RuntimeError(f"scip-python: {made}")
        frames = scan_index(index)
        return {
            frame.path: document_cells(
                read_document(index, frame), sources[frame.path], frames.dialect, {}
            ).cells
            for frame in frames.documents
            if frame.path in sources
        }


def pyrefly_cells(folder: Path) -> dict[str, Cells]:
    """What pyrefly says of each file."""
    tool = find_pyrefly()
    if tool is None:
        raise RuntimeError("pyrefly is not installed")
    sources = _sources(folder)
    with tempfile.TemporaryDirectory(prefix="codeanatomy-bench-") as name:
        work = Path(name).resolve()
        made = check_with_pyrefly(tool, folder, list(sources), work, SECONDS)
        project = read_report_file(work / "report" / PROJECT, Project)
        if made.problems or not isinstance(project, Project):
            raise RuntimeError(f"pyrefly: {made.problems or project}")
        names = ReportNames(work / "report", work / "tree", project.modules)
        modules: dict[str, list[ReportedModule]] = {}
        for module in project.modules.values():
            path = names.path_of(module)
            if path is not None:
                modules.setdefault(path, []).append(module)
        return {path: module_cells(names, modules.get(path, ()), sources[path]).cells for path in sources}


def _sources(folder: Path) -> dict[str, Source]:
    decoded = {path: decode(path, raw) for path, raw in sources_below(folder).items()}
    return {path: source for path, source in decoded.items() if isinstance(source, Source)}
