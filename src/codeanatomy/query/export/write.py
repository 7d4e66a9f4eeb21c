"""Export a part of the graph in a file format.

    report = export_graph(reader, "jsonl", target=Path("graph.jsonl"), kinds=("CALL_GRAPH",))
    report.nodes, report.edges, report.bytes

`target` is a path, or an open stream for the formats of a single file. The export is the neighbourhood of a
symbol (the focus) or the whole graph (`selection`). At most one batch of rows is in memory, except for
pictures, which only show the neighbourhood of a focus. Tests: `tests/unit/query/test_export.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeAlias, get_args

from msgspec import Struct

from codeanatomy.atomic_output import atomic_file, atomic_files
from codeanatomy.delta.read.duck import open_database
from codeanatomy.errors import UnknownName, UsageError
from codeanatomy.query.answers import Symbol
from codeanatomy.query.engines.statements import RepositoryReader
from codeanatomy.query.export import dot, graphml, jsonl, neo4j_csv, networkx_json, parquet
from codeanatomy.query.export import html as page
from codeanatomy.query.export import svg as picture
from codeanatomy.query.export.neighbourhood import view_of
from codeanatomy.query.export.rows import Batch, Counting, Counts, ExportRows
from codeanatomy.query.export.selection import Chosen, around, read, whole

if TYPE_CHECKING:
    from codeanatomy.query.engines.light import LightReader

Form = Literal["dot", "graphml", "neo4j-csv", "jsonl", "parquet", "networkx-json", "svg", "html"]
FORMS: tuple[Form, ...] = get_args(Form)
FILES: dict[str, Callable[[ExportRows, ExportRows, Counting], Counts]] = {
    "dot": dot.write,
    "graphml": graphml.write,
    "jsonl": jsonl.write,
    "networkx-json": networkx_json.write,
}
# Writers of several files, with the names of these files.
FOLDERS: dict[str, tuple[Callable[[ExportRows, ExportRows, Path], Counts], tuple[str, ...]]] = {
    "neo4j-csv": (neo4j_csv.write, neo4j_csv.NAMES),
    "parquet": (parquet.write, parquet.NAMES),
}
PICTURES = {"svg": picture.write, "html": page.write}
HOPS = 1
# Called with the numbers of nodes and edges written so far.
Progress: TypeAlias = Callable[[int, int], None]


class ExportReport(Struct, frozen=True):
    """What was written."""

    form: str
    # Paths of the written files; empty for a stream.
    files: tuple[str, ...]
    nodes: int
    edges: int
    bytes: int
    notes: tuple[str, ...] = ()


def export_graph(
    reader: LightReader,
    form: str,
    *,
    target: Path | BinaryIO,
    focus: Symbol | None = None,
    hops: int = HOPS,
    kinds: Collection[str] = (),
    repo_id: str | None = None,
    force: bool = False,
    props: bool | None = None,
    progress: Progress | None = None,
) -> ExportReport:
    """Export the neighbourhood of a focus, or everything; a focus has properties by default."""
    if form not in FORMS:
        raise UnknownName("format", form, FORMS)
    if form in PICTURES and focus is None:
        raise UsageError(f"{form} shows a focus, not a whole graph", "name a symbol with --focus")
    if form in FOLDERS and not isinstance(target, Path):
        raise UsageError(f"{form} writes several files", "name a folder with --output")
    if focus is None:
        chosen = whole(kinds, repo_id)
    else:
        of_focus = RepositoryReader(reader, (focus.repo_id,))
        chosen = around(of_focus, focus, kinds, hops, straight=form in PICTURES)
    with_props = (focus is not None) if props is None else props
    with open_database() as database:
        nodes, edges = read(reader, database, chosen, props=with_props and form not in PICTURES)
        if progress is not None:
            nodes, edges = _with_progress(nodes, edges, progress)
        if form in FOLDERS and isinstance(target, Path):
            return _folder(form, nodes, edges, target, force, chosen)
        if isinstance(target, Path):
            with atomic_file(target, force=force) as stream:
                counts, size, notes = _file(reader, form, nodes, edges, stream, chosen, focus)
            return ExportReport(form, (str(target),), counts.nodes, counts.edges, size, notes)
        counts, size, notes = _file(reader, form, nodes, edges, target, chosen, focus)
        return ExportReport(form, (), counts.nodes, counts.edges, size, notes)


def _folder(
    form: str, nodes: ExportRows, edges: ExportRows, target: Path, force: bool, chosen: Chosen
) -> ExportReport:
    write, names = FOLDERS[form]
    with atomic_files(target, names, force=force) as folder:
        counts = write(nodes, edges, folder)
        size = sum((folder / name).stat().st_size for name in names)
    files = tuple(str(target / name) for name in names)
    return ExportReport(form, files, counts.nodes, counts.edges, size, chosen.notes)


def _file(
    reader: LightReader,
    form: str,
    nodes: ExportRows,
    edges: ExportRows,
    stream: BinaryIO,
    chosen: Chosen,
    focus: Symbol | None,
) -> tuple[Counts, int, tuple[str, ...]]:
    counting = Counting(stream)
    if focus is None or form not in PICTURES:
        counts = FILES[form](nodes, edges, counting)
        return counts, counting.bytes, chosen.notes
    of_focus = RepositoryReader(reader, (focus.repo_id,))
    view = view_of(of_focus, focus, chosen, nodes, edges, reader.snapshot.run_id)
    PICTURES[form](view, counting)
    return Counts(nodes.count, edges.count), counting.bytes, view.notes


def _with_progress(nodes: ExportRows, edges: ExportRows, progress: Progress) -> tuple[ExportRows, ExportRows]:
    """Report progress while the rows are read."""

    def reporting(rows: ExportRows) -> Iterator[Batch]:
        for batch in rows:
            progress(nodes.count, edges.count)
            yield batch

    def again(rows: ExportRows, batches: Iterable[Batch]) -> ExportRows:
        return ExportRows(rows.columns, rows.props, batches)

    return again(nodes, reporting(nodes)), again(edges, reporting(edges))
