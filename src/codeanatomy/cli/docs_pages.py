"""Generate the pages of `docs/` that follow from the code, and check that they are fresh.

`codeanatomy docs` writes them; `codeanatomy docs --check` and a test list the stale ones. The JSON pages are
snapshots of the contracts: a change of a table, a policy or an event is a reviewed diff.
Tests: `tests/unit/cli/test_docs.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent

import click
import msgspec

from codeanatomy import catalog, errors
from codeanatomy.catalog.describe import describe_kind, describe_table, nested_columns, type_text
from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS, PROFILES, EdgeKind, NodeKind
from codeanatomy.catalog.semantic_types import SEMANTIC_TYPES
from codeanatomy.catalog.settings import DeltaOptions, ExtractOptions, ObserveOptions, RefreshOptions
from codeanatomy.catalog.spec import Column, SemanticType, Table, contract_json
from codeanatomy.catalog.views import RECORD_VIEWS, VIEWS, View
from codeanatomy.config import RuntimeProfile
from codeanatomy.delta import events
from codeanatomy.delta.commit_stamp import Commit
from codeanatomy.delta.feed import Window
from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.delta.write.commit import Retry
from codeanatomy.lake.lease import LeaseRow
from codeanatomy.lake.manifest import RunManifest
from codeanatomy.plan.run_plan import Plan
from codeanatomy.query.answers import Answer
from codeanatomy.query.checks.compare import Comparison
from codeanatomy.query.diff.run_diff import RunDiff
from codeanatomy.query.diff.table_changes import ChangeCounts, TableChanges
from codeanatomy.query.export.write import ExportReport
from codeanatomy.query.sql.allowed import FUNCTIONS as SQL_FUNCTIONS
from codeanatomy.query.sql.diagnostics import CODES
from codeanatomy.query.sql.light import SqlAnswer
from codeanatomy.query.status.activity import Observation
from codeanatomy.query.status.lake_status import LakeStatus
from codeanatomy.query.status.run_comparison import RunComparison
from codeanatomy.query.status.run_reports import RunReport, Runs
from codeanatomy.run.report import BuildReport
from codeanatomy.spark.metrics import OperatorMetric
from codeanatomy.sql_functions import FUNCTIONS

NOTE = "<!-- made by `codeanatomy docs`; edit the code instead -->\n"

# Every struct that is stored or printed: in the catalogue's JSON, in settings, in events, in commits.
CONTRACTS: tuple[type, ...] = (
    Table,
    SemanticType,
    RuntimeProfile,
    SnapshotInfo,
    Commit,
    Retry,
    Window,
    events.Scanned,
    events.Committed,
    events.CommitRefused,
    events.GateChecked,
    events.TableAltered,
    events.FeedRead,
    ExtractOptions,
    RefreshOptions,
    DeltaOptions,
    ObserveOptions,
    RunManifest,
    LeaseRow,
    Plan,
    BuildReport,
    OperatorMetric,
    Answer,
    RunDiff,
    TableChanges,
    ChangeCounts,
    Comparison,
    SqlAnswer,
    ExportReport,
    LakeStatus,
    Runs,
    RunReport,
    RunComparison,
    Observation,
)


def write_pages(folder: Path, commands: click.Group) -> list[str]:
    """Write the pages that differ and return their names."""
    changed = stale_pages(folder, commands)
    folder.mkdir(parents=True, exist_ok=True)
    pages = dict(_pages(commands))
    for name in changed:
        (folder / name).write_bytes(pages[name].encode())
    return changed


def stale_pages(folder: Path, commands: click.Group) -> list[str]:
    """Return the names of the pages that differ from what the code gives."""
    return [name for name, text in _pages(commands) if not _is_fresh(folder / name, text)]


def _is_fresh(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _pages(commands: click.Group) -> Iterator[tuple[str, str]]:
    makers: tuple[tuple[str, Callable[[], str]], ...] = (
        ("tables.md", tables_page),
        ("kinds.md", kinds_page),
        ("views.md", views_page),
        ("errors.md", errors_page),
        ("functions.md", functions_page),
        ("commands.md", lambda: commands_page(commands)),
        ("catalog.json", catalog_snapshot),
        ("schemas.json", schemas_snapshot),
    )
    for name, make in makers:
        yield name, make()


def tables_page() -> str:
    """List every table with its columns, keys and policies."""
    parts = [NOTE, "# Tables\n", "| table | stage | one row |", "|---|---|---|"]
    parts += [f"| [{t.name}](#{t.name}) | {t.stage} | {_cell(t.doc)} |" for t in catalog.TABLES]
    for table in catalog.TABLES:
        parts += ["", f"## {table.name}\n", f"{table.doc}\n"]
        parts += [f"- declared in: {catalog.declared_in(table.name)}"]
        parts += [*(f"- {name}: {_cell(value)}" for name, value in describe_table(table).items()), ""]
        parts += ["| column | type | null | meaning | |", "|---|---|---|---|---|"]
        parts += [_column_line(column, depth) for column, depth in nested_columns(table.readable_columns)]
        if table.constraints:
            parts += ["", "| constraint | condition | |", "|---|---|---|"]
            parts += [
                f"| {rule.name} | `{_cell(rule.expression)}` | {_cell(rule.doc)} |"
                for rule in table.constraints
            ]
    parts += ["", "## Semantic types\n", "| name | type | condition | |", "|---|---|---|---|"]
    parts += [
        f"| {known.name} | {known.type} | {f'`{_cell(known.check)}`' if known.check else ''} "
        f"| {_cell(known.doc)} |"
        for known in SEMANTIC_TYPES
    ]
    return "\n".join(parts) + "\n"


def kinds_page() -> str:
    """List every kind of node and edge, with an example."""
    parts = [NOTE, "# Kinds of the graph\n"]
    parts += [f"- `{name}`: {doc}" for name, doc in PROFILES.items()]
    sections: tuple[tuple[str, Mapping[str, NodeKind | EdgeKind]], ...] = (
        ("Nodes", NODE_KINDS),
        ("Edges", EDGE_KINDS),
    )
    for title, kinds in sections:
        parts += ["", f"## {title}\n", "| kind | family | |", "|---|---|---|"]
        parts += [f"| [{k.name}](#{k.name.lower()}) | {k.family} | {_cell(k.doc)} |" for k in kinds.values()]
    for _, kinds in sections:
        for kind in kinds.values():
            parts += ["", f"### {kind.name}\n", f"{kind.doc}\n", "```python", kind.example, "```", ""]
            parts += [f"- {name}: {_cell(value)}" for name, value in describe_kind(kind).items()]
    return "\n".join(parts) + "\n"


def views_page() -> str:
    """List every view with its columns and its statement, and the SQL that may use them."""
    parts = [NOTE, "# Views\n", "The views of `codeanatomy sql`, Spark and Ibis.\n"]
    parts += ["| view | |", "|---|---|"]
    parts += [f"| [{view.name}](#{view.name}) | {_cell(view.doc)} |" for view in VIEWS]
    parts += [
        "",
        "`codeanatomy sql` and Spark (`lake.view(name)`, `lake.sql(...)`) have these, too. They cover all",
        "runs, whichever is opened; their columns are in [tables.md](tables.md):\n",
        "| view | |",
        "|---|---|",
    ]
    parts += [f"| [{view.name}](tables.md#{view.name}) | {_cell(view.doc)} |" for view in RECORD_VIEWS]
    for view in VIEWS:
        parts += ["", f"## {view.name}\n", f"{view.doc}\n", "| column | type | null | |", "|---|---|---|---|"]
        parts += [
            f"| {each.name} | {type_text(each)} | {'' if each.nullable else 'no'} | {_cell(each.doc)} |"
            for each in view.columns
        ]
        parts += ["", *_reads(view), "", "```sql", *dedent(view.sql).strip().splitlines(), "```"]
    parts += ["", "## SQL\n", "One SELECT in Spark's SQL, with these functions:\n"]
    parts += ["| function | example |", "|---|---|"]
    parts += [f"| {name} | `{_cell(example)}` |" for name, example in SQL_FUNCTIONS.items()]
    parts += [f"| [{each.name}](functions.md) | `{_cell(each.example)}` |" for each in FUNCTIONS.values()]
    parts += [
        "",
        "Codes of errors in a statement:\n",
        "| code | |",
        "|---|---|",
    ]
    parts += [f"| {code} | {doc} |" for code, doc in CODES.items()]
    return "\n".join(parts) + "\n"


def _reads(view: View) -> Iterator[str]:
    """Describe what the names in the statement of a view stand for."""
    for name, (table, wanted) in view.reads.items():
        only = "; ".join(f"{column} {', '.join(values)}" for column, values in wanted.items())
        yield f"- `{name}`: {table}" + (f" with {only}" if only else "")
    yield from (f"- `{name}`: the repositories of the snapshot" for name in view.supplied)


def _code(kind: type[errors.CodeAnatomyError]) -> str:
    return kind.code


def errors_page() -> str:
    """List the codes and exit codes of all errors."""
    doc = errors.__doc__ or ""
    table = doc[doc.index("| exit") :]
    direct = errors.CodeAnatomyError.__subclasses__()
    family = sorted({*direct, *(kind for each in direct for kind in each.__subclasses__())}, key=_code)
    parts = [NOTE, "# Errors\n", table.rstrip(), "", "| code | error | exit | meaning |", "|---|---|---|---|"]
    parts += [
        f"| {kind.code} | {kind.__name__} | {kind.exit_code} | {_cell(kind.__doc__ or '')} |"
        for kind in family
    ]
    return "\n".join(parts) + "\n"


def functions_page() -> str:
    """List the SQL functions."""
    parts = [
        NOTE,
        "# SQL functions\n",
        "`codeanatomy sql` and `Lake.sql` have them on both engines, with arguments in order.",
        "`Lake.register()` makes them known to your Spark session, where arguments may be named.\n",
    ]
    parts += ["| function | returns | |", "|---|---|---|"]
    parts += [
        f"| `{known.signature}` | {known.returns} | {_cell(known.doc)} |" for known in FUNCTIONS.values()
    ]
    return "\n".join(parts) + "\n"


def commands_page(commands: click.Group) -> str:
    """List the help text of every command."""
    parts = [NOTE, "# Commands\n"]
    for context in _contexts(commands, "codeanatomy", None):
        parts += [f"## {context.command_path}\n", "```text", context.get_help(), "```", ""]
    return "\n".join(parts)


def catalog_snapshot() -> str:
    """Return the whole catalogue as JSON."""
    tables = b"[" + b",".join(contract_json(table) for table in catalog.TABLES) + b"]"
    return msgspec.json.format(tables, indent=1).decode() + "\n"


def schemas_snapshot() -> str:
    """Return the JSON Schema of every contract struct."""
    _, components = msgspec.json.schema_components(CONTRACTS)
    for component in components.values():
        # Docstrings are without indentation from Python 3.13 on.
        if "description" in component:
            component["description"] = cleandoc(component["description"])
    # References point to #/$defs, so that the page as a whole is a schema.
    page = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": components}
    return msgspec.json.format(msgspec.json.encode(page, order="sorted"), indent=1).decode() + "\n"


def _column_line(column: Column, depth: int) -> str:
    name, null = ". " * depth + column.name, "" if column.nullable else "no"
    return f"| {name} | {type_text(column)} | {null} | {column.semantic_type or ''} | {_cell(column.doc)} |"


def _contexts(command: click.Command, name: str, parent: click.Context | None) -> Iterator[click.Context]:
    """Yield the contexts of a command and its subcommands, as they are when called."""
    settings = {"max_content_width": 100, "terminal_width": 100, **command.context_settings}
    context = click.Context(command, parent=parent, info_name=name, **settings)
    yield context
    if isinstance(command, click.Group):
        for below in sorted(command.list_commands(context)):
            subcommand = command.get_command(context, below)
            if subcommand is not None:
                yield from _contexts(subcommand, below, context)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
