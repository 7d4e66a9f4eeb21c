"""Define the answer that every verb returns: rows, total, freshness of the sources, coverage.

    answer = Lake.open("lake").callers("Session.send")
    answer.rows[0]        # {"symbol": "requests.sessions.Session.request", "kind": "FUNCTION", ...}
    answer.total          # 3
    answer.cut            # 0 rows left out; otherwise `answer.more` is the option that returns them all
    answer.freshness[0]   # Freshness("requests", "20260501T120000Z-5f0c1d2e", ..., source_state="changed")

The columns that verbs share are declared once in `COLUMNS`, so that `line` means the same in every answer.
Every row has a file and line, a kind, a confidence and the method behind it.

Tests: `tests/unit/query/test_answers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from codeanatomy.catalog.spec import Column
from codeanatomy.errors import UsageError

# Rows of an answer: default and maximum.
DEFAULT_LIMIT = 100
MAX_LIMIT = 2**31 - 1
# Maximum `--depth`: edges followed from a symbol.
MAX_DEPTH = 100

SourceState = Literal["unchanged", "changed", "gone", "unknown"]

COLUMNS = {
    column.name: column
    for column in (
        Column("symbol", "string", "Qualified name; the plain name if there is no qualified one."),
        Column("kind", "string", "Kind of the node, from the catalogue of kinds."),
        Column("subkind", "string", "Finer kind, such as method or async_function."),
        Column(
            "path",
            "string",
            "File of the use (call, reference, import), relative to the repository root; in answers that list"
            " definitions (find, show, unused) that of the definition.",
        ),
        Column("line", "int", "Line in the file, counted from 1."),
        Column(
            "source",
            "string",
            "Text of that line as it was built, without indentation, up to 200 characters.",
        ),
        Column(
            "defined",
            "string",
            "Where the symbol (in `explain`: the target) is defined: `path:line`, or `path`.",
        ),
        Column("sites", "bigint", "Number of call sites in the caller; `path` and `line` are the first."),
        Column("confidence", "double", "Confidence of the row: 1, 0.9, 0.7, 0.5 or 0.3."),
        Column("method", "string", "Resolution method or reason."),
        Column("repo_id", "string", "Repository."),
        Column("symbol_id", "string", "Id of the symbol's node in the graph."),
        Column("depth", "int", "Distance in steps, from 1."),
        Column("via", "string", "The symbol one step nearer."),
        Column("relation", "string", "Kind of the edge behind the row."),
        Column("role", "string", "Role in the relation, such as `callback` or an argument's name."),
        Column("inside", "string", "Qualified name of the enclosing definition."),
        Column("target", "string", "Qualified name of the edge's target."),
        Column("detail", "string", "Explanation in English."),
        Column("amount", "bigint", "Count."),
        Column("signature", "string", "Signature as written, with annotations and defaults."),
        Column("docstring", "string", "Docstring without indentation."),
        Column("callers", "bigint", "Number of functions and modules that call it."),
        Column("callees", "bigint", "Number of functions it calls."),
        Column("refs", "bigint", "Number of references to it."),
        Column("members", "bigint", "Number of definitions directly inside of it."),
        Column("test", "boolean", "Whether it is test code, by its path and name."),
        Column("group_id", "string", "Id of the group (cycle, ambiguity group) that the row belongs to."),
        Column("entry", "string", "Kind of entry point, such as http or command; in `impact` with its name."),
        Column("name", "string", "Route, command or event of an entry point; else the definition's name."),
        Column("framework", "string", "Framework that calls an entry point."),
        Column("origin", "string", "Witness or rule family of the edge."),
        Column("rule", "string", "Rule that emitted the edge."),
        Column("evidence", "string", "Witnesses of the edge, and whether each agrees."),
        Column("edge_id", "string", "Id of the edge in the graph."),
    )
}


class Freshness(Struct, frozen=True):
    """The run and commit a repository was built from, and whether its source has changed since."""

    repo_id: str
    run_id: str
    published_at: datetime
    commit: str | None
    source_state: SourceState


class Coverage(Struct, frozen=True):
    """How much of a repository is in the lake, and how many files failed."""

    repo_id: str
    files: int | None
    # Failures of extractors on files; `codeanatomy errors` lists them.
    failures: int
    # False if the repository was built without a graph: its symbols are missing from answers.
    graph: bool
    # Files with failures: several extractors may fail on one.
    failed_files: int = 0


class Symbol(Struct, frozen=True):
    """A resolved symbol: the definitions of one qualified name in one repository."""

    symbol: str
    kind: str
    subkind: str | None
    path: str | None
    line: int | None
    repo_id: str
    # How the name was resolved: id, place, qualified name, re-export, suffix, name, pattern.
    method: str
    # Nodes of the graph: more than one for overloads, conditional definitions, properties.
    ids: tuple[str, ...]

    @property
    def place(self) -> str:
        """The location as `path:line`."""
        return place(self.path, self.line)


class Answer(Struct, frozen=True):
    """The answer of any verb."""

    verb: str
    # The names as typed by the user.
    subject: tuple[str, ...]
    # The symbols they were resolved to.
    symbols: tuple[Symbol, ...]
    # Keys of each row, in order.
    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    total: int
    # Rows left out by the limit.
    cut: int
    # The option that returns all rows.
    more: str | None
    # Limitations of this answer, in English.
    notes: tuple[str, ...]
    run_id: str
    freshness: tuple[Freshness, ...]
    coverage: tuple[Coverage, ...]
    # Whether rows may be missing, because calls or names could not be resolved; a note has the reason.
    unknown: bool = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_arrow(self) -> Any:
        """Return the rows as a PyArrow table with the declared types."""
        import pyarrow as pa

        from codeanatomy.arrow import arrow_field

        schema = pa.schema([arrow_field(COLUMNS[name]) for name in self.columns])
        return pa.Table.from_pylist(list(self.rows), schema)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()


def check_limit(limit: int) -> None:
    """Raise UsageError if the limit is not a positive integer of at most MAX_LIMIT."""
    if type(limit) is not int or not 1 <= limit <= MAX_LIMIT:
        raise UsageError(f"--limit must be 1-{MAX_LIMIT:,}, got {limit!r}", "use a limit in this range")


def place(path: str | None, line: int | None) -> str:
    """Format a source location as `path:line`, which editors and terminals open.

    >>> place("a.py", 3), place("a.py", None), place(None, None)
    ('a.py:3', 'a.py', '')
    """
    return (path or "") if line is None else f"{path}:{line}"
