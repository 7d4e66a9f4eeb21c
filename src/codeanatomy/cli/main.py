"""Run the command line: list the commands by group, import the one that is called, map errors to exit codes.

Results go to stdout, progress and notes to stderr. Every command that answers has `--format json`. A
`CodeAnatomyError` is printed as its message and the next step, and ends the process with the exit code of its
class (see `codeanatomy.errors`); any other exception is a bug.

An answer ends its process at once: a command that returns `AT_ONCE` has written all of its output and started
no other process, so Python need not clear its modules, which takes about as long as a query.

Tests: `tests/unit/cli/test_cli.py`.
"""

from __future__ import annotations

import atexit
import os
import sys
from importlib import import_module
from typing import Final, NamedTuple

import click

from codeanatomy import __version__
from codeanatomy.errors import EXIT_BUG, EXIT_ENVIRONMENT, EXIT_INTERRUPTED, CodeAnatomyError

# What a command returns if its process may end without clearing up more than exit handlers do.
AT_ONCE: Final = "at once"


class CommandEntry(NamedTuple):
    """A command in `--help`: its module below `codeanatomy.cli`, and the first sentence of its own help."""

    module: str
    summary: str


# The summaries are repeated here so that `--help` need not import all commands; a test compares them.
GROUPS: dict[str, dict[str, CommandEntry]] = {
    "Build": {
        "build": CommandEntry("build", "Build repositories into a lake."),
        "plan": CommandEntry("build", "Show what a build would do, without doing it."),
        "setup": CommandEntry("reference", "Download the jars and prepare a fast start, once per machine."),
        "doctor": CommandEntry("reference", "Check that this machine has what a build needs."),
        "environment": CommandEntry(
            "reference", "Pack this Python environment for the executors of a cluster."
        ),
    },
    "Ask": {
        "find": CommandEntry("ask", "Find definitions by name, qualified name or pattern."),
        "show": CommandEntry("ask", "Show a symbol: its signature, docstring and place, and how it is used."),
        "callers": CommandEntry("ask", "List the callers of a symbol."),
        "callees": CommandEntry("ask", "List what a symbol calls."),
        "refs": CommandEntry("ask", "List every reference to a symbol."),
        "path": CommandEntry(
            "ask", "Show the shortest path from one symbol to another, by calls or by data flow."
        ),
        "impact": CommandEntry("ask", "List what may break if symbols change, nearest first."),
        "flows": CommandEntry("ask", "Show where the value of a parameter or variable flows, or comes from."),
        "explain": CommandEntry("ask", "Show the evidence and the rule behind edges."),
        "unused": CommandEntry("ask", "List functions and classes that nothing uses."),
        "cycles": CommandEntry("ask", "List cycles of imports or of calls."),
        "unresolved": CommandEntry("ask", "List what could not be resolved, and why."),
        "callgraph": CommandEntry("checks", "Print the call graph by qualified names."),
        "sql": CommandEntry("ask", "Run one SELECT over the views, in Spark's SQL dialect."),
        "export": CommandEntry(
            "export", "Write a part of the graph for other tools, or draw a symbol's neighbours."
        ),
        "explore": CommandEntry(
            "ask", "Show a lake in a browser: source, symbols, pictures, flows, runs, SQL."
        ),
    },
    "Inspect": {
        "status": CommandEntry(
            "runs", "Show what a lake has published, and whether the sources have changed since."
        ),
        "runs": CommandEntry("runs", "List, show or compare the runs of a lake."),
        "observe": CommandEntry(
            "observe", "Summarize the last runs: slow steps, growth, retries, pruning, maintenance."
        ),
        "errors": CommandEntry("ask", "List what failed when the repositories were built."),
        "stats": CommandEntry("ask", "Count files, nodes, edges and calls, by kind."),
        "diff": CommandEntry(
            "checks", "List nodes and edges that were added, removed or changed between two runs."
        ),
        "changes": CommandEntry(
            "changes", "List the rows of tables that were inserted, removed or changed between two runs."
        ),
        "verify": CommandEntry("checks", "Check the graph of a lake against the catalogue of kinds."),
    },
    "Maintain": {
        "maintain": CommandEntry(
            "maintain", "Inspect the tables of a lake and do what their policies require."
        ),
        "optimize": CommandEntry(
            "maintain", "Merge the small files of each partition and drop deleted rows."
        ),
        "zorder": CommandEntry("maintain", "Rewrite each partition in the order of the table's policy."),
        "checkpoint": CommandEntry(
            "maintain", "Write a checkpoint of the newest version, so that readers open it faster."
        ),
        "vacuum": CommandEntry(
            "maintain", "Delete data files that no published run, cursor or recent version needs."
        ),
        "cleanup-log": CommandEntry(
            "maintain", "Delete log entries before the newest checkpoint that no reader needs."
        ),
        "properties": CommandEntry(
            "maintain", "Show table properties that differ from the catalogue, or set them."
        ),
        "features": CommandEntry(
            "maintain", "Show the protocol, features and readers of tables, or enable an allowed feature."
        ),
        "restore": CommandEntry(
            "restore", "Restore what a run published (--run), or an older version of TABLE (--to)."
        ),
        "export-snapshot": CommandEntry(
            "restore", "Copy what a run published to a folder that works without the lake."
        ),
    },
    "Reference": {
        "tables": CommandEntry(
            "reference", "List the tables of a lake: stage, layout and the meaning of a row."
        ),
        "table": CommandEntry(
            "reference", "Show one table: columns, keys, constraints, policies and inputs."
        ),
        "kinds": CommandEntry("reference", "List the kinds of nodes and edges, or show one with an example."),
        "config": CommandEntry("reference", "Show the settings of file, environment and flags."),
        "docs": CommandEntry("reference", "Write the generated pages of the documentation."),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}


class Commands(click.Group):
    """A group that imports a command when it is called: an answer does not wait for the other commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of `GROUPS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command from its module; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"codeanatomy.cli.{COMMANDS[cmd_name].module}")
        command: click.Command = getattr(module, "COMMANDS", {}).get(cmd_name) or getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the arguments. Raise UsageError, with similar names, if there is none."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS)
            guess = f" Did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"No such command {args[0]!r}.{guess}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a titled list per group; a summary that is too long for its line is wrapped."""
        width = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                # Padded, so that the summaries of all groups are in one column.
                formatter.write_dl([(f"{name:<{width}}", entry.summary) for name, entry in group.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="codeanatomy")
@click.option("--set", "flags", multiple=True, metavar="KEY=VALUE", help="Override a setting for this call.")
@click.pass_context
def cli(context: click.Context, flags: tuple[str, ...]) -> None:
    """A Code Property Graph lakehouse for Python, on Spark and Delta Lake.

    Exit codes: 0 done, 1 findings, 2 usage, 4 environment, 5 storage (try again), 6 contract,
    70 a bug in codeanatomy.
    """
    context.obj = flags


def main() -> None:
    """Run a command as this process, and end it with the exit code of its error, if any."""
    if run_command() == AT_ONCE:
        # Temporary folders are removed by exit handlers.
        atexit._run_exitfuncs()  # noqa: SLF001
        for stream in (sys.stdout, sys.stderr):
            # None if the caller has closed it.
            if stream is not None:
                stream.flush()
        os._exit(0)


def run_command() -> object:
    """Run a command and return its result; raise SystemExit with the exit code of its error, if any."""
    try:
        # Not cli.main: it ends a command with a closed pipe with 1, which here means findings.
        with cli.make_context("codeanatomy", sys.argv[1:]) as context:
            return cli.invoke(context)
    except click.exceptions.Exit as ending:
        raise SystemExit(ending.exit_code) from None
    except click.ClickException as error:
        error.show()
        raise SystemExit(error.exit_code) from error
    except (click.Abort, KeyboardInterrupt) as stopped:
        click.echo("stopped", err=True)
        raise SystemExit(getattr(stopped, "exit_code", EXIT_INTERRUPTED)) from None
    except CodeAnatomyError as error:
        from codeanatomy.cli.printing import error_lines

        click.echo("\n".join(error_lines(error)), err=True)
        raise SystemExit(error.exit_code) from None
    except BrokenPipeError:
        # The reader of the pipe (`| head`) has ended.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except OSError as error:
        click.echo(f"error {error}\n  next: fix the problem above and run the command again", err=True)
        raise SystemExit(EXIT_ENVIRONMENT) from None
    except Exception as error:
        import traceback

        traceback.print_exception(error)
        click.echo("error: this is a bug in codeanatomy; please report it with the lines above", err=True)
        raise SystemExit(EXIT_BUG) from error


if __name__ == "__main__":
    main()
