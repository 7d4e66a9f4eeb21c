"""Make the pieces of the stage of files from sources in memory, for tests of the stages that follow.

pieces = file_pieces({"a.py": b"x = 1\\n"})                # programs, and rows and facts of the graph
pieces = file_pieces(tree, chunks=7)                       # the same in the chunks of a larger repository
pieces = file_pieces(tree, is_graphed=False)               # evidence: the graph stage makes all rows
"""

from __future__ import annotations

from collections.abc import Mapping

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.file_rows import extract_file, table_batches
from codeanatomy.extract.worker import extract_tables
from codeanatomy.pipeline.tasks.file_stage import FileStage
from codeanatomy.pipeline.tasks.graph_stage import GraphStage
from codeanatomy.pipeline.tasks.pieces import Piece, counts_piece
from codeanatomy.pipeline.tasks.sinks import Sink
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.sources.listing import Entry
from codeanatomy.sources.reading import Reading

REPOSITORY = frozenset({"r"})
NOTHING: frozenset[str] = frozenset()


def file_pieces(
    tree: Mapping[str, bytes], chunks: int = 1, *, is_late: bool = False, is_graphed: bool = True
) -> list[Piece]:
    """Extract and compile the files of repository `r`; return what goes to the next stages.

    Files are normalized, too, unless `is_late`: then the graph stage does it, and makes all graph rows.
    """
    here, later = (NOTHING, REPOSITORY) if is_late else (REPOSITORY, NOTHING)
    reads = GraphStage(later, REPOSITORY, "default", Sink()).reads
    graphed = REPOSITORY if is_graphed and not is_late else NOTHING
    passed = {} if graphed else {name: each for name, each in reads.items() if name != RELATIONS}
    options = ExtractOptions()
    work = FileStage(options, here, REPOSITORY, graphed, "default", passed, {"r": chunks}, Sink())
    files = [
        extract_file("r", _reading(path, raw), EXTRACTORS, work.options, {}, lambda _: None)
        for path, raw in tree.items()
    ]
    extracted = table_batches(extract_tables(EXTRACTORS), files)
    made = work.work_on_chunk(files, extracted, {}, lambda *_: None)
    return [*map(Piece._make, made.pieces), counts_piece({"r": made.counts})]


def _reading(path: str, raw: bytes) -> Reading:
    return Reading(Entry(path, f"/{path}", len(raw), 0, False, None), raw, 0, None)
