"""Commands about the program itself: what it knows, what it was told, and what it needs.

    codeanatomy table cpg_nodes
    codeanatomy config show --with-sources

Tests: `tests/unit/cli/test_cli.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click
import msgspec

from codeanatomy import catalog
from codeanatomy.catalog.describe import (
    describe_kind,
    describe_table,
    ends_text,
    nested_columns,
    size_text,
    type_text,
)
from codeanatomy.catalog.kinds import KINDS, PROFILES, EdgeKind, NodeKind, Profile, kind
from codeanatomy.catalog.spec import Table, contract_json
from codeanatomy.cli.options import Format, format_option
from codeanatomy.cli.printing import print_grid, print_json
from codeanatomy.config import load_settings
from codeanatomy.errors import EXIT_ENVIRONMENT, EXIT_FINDINGS


@click.command()
@format_option
@click.pass_obj
def tables(flags: tuple[str, ...], form: Format) -> None:
    """List the tables of a lake: stage, layout and what one row is."""
    found = load_settings(flags).tables
    if form == "json":
        print_json([_summary(table) for table in found])
        return
    print_grid(
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


@click.command()
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
    print_grid(
        ("column", "type", "null", "meaning", "doc"),
        [
            (
                "  " * depth + column.name,
                type_text(column),
                "" if column.nullable else "not null",
                column.semantic_type or "",
                column.doc,
            )
            for column, depth in nested_columns(found.columns)
        ],
    )
    click.echo("")
    rules = {f"constraint {rule.name}": rule.expression for rule in found.constraints}
    facts = {"declared in": catalog.declared_in(name), **describe_table(found), **rules}
    print_grid(("policy", "value"), list(facts.items()))


@click.command()
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
        print_json([msgspec.to_builtins(each) for each in found])
        return
    print_grid(
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
        print_json(msgspec.to_builtins(found))
        return
    click.echo(f"{found.name}: {found.doc}\n")
    click.echo("\n".join(f"    {line}" for line in found.example.splitlines()) + "\n")
    print_grid(("fact", "value"), list(describe_kind(found).items()))


@click.group()
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
        print_json(
            [
                {"key": key, "value": value, **({"source": source} if with_sources else {})}
                for key, value, source in rows
            ]
        )
        return
    header = ("key", "value", "source") if with_sources else ("key", "value")
    print_grid(header, [(key, _plain(value), source)[: len(header)] for key, value, source in rows])
    click.echo(f"runtime identity {settings.runtime.identity}", err=True)


@click.command()
@format_option
@click.pass_obj
def doctor(flags: tuple[str, ...], form: Format) -> None:
    """Check Java, jars, the workers' Python, memory, node with scip-python, and pyrefly."""
    from codeanatomy.cli.doctor import examine

    checks = examine(load_settings(flags).runtime.driver_memory)
    if form == "json":
        print_json([msgspec.to_builtins(check) for check in checks])
    else:
        print_grid(
            ("check", "status", "found", "next"),
            [(check.name, check.status, check.found, check.next_step) for check in checks],
        )
    if any(check.status == "fail" for check in checks):
        raise SystemExit(EXIT_ENVIRONMENT)


@click.command()
def setup() -> None:
    """Fetch the jars into the cache and prepare a fast start; needed once per machine."""
    from codeanatomy.spark.class_archive import train_archive
    from codeanatomy.spark.jars import cache_folder, ensure_jars
    from codeanatomy.spark.java import find_java

    java = find_java()
    cache = cache_folder()
    click.echo(f"java {java.major} at {java.path}", err=True)
    jars = ensure_jars(cache, java)
    click.echo(f"{len(jars)} jars in {cache / 'jars'}", err=True)
    archive = train_archive(cache, java, jars)
    click.echo(f"class archive {archive}" if archive else "no class archive: starts will be slower", err=True)


@click.command()
@click.option("--check", is_flag=True, help="Only say which pages are stale (exit code 1).")
@click.option("--to", "folder", type=click.Path(path_type=Path), default=Path("docs"), show_default=True)
@click.pass_context
def docs(context: click.Context, check: bool, folder: Path) -> None:
    """Write the generated pages: tables, kinds, errors, functions, commands, JSON Schemas."""
    from codeanatomy.cli.docs_pages import stale_pages, write_pages

    commands = cast(click.Group, context.find_root().command)
    changed = stale_pages(folder, commands) if check else write_pages(folder, commands)
    for page in changed:
        click.echo(page)
    if check and changed:
        raise SystemExit(EXIT_FINDINGS)


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


def _worth_showing(key: str, source: str) -> bool:
    return not key.startswith("tables.") or source != "default"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
