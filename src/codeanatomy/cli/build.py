"""Write a lake, or show what would be written: `build` and `plan`.

    codeanatomy build src --lake lake
    codeanatomy plan src --lake lake

Tests: `tests/unit/cli/test_build_command.py`.
"""

from __future__ import annotations

import io
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from codeanatomy.catalog.kinds import PROFILES
from codeanatomy.cli.main import AT_ONCE
from codeanatomy.cli.options import Format, format_choice, format_option, lake_option
from codeanatomy.cli.printing import print_json, print_table
from codeanatomy.config import Settings, check_master, load_settings
from codeanatomy.errors import EXIT_FINDINGS
from codeanatomy.lake.engine_facts import engine_text
from codeanatomy.spark.lazy_session import session_for
from codeanatomy.spark.settings import BUILD_OPTIONS

if TYPE_CHECKING:
    from codeanatomy.pipeline.executors.local_process import Worker
    from codeanatomy.plan.build_request import BuildRequest
    from codeanatomy.plan.changes import Impact
    from codeanatomy.plan.run_plan import Plan, PlannedStep
    from codeanatomy.run.report import BuildReport

# Tables of the graph that a build's result names.
GRAPH_NOUNS = {"cpg_nodes": "nodes", "cpg_edges": "edges"}
# Width of a printed plan, and colours of steps in its graph, by action.
PLAN_WIDTH = 110
COLOURS = {"run": "lightblue", "refresh": "lightgreen", "resume": "lightyellow", "skip": "lightgrey"}

# A function before it is made a command.
Command = Callable[..., Any]


# Options of a build request, shared by `build` and `plan`.
REQUEST_OPTIONS = (
    click.argument("sources", nargs=-1, metavar="SOURCE..."),
    lake_option,
    click.option(
        "--repo-id", metavar="NAME", help="Name of the repository; default: the name of the source."
    ),
    click.option(
        "--repos-file", type=click.Path(path_type=Path), help="Further sources, one NAME=PATH per line."
    ),
    click.option(
        "--scip",
        multiple=True,
        metavar="PATH|auto|off",
        help="A SCIP index (NAME=PATH if there are several repositories), or make one; default: off.",
    ),
    click.option(
        "--types",
        type=click.Choice(("auto", "off")),
        default="auto",
        show_default=True,
        help="Use the type checker pyrefly, if it is installed.",
    ),
    click.option("--until", metavar="STAGE", help="Stop after this stage."),
    click.option(
        "--engine",
        type=click.Choice(("spark", "local")),
        help="Build on Spark, or on processes of this machine without Java; default: the setting"
        " runtime.engine, which is spark.",
    ),
    click.option("--master", metavar="URL", help="Spark master, such as local[4] or spark://host:7077."),
    click.option(
        "--readers",
        type=click.Choice(("all", "modern")),
        help="Readers that open the tables of a new lake: all, or (modern) those of deletion vectors, with"
        " which a refresh writes less; default: all. For an existing lake: maintain --readers.",
    ),
    click.option("--full", is_flag=True, help="Build all files, even if only some have changed."),
    click.option(
        "--since",
        metavar="COMMIT",
        help="Skip reading files that git reports unchanged since COMMIT; the lake must have that commit or a"
        " later one.",
    ),
    click.option(
        "--profile",
        type=click.Choice(list(PROFILES)),
        default="default",
        show_default=True,
        help="Kinds of nodes and edges: full adds instructions, comments and SCIP occurrences.",
    ),
)


def request_options(command: Command) -> Command:
    """Add the options of a build request, in their order in the help."""
    for option in reversed(REQUEST_OPTIONS):
        command = option(command)
    return command


@click.command()
@request_options
@click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="Wait while another run writes the lake, or fail at once.",
)
@click.option("--trace", type=click.Choice(("off", "console", "otlp")), help="Where to send trace spans.")
@click.option(
    "--log-format", type=click.Choice(("text", "json")), help="Write log lines to stderr in this form."
)
@format_option
@click.pass_obj
def build(
    flags: tuple[str, ...],
    /,
    engine: str | None,
    master: str | None,
    readers: str | None,
    wait: bool,
    trace: str | None,
    log_format: str | None,
    form: Format,
    **ordered: Any,
) -> str:
    """Build repositories into a lake.

    A SOURCE is a folder or an archive (wheel, sdist, zip): a path, or a URI such as s3a://bucket/folder; or
    NAME=SOURCE. Files that fail to parse do not fail the build: `codeanatomy errors` lists them. Unchanged
    files are not built again: `codeanatomy plan` shows what would be. Exit code 1 if a repository could not
    be built.
    """
    from codeanatomy.pipeline.executors.local_process import Worker
    from codeanatomy.run.signals import raise_on_sigterm

    settings = _settings(flags, engine, master, readers, trace, log_format)
    # From here on processes are started, which SIGTERM must end, too.
    with raise_on_sigterm(), Worker() as worker:
        if settings.runtime.engine == "local":
            # It imports what it needs while this process does.
            worker.start()
        report = _built(settings, worker, wait=wait, **ordered)
    if form == "json":
        print_json(msgspec.to_builtins(report))
    else:
        _print_build(report)
    if report.status == "failed":
        raise SystemExit(EXIT_FINDINGS)
    return AT_ONCE


def _built(settings: Settings, worker: Worker, *, wait: bool, **ordered: Any) -> BuildReport:
    """Build with progress, logs, spans and, if it is needed, a Spark session."""
    from codeanatomy.logs import open_logs
    from codeanatomy.progress import Progress
    from codeanatomy.tracing import open_trace

    logs = settings.observe.log_level != "off"
    # JSON log lines are not mixed with progress lines, and text log lines not with bars.
    quiet = logs and settings.observe.log_format == "json"
    with (
        Progress(io.StringIO() if quiet else sys.stderr, bars=not logs) as progress,
        open_logs(settings.observe),
        open_trace(settings.observe) as trace_sink,
        session_for(settings, progress, BUILD_OPTIONS) as session,
    ):
        if settings.runtime.engine == "spark" and is_new_lake(ordered["lake"]):
            # Before everything that takes time to import. An existing lake may be up to date.
            session.start()
        request = _build_request(settings, wait=wait, **ordered)
        from codeanatomy.run.build import build as build_run

        report = build_run(request, progress, session, trace_sink, worker)
    if trace_sink.problem and not logs:
        click.echo(f"warning: {trace_sink.problem}", err=True)
    return report


def is_new_lake(lake: str) -> bool:
    """Whether nothing was ever built into a lake; False where only an object store knows."""
    return "://" not in lake and not Path(lake, "meta").exists()


@click.command()
@request_options
@click.option(
    "--impact/--no-impact",
    default=True,
    show_default=True,
    help="Also find which files would be redone and why; takes as long as the analysis of all files.",
)
@format_choice("A table for people, one object, or a graph for Graphviz.", "dot")
@click.pass_obj
def plan(
    flags: tuple[str, ...],
    /,
    engine: str | None,
    master: str | None,
    readers: str | None,
    impact: bool,
    form: str,
    **ordered: Any,
) -> None:
    """Show what a build would do, without doing it.

    Lists the steps, their inputs, and why each runs or is skipped; for a repository that would be refreshed,
    also the files that are redone and the reason of each.
    """
    from codeanatomy.progress import Progress
    from codeanatomy.run.build import plan as plan_build

    settings = _settings(flags, engine, master, readers)
    with Progress(sys.stderr) as progress:
        planned = plan_build(_build_request(settings, **ordered), progress, impact=impact)
    if form == "json":
        print_json({"nothing_to_do": planned.nothing_to_do, **msgspec.to_builtins(planned)})
    elif form == "dot":
        click.echo(plan_graph(planned))
    else:
        click.echo("\n".join(plan_lines(planned)))
        base = f"on top of run {planned.base_run_id}" if planned.base_run_id else "in a new lake"
        click.echo("nothing to do" if planned.nothing_to_do else base, err=True)
    if planned.held_by:
        click.echo(f"the lake is being written by {planned.held_by}", err=True)


def _build_request(
    settings: Settings,
    *,
    sources: tuple[str, ...],
    lake: str,
    repo_id: str | None,
    repos_file: Path | None,
    scip: tuple[str, ...],
    **options: Any,
) -> BuildRequest:
    """Return the request of a command; `options` are further fields of BuildRequest."""
    from codeanatomy.plan.build_request import BuildRequest, scip_choice
    from codeanatomy.plan.repositories import parse_repositories

    repositories = tuple(parse_repositories(sources, repo_id, repos_file))
    return BuildRequest(lake, settings, repositories, scip_choice(scip, repositories), **options)


def _settings(
    flags: tuple[str, ...],
    engine: str | None = None,
    master: str | None = None,
    readers: str | None = None,
    trace: str | None = None,
    log_format: str | None = None,
) -> Settings:
    """Load the settings of a build; --engine, --master and the like are short names of settings."""
    named = {
        "runtime.engine": engine,
        "runtime.master": master,
        "delta.readers": readers,
        "observe.trace": trace,
        "observe.log_format": log_format,
    }
    given = (*flags, *(f"{key}={value}" for key, value in named.items() if value))
    settings = load_settings(given)
    check_master(settings)
    if log_format and settings.source("observe.log_level") == "default":
        # --log-format without a log level turns the log on.
        return load_settings((*given, "observe.log_level=info"))
    return settings


def _print_build(report: BuildReport) -> None:
    """Print the repositories of a build for people, and what it wrote in one line."""
    if report.status == "unchanged":
        names = ", ".join(report.repositories)
        click.echo(
            f"unchanged since run {report.run_id}: {names} ({report.seconds['total']:.1f} s)", err=True
        )
        return
    print_table(
        ("repository", "status", "files", "failures", "error"),
        [
            (
                name,
                repository.status,
                f"{repository.files:,}",
                f"{sum(repository.errors.values()):,}",
                repository.error or "",
            )
            for name, repository in report.repositories.items()
        ],
    )
    for name, repository in report.repositories.items():
        for warning in repository.warnings:
            click.echo(f"warning: {name}: {warning}", err=True)
    rows = sum(table.rows for table in report.tables.values())
    made = [
        f"{report.tables[name].rows:,} {noun}" for name, noun in GRAPH_NOUNS.items() if name in report.tables
    ]
    graph = f" (graph: {', '.join(made)})" if made else ""
    click.echo(f"\nwrote {rows:,} rows of {len(report.tables):,} tables{graph}")
    click.echo(f"run {report.run_id} in {report.seconds['total']:.1f} s", err=True)
    for name, reasons in report.redone.items():
        counts = ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
        click.echo(f"{name}: {sum(reasons.values()):,} files redone ({counts})", err=True)
        whole = [step for step, actions in report.steps.items() if actions.get(name) == "run"]
        if whole:
            click.echo(f"{name}: all files redone by {', '.join(whole)}", err=True)
    if report.errors:
        click.echo(f"failures: codeanatomy errors --lake {shlex.quote(report.lake)}", err=True)


def plan_lines(plan: Plan) -> Iterator[str]:
    """Format the plan as lines, in the order of execution.

    engine spark on local[*], Spark 4.2.0, Delta 4.4.0
    graph
      run     requests: settings changed
      reads   relations_v1 v3, ast_files_v1 v2, ...
      writes  cpg_nodes, cpg_edges, ...
    redone of flask: 2 files
      changed     flask/views.py
      lost        flask/app.py: 3 relations, such as flask.views.View
    """
    if plan.undo:
        yield "undo"
        for undo in plan.undo:
            back = "no rows" if undo.to_version is None else f"v{undo.to_version}"
            yield f"  run     {undo.table_name}: from v{undo.from_version} back to {back}"
    if any(step.busy for step in plan.steps):
        yield f"engine {engine_text(plan.engine_facts)}"
    for step in plan.steps:
        yield step.name
        for each in step.repositories:
            yield f"  {each.action:<7} {each.repo_id}: {each.why}"
        versions = {name: "(new)" if pin is None else f"v{pin}" for name, pin in step.inputs.items()}
        yield from _wrap_names("reads", (f"{name} {version}" for name, version in versions.items()))
        yield from _wrap_names("writes", step.outputs)
    for repo_id, error in plan.failed.items():
        yield f"  fail    {repo_id}: {error}"
    for repo_id, impact in plan.impact.items():
        yield f"redone of {repo_id}: {len(impact):,} files"
        yield from (f"  {_impact_line(each)}" for each in impact)


def _impact_line(each: Impact) -> str:
    if not each.relations:
        return f"{each.reason:<11} {each.path}"
    through = f", such as {each.name}" if each.name else ""
    return f"{each.reason:<11} {each.path}: {each.relations:,} relations{through}"


def _wrap_names(label: str, names: Iterable[str]) -> list[str]:
    text = ", ".join(names) or "the source"
    return textwrap.wrap(text, PLAN_WIDTH, initial_indent=f"  {label:<7} ", subsequent_indent=" " * 10)


def plan_graph(plan: Plan) -> str:
    """Format the steps and tables of a plan as a Graphviz digraph."""
    return "\n".join(("digraph plan {", "  rankdir=LR;", *_dot_lines(plan), "}"))


def _dot_lines(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        label = "\n".join((step.name, *(f"{each.repo_id}: {each.action}" for each in step.repositories)))
        attributes = f"shape=box, style=filled, fillcolor={_dot_colour(step)}, label={_dot_text(label)}"
        yield f"  {_dot_text(step.name)} [{attributes}];"
        for name, version in step.inputs.items():
            read = "new" if version is None else f"v{version}"
            yield f"  {_dot_text(f'table {name}')} -> {_dot_text(step.name)} [label={_dot_text(read)}];"
        for name in step.outputs:
            yield f"  {_dot_text(f'table {name}')} [label={_dot_text(name)}];"
            yield f"  {_dot_text(step.name)} -> {_dot_text(f'table {name}')};"


def _dot_colour(step: PlannedStep) -> str:
    actions = {each.action for each in step.repositories}
    return next((colour for action, colour in COLOURS.items() if action in actions), "white")


def _dot_text(value: str) -> str:
    # A JSON string is a valid Graphviz string, including escapes.
    return msgspec.json.encode(value).decode()
