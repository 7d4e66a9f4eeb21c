"""What every answer is: rows with their places, how many there are, how fresh they are, what is not covered.

    answer = Lake.open("lake").callers("Session.send")
    answer.rows[0]        # {"symbol": "requests.sessions.Session.request", "kind": "FUNCTION", ...}
    answer.total          # 3
    answer.cut            # 0: nothing was left out; else `answer.more` tells how to get it
    answer.freshness[0]   # Freshness("requests", "20260501T120000Z-5f0c1d2e", ..., source_state="changed")

The columns that verbs share are declared here, so that `line` means the same in every answer. In every row
are the file and line, the kind, and how much to trust it and why. Tests: `tests/unit/query/test_answers.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from codeanatomy.catalog.spec import Column
from codeanatomy.errors import UsageError

# Rows of an answer, if nothing is said, and at most; and steps away from a symbol.
LIMIT = 100
MOST = 2**31 - 1
DEEPEST = 100

SourceState = Literal["unchanged", "changed", "gone", "unknown"]

COLUMNS = {
    column.name: column
    for column in (
        Column("symbol", "string", "Qualified name, or the name where there is no qualified one."),
        Column("kind", "string", "Kind of the node, from the catalogue of kinds."),
        Column("subkind", "string", "Finer kind, such as method or async_function."),
        Column("path", "string", "File, below the repository."),
        Column("line", "int", "Line in it, counted from 1."),
        Column("confidence", "double", "Trust in the row: 1, 0.9, 0.7, 0.5 or 0.3."),
        Column("method", "string", "How it was found."),
        Column("repo_id", "string", "Repository."),
        Column("symbol_id", "string", "Node of the graph."),
        Column("depth", "int", "Steps away, from 1."),
        Column("via", "string", "The symbol one step nearer."),
        Column("relation", "string", "Kind of the edge that says so."),
        Column("role", "string", "Part it plays, such as `callback` or an argument's name."),
        Column("inside", "string", "Qualified name of the definition around the place."),
        Column("target", "string", "Qualified name of what it leads to."),
        Column("detail", "string", "More, in words."),
        Column("amount", "bigint", "How many."),
        Column("signature", "string", "As it is written, with annotations and defaults."),
        Column("docstring", "string", "Its docstring, without indentation."),
        Column("callers", "bigint", "Functions and modules that call it."),
        Column("callees", "bigint", "What it calls."),
        Column("refs", "bigint", "Places that mean it."),
        Column("members", "bigint", "Definitions directly inside of it."),
        Column("test", "boolean", "Whether it is test code, by its path and name."),
        Column("group_id", "string", "Shared by rows that belong together."),
        Column("origin", "string", "Witness or rule family it comes from."),
        Column("rule", "string", "Rule that made it."),
        Column("evidence", "string", "What it rests on: witnesses, and whether they agree."),
        Column("edge_id", "string", "Edge of the graph."),
    )
}


class Freshness(Struct, frozen=True):
    """What a repository's rows were made from, and whether that is still so."""

    repo_id: str
    run_id: str
    published_at: datetime
    commit: str | None
    source_state: SourceState


class Coverage(Struct, frozen=True):
    """What the lake knows of a repository, and what it could not read."""

    repo_id: str
    files: int | None
    # Failures of extractors on files; `codeanatomy errors` lists them.
    failures: int
    # False if it was built without a graph: nothing is known of it here.
    graph: bool


class Symbol(Struct, frozen=True):
    """What a name means: definitions of one qualified name in one repository."""

    symbol: str
    kind: str
    subkind: str | None
    path: str | None
    line: int | None
    repo_id: str
    # How the name was understood: id, place, qualified name, re-export, suffix, name, pattern.
    method: str
    # Nodes of the graph: more than one for overloads, conditional definitions, properties.
    ids: tuple[str, ...]

    @property
    def place(self) -> str:
        """As an editor opens it."""
        return place(self.path, self.line)


class Answer(Struct, frozen=True):
    """An answer of any verb."""

    verb: str
    # What was asked about, as it was typed.
    subject: tuple[str, ...]
    # What that was taken for.
    symbols: tuple[Symbol, ...]
    # Names of what is in each row.
    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    total: int
    # Rows that were left out.
    cut: int
    # How to get them.
    more: str | None
    # Limits of this answer, in words.
    notes: tuple[str, ...]
    run_id: str
    freshness: tuple[Freshness, ...]
    coverage: tuple[Coverage, ...]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_arrow(self) -> Any:
        """The rows as a PyArrow table with the declared types."""
        import pyarrow as pa

        from codeanatomy.arrow import arrow_field

        schema = pa.schema([arrow_field(COLUMNS[name]) for name in self.columns])
        return pa.Table.from_pylist(list(self.rows), schema)

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()


def check_limit(limit: int) -> None:
    """Refuse a limit that means nothing."""
    if type(limit) is not int or not 1 <= limit <= MOST:
        raise UsageError(f"a limit of {limit!r}", f"it is at least 1, at most {MOST:,}")


def place(path: str | None, line: int | None) -> str:
    """As an editor opens it.

    >>> place("a.py", 3), place("a.py", None), place(None, None)
    ('a.py:3', 'a.py', '')
    """
    return (path or "") if line is None else f"{path}:{line}"
