"""Export a part of the graph for other tools; needs no JVM.

    codeanatomy export dot --lake lake --focus Session.send --hops 2 | dot -Tsvg > send.svg
    codeanatomy export parquet --lake lake --all --kinds CALL_GRAPH -o graph
    codeanatomy export html --lake lake --focus Session.send -o send.html

Tests: `tests/unit/query/test_export.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import click

from codeanatomy.cli.options import as_of_option, lake_option, repo_option
from codeanatomy.cli.printing import escape_unprintable, print_error
from codeanatomy.errors import AmbiguousSymbol, UnknownSymbol

if TYPE_CHECKING:
    from codeanatomy.query.answers import Symbol
    from codeanatomy.query.engines.light import LightReader

# The formats of `export_graph`, repeated because it is imported only when called.
FORMS = ("dot", "graphml", "neo4j-csv", "jsonl", "parquet", "networkx-json", "svg", "html")
MAX_HOPS = 10
PROGRESS_SECONDS = 5.0


@click.command()
@click.argument("form", metavar="FORMAT", type=click.Choice(FORMS))
@lake_option
@repo_option
@as_of_option
@click.option("--focus", metavar="SYMBOL", help="Export the neighbourhood of this symbol.")
@click.option(
    "--hops",
    type=click.IntRange(0, MAX_HOPS),
    default=1,
    show_default=True,
    help="Steps from the focus, in both directions; in pictures each path keeps its direction.",
)
@click.option("--all", "everything", is_flag=True, help="Export the whole graph, or all of --kinds.")
@click.option(
    "--kinds", multiple=True, metavar="KIND,...", help="Only these kinds of nodes and edges; see `kinds`."
)
@click.option(
    "--props/--no-props", default=None, help="With properties such as docstrings; default: only with --focus."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File, or folder for neo4j-csv and parquet; default: stdout.",
)
@click.option("--force", is_flag=True, help="Overwrite an earlier export.")
def export(
    form: str,
    lake: str,
    repo_id: str | None,
    as_of: str | None,
    focus: str | None,
    hops: int,
    everything: bool,
    kinds: tuple[str, ...],
    props: bool | None,
    output: Path | None,
    force: bool,
) -> None:
    """Write a part of the graph for other tools, or draw a symbol's neighbours.

    FORMAT is one of dot, graphml, neo4j-csv, jsonl, parquet, networkx-json; or svg, html for a picture.
    """
    if (focus is None) != everything:
        raise click.UsageError("give either --focus SYMBOL or --all")
    from codeanatomy.lake.snapshot import Snapshot
    from codeanatomy.query.engines.light import LightReader
    from codeanatomy.query.export.write import export_graph

    snapshot = Snapshot.open(lake, as_of)
    snapshot.select_repositories(repo_id)
    reader = LightReader(snapshot)
    started = monotonic()
    stream = sys.stdout.buffer
    report = export_graph(
        reader,
        form,
        target=stream if output is None or str(output) == "-" else output,
        focus=_resolve_focus(reader, focus, repo_id) if focus is not None else None,
        hops=hops,
        kinds=[name for given in kinds for name in given.replace(",", " ").split()],
        repo_id=repo_id,
        force=force,
        props=props,
        progress=_ProgressLines(),
    )
    stream.flush()
    for note in report.notes:
        click.echo(escape_unprintable(note), err=True)
    files = ", ".join(map(escape_unprintable, report.files))
    click.echo(
        f"{report.nodes:,} nodes and {report.edges:,} edges, {report.bytes / 1e6:,.1f} MB in"
        f" {monotonic() - started:.1f} s{f': {files}' if files else ''}",
        err=True,
    )


def _resolve_focus(reader: LightReader, focus: str, repo_id: str | None) -> Symbol:
    """Resolve the symbol of --focus; print the candidates if it is unknown or ambiguous."""
    from codeanatomy.query.symbols import resolve

    try:
        return resolve(reader, focus, repo_id)
    except (UnknownSymbol, AmbiguousSymbol) as error:
        # On stderr: stdout is for the export.
        print_error(error, "table")
        raise


class _ProgressLines:
    """Print how much is written every PROGRESS_SECONDS, if stderr is a terminal."""

    def __init__(self) -> None:
        self._next = monotonic() + PROGRESS_SECONDS
        self._on_terminal = sys.stderr.isatty()

    def __call__(self, nodes: int, edges: int) -> None:
        if self._on_terminal and monotonic() >= self._next:
            self._next = monotonic() + PROGRESS_SECONDS
            click.echo(f"{nodes:,} nodes, {edges:,} edges", err=True)
