"""Commands about a graph as a whole; only what compares with a clean build needs a JVM.

    codeanatomy callgraph --lake lake
    codeanatomy verify --lake lake --as-of 2026-05-01T12:00Z
    codeanatomy verify --lake lake --against-clean

Tests: `tests/unit/cli/test_cli.py`.
"""

from __future__ import annotations

import click
import msgspec

from codeanatomy.cli.options import (
    as_of_option,
    format_choice,
    lake_option,
    limit_option,
    repo_option,
)
from codeanatomy.cli.printing import print_grid, print_json
from codeanatomy.errors import EXIT_FINDINGS


@click.command()
@lake_option
@repo_option
@as_of_option
@format_choice("One object of callees by caller, or one line per repository.", "jsonl")
def callgraph(lake: str, repo_id: str | None, as_of: str | None, form: str) -> None:
    """Show who calls whom, by qualified names."""
    from codeanatomy.query.checks.callgraph import call_graphs, merged

    answer = call_graphs(lake, repo_id, as_of)
    graphs = answer.calls
    for name in answer.outdated:
        click.echo(
            f"{name} was last built without the relate stage; build it again without --until", err=True
        )
    if form == "json":
        print_json(merged(graphs.values()))
    elif form == "jsonl":
        for name, calls in graphs.items():
            click.echo(msgspec.json.encode({"repo_id": name, "calls": calls}).decode())
    else:
        found = merged(graphs.values())
        pairs: list[tuple[str, ...]] = [(caller, each) for caller in found for each in found[caller]]
        print_grid(("caller", "callee"), pairs)
        click.echo(f"{len(pairs):,} calls in {len(graphs):,} repositories", err=True)


@click.command()
@lake_option
@repo_option
@as_of_option
@limit_option(20, "Findings to show of each rule, or of each table.")
@click.option(
    "--against-clean",
    is_flag=True,
    help="Instead, build the same sources into a temporary lake, and compare all tables row for row.",
)
@format_choice("Rows for people, one object with counts, or one line per finding.", "jsonl")
@click.pass_obj
def verify(
    flags: tuple[str, ...],
    lake: str,
    repo_id: str | None,
    as_of: str | None,
    limit: int,
    against_clean: bool,
    form: str,
) -> None:
    """Check the graph of a lake against the catalogue of kinds; exit code 1 if something is wrong."""
    if against_clean:
        from codeanatomy.cli.compare import compare_with_clean

        compare_with_clean(flags, lake, repo_id, as_of, limit, form)
        return
    from codeanatomy.query.checks.verify import verify as verified

    found = verified(lake, repo_id, limit, as_of)
    for name in found.unbuilt:
        click.echo(f"{name} was last built without the graph stage; build it again without --until", err=True)
    if form == "json":
        print_json(msgspec.to_builtins(found))
    elif form == "jsonl":
        for row in found.findings:
            click.echo(msgspec.json.encode(row).decode())
    elif found.findings:
        print_grid(
            ("place", "rule", "table", "kind", "id", "message", "repository"),
            [
                (
                    row.place,
                    row.rule,
                    row.table,
                    row.kind or "",
                    row.entity_id or "",
                    row.message,
                    row.repo_id or "",
                )
                for row in found.findings
            ],
        )
    hidden = found.total - len(found.findings)
    cut = f", {hidden:,} not shown (--limit)" if hidden else ""
    click.echo(
        f"{found.total:,} findings{cut}; {len(found.rules)} rules over {sum(found.rows.values()):,} rows of"
        f" {len(found.runs):,} repositories in {found.seconds:.1f} s",
        err=True,
    )
    if found.newer:
        click.echo(f"not checked: versions that no run has published, of {', '.join(found.newer)}", err=True)
    if found.total:
        raise SystemExit(EXIT_FINDINGS)
