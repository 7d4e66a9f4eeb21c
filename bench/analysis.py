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

from msgspec import structs
from witnesses import Cells

from codeanatomy.arrow import unpacked
from codeanatomy.relate.callgraph import edges
from codeanatomy.relate.emit import relations
from codeanatomy.relate.summary import Witnessed, summary
from codeanatomy.relate.values import Values
from related import sources_below, witnessed

KB = 1024
Row: TypeAlias = dict[str, Any]


class Analysis(NamedTuple):
    """What the relate stage says of a repository, and what that took."""

    sources: Mapping[str, bytes]
    values: Values
    # By path, as `relations_v1` has them.
    rows: Mapping[str, list[Row]]
    graph: Mapping[str, list[str]]
    # By step.
    seconds: Mapping[str, float]
    # Of this process since it began.
    peak_bytes: int


def analyse(folder: Path, said: Mapping[str, Mapping[str, Cells]] | None = None) -> Analysis:
    """All relations of the sources below a folder.

    What optional witnesses say is given by witness, `scip` or `typed`, and path; without, they are not heard.
    """
    # As the stage's workers do: nothing here is in a cycle that matters.
    gc.disable()
    sources = sources_below(folder)
    seconds: dict[str, float] = {}
    began = time.monotonic()
    values = Values([summary(heard(path, text, said or {})) for path, text in sources.items()])
    seconds["summaries"] = time.monotonic() - began
    began = time.monotonic()
    values.solve()
    seconds["values"] = time.monotonic() - began
    began = time.monotonic()
    rows = {made.path: made.rows() for made in relations(values)}
    seconds["rows"] = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KB
    return Analysis(sources, values, rows, edges(values), seconds, peak)


def heard(path: str, text: bytes, said: Mapping[str, Mapping[str, Cells]]) -> Witnessed:
    """What all witnesses say of a file."""
    optional = {name: files.get(path, {}) for name, files in said.items()}
    return structs.replace(witnessed(text, path), **optional)


def scope_rows(analysis: Analysis, path: str) -> list[Row]:
    """The relations of a file that need no other: names and their bindings."""
    program = analysis.values.programs[analysis.values.files[path]]
    batches = unpacked(program.scope_rows) if program.scope_rows else ()
    return [row for batch in batches for row in batch.to_pylist()]
