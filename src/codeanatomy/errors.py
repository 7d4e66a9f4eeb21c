"""The one family of exceptions that the driver raises.

Every error has a stable code, says what happened, and names the next thing to try. On executors
failure is data (an error row), never one of these.

>>> UnknownName("table", "cpg_node", ("cpg_nodes", "cpg_edges")).hint
'did you mean cpg_nodes? known: cpg_edges, cpg_nodes'

Exit codes of the command line follow from the class:

| exit | meaning |
|---|---|
| 0 | done |
| 1 | findings: a check ran and something is wrong |
| 2 | usage: a flag, a name or a setting is not valid |
| 4 | environment: Java, jars, memory or the worker's Python is missing |
| 5 | storage: another writer won, try again |
| 6 | contract: data or a table does not fit what the catalogue declares |
| 70 | a bug of ours |
| 130, 143 | stopped by Ctrl-C, by SIGTERM |
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
# Of a name that was typed.
MAX_NAME_CHARS = 200


class CodeAnatomyError(Exception):
    """Base of the family: `code` is stable, `hint` is the next step."""

    code: ClassVar[str] = "CA000"
    exit_code: ClassVar[int] = EXIT_BUG

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}" + (f"\n  next: {self.hint}" if self.hint else "")

    def __reduce__(self) -> tuple[Any, ...]:
        # From process to process as it is: what it was made of is not kept.
        return _remade, (type(self), self.args, self.__dict__)


def _remade(kind: type[CodeAnatomyError], args: tuple[Any, ...], state: dict[str, Any]) -> CodeAnatomyError:
    """An error that came from another process."""
    problem = kind.__new__(kind)
    problem.args = args
    problem.__dict__.update(state)
    return problem


class CatalogError(CodeAnatomyError):
    """The catalogue contradicts itself; only a change of our own code can cause it."""

    code = "CA001"


class UnknownName(CodeAnatomyError):
    """A table, column, feature or setting that does not exist; the hint lists what does."""

    code = "CA010"
    exit_code = EXIT_USAGE

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        choices = sorted(known)
        close = get_close_matches(name[:MAX_NAME_CHARS], choices, n=1)
        guess = f"did you mean {close[0]}? " if close else ""
        super().__init__(f"unknown {what} {name[:MAX_NAME_CHARS]!r}", f"{guess}known: {', '.join(choices)}")


class ConfigError(CodeAnatomyError):
    """A setting that is not of the form it must have."""

    code = "CA011"
    exit_code = EXIT_USAGE


class UsageError(CodeAnatomyError):
    """A call that makes no sense as it stands, such as a delete without a predicate."""

    code = "CA012"
    exit_code = EXIT_USAGE


class UnknownSymbol(CodeAnatomyError):
    """A name that nothing in the lake has; `candidates` are those spelled most like it."""

    code = "CA013"
    exit_code = EXIT_USAGE

    def __init__(self, name: str, candidates: Sequence[Mapping[str, Any]]) -> None:
        close = ", ".join(str(each["symbol"]) for each in candidates)
        hint = f"closest: {close}" if close else "`codeanatomy find` takes patterns such as 'get_*'"
        super().__init__(f"nothing is called {name[:MAX_NAME_CHARS]!r}", hint)
        self.candidates = tuple(candidates)


class AmbiguousSymbol(CodeAnatomyError):
    """A name that several things have; `candidates` are the first of them, of so many."""

    code = "CA014"
    exit_code = EXIT_USAGE

    def __init__(self, name: str, candidates: Sequence[Mapping[str, Any]], total: int) -> None:
        super().__init__(
            f"{total:,} symbols are called {name[:MAX_NAME_CHARS]!r}",
            "name one of them: its qualified name, its file:line, or with --repo-id",
        )
        self.candidates = tuple(candidates)
        self.total = total


class SqlRefused(CodeAnatomyError):
    """A statement of SQL that is not answered as it stands; `diagnostics` say where and why."""

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
    """Java, a jar, the worker's Python or memory is missing or of the wrong kind."""

    code = "CA020"
    exit_code = EXIT_ENVIRONMENT


class RemotePathRefused(CodeAnatomyError):
    """A remote URI under a profile that requires local paths."""

    code = "CA021"
    exit_code = EXIT_USAGE


class TableMissing(CodeAnatomyError):
    """A table that was never written, or a version of it that is not there (any more)."""

    code = "CA030"
    exit_code = EXIT_CONTRACT


class ContractError(CodeAnatomyError):
    """Columns that do not fit the contract: missing without a default, or of an impossible type."""

    code = "CA031"
    exit_code = EXIT_CONTRACT


class SchemaDrift(CodeAnatomyError):
    """The stored schema differs from the contract and the schema policy does not allow the change."""

    code = "CA032"
    exit_code = EXIT_CONTRACT


class SemanticTypeError(CodeAnatomyError):
    """A column that means one thing used where another is declared, such as an EdgeId as a NodeId."""

    code = "CA033"
    exit_code = EXIT_CONTRACT


class ConstraintViolation(CodeAnatomyError):
    """Rows that break a constraint; nothing was committed. `samples` holds some of them."""

    code = "CA034"
    exit_code = EXIT_CONTRACT

    def __init__(self, table: str, violated: Mapping[str, str], samples: tuple[str, ...]) -> None:
        rules = "; ".join(f"{name}: {expression[:200]}" for name, expression in violated.items())
        rows = "".join(f"\n    {row}" for row in samples)
        super().__init__(
            f"rows for {table} break {rules}{rows}",
            "nothing was committed; mend the rows (or the constraint in the catalogue) and repeat",
        )
        self.table = table
        self.violated = dict(violated)
        self.samples = samples


class GateError(CodeAnatomyError):
    """A table whose protocol or features do not satisfy its gate."""

    code = "CA035"
    exit_code = EXIT_CONTRACT


class FeatureError(CodeAnatomyError):
    """A Delta feature that this engine cannot enable."""

    code = "CA036"
    exit_code = EXIT_CONTRACT


class CommitConflict(CodeAnatomyError):
    """Other writers kept winning until the retry policy was used up."""

    code = "CA040"
    exit_code = EXIT_STORAGE
    # What each attempt has lost against.
    conflicts: tuple[str, ...] = ()


class StorageFailure(CodeAnatomyError):
    """The engine failed to read or write for a reason that is not one of ours, such as a full disk."""

    code = "CA041"
    exit_code = EXIT_STORAGE


class NeedsSpark(CodeAnatomyError):
    """A write that only Spark can make, asked for where there is no session; nothing was written."""

    code = "CA045"
    exit_code = EXIT_ENVIRONMENT


class LeaseHeld(CodeAnatomyError):
    """Another run is writing to the lake, and this one was told not to wait."""

    code = "CA042"
    exit_code = EXIT_STORAGE


class LeaseLost(CodeAnatomyError):
    """Another run has taken over the lake, or could have: this one may not write any more."""

    code = "CA043"
    exit_code = EXIT_STORAGE


class StillNeeded(CodeAnatomyError):
    """Files or log entries that a published run, a change-feed cursor or a running build still needs."""

    code = "CA046"
    exit_code = EXIT_STORAGE


class VersionGone(TableMissing):
    """A version of a table that cannot be read any more: files or log entries of it were removed."""

    code = "CA047"


class StorageMismatch(CodeAnatomyError):
    """A session that reaches storage in another way than the settings say."""

    code = "CA048"
    exit_code = EXIT_ENVIRONMENT


class PredicateError(CodeAnatomyError):
    """A condition of a scan that is not one, or that names a column the table does not have."""

    code = "CA049"
    exit_code = EXIT_USAGE


class FeedOutOfRange(CodeAnatomyError):
    """A change-feed window that begins after the newest version, and was not allowed to."""

    code = "CA050"
    exit_code = EXIT_USAGE


class FeedLost(CodeAnatomyError):
    """A change-feed window whose files or log entries are gone, or that was never recorded."""

    code = "CA051"
    exit_code = EXIT_CONTRACT


class StepFailed(CodeAnatomyError):
    """A step of a build that the engine or the system has stopped; nothing of the run was published."""

    code = "CA044"
    exit_code = EXIT_STORAGE
