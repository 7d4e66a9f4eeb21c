"""Make the pieces of pass one from sources in memory, for tests of the solve and of pass two.

pieces = first_pieces({"a.py": b"x = 1\\n"})               # views and programs, in one chunk
pieces = first_pieces(tree, chunks=7)                      # the same in the chunks of a larger repository
"""

from __future__ import annotations

from collections.abc import Mapping

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.file_rows import extract_file, table_batches
from codeanatomy.extract.worker import extract_tables
from codeanatomy.pipeline.first_pass import FirstPass
from codeanatomy.pipeline.pieces import Piece, cut
from codeanatomy.pipeline.second_pass import SecondPass
from codeanatomy.pipeline.sinks import Sink
from codeanatomy.relate.relation_rows import RELATIONS
from codeanatomy.sources.listing import Entry
from codeanatomy.sources.reading import Reading

REPOSITORY = frozenset({"r"})
NOTHING: frozenset[str] = frozenset()


def first_pieces(tree: Mapping[str, bytes], chunks: int = 1, *, is_late: bool = False) -> list[Piece]:
    """Extract and compile the files of repository `r`; return what goes to the next passes.

    Files are normalized, too, unless `is_late`: then pass two does it.
    """
    here, later = (NOTHING, REPOSITORY) if is_late else (REPOSITORY, NOTHING)
    reads = SecondPass(later, REPOSITORY, "default", Sink()).reads
    passed = {name: each for name, each in reads.items() if name != RELATIONS}
    work = FirstPass(ExtractOptions(), here, REPOSITORY, passed, {"r": chunks}, Sink())
    files = [
        extract_file("r", _reading(path, raw), EXTRACTORS, work.options, {}, lambda _: None)
        for path, raw in tree.items()
    ]
    extracted = table_batches(extract_tables(EXTRACTORS), files)
    made = work.work_on_chunk(files, extracted, {}, lambda _: None)
    return [
        piece
        for number, (chunk, name, data) in enumerate(made.pieces)
        for piece in cut("r", chunk, name, data, f"{number:06d}")
    ]


def _reading(path: str, raw: bytes) -> Reading:
    return Reading(Entry(path, f"/{path}", len(raw), 0, False, None), raw, 0, None)
