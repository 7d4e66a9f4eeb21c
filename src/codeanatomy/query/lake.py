"""A lake to ask: `Lake.open(root)`, and a method for each verb.

    lake = Lake.open("lake")                        # the newest published run; or as_of="2026-05-01T12:00Z"
    lake.callers("Session.send", depth=2).rows
    lake.find("get_*", limit=10).to_pandas()
    lake = Lake.open("lake", spark=session)         # the same verbs, as DataFrames of that session

Without a session no JVM is started, and answers have so many rows at most, with the total. Tests:
`tests/unit/query/test_ask.py`, `tests/spark/test_spark_lake.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from codeanatomy.delta.read.duck import local_path
from codeanatomy.errors import CodeAnatomyError
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.answers import DEFAULT_LIMIT, Answer
from codeanatomy.query.ask import answer, errors_answer
from codeanatomy.query.engines.light import LightReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from codeanatomy.lake.recorded_queries import RecordedQuery
    from codeanatomy.query.diff.runs import RunDiff
    from codeanatomy.query.engines.ibis import IbisLane
    from codeanatomy.query.engines.spark_lake import SparkLake
    from codeanatomy.query.sql.answer import SqlAnswer

# What an answer is: rows at hand, or a DataFrame.
T = TypeVar("T")


class Verbs(Generic[T]):
    """The verbs as methods; whoever has them says how a question is answered.

    A symbol is named as a person would: by its qualified name or the end of it, by `file:line`, by a node id.
    """

    def ask(
        self,
        verb: str,
        *names: str,
        repo_id: str | None = None,
        limit: int | None = None,
        **options: Any,
    ) -> T:
        """Any verb, by its name."""
        raise NotImplementedError

    def find(
        self, name: str, *, kind: str | None = None, repo_id: str | None = None, limit: int | None = None
    ) -> T:
        """Definitions by name, qualified name or pattern (`get_*`)."""
        return self.ask("find", name, kind=kind, repo_id=repo_id, limit=limit)

    def show(self, symbol: str, *, repo_id: str | None = None, limit: int | None = None) -> T:
        """A symbol: its signature, docstring and place, and how it is used."""
        return self.ask("show", symbol, repo_id=repo_id, limit=limit)

    def callers(
        self, symbol: str, *, depth: int = 1, repo_id: str | None = None, limit: int | None = None
    ) -> T:
        """Who calls a symbol, up to so many steps away."""
        return self.ask("callers", symbol, depth=depth, repo_id=repo_id, limit=limit)

    def callees(
        self, symbol: str, *, depth: int = 1, repo_id: str | None = None, limit: int | None = None
    ) -> T:
        """What a symbol calls, up to so many steps away."""
        return self.ask("callees", symbol, depth=depth, repo_id=repo_id, limit=limit)

    def refs(self, symbol: str, *, repo_id: str | None = None, limit: int | None = None) -> T:
        """Every place that means a symbol."""
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
        """How one symbol leads to another."""
        return self.ask("path", start, end, by=by, depth=depth, repo_id=repo_id, limit=limit)

    def impact(
        self,
        *symbols: str,
        diff: str | None = None,
        depth: int = 5,
        repo_id: str | None = None,
        limit: int | None = None,
    ) -> T:
        """What may break if symbols change, or by what differs from a commit, nearest first."""
        return self.ask("impact", *symbols, diff=diff, depth=depth, repo_id=repo_id, limit=limit)

    def flows(
        self, symbol: str, *, depth: int = 5, repo_id: str | None = None, limit: int | None = None
    ) -> T:
        """Where the value of a parameter or variable goes."""
        return self.ask("flows", symbol, depth=depth, repo_id=repo_id, limit=limit)

    def explain(self, *names: str, repo_id: str | None = None, limit: int | None = None) -> T:
        """The evidence and the rule behind an edge, by its id, or behind those between two symbols."""
        return self.ask("explain", *names, repo_id=repo_id, limit=limit)

    def unused(self, *, kind: str | None = None, repo_id: str | None = None, limit: int | None = None) -> T:
        """Functions and classes that nothing uses."""
        return self.ask("unused", kind=kind, repo_id=repo_id, limit=limit)

    def cycles(
        self,
        *,
        by: Literal["imports", "calls"] = "imports",
        repo_id: str | None = None,
        limit: int | None = None,
    ) -> T:
        """What imports, or calls, itself through others."""
        return self.ask("cycles", by=by, repo_id=repo_id, limit=limit)

    def unresolved(
        self,
        *symbol: str,
        reason: str | None = None,
        repo_id: str | None = None,
        limit: int | None = None,
    ) -> T:
        """What could not be resolved, and why; everywhere, or inside of a symbol."""
        return self.ask("unresolved", *symbol, reason=reason, repo_id=repo_id, limit=limit)

    def errors(self, *, repo_id: str | None = None, limit: int | None = None) -> T:
        """What failed when the repositories were built."""
        return self.ask("errors", repo_id=repo_id, limit=limit)

    def stats(self, *, repo_id: str | None = None, limit: int | None = None) -> T:
        """What the graph has, by kind."""
        return self.ask("stats", repo_id=repo_id, limit=limit)


class Lake(Verbs[Answer]):
    """One published state of a lake, asked without a JVM."""

    def __init__(self, snapshot: Snapshot, as_of: str | None = None, *, record_queries: bool = False) -> None:
        self.snapshot = snapshot
        self.as_of = as_of
        self.record_queries = record_queries
        self.reader = LightReader(snapshot)

    @overload
    @classmethod
    def open(cls, root: str | Path, as_of: str | None = None, *, record_queries: bool = False) -> Lake: ...

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
        record_queries: bool = False,
    ) -> Lake | SparkLake:
        """The newest published run, the one that is named, or the newest at a time; with a session, in it.

        `record_queries` keeps in the lake which columns are asked for, without a session (`query.recording`).
        """
        root = str(root)
        if spark is None:
            # What is elsewhere is refused before anybody asks for it there.
            local_path(root)
            return cls(Snapshot.open(root, as_of), as_of, record_queries=record_queries)
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
        """Any verb, by its name; so many rows at most, 100 if nothing is said."""
        wanted = DEFAULT_LIMIT if limit is None else limit
        if verb == "errors":
            # Builds that have failed since are told too.
            return errors_answer(self.snapshot.root, repo_id, wanted, self.as_of)
        if not self.record_queries:
            return answer(self.reader, verb, names, limit=wanted, repo_id=repo_id, **options)
        from codeanatomy.query.recording import RecordingReader, notes_of

        reader = RecordingReader(self.reader)
        found = answer(reader, verb, names, limit=wanted, repo_id=repo_id, **options)
        self._note(lambda: notes_of(self.reader, verb, reader.asked))
        return found

    def _note(self, notes: Callable[[], Iterable[RecordedQuery]]) -> None:
        """Keep what an answer has read; it is an answer without that, too."""
        from codeanatomy.lake.recorded_queries import record_queries

        with suppress(CodeAnatomyError):
            record_queries(self.snapshot.root, notes())

    def diff(
        self, run_a: str, run_b: str = "latest", *, repo_id: str | None = None, limit: int = DEFAULT_LIMIT
    ) -> RunDiff:
        """Nodes and edges that were added, removed or changed between two published runs."""
        from codeanatomy.query.diff.runs import diff_runs

        return diff_runs(self.snapshot.root, run_a, run_b, repo_id=repo_id, limit=limit)

    def sql(self, text: str, *, limit: int = DEFAULT_LIMIT, seconds: float = 30.0) -> SqlAnswer:
        """One statement that reads, over the views of `codeanatomy.catalog.views`."""
        from codeanatomy.query.sql.light import run_sql

        found = run_sql(self.reader, text, limit=limit, seconds=seconds)
        if self.record_queries:
            from codeanatomy.query.recording import notes_of_sql

            self._note(lambda: notes_of_sql(self.reader, text))
        return found

    def ibis(self) -> IbisLane:
        """The views as Ibis tables on DuckDB."""
        from codeanatomy.query.engines.ibis import light_lane

        return light_lane(self)
