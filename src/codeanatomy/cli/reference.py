"""Show what the program knows and needs: tables, kinds, settings, the machine, the generated pages.

    codeanatomy table cpg_nodes
    codeanatomy config show --with-sources

Tests: `tests/unit/cli/test_cli.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

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
from codeanatomy.cli.printing import print_json, print_table
from codeanatomy.config import load_settings
from codeanatomy.errors import EXIT_ENVIRONMENT, EXIT_FINDINGS

if TYPE_CHECKING:
    from codeanatomy.cli.doctor import Check


@click.command()
@format_option
@click.pass_obj
def tables(flags: tuple[str, ...], form: Format) -> None:
    """List the tables of a lake: stage, layout and the meaning of a row."""
    specs = load_settings(flags).tables
    if form == "json":
        print_json([_table_summary(spec) for spec in specs])
        return
    print_table(
        ("table", "stage", "columns", "partition", "cluster", "file size", "one row"),
        [
            (
                spec.name,
                spec.stage,
                str(len(spec.columns)),
                ", ".join(spec.write.partition_by) or "-",
                ", ".join(spec.write.zorder_by) or "-",
                size_text(spec.write.target_file_size),
                spec.doc,
            )
            for spec in specs
        ],
    )


@click.command()
@click.argument("name")
@format_option
@click.pass_obj
def table(flags: tuple[str, ...], name: str, form: Format) -> None:
    """Show one table: columns, keys, constraints, policies and inputs."""
    spec = catalog.table(name, load_settings(flags).tables)
    if form == "json":
        click.echo(msgspec.json.format(contract_json(spec), indent=2).decode())
        return
    click.echo(f"{spec.name}: {spec.doc}\n")
    print_table(
        ("column", "type", "null", "meaning", "doc"),
        [
            (
                "  " * depth + column.name,
                type_text(column),
                "" if column.nullable else "not null",
                column.semantic_type or "",
                column.doc,
            )
            for column, depth in nested_columns(spec.readable_columns)
        ],
    )
    click.echo("")
    rules = {f"constraint {rule.name}": rule.expression for rule in spec.constraints}
    facts = {"declared in": catalog.declared_in(name), **describe_table(spec), **rules}
    print_table(("policy", "value"), list(facts.items()))


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
    listed = [each for each in KINDS.values() if profile in each.profiles]
    if form == "json":
        print_json([msgspec.to_builtins(each) for each in listed])
        return
    print_table(
        ("kind", "what", "family", "ends", "meaning"),
        [
            (
                each.name,
                "node" if isinstance(each, NodeKind) else "edge",
                each.family,
                "" if isinstance(each, NodeKind) else ends_text(each.ends),
                each.doc,
            )
            for each in listed
        ],
    )


def _print_kind(spec: NodeKind | EdgeKind, form: Format) -> None:
    if form == "json":
        print_json(msgspec.to_builtins(spec))
        return
    click.echo(f"{spec.name}: {spec.doc}\n")
    click.echo("\n".join(f"    {line}" for line in spec.example.splitlines()) + "\n")
    print_table(("fact", "value"), list(describe_kind(spec).items()))


@click.group()
def config() -> None:
    """Show the settings of file, environment and flags."""


@config.command("show")
@click.option("--with-sources", is_flag=True, help="Show where each value comes from.")
@click.option("--all", "everything", is_flag=True, help="With the default policies of every table.")
@format_option
@click.pass_obj
def config_show(flags: tuple[str, ...], with_sources: bool, everything: bool, form: Format) -> None:
    """Print the effective settings.

    Of the policies of tables only those that were changed, unless --all is given.
    """
    settings = load_settings(flags)
    rows = [row for row in settings.rows() if everything or _is_shown(row[0], row[2])]
    if form == "json":
        print_json(
            [
                {"key": key, "value": value, **({"source": source} if with_sources else {})}
                for key, value, source in rows
            ]
        )
        return
    header = ("key", "value", "source") if with_sources else ("key", "value")
    print_table(header, [(key, _setting_text(value), source)[: len(header)] for key, value, source in rows])
    click.echo(f"runtime identity {settings.runtime.identity}", err=True)


@click.command()
@click.option("--lake", metavar="DIR", help="Check the store of this lake instead: a folder or URI.")
@format_option
@click.pass_obj
def doctor(flags: tuple[str, ...], lake: str | None, form: Format) -> None:
    """Check that this machine has what a build needs.

    Checks Java, jars, the Python of Spark's workers, memory, disk, Node.js with scip-python, and pyrefly.
    With --lake: the jars for its store, endpoint, region, credentials, and whether objects can be listed,
    written, created only once, read and deleted; for that, two small objects are written and deleted.
    Exit code 4 if a check fails.
    """
    settings = load_settings(flags)
    checks: Sequence[Check]
    if lake is None:
        from codeanatomy.cli.doctor import examine

        checks = examine(settings.runtime.driver_memory)
    else:
        from codeanatomy.cli.store_checks import examine_store

        checks = examine_store(lake, settings.runtime)
    if form == "json":
        print_json([msgspec.to_builtins(check) for check in checks])
    else:
        print_table(
            ("check", "status", "detail", "next"),
            [(check.name, check.status, check.detail, check.next_step) for check in checks],
        )
    if any(check.status == "fail" for check in checks):
        raise SystemExit(EXIT_ENVIRONMENT)


@click.command()
@click.option(
    "--with",
    "connectors",
    multiple=True,
    type=click.Choice(["s3"]),
    help="Also download what Spark needs for lakes on a store; s3: 690 MB for s3a:// URIs.",
)
def setup(connectors: tuple[str, ...]) -> None:
    """Download the jars and prepare a fast start, once per machine."""
    from codeanatomy.spark.class_archive import train_archive
    from codeanatomy.spark.jars import CONNECTORS, cache_folder, ensure_jars
    from codeanatomy.spark.java import find_java

    java = find_java()
    cache = cache_folder()
    click.echo(f"java {java.major} at {java.path}", err=True)
    jars = ensure_jars(cache, java)
    click.echo(f"{len(jars)} jars in {cache / 'jars'}", err=True)
    for name in dict.fromkeys(connectors):
        more = ensure_jars(cache, java, CONNECTORS[name])
        click.echo(f"{len(more)} jars for lakes on {name}", err=True)
    archive = train_archive(cache, java, jars)
    click.echo(f"class archive {archive}" if archive else "no class archive: starts will be slower", err=True)


@click.command()
@click.option(
    "--output",
    "output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The archive to write, such as env.tar.gz.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@format_option
def environment(output: Path, force: bool, form: Format) -> None:
    """Pack this Python environment for the executors of a cluster.

    The archive has the interpreter, codeanatomy and what it requires. Name it in the setting
    runtime.environment: Spark then unpacks it on every executor, which needs no Python of its own.
    """
    from codeanatomy.spark.environment import pack_environment

    packed = pack_environment(output, force=force)
    if form == "json":
        print_json(msgspec.to_builtins(packed))
        return
    print_table(
        ("archive", "size", "files", "python", "packages"),
        [
            (
                packed.path,
                f"{packed.size_bytes / 1e6:.0f} MB",
                str(packed.files),
                packed.python,
                str(len(packed.packages)),
            )
        ],
    )


@click.command()
@click.option("--check", is_flag=True, help="Only list pages that are stale (exit code 1).")
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("docs"),
    show_default=True,
    help="Folder of the pages.",
)
@click.pass_context
def docs(context: click.Context, check: bool, folder: Path) -> None:
    """Write the generated pages of the documentation.

    These are tables, kinds, views, errors, functions, commands and JSON Schemas. Prints the names of the
    pages that changed.
    """
    from codeanatomy.cli.docs_pages import stale_pages, write_pages

    commands = cast(click.Group, context.find_root().command)
    changed = stale_pages(folder, commands) if check else write_pages(folder, commands)
    for page in changed:
        click.echo(page)
    if check and changed:
        raise SystemExit(EXIT_FINDINGS)


def _table_summary(table: Table) -> dict[str, object]:
    return {
        "name": table.name,
        "stage": table.stage,
        "doc": table.doc,
        "columns": [column.name for column in table.readable_columns],
        "primary_key": list(table.primary_key),
        "owner": table.owner,
        "inputs": list(table.inputs),
        "ordering": list(table.ordering),
        "target_file_size": table.write.target_file_size,
    }


def _is_shown(key: str, source: str) -> bool:
    return not key.startswith("tables.") or source != "default"


def _setting_text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
