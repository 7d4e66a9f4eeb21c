"""The command line: verbs onto functions, no logic of its own.

stdout is data, stderr is talk. Every verb that answers has `--format json`. Errors of our own are
one message with the next step and the exit code of their class (see `codeanatomy.errors`). The verbs are
in `codeanatomy.cli`. Tests: `tests/unit/cli/test_cli.py`.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from codeanatomy import __version__
from codeanatomy.errors import EXIT_BUG, EXIT_ENVIRONMENT, EXIT_INTERRUPTED, CodeAnatomyError

# The module below `codeanatomy.cli` that has each verb; it is imported when the verb is called.
COMMANDS = {
    "build": "build",
    "plan": "build",
    "find": "ask",
    "show": "ask",
    "callers": "ask",
    "callees": "ask",
    "refs": "ask",
    "path": "ask",
    "impact": "ask",
    "flows": "ask",
    "explain": "ask",
    "unused": "ask",
    "cycles": "ask",
    "unresolved": "ask",
    "errors": "ask",
    "stats": "ask",
    "sql": "sql",
    "export": "export",
    "diff": "compare",
    "callgraph": "verify",
    "verify": "verify",
    "status": "runs",
    "runs": "runs",
    "observe": "observe",
    "maintain": "maintain",
    "optimize": "maintain",
    "zorder": "maintain",
    "checkpoint": "maintain",
    "vacuum": "maintain",
    "cleanup-log": "maintain",
    "properties": "maintain",
    "features": "maintain",
    "restore": "restore",
    "export-snapshot": "restore",
    "tables": "reference",
    "table": "reference",
    "kinds": "reference",
    "config": "reference",
    "doctor": "reference",
    "setup": "reference",
    "docs": "reference",
}


class Commands(click.Group):
    """A group whose commands are imported when they are called: an answer shall not wait for the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table above."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, from its module."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"codeanatomy.cli.{COMMANDS[cmd_name]}")
        found: click.Command = getattr(module, "COMMANDS", {}).get(cmd_name) or getattr(module, cmd_name)
        return found


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="codeanatomy")
@click.option("--set", "flags", multiple=True, metavar="KEY=VALUE", help="Set a setting for this call.")
@click.pass_context
def cli(context: click.Context, flags: tuple[str, ...]) -> None:
    """A Code Property Graph lakehouse for Python, on Spark and Delta Lake.

    Exit codes: 0 done, 1 findings, 2 usage, 4 environment, 5 storage (try again), 6 contract,
    70 a bug of ours.
    """
    context.obj = flags


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
    except (click.Abort, KeyboardInterrupt) as stopped:
        click.echo("stopped", err=True)
        raise SystemExit(getattr(stopped, "exit_code", EXIT_INTERRUPTED)) from None
    except CodeAnatomyError as problem:
        from codeanatomy.cli.printing import harmless

        # Line by line: a name or a path in it may be anything.
        click.echo("\n".join(map(harmless, f"error {problem}".split("\n"))), err=True)
        raise SystemExit(problem.exit_code) from None
    except BrokenPipeError:
        # The reader of a pipe has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except OSError as problem:
        click.echo(f"error {problem}\n  next: mend what the message names", err=True)
        raise SystemExit(EXIT_ENVIRONMENT) from None
    except Exception as problem:
        import traceback

        traceback.print_exception(problem)
        click.echo("error: this is a bug of ours; please report it with the lines above", err=True)
        raise SystemExit(EXIT_BUG) from problem
