"""Define the exceptions that the driver raises, and the exit codes of the command line.

Every error has a stable code, a message and a hint: the next command or action. On executors a failure is
an error row instead of an exception. Tests: `tests/unit/cli/test_cli.py`, `tests/unit/cli/test_docs.py`.

>>> UnknownName("table", "cpg_node", ("cpg_nodes", "cpg_edges")).hint
'did you mean cpg_nodes? known: cpg_edges, cpg_nodes'

Exit codes of the command line follow from the class:

| exit | meaning |
|---|---|
| 0 | done |
| 1 | findings: a check ran and reports problems |
| 2 | usage: a flag, a name or a setting is not valid |
| 4 | environment: Java, jars, memory or the worker's Python is missing |
| 5 | storage: a conflict with another writer, or a failure to read or write; try again |
| 6 | contract: data or a table does not match the catalogue |
| 70 | a bug in CodeAnatomy |
| 130, 143 | stopped by Ctrl-C or SIGTERM |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, ClassVar

EXIT_FINDINGS = 1
EXIT_USAGE = 2
EXIT_ENVIRONMENT = 4
EXIT_STORAGE = 5
EXIT_CONTRACT = 6
EXIT_BUG = 70
EXIT_INTERRUPTED = 130
# A longer name from the user is truncated in messages.
MAX_NAME_CHARS = 200


class CodeAnatomyError(Exception):
    """Base class of all errors; `code` is stable, `hint` is the next command or action."""

    code: ClassVar[str] = "CA000"
    exit_code: ClassVar[int] = EXIT_BUG

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}" + (f"\n  next: {self.hint}" if self.hint else "")

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle the state: the constructor arguments of subclasses are not kept.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[CodeAnatomyError], args: tuple[Any, ...], state: dict[str, Any]) -> CodeAnatomyError:
    """Restore an error that was pickled in another process."""
    problem = kind.__new__(kind)
    problem.args = args
    problem.__dict__.update(state)
    return problem


class CatalogError(CodeAnatomyError):
    """The catalogue is inconsistent; only a change of the code can cause this."""

    code = "CA001"


class UnknownName(CodeAnatomyError):
    """A table, column, feature or setting does not exist; the hint lists the known names."""

    code = "CA010"
    exit_code = EXIT_USAGE

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        choices = sorted(known)
        close = get_close_matches(name[:MAX_NAME_CHARS], choices, n=1)
        guess = f"did you mean {close[0]}? " if close else ""
        super().__init__(f"unknown {what} {name[:MAX_NAME_CHARS]!r}", f"{guess}known: {', '.join(choices)}")


class ConfigError(CodeAnatomyError):
    """A setting has a value of the wrong type or form."""

    code = "CA011"
    exit_code = EXIT_USAGE


class UsageError(CodeAnatomyError):
    """A command or call with arguments that are not valid, such as a delete without a predicate."""

    code = "CA012"
    exit_code = EXIT_USAGE


class UnknownSymbol(CodeAnatomyError):
    """No symbol in the lake has this name; `candidates` are the most similar names."""

    code = "CA013"
    exit_code = EXIT_USAGE

    def __init__(
        self, name: str, candidates: Sequence[Mapping[str, Any]], message: str | None = None, hint: str = ""
    ) -> None:
        close = ", ".join(str(each["symbol"]) for each in candidates)
        default = f"closest: {close}" if close else "`codeanatomy find` takes patterns such as 'get_*'"
        super().__init__(message or f"no symbol is called {name[:MAX_NAME_CHARS]!r}", hint or default)
        self.candidates = tuple(candidates)


class AmbiguousSymbol(CodeAnatomyError):
    """Several symbols have this name; `candidates` are the first of `total`."""

    code = "CA014"
    exit_code = EXIT_USAGE

    def __init__(self, name: str, candidates: Sequence[Mapping[str, Any]], total: int) -> None:
        super().__init__(
            f"{total:,} symbols are called {name[:MAX_NAME_CHARS]!r}",
            "select one by its qualified name, by file:line, or with --repo-id",
        )
        self.candidates = tuple(candidates)
        self.total = total


class SqlRefused(CodeAnatomyError):
    """A SQL statement was refused; `diagnostics` have the positions and reasons."""

    code = "CA015"
    exit_code = EXIT_USAGE

    def __init__(self, diagnostics: Sequence[Mapping[str, Any]]) -> None:
        first = diagnostics[0]
        place = f"line {first['line']}, column {first['column']}: " if first.get("line") else ""
        shown = "".join(f"\n    {line}" for line in str(first.get("snippet") or "").splitlines())
        more = f"\n  and {len(diagnostics) - 1:,} more" if len(diagnostics) > 1 else ""
        super().__init__(f"{place}{first['message']}{shown}{more}", str(first.get("suggestion") or ""))
        self.diagnostics = tuple(diagnostics)


class EnvironmentProblem(CodeAnatomyError):
    """Java, a jar, the worker's Python or memory is missing or unsuitable."""

    code = "CA020"
    exit_code = EXIT_ENVIRONMENT


class RemotePathRefused(CodeAnatomyError):
    """A remote URI was given, but the profile requires local paths."""

    code = "CA021"
    exit_code = EXIT_USAGE


class TableMissing(CodeAnatomyError):
    """A table, or a version of it, does not exist or no longer exists."""

    code = "CA030"
    exit_code = EXIT_CONTRACT


class ContractError(CodeAnatomyError):
    """Columns do not match the contract: missing without a default, or of an incompatible type."""

    code = "CA031"
    exit_code = EXIT_CONTRACT


class SchemaDrift(CodeAnatomyError):
    """The stored schema differs from the contract and the schema policy does not allow the change."""

    code = "CA032"
    exit_code = EXIT_CONTRACT


class SemanticTypeError(CodeAnatomyError):
    """A column is used as another semantic type than declared, such as an EdgeId as a NodeId."""

    code = "CA033"
    exit_code = EXIT_CONTRACT


class ConstraintViolation(CodeAnatomyError):
    """Rows violate a constraint; nothing was committed. `samples` has some of them."""

    code = "CA034"
    exit_code = EXIT_CONTRACT

    def __init__(self, table: str, violated: Mapping[str, str], samples: tuple[str, ...]) -> None:
        rules = "; ".join(f"{name}: {expression[:200]}" for name, expression in violated.items())
        rows = "".join(f"\n    {row}" for row in samples)
        if violated:
            super().__init__(
                f"rows for {table} break {rules}{rows}",
                "nothing was committed; correct the rows or the constraint and run the command again",
            )
        else:
            super().__init__(
                f"rows of {table} broke a rule while they were written, but not when they were computed "
                "again: the input is not deterministic",
                "nothing was committed; make the rows deterministic, or store them first",
            )
        self.table = table
        self.violated = dict(violated)
        self.samples = samples


class GateError(CodeAnatomyError):
    """The protocol or features of a table do not satisfy its feature gate."""

    code = "CA035"
    exit_code = EXIT_CONTRACT


class FeatureError(CodeAnatomyError):
    """A Delta feature that this engine cannot enable."""

    code = "CA036"
    exit_code = EXIT_CONTRACT


class KeyCollision(CodeAnatomyError):
    """Two definitions have the same definition key, so their ids would be equal; nothing was published."""

    code = "CA037"
    exit_code = EXIT_CONTRACT


class CommitConflict(CodeAnatomyError):
    """Conflicts with other writers used up all retries of a commit."""

    code = "CA040"
    exit_code = EXIT_STORAGE
    # Conflicting commit of each attempt.
    conflicts: tuple[str, ...] = ()


class StorageFailure(CodeAnatomyError):
    """Reading or writing failed for an external reason, such as a full disk."""

    code = "CA041"
    exit_code = EXIT_STORAGE


class StoreUnavailable(StorageFailure):
    """An object store refuses access or does not answer: all reads and writes of it would fail."""

    code = "CA052"


class NeedsSpark(CodeAnatomyError):
    """A write needs Spark, but there is no session; nothing was written."""

    code = "CA045"
    exit_code = EXIT_ENVIRONMENT


class LeaseHeld(CodeAnatomyError):
    """Another run holds the lease of the lake, and this one does not wait for it."""

    code = "CA042"
    exit_code = EXIT_STORAGE


class LeaseLost(CodeAnatomyError):
    """The lease expired or was taken over by another run, so this run may not write any more."""

    code = "CA043"
    exit_code = EXIT_STORAGE


class StillNeeded(CodeAnatomyError):
    """Files or log entries are still needed by a published run, a change-feed cursor or a running build."""

    code = "CA046"
    exit_code = EXIT_STORAGE


class VersionGone(TableMissing):
    """A version of a table can no longer be read: its files or log entries were removed."""

    code = "CA047"


class StorageMismatch(CodeAnatomyError):
    """The Spark session has other storage options than the settings."""

    code = "CA048"
    exit_code = EXIT_ENVIRONMENT


class PredicateError(CodeAnatomyError):
    """A scan condition is not valid, or names a column that the table does not have."""

    code = "CA049"
    exit_code = EXIT_USAGE


class FeedOutOfRange(CodeAnatomyError):
    """A change-feed window starts after the newest version, and that was not allowed."""

    code = "CA050"
    exit_code = EXIT_USAGE


class FeedLost(CodeAnatomyError):
    """Files or log entries of a change-feed window were removed, or the feed was not enabled."""

    code = "CA051"
    exit_code = EXIT_CONTRACT


class StepFailed(CodeAnatomyError):
    """A step of a build failed in the engine or the operating system; the run was not published."""

    code = "CA044"
    exit_code = EXIT_STORAGE
