"""Query a lake from Python: `Lake.open(root)`, and one method per verb.

    lake = Lake.open("lake")                        # the newest published run; or as_of="2026-05-01T12:00Z"
    lake.callers("Session.send", depth=2).rows
    lake.find("get_*", limit=10).to_pandas()
    lake.changes("repo_files_v1", since="20260501T12").rows
    lake = Lake.open("lake", spark=session)         # the same verbs, as DataFrames of that session

Without a session no JVM is started, and an answer has at most `limit` rows and the total.

Nothing in this package writes to the lake. A caller that wants to record which columns its queries filter by
passes `record`, a function that receives the notes of each query (`query.recording`):

    Lake.open("lake", record=print).callers("Session.send")

Tests: `tests/unit/query/test_ask.py`, `tests/unit/query/test_recording.py`,
`tests/unit/query/test_changes.py`, `tests/spark/test_spark_lake.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, overload

from codeanatomy.errors import CodeAnatomyError
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.answers import DEFAULT_LIMIT, Answer
from codeanatomy.query.ask import answer, errors_answer
from codeanatomy.query.engines.light import LightReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.lake.recorded_queries import Record
    from codeanatomy.query.diff.run_diff import RunDiff
    from codeanatomy.query.diff.table_changes import ChangeCounts, TableChanges
    from codeanatomy.query.engines.ibis import IbisViews
    from codeanatomy.query.engines.spark_lake import SparkLake
    from codeanatomy.query.sql.answer import SqlAnswer
    from codeanatomy.query.status.run_comparison import RunComparison

# Type of an answer: `Answer` without a session, a DataFrame with one.
T = TypeVar("T")
# Receives the notes of a question: of itself, and of each table slice that it has read.
Recorder: TypeAlias = "Callable[[Iterable[Record]], None]"


class Verbs(Generic[T]):
    """One method per verb; a subclass implements `ask`.

    A symbol is named by its qualified name or the end of it, by `file:line`, or by a node id.
    """

    def ask(
        self,
        verb: str,
        *names: str,
        repo_id: str | None = None,
        limit: int | None = None,
        **options: Any,
    ) -> T:
        """Run a verb by its name."""
        raise NotImplementedError

    def find(
        self,
        name: str | None = None,
        *,
        kind: str | None = None,
        entry_points: str | None = None,
        repo_id: str | None = None,
        limit: int | None = None,
    ) -> T:
        """Find definitions by name, qualified name or pattern (`get_*`).

        With `entry_points` only what frameworks call: from outside (`root`), of a kind (`http`), or `all`.
        """
        names = () if name is None else (name,)
        return self.ask("find", *names, kind=kind, entry_points=entry_points, repo_id=repo_id, limit=limit)

    def show(self, symbol: str, *, repo_id: str | None = None, limit: int | None = None) -> T:
        """Show a symbol: its signature, docstring and location, and how it is used."""
        return self.ask("show", symbol, repo_id=repo_id, limit=limit)

    def callers(
        self, symbol: str, *, depth: int = 1, repo_id: str | None = None, limit: int | None = None
    ) -> T:
        """List the callers of a symbol, up to `depth` calls away."""
        return self.ask("callers", symbol, depth=depth, repo_id=repo_id, limit=limit)

    def callees(
        self, symbol: str, *, depth: int = 1, repo_id: str | None = None, limit: int | None = None
    ) -> T:
        """List what a symbol calls, up to `depth` calls away."""
        return self.ask("callees", symbol, depth=depth, repo_id=repo_id, limit=limit)

    def refs(self, symbol: str, *, repo_id: str | None = None, limit: int | None = None) -> T:
        """List every reference to a symbol."""
        return self.ask("refs", symbol, repo_id=repo_id, limit=limit)

    def path(
        self,
        start: str,
        end: str,
        *,
        by: Literal["calls", "flow"] = "calls",
        depth: int = 12,
        repo_id: str | None = None,
        limit: int | None = None,
    ) -> T:
        """Show the shortest path from one symbol to another, by calls or by data flow."""
        return self.ask("path", start, end, by=by, depth=depth, repo_id=repo_id, limit=limit)

    def impact(
        self,
        *symbols: str,
        diff: str | None = None,
        depth: int = 5,
        repo_id: str | None = None,
        limit: int | None = None,
    ) -> T:
        """List what may break if the symbols, or those changed since commit `diff`, change; nearest first."""
        return self.ask("impact", *symbols, diff=diff, depth=depth, repo_id=repo_id, limit=limit)

    def flows(
        self,
        symbol: str,
        *,
        depth: int = 5,
        direction: Literal["to", "from"] = "to",
        returns: bool = False,
        repo_id: str | None = None,
        limit: int | None = None,
    ) -> T:
        """Show where the value of a parameter or variable flows or comes from, up to `depth` variables away.

        With `returns` values are followed through functions that return them to the calls of these, too.
        """
        return self.ask(
            "flows",
            symbol,
            depth=depth,
            direction=direction,
            returns=returns,
            repo_id=repo_id,
            limit=limit,
        )

    def explain(self, *names: str, repo_id: str | None = None, limit: int | None = None) -> T:
        """Show the evidence and the rule behind an edge, by its id, or behind those between two symbols."""
        return self.ask("explain", *names, repo_id=repo_id, limit=limit)

    def unused(
        self,
        *,
        kind: str | None = None,
        min_confidence: float = 0.7,
        path: str | None = None,
        include_tests: bool = False,
        repo_id: str | None = None,
        limit: int | None = None,
    ) -> T:
        """List functions and classes that nothing uses, with at least this confidence."""
        return self.ask(
            "unused",
            kind=kind,
            min_confidence=min_confidence,
            path=path,
            include_tests=include_tests,
            repo_id=repo_id,
            limit=limit,
        )

    def cycles(
        self,
        *,
        by: Literal["imports", "calls"] = "imports",
        runtime: bool = False,
        repo_id: str | None = None,
        limit: int | None = None,
    ) -> T:
        """List cycles of imports or of calls; with `runtime` of imports that run on import."""
        return self.ask("cycles", by=by, runtime=runtime, repo_id=repo_id, limit=limit)

    def unresolved(
        self,
        *symbol: str,
        reason: str | None = None,
        repo_id: str | None = None,
        limit: int | None = None,
    ) -> T:
        """List what could not be resolved, and why; everywhere, or inside of a symbol."""
        return self.ask("unresolved", *symbol, reason=reason, repo_id=repo_id, limit=limit)

    def errors(self, *, repo_id: str | None = None, limit: int | None = None) -> T:
        """List what failed when the repositories were built."""
        return self.ask("errors", repo_id=repo_id, limit=limit)

    def stats(self, *, repo_id: str | None = None, limit: int | None = None) -> T:
        """Count files, nodes, edges and calls, by kind."""
        return self.ask("stats", repo_id=repo_id, limit=limit)


def recorded_errors(
    root: str, repo_id: str | None, limit: int, as_of: str | None, record: Recorder | None
) -> Answer:
    """Answer the verb `errors`, which also works without a published run, and record the question."""
    if record is None:
        return errors_answer(root, repo_id, limit, as_of)
    from codeanatomy.query.recording import QuestionTimer

    timer = QuestionTimer("errors")
    result = errors_answer(root, repo_id, limit, as_of)
    # An answer is valid even if it cannot be recorded.
    with suppress(CodeAnatomyError):
        record([timer.note(result.run_id, len(result.rows))])
    return result


class Lake(Verbs[Answer]):
    """One published snapshot of a lake, read without a JVM."""

    def __init__(
        self, snapshot: Snapshot, as_of: str | None = None, *, record: Recorder | None = None
    ) -> None:
        self.snapshot = snapshot
        self.as_of = as_of
        self.record = record
        self.reader = LightReader(snapshot)

    @overload
    @classmethod
    def open(cls, root: str | Path, as_of: str | None = None, *, record: Recorder | None = None) -> Lake: ...

    @overload
    @classmethod
    def open(cls, root: str | Path, as_of: str | None = None, *, spark: SparkSession) -> SparkLake: ...

    @classmethod
    def open(
        cls,
        root: str | Path,
        as_of: str | None = None,
        *,
        spark: SparkSession | None = None,
        record: Recorder | None = None,
    ) -> Lake | SparkLake:
        """Open the newest published run, or with `as_of` a run id or the newest run at that time.

        With `spark`, a classic session or one of Spark Connect, the verbs return DataFrames of that session.
        `record` receives the notes of each query; it is not used with a session.
        """
        root = str(root)
        if spark is None:
            return cls(Snapshot.open(root, as_of), as_of, record=record)
        from codeanatomy.query.engines.spark_lake import SparkLake

        return SparkLake(Snapshot.open(root, as_of), spark)

    def ask(
        self,
        verb: str,
        *names: str,
        repo_id: str | None = None,
        limit: int | None = None,
        **options: Any,
    ) -> Answer:
        """Run a verb by its name and return at most `limit` rows, 100 by default."""
        limit = DEFAULT_LIMIT if limit is None else limit
        if verb == "errors":
            # Also lists builds that have failed since the snapshot was published.
            return recorded_errors(self.snapshot.root, repo_id, limit, self.as_of, self.record)
        if self.record is None:
            return answer(self.reader, verb, names, limit=limit, repo_id=repo_id, **options)
        from codeanatomy.query.recording import QuestionTimer, RecordingReader, verb_notes

        reader, timer = RecordingReader(self.reader), QuestionTimer(verb)
        result = answer(reader, verb, names, limit=limit, repo_id=repo_id, **options)
        # An answer is valid even if it cannot be recorded.
        with suppress(CodeAnatomyError):
            self.record(verb_notes(self.reader, timer, reader.queries, len(result.rows)))
        return result

    def diff(
        self, run_a: str, run_b: str = "latest", *, repo_id: str | None = None, limit: int = DEFAULT_LIMIT
    ) -> RunDiff:
        """Compare two published runs: nodes and edges that were added, removed or changed."""
        from codeanatomy.query.diff.run_diff import diff_runs

        return diff_runs(self.snapshot.root, run_a, run_b, repo_id=repo_id, limit=limit)

    def compare_runs(self, run_a: str, run_b: str = "latest", *, limit: int | None = None) -> RunComparison:
        """Compare what two runs have cost, published or not: why was one slower?"""
        from codeanatomy.query.status.run_comparison import compare_runs

        return compare_runs(self.snapshot.root, run_a, run_b, limit=limit)

    def changes(
        self,
        table: str,
        since: str,
        *,
        until: str | None = None,
        repo_id: str | None = None,
        every_commit: bool = False,
        limit: int = DEFAULT_LIMIT,
        offset: int = 0,
        allow_out_of_range: bool = False,
    ) -> TableChanges:
        """List the rows of a table that were inserted, removed or changed after a run or time.

        The end is a run or time, or this snapshot. With `every_commit` all rows of the change feed are
        listed, not their net effect. With `allow_out_of_range` there are no rows, instead of an error, if
        nothing was published after the start.
        """
        from codeanatomy.query.diff.table_changes import table_changes

        return table_changes(
            self.snapshot.root,
            table,
            since,
            until,
            repo_id=repo_id,
            every_commit=every_commit,
            limit=limit,
            offset=offset,
            newest=self.snapshot,
            allow_out_of_range=allow_out_of_range,
        )

    def change_counts(
        self,
        since: str,
        *,
        until: str | None = None,
        repo_id: str | None = None,
        allow_out_of_range: bool = False,
    ) -> ChangeCounts:
        """Count the rows that changed after a run or time, in every table with a change feed."""
        from codeanatomy.query.diff.table_changes import change_counts

        return change_counts(
            self.snapshot.root,
            since,
            until,
            repo_id=repo_id,
            newest=self.snapshot,
            allow_out_of_range=allow_out_of_range,
        )

    def sql(self, text: str, *, limit: int = DEFAULT_LIMIT, seconds: float = 30.0) -> SqlAnswer:
        """Run one SELECT statement over the views of `codeanatomy.catalog.views`."""
        from codeanatomy.query.sql.light import run_sql

        if self.record is None:
            return run_sql(self.reader, text, limit=limit, seconds=seconds)
        from codeanatomy.query.recording import SQL, QuestionTimer, sql_notes

        timer = QuestionTimer(SQL)
        result = run_sql(self.reader, text, limit=limit, seconds=seconds)
        with suppress(CodeAnatomyError):
            self.record(sql_notes(self.reader, timer, text, len(result.rows)))
        return result

    def ibis(self) -> IbisViews:
        """Return the views as Ibis tables on DuckDB."""
        from codeanatomy.query.engines.ibis import duckdb_views

        return duckdb_views(self)
