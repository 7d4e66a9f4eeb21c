"""A folder of sources through the relate stage in this process: no Spark, no lake.

    analysis = analyse(corpus.package("requests"))
    analysis.graph                  # {"requests.api.get": ["requests.api.request"], ...}
    analysis.rows["requests/api.py"]

The one place where the benchmarks get relations from: whoever wants those of a lake replaces `analyse`.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from witnesses import Cells

from codeanatomy.arrow import unpack_rows
from codeanatomy.relate.compile.file_program import compile_file, with_witnesses
from codeanatomy.relate.program import Program
from codeanatomy.relate.values.analysis import solve
from codeanatomy.relate.values.state import State
from support.relate_stage import call_edges, relations, sources_below, witnessed

KB = 1024
Row: TypeAlias = dict[str, Any]


class Analysis(NamedTuple):
    """What the relate stage says of a repository, and what that took."""

    sources: Mapping[str, bytes]
    values: State
    # By path, as `relations_v1` has them.
    rows: Mapping[str, list[Row]]
    graph: Mapping[str, list[str]]
    # By step; of the memory the peak of this process so far, the last with all rows at hand.
    seconds: Mapping[str, float]
    peak_bytes: Mapping[str, int]


def analyse(folder: Path, said: Mapping[str, Mapping[str, Cells]] | None = None) -> Analysis:
    """All relations of the sources below a folder.

    What optional witnesses say is given by witness, `scip` or `typed`, and path; without, they are not heard.
    """
    # As the stage's workers do: nothing here is in a cycle that matters.
    gc.disable()
    sources = sources_below(folder)
    seconds: dict[str, float] = {}
    peaks: dict[str, int] = {}
    began = time.monotonic()

    def finish(step: str) -> None:
        nonlocal began
        seconds[step] = time.monotonic() - began
        peaks[step] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KB
        began = time.monotonic()

    programs = [heard(path, text, said or {}) for path, text in sources.items()]
    finish("summaries")
    values = solve(programs)
    finish("values")
    rows = {made.path: made.rows() for made in relations(values)}
    finish("rows")
    return Analysis(sources, values, rows, call_edges(values), seconds, peaks)


def heard(path: str, text: bytes, said: Mapping[str, Mapping[str, Cells]]) -> Program:
    """The program of a file, with the claims of optional witnesses."""
    document, checker = (said.get(name, {}).get(path, {}) for name in ("scip", "typed"))
    return with_witnesses(compile_file(witnessed(text, path)), [document], checker)


def line_starts(source: bytes) -> list[int]:
    """The first byte of each line, and of the one after the last."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def scope_rows(analysis: Analysis, path: str) -> list[Row]:
    """The relations of a file that need no other: names and their bindings."""
    program = analysis.values.programs[analysis.values.files[path]]
    batches = unpack_rows(program.scope_rows) if program.scope_rows else ()
    return [row for batch in batches for row in batch.to_pylist()]
