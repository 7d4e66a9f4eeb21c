"""A lake in the caller's Spark session: tables, the graph, views and verbs as DataFrames.

    lake = Lake.open("lake", spark=session)
    lake.callers("Session.send", depth=2).show()
    lake.nodes("CLASS").join(lake.edges("INHERITS"), ...)
    lake.sql("SELECT caller, count(*) FROM calls GROUP BY caller")
    lake.register()                        # views, records and functions for %%sql cells and session.sql
    vertices, edges = lake.graph(kind="CALL_GRAPH")     # GraphFrame(vertices, edges)
    lake.changes("repo_files_v1", since="20260501T12")  # rows that changed after that run

All of them read one published run, whatever is built meanwhile. A DataFrame is not run before its rows are
needed, and it has all of them unless a limit is given; but a verb first resolves its names, in a few small
jobs. The settings of the session are not changed: see `query.engines.spark`. With Spark Connect all of them
work except `ibis`, which needs a second session beside the first.

Tests: `tests/spark/test_spark_lake.py`, `tests/spark/test_changes.py`, `tests/spark/test_connect.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from codeanatomy.catalog.kinds import EDGE_KINDS, NODE_KINDS
from codeanatomy.catalog.views import RECORD_VIEWS, VIEWS, view
from codeanatomy.errors import UnknownName, UsageError
from codeanatomy.lake.snapshot import Snapshot
from codeanatomy.query.answers import DEFAULT_LIMIT
from codeanatomy.query.ask import resolve_request, with_graph
from codeanatomy.query.diff.change_windows import RunWindow, open_window
from codeanatomy.query.diff.run_diff import RunDiff, diff_runs
from codeanatomy.query.engines.spark import SparkReader
from codeanatomy.query.engines.spark_changes import (
    commit_changes,
    count_changes,
    net_changes,
    stream_changes,
)
from codeanatomy.query.engines.views import view_query
from codeanatomy.query.lake import Verbs
from codeanatomy.query.source_lines import with_source_sql
from codeanatomy.query.sql.allowed import DIALECT, own_function
from codeanatomy.query.sql.check import Checked, check, written
from codeanatomy.query.sql.diagnostics import Diagnostics
from codeanatomy.query.status.run_comparison import RunComparison, compare_runs
from codeanatomy.spark.jvm import cause_of
from codeanatomy.spark.versions import is_connect
from codeanatomy.sql_functions import FUNCTIONS, register_functions

if TYPE_CHECKING:
    from codeanatomy.query.engines.ibis import IbisViews

# Of the names of functions in statements that we generate.
FUNCTION_PREFIX = "codeanatomy_"
# Where Spark looks for a variable in the text of a statement.
VARIABLE = "${"
PREFIX = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,63})?")


class Graph(NamedTuple):
    """Nodes and edges, named as GraphFrames wants them."""

    # With `id`.
    vertices: DataFrame
    # With `src`, `dst` and `relationship`.
    edges: DataFrame


class SparkLake(Verbs[DataFrame]):
    """One published state of a lake, read in a Spark session."""

    def __init__(self, snapshot: Snapshot, spark: SparkSession) -> None:
        self.snapshot = snapshot
        self.spark = spark
        self.reader = SparkReader(snapshot, spark)
        self._store = self.reader.store
        self._views: dict[str, DataFrame] = {}
        # Functions that statements have used.
        self._functions: set[str] = set()

    def close(self) -> None:
        """Drop the temporary views and functions of this object, except those of `register`."""
        while self._functions:
            self.spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {FUNCTION_PREFIX}{self._functions.pop()}")
        self._views.clear()
        self.reader.close()

    def table(self, name: str) -> DataFrame:
        """The published rows of a table of the catalogue."""
        return self.reader.table(name)

    def nodes(self, *kinds: str) -> DataFrame:
        """The nodes of some kinds, or all."""
        return _of_kinds(self.table("cpg_nodes"), F.col("node_kind"), kinds, NODE_KINDS)

    def edges(self, *kinds: str) -> DataFrame:
        """The edges of some kinds, or all."""
        return _of_kinds(self.table("cpg_edges"), F.col("edge_kind"), kinds, EDGE_KINDS)

    def graph(self, kind: str | Sequence[str] = ()) -> Graph:
        """The edges of a kind, or of some, and all nodes of the kinds they connect; or everything."""
        kinds = (kind,) if isinstance(kind, str) else tuple(kind)
        edges = self.edges(*kinds).withColumnsRenamed(
            {"src_node_id": "src", "dst_node_id": "dst", "edge_kind": "relationship"}
        )
        ends = [end for name in kinds for end in EDGE_KINDS[name].ends]
        connected = dict.fromkeys(name for end in ends for name in (*end.src, *end.dst))
        return Graph(self.nodes(*connected).withColumnRenamed("node_id", "id"), edges)

    def view(self, name: str) -> DataFrame:
        """A view of `codeanatomy.catalog.views`."""
        wanted = view(name)
        if name not in self._views:
            self._views[name] = self.reader.frame(view_query(wanted, self.snapshot), wanted.columns)
        return self._views[name]

    def sql(self, text: str) -> DataFrame:
        """Check one read-only statement over the views, and return all of its rows."""
        return self.run_checked(check(text))

    def run_checked(self, checked: Checked) -> DataFrame:
        """Run a statement that was checked before."""
        statement = self._stated(checked)
        try:
            return self.spark.sql(statement)
        except PySparkException as problem:
            problems = Diagnostics(checked.text)
            problems.add("engine", cause_of(problem))
            problems.refuse()
            raise

    def register(self, prefix: str = "") -> list[str]:
        """Register the views as temporary views of the session, and return their names with the prefix.

        They are those of the graph, and the tables of what runs have recorded (`run_manifest`,
        `plan_artifacts`, ...) with the rows of all runs until now.

        The functions of `codeanatomy.sql_functions` are registered with the same prefix. Views of an earlier
        call, perhaps for another run, are replaced: they have the same columns. If the session has another
        table, view or function of such a name, nothing is registered.
        """
        if not PREFIX.fullmatch(prefix):
            raise UsageError(f"prefix {prefix!r} is not valid in a view name", "use letters, digits and _")
        names = {f"{prefix}{each.name}": each for each in (*VIEWS, *RECORD_VIEWS)}
        for name, each in names.items():
            if self.spark.catalog.tableExists(name) and self._columns(name) != each.column_names:
                raise UsageError(
                    f"the Spark session already has a table or view {name}",
                    "choose another prefix, or drop it",
                )
        for function in FUNCTIONS.values():
            if self._has_other_function(f"{prefix}{function.name}", function.doc):
                raise UsageError(
                    f"the Spark session already has a function {prefix}{function.name}",
                    "choose another prefix, or drop it",
                )
        register_functions(self.spark, prefix)
        for name, each in names.items():
            self.view(each.name).createOrReplaceTempView(name)
        return list(names)

    def ask(
        self,
        verb: str,
        *names: str,
        repo_id: str | None = None,
        limit: int | None = None,
        **options: Any,
    ) -> DataFrame:
        """Run a verb by its name; all rows if no limit is given."""
        self.snapshot.select_repositories(repo_id)
        query = resolve_request(self.reader, verb, names, repo_id, **options).result.query
        if "source" in query.columns:
            query = with_source_sql(query, with_graph(self.snapshot.repositories.values()))
        rows = self.reader.frame(query)
        return rows if limit is None else rows.limit(limit)

    def changes(
        self,
        table: str,
        since: str,
        *,
        until: str | None = None,
        repo_id: str | None = None,
        every_commit: bool = False,
        allow_out_of_range: bool = False,
    ) -> DataFrame:
        """The rows of a table that were inserted, removed or changed after a run or time.

        The end is a run or time, or this snapshot. With `every_commit` these are all rows of the change feed,
        as Delta's `readChangeFeed` returns them. With `allow_out_of_range` there are no rows, instead of an
        error, if nothing was published after the start.
        """
        window = self._window(since, until, allow_out_of_range=allow_out_of_range)
        made = commit_changes if every_commit else net_changes
        return made(self._store, window, table, repo_id)

    def change_counts(
        self,
        since: str,
        *,
        until: str | None = None,
        repo_id: str | None = None,
        allow_out_of_range: bool = False,
    ) -> DataFrame:
        """The number of rows that changed after a run or time, in every table with a change feed."""
        window = self._window(since, until, allow_out_of_range=allow_out_of_range)
        return count_changes(self._store, window, repo_id)

    def change_stream(self, table: str, since: str, *, repo_id: str | None = None) -> DataFrame:
        """The rows of the change feed after a run or time as a stream, which goes on with later commits.

        A stream reads commits when they are made, also those of a run that is not published yet; if it
        fails, what they have changed is undone by later commits.
        """
        window = self._window(since, None, allow_out_of_range=True)
        return stream_changes(self._store, window, table, repo_id)

    def diff(
        self, run_a: str, run_b: str = "latest", *, repo_id: str | None = None, limit: int = DEFAULT_LIMIT
    ) -> RunDiff:
        """Compare two published runs, as `Lake.diff` does: read by this process, not by the session."""
        return diff_runs(self.snapshot.root, run_a, run_b, repo_id=repo_id, limit=limit)

    def compare_runs(self, run_a: str, run_b: str = "latest", *, limit: int | None = None) -> RunComparison:
        """Compare what two runs have cost, as `Lake.compare_runs` does: read by this process."""
        return compare_runs(self.snapshot.root, run_a, run_b, limit=limit)

    def _window(self, since: str, until: str | None, *, allow_out_of_range: bool) -> RunWindow:
        return open_window(
            self.snapshot.root,
            since,
            until,
            newest=self.snapshot,
            allow_out_of_range=allow_out_of_range,
        )

    def ibis(self) -> IbisViews:
        """The views as Ibis tables, in a session beside this one."""
        from codeanatomy.query.engines.ibis import spark_views

        if is_connect(self.spark):
            raise UsageError(
                "ibis needs a classic Spark session, and the given one is of Spark Connect",
                "open the lake without a session: Lake.open(uri).ibis() runs on DuckDB",
            )
        return spark_views(self)

    def _stated(self, checked: Checked) -> str:
        """Return the statement over our temporary views, without any variable that Spark would replace."""
        tree = checked.tree.copy()
        for scope in traverse_scope(tree):
            for _, source in scope.selected_sources.values():
                # Other sources are relations that the statement itself defines.
                if isinstance(source, exp.Table):
                    source.set("this", exp.to_identifier(self._named(source.name)))
        self._name_functions(tree)
        for each in list(tree.find_all(exp.Literal)):
            if each.is_string and VARIABLE in each.name:
                each.replace(exp.cast(exp.HexString(this=each.name.encode().hex()), "STRING"))
        statement = written(tree, DIALECT)
        if VARIABLE in statement:
            raise UsageError(
                f"the statement contains {VARIABLE}, which Spark would replace", "use another name or alias"
            )
        return statement

    def _name_functions(self, tree: exp.Expr) -> None:
        """Register the functions of our own that a statement calls, under names of our own."""
        calls = [(each, own) for each in tree.find_all(exp.Anonymous) if (own := own_function(each))]
        register_functions(self.spark, FUNCTION_PREFIX, {own.name for _, own in calls} - self._functions)
        for call, own in calls:
            call.set("this", f"{FUNCTION_PREFIX}{own.name}")
            self._functions.add(own.name)

    def _named(self, name: str) -> str:
        return self.reader.named(f"view_{name}", lambda: self.view(name))

    def _has_other_function(self, name: str, doc: str) -> bool:
        """Return whether the session has a function of a name with another description."""
        if not self.spark.catalog.functionExists(name):
            return False
        described = self.spark.sql(f"DESCRIBE FUNCTION EXTENDED {name}").collect()
        return not any(doc in row[0] for row in described)

    def _columns(self, name: str) -> tuple[str, ...]:
        return tuple(self.spark.table(name).columns)


def _of_kinds(
    rows: DataFrame, column: Column, kinds: Sequence[str], known: Mapping[str, object]
) -> DataFrame:
    for kind in kinds:
        if kind not in known:
            raise UnknownName("kind", kind, known)
    return rows.where(column.isin(*kinds)) if kinds else rows
