"""The command that writes a part of the graph for other tools; it needs no JVM.

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

from codeanatomy.cli.answers import print_problem
from codeanatomy.cli.options import as_of_option, lake_option, repo_option
from codeanatomy.cli.printing import harmless
from codeanatomy.errors import AmbiguousSymbol, UnknownSymbol

if TYPE_CHECKING:
    from codeanatomy.query.answers import Symbol
    from codeanatomy.query.engines.light import LightReader

# As `export_graph` knows them, which is imported when it is needed.
FORMS = ("dot", "graphml", "neo4j-csv", "jsonl", "parquet", "networkx-json", "svg", "html")
MOST_HOPS = 10
# Seconds between two lines that tell how far it is.
TOLD = 5.0


@click.command()
@click.argument("form", metavar="FORMAT", type=click.Choice(FORMS))
@lake_option
@repo_option
@as_of_option
@click.option("--focus", metavar="SYMBOL", help="What is around this symbol.")
@click.option(
    "--hops",
    type=click.IntRange(0, MOST_HOPS),
    default=1,
    show_default=True,
    help="Steps from the focus, in both directions; in pictures straight on.",
)
@click.option("--all", "everything", is_flag=True, help="The whole graph, or all of some kinds.")
@click.option(
    "--kinds", multiple=True, metavar="KIND,...", help="Only these kinds of nodes and edges; see `kinds`."
)
@click.option(
    "--props/--no-props", default=None, help="Properties too, such as docstrings; by default of a focus."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File, or folder for neo4j-csv and parquet."
)
@click.option("--force", is_flag=True, help="Replace what was exported there before.")
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
    """Write a part of the graph for other tools, or draw a picture of a symbol.

    FORMAT is one of dot, graphml, neo4j-csv, jsonl, parquet, networkx-json; or svg, html for a picture.
    """
    if (focus is None) != everything:
        raise click.UsageError("say either --focus SYMBOL or --all")
    from codeanatomy.lake.snapshot import Snapshot
    from codeanatomy.query.engines.light import LightReader
    from codeanatomy.query.export.write import export_graph

    snapshot = Snapshot.open(lake, as_of)
    snapshot.chosen(repo_id)
    reader = LightReader(snapshot)
    started = monotonic()
    stream = sys.stdout.buffer
    report = export_graph(
        reader,
        form,
        target=stream if output is None or str(output) == "-" else output,
        focus=_meant(reader, focus, repo_id) if focus is not None else None,
        hops=hops,
        kinds=[name for given in kinds for name in given.replace(",", " ").split()],
        repo_id=repo_id,
        force=force,
        props=props,
        progress=_Teller(),
    )
    stream.flush()
    for note in report.notes:
        click.echo(harmless(note), err=True)
    files = ", ".join(map(harmless, report.files))
    click.echo(
        f"{report.nodes:,} nodes and {report.edges:,} edges, {report.bytes / 1e6:,.1f} MB in"
        f" {monotonic() - started:.1f} s{f': {files}' if files else ''}",
        err=True,
    )


def _meant(reader: LightReader, focus: str, repo_id: str | None) -> Symbol:
    """The symbol in the middle."""
    from codeanatomy.query.symbols import resolve

    try:
        return resolve(reader, focus, repo_id)
    except (UnknownSymbol, AmbiguousSymbol) as problem:
        # What is exported goes to stdout; candidates do not.
        print_problem(problem, "table")
        raise


class _Teller:
    """Tells somebody who waits at a terminal how far it is."""

    def __init__(self) -> None:
        self._next = monotonic() + TOLD
        self._seen = sys.stderr.isatty()

    def __call__(self, nodes: int, edges: int) -> None:
        if self._seen and monotonic() >= self._next:
            self._next = monotonic() + TOLD
            click.echo(f"{nodes:,} nodes, {edges:,} edges", err=True)
