"""The command line: verbs onto functions, no logic of its own.

stdout is data, stderr is talk. Every verb that answers has `--format json`. Errors of our own are
one message with the next step and the exit code of their class (see `codeanatomy.errors`).
Tests: `tests/test_cli.py`.
"""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import msgspec

from codeanatomy import __version__, catalog
from codeanatomy.catalog.describe import (
    ends_text,
    flattened,
    kind_facts,
    policy_facts,
    size_text,
    type_text,
)
from codeanatomy.catalog.kinds import KINDS, PROFILES, EdgeKind, NodeKind, Profile, kind
from codeanatomy.catalog.spec import Table, contract_json
from codeanatomy.config import load_settings
from codeanatomy.errors import EXIT_BUG, EXIT_ENVIRONMENT, EXIT_FINDINGS, CodeAnatomyError

if TYPE_CHECKING:
    from codeanatomy.run.build import BuildReport

Format = Literal["table", "json"]

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="How to print the answer.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="codeanatomy")
@click.option("--set", "flags", multiple=True, metavar="KEY=VALUE", help="Set a setting for this call.")
@click.pass_context
def cli(context: click.Context, flags: tuple[str, ...]) -> None:
    """A Code Property Graph lakehouse for Python, on Spark and Delta Lake.

    Exit codes: 0 done, 1 findings, 2 usage, 4 environment, 5 storage (try again), 6 contract,
    70 a bug of ours.
    """
    context.obj = flags


@cli.command()
@format_option
@click.pass_obj
def tables(flags: tuple[str, ...], form: Format) -> None:
    """List the tables of a lake: stage, layout and what one row is."""
    found = load_settings(flags).tables
    if form == "json":
        _print_json([_summary(table) for table in found])
        return
    _print_grid(
        ("table", "stage", "columns", "partition", "cluster", "file size", "one row"),
        [
            (
                table.name,
                table.stage,
                str(len(table.columns)),
                ", ".join(table.write.partition_by) or "-",
                ", ".join(table.write.zorder_by) or "-",
                size_text(table.write.target_file_size),
                table.doc,
            )
            for table in found
        ],
    )


@cli.command()
@click.argument("name")
@format_option
@click.pass_obj
def table(flags: tuple[str, ...], name: str, form: Format) -> None:
    """Show one table: columns, keys, constraints, policies and where it is derived from."""
    found = catalog.table(name, load_settings(flags).tables)
    if form == "json":
        click.echo(msgspec.json.format(contract_json(found), indent=2).decode())
        return
    click.echo(f"{found.name}: {found.doc}\n")
    _print_grid(
        ("column", "type", "null", "meaning", "doc"),
        [
            (
                "  " * depth + column.name,
                type_text(column),
                "" if column.nullable else "not null",
                column.semantic_type or "",
                column.doc,
            )
            for column, depth in flattened(found.columns)
        ],
    )
    click.echo("")
    rules = {f"constraint {rule.name}": rule.expression for rule in found.constraints}
    facts = {"declared in": catalog.declared_in(name), **policy_facts(found), **rules}
    _print_grid(("policy", "value"), list(facts.items()))


@cli.command()
@click.argument("name", required=False)
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="full",
    show_default=True,
    help="List only kinds of this profile.",
)
@format_option
def kinds(name: str | None, profile: Profile, form: Format) -> None:
    """List the kinds of nodes and edges, or show one with an example."""
    if name is not None:
        _print_kind(kind(name.upper()), form)
        return
    found = [each for each in KINDS.values() if profile in each.profiles]
    if form == "json":
        _print_json([msgspec.to_builtins(each) for each in found])
        return
    _print_grid(
        ("kind", "what", "family", "ends", "meaning"),
        [
            (
                each.name,
                "node" if isinstance(each, NodeKind) else "edge",
                each.family,
                "" if isinstance(each, NodeKind) else ends_text(each.ends),
                each.doc,
            )
            for each in found
        ],
    )


def _print_kind(found: NodeKind | EdgeKind, form: Format) -> None:
    if form == "json":
        _print_json(msgspec.to_builtins(found))
        return
    click.echo(f"{found.name}: {found.doc}\n")
    click.echo("\n".join(f"    {line}" for line in found.example.splitlines()) + "\n")
    _print_grid(("fact", "value"), list(kind_facts(found).items()))


@cli.group()
def config() -> None:
    """Settings: file, environment and flags."""


@config.command("show")
@click.option("--with-sources", is_flag=True, help="Say where each value came from.")
@click.option("--all", "everything", is_flag=True, help="Also every table's defaults.")
@format_option
@click.pass_obj
def config_show(flags: tuple[str, ...], with_sources: bool, everything: bool, form: Format) -> None:
    """Print the effective settings; table policies only where they were changed, unless --all."""
    settings = load_settings(flags)
    rows = [row for row in settings.rows() if everything or _worth_showing(row[0], row[2])]
    if form == "json":
        _print_json(
            [
                {"key": key, "value": value, **({"source": source} if with_sources else {})}
                for key, value, source in rows
            ]
        )
        return
    header = ("key", "value", "source") if with_sources else ("key", "value")
    _print_grid(header, [(key, _plain(value), source)[: len(header)] for key, value, source in rows])
    click.echo(f"runtime identity {settings.runtime.identity}", err=True)


@cli.command()
@format_option
@click.pass_obj
def doctor(flags: tuple[str, ...], form: Format) -> None:
    """Check Java, jars, the workers' Python, memory, node with scip-python, and pyrefly."""
    from codeanatomy.doctor import examine

    checks = examine(load_settings(flags).runtime.driver_memory)
    if form == "json":
        _print_json([msgspec.to_builtins(check) for check in checks])
    else:
        _print_grid(
            ("check", "status", "found", "next"),
            [(check.name, check.status, check.found, check.next_step) for check in checks],
        )
    if any(check.status == "fail" for check in checks):
        raise SystemExit(EXIT_ENVIRONMENT)


@cli.command()
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option(
    "--lake", required=True, metavar="DIR", help="Where the tables are, or shall be: a folder or URI."
)
@click.option("--repo-id", metavar="NAME", help="Name of the repository; by default that of the source.")
@click.option(
    "--repos-file", type=click.Path(path_type=Path), help="Further sources, one NAME=PATH per line."
)
@click.option(
    "--scip",
    multiple=True,
    metavar="PATH|auto|off",
    help="A SCIP index (NAME=PATH with several repositories), or make one with scip-python; default: off.",
)
@click.option(
    "--types",
    type=click.Choice(("auto", "off")),
    default="auto",
    show_default=True,
    help="Ask the type checker pyrefly, where it is installed.",
)
@click.option("--master", metavar="URL", help="Spark master, such as local[4] or spark://host:7077.")
@click.option("--until", metavar="STAGE", help="Stop after this stage.")
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="default",
    show_default=True,
    help="Kinds of nodes and edges: full adds instructions, comments and SCIP's occurrences.",
)
@format_option
@click.pass_obj
def build(
    flags: tuple[str, ...],
    sources: tuple[str, ...],
    lake: str,
    repo_id: str | None,
    repos_file: Path | None,
    scip: tuple[str, ...],
    types: Literal["auto", "off"],
    master: str | None,
    until: str | None,
    profile: Profile,
    form: Format,
) -> None:
    """Build repositories into a lake.

    A SOURCE is a folder or an archive (wheel, sdist, zip), or NAME=PATH. Files that fail to parse do not
    fail the build: `codeanatomy errors` lists them. Exit code 1 if a repository could not be built.
    """
    from codeanatomy.run.build import build as build_run
    from codeanatomy.run.build import planned_stages
    from codeanatomy.run.progress import Progress
    from codeanatomy.run.repositories import list_repositories, named_sources, refuse_nothing
    from codeanatomy.run.scip import scip_choice
    from codeanatomy.run.state import Run
    from codeanatomy.storage.session import open_session
    from codeanatomy.storage.store import Store, checked_root

    settings = load_settings((*flags, *((f"runtime.master={master}",) if master else ())))
    repositories = tuple(named_sources(sources, repo_id, repos_file))
    choice = scip_choice(scip, repositories)
    planned_stages(settings.tables, until)
    checked_root(lake, settings.runtime.require_local_paths)
    with Progress(sys.stderr) as progress:
        listed = list_repositories(repositories, settings.extract, progress)
        refuse_nothing(listed)
        progress.tell("spark", f"starting on {settings.runtime.master}")
        spark = open_session(settings.runtime)
        try:
            store = Store.of(settings, spark, lake)
            report = build_run(Run(store, settings, listed, progress, choice, types, profile), until)
        finally:
            spark.stop()
    if form == "json":
        _print_json(msgspec.to_builtins(report))
    else:
        _print_build(report)
    if report.status == "failed":
        raise SystemExit(EXIT_FINDINGS)


@cli.command()
@click.option("--lake", required=True, metavar="DIR", help="The lake.")
@click.option("--repo-id", metavar="NAME", help="Only this repository.")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Rows to show.")
@format_option
def errors(lake: str, repo_id: str | None, limit: int, form: Format) -> None:
    """List what failed when the repositories of a lake were last built."""
    from codeanatomy.query.failures import failures

    found = failures(lake, repo_id, limit)
    if form == "json":
        _print_json(msgspec.to_builtins(found))
        return
    if found.rows:
        _print_grid(
            ("place", "extractor", "error", "message", "repository"),
            [(row.place, row.extractor, row.error_type, row.message, row.repo_id) for row in found.rows],
        )
    cut = f", {found.total - len(found.rows):,} not shown (--limit)" if found.total > len(found.rows) else ""
    click.echo(f"{found.total:,} failures in {len(found.runs):,} repositories{cut}", err=True)


@cli.command()
@click.option("--lake", required=True, metavar="DIR", help="The lake.")
@click.option("--repo-id", metavar="NAME", help="Only this repository.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "jsonl"]),
    default="table",
    show_default=True,
    help="One object of callees by caller, or one line per repository.",
)
def callgraph(lake: str, repo_id: str | None, form: str) -> None:
    """Show who calls whom, by qualified names."""
    from codeanatomy.query.callgraph import call_graphs, merged

    answer = call_graphs(lake, repo_id)
    graphs = answer.calls
    for name in answer.outdated:
        click.echo(
            f"{name} was last built without the relate stage; build it again without --until", err=True
        )
    if form == "json":
        _print_json(merged(graphs.values()))
    elif form == "jsonl":
        for name, calls in graphs.items():
            click.echo(msgspec.json.encode({"repo_id": name, "calls": calls}).decode())
    else:
        found = merged(graphs.values())
        pairs: list[tuple[str, ...]] = [(caller, each) for caller in found for each in found[caller]]
        _print_grid(("caller", "callee"), pairs)
        click.echo(f"{len(pairs):,} calls in {len(graphs):,} repositories", err=True)


@cli.command()
@click.option("--lake", required=True, metavar="DIR", help="The lake.")
@click.option("--repo-id", "--repo", "repo_id", metavar="NAME", help="Only this repository.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Findings to show of each rule.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "jsonl"]),
    default="table",
    show_default=True,
    help="Rows for people, one object with counts by rule, or one line per finding.",
)
def verify(lake: str, repo_id: str | None, limit: int, form: str) -> None:
    """Check the graph of a lake against the catalogue of kinds; exit code 1 if something is wrong."""
    from codeanatomy.query.verify import verify as verified

    found = verified(lake, repo_id, limit)
    for name in found.unbuilt:
        click.echo(f"{name} was last built without the graph stage; build it again without --until", err=True)
    if form == "json":
        _print_json(msgspec.to_builtins(found))
    elif form == "jsonl":
        for row in found.findings:
            click.echo(msgspec.json.encode(row).decode())
    elif found.findings:
        _print_grid(
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


@cli.command()
def setup() -> None:
    """Fetch the jars into the cache and prepare a fast start; needed once per machine."""
    from codeanatomy.storage.archive import train_archive
    from codeanatomy.storage.jars import cache_folder, ensure_jars
    from codeanatomy.storage.java import find_java

    java = find_java()
    cache = cache_folder()
    click.echo(f"java {java.major} at {java.path}", err=True)
    jars = ensure_jars(cache, java)
    click.echo(f"{len(jars)} jars in {cache / 'jars'}", err=True)
    archive = train_archive(cache, java, jars)
    click.echo(f"class archive {archive}" if archive else "no class archive: starts will be slower", err=True)


@cli.command()
@click.option("--check", is_flag=True, help="Only say which pages are stale (exit code 1).")
@click.option("--to", "folder", type=click.Path(path_type=Path), default=Path("docs"), show_default=True)
def docs(check: bool, folder: Path) -> None:
    """Write the generated pages: tables, kinds, errors, functions, commands, JSON Schemas."""
    from codeanatomy.docs import stale_pages, write_pages

    changed = stale_pages(folder, cli) if check else write_pages(folder, cli)
    for page in changed:
        click.echo(page)
    if check and changed:
        raise SystemExit(EXIT_FINDINGS)


def main() -> None:
    """Run a command; an error of ours is a message, anything else a bug."""
    try:
        # Not cli.main: it ends a command whose pipe was closed with 1, which here means findings.
        with cli.make_context("codeanatomy", sys.argv[1:]) as context:
            cli.invoke(context)
    except click.exceptions.Exit as ending:
        raise SystemExit(ending.exit_code) from None
    except click.ClickException as problem:
        problem.show()
        raise SystemExit(problem.exit_code) from problem
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        raise SystemExit(130) from None
    except CodeAnatomyError as problem:
        click.echo(f"error {problem}", err=True)
        raise SystemExit(problem.exit_code) from None
    except BrokenPipeError:
        # The reader of a pipe has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except OSError as problem:
        click.echo(f"error {problem}\n  next: mend what the message names", err=True)
        raise SystemExit(EXIT_ENVIRONMENT) from None
    except Exception as problem:
        traceback.print_exception(problem)
        click.echo("error: this is a bug of ours; please report it with the lines above", err=True)
        raise SystemExit(EXIT_BUG) from problem


def _summary(table: Table) -> dict[str, object]:
    return {
        "name": table.name,
        "stage": table.stage,
        "doc": table.doc,
        "columns": list(table.column_names),
        "primary_key": list(table.primary_key),
        "owner": table.owner,
        "inputs": list(table.inputs),
        "ordering": list(table.ordering),
        "target_file_size": table.write.target_file_size,
    }


def _print_build(report: BuildReport) -> None:
    """What was built, for people."""
    _print_grid(
        ("table", "version", "rows"),
        [(name, str(done.version), f"{done.rows:,}") for name, done in report.tables.items()],
    )
    click.echo("")
    _print_grid(
        ("repository", "status", "files", "failures", "error"),
        [
            (name, each.status, f"{each.files:,}", f"{sum(each.errors.values()):,}", each.error or "")
            for name, each in report.repositories.items()
        ],
    )
    click.echo(f"\nrun {report.run_id} in {report.seconds['total']:.1f} s", err=True)
    if report.errors:
        click.echo(f"failures: codeanatomy errors --lake {shlex.quote(report.lake)}", err=True)


def _worth_showing(key: str, source: str) -> bool:
    return not key.startswith("tables.") or source != "default"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _print_json(value: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _print_grid(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """A table for people: as wide as the terminal, unwrapped when piped."""
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(*header, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        # Text, not str: nothing in a value may be read as markup.
        grid.add_row(*(Text(_harmless(cell)) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else 10_000, soft_wrap=False, highlight=False)
    # Printed by click, because a pipe that is closed makes rich end the process by itself.
    with console.capture() as printed:
        console.print(grid)
    click.echo("\n".join(line.rstrip() for line in printed.get().splitlines()))


def _harmless(text: str) -> str:
    """The text in one line, without characters that would command a terminal."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
