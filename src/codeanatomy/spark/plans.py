"""The plans of a frame as text that is the same wherever it is made.

    plan_texts(frame).optimized
    # Project [file_id, mtime_ns]
    # +- Filter repo_id IN (requests)
    #    +- Relation [repo_id,file_id,path,...,mtime_ns,...] parquet

What Spark numbers anew in each process, and what a lake's folder, its sizes and the number of partitions put
into a plan, is taken away:

>>> normalised("Exchange hashpartitioning(file_id#12, 8), REPARTITION_BY_NUM, [plan_id=7]")
'Exchange hashpartitioning(file_id, *), REPARTITION_BY_NUM'

A frame that is persisted has its plan inside of the cache. The physical plan is read from there, as it ran
if it has run; the optimized one is what that was made from, so nothing is planned a second time. Both must
be asked for before the frame is released. What is cached and read twice is told once.

The physical plan is written line by line from its operators, the same that `measures` takes figures from:
the number of an operator is that of its line. Stages and generated code wrap operators and are left out.

Tests: `tests/spark/test_plans.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import Struct
from pyspark.sql import DataFrame

from codeanatomy.spark.session import active, isolated

# Fields of a struct, and columns of a list, that are written out: all.
ALL_FIELDS = 1_000_000
# Expressions ask the session how many of their arguments they may show.
IN_FULL = {"spark.sql.debug.maxToStringFields": str(ALL_FIELDS)}

# Characters of a text that are fetched at once.
PIECE = 4000

# In this order; the first takes away what would be in the way of the others.
NORMALISED = tuple(
    (re.compile(pattern, re.MULTILINE), put)
    for pattern, put in (
        # Expressions: file_id#12, mtime_ns#7L, subquery#3.
        (r"#\d+L?\b", ""),
        (r",? \[(?:plan_)?id=#?\d*\]", ""),
        # Variables of lambdas, and names that the optimizer makes up from a counter.
        (r"\blambda ([a-z]+)_\d+\b", r"lambda \1"),
        (r"\b(_gen_alias_|_common_expr_)\d+\b", r"\1"),
        # Where the files are, how many, of which version.
        (r"Location: .*?(?=, PartitionFilters:|, PushedFilters:|, ReadSchema:|$)", "Location: *"),
        (r"\b(?:file|hdfs|abfss?|wasbs?|gs|s3[an]?|dbfs):/[^\s,\])`'\"]*", "*"),
        # Into how many partitions.
        (r"\b((?:hash|range)partitioning|shufflepartitionidpassthrough)\((.*), \d+\)", r"\1(\2, *)"),
        (r"\b(RoundRobinPartitioning)\(\d+\)", r"\1(*)"),
        (r"\b(RepartitionByExpression \[.*?\]), \d+", r"\1, *"),
        (r"\b(Repartition) \d+,", r"\1 *,"),
        (r"\bpmod\((hash\([^()]*\)), \d+\)", r"pmod(\1, *)"),
        (r"\bsplits=(?:Some\(\d+\)|\d+)", "splits=*"),
        # Numbers and addresses of objects.
        (r"RDD\[\d+\]", "RDD[*]"),
        (r" at 0x[0-9a-f]+", ""),
        (r"(?<=\w)@[0-9a-f]{4,16}\b", "@*"),
        # Generated code.
        (r"\*\(\d+\) ", ""),
    )
)
INDENT = "  "
ADAPTIVE = "AdaptiveSparkPlan"
WRAPPER = re.compile(rf"(?:{ADAPTIVE}|WholeStageCodegen|InputAdapter|\w+QueryStage)\b")
READ_SCHEMA = re.compile(r"ReadSchema: .*")


class PlanTexts(Struct, frozen=True):
    """The plans of a frame, normalised."""

    logical: str
    optimized: str
    physical: str


class Operator(NamedTuple):
    """A line of a physical plan."""

    depth: int
    # As Spark writes it, numbers and paths included.
    text: str
    # The operator, and the generated code that it is the outermost of.
    nodes: tuple[Any, ...]

    @property
    def name(self) -> str:
        """Its first word: Exchange, FileScan, MapInArrow."""
        return self.text.split(maxsplit=1)[0]


def plan_texts(frame: DataFrame) -> PlanTexts:
    """The analysed, the optimized and the physical plan of a frame."""
    jvm, execution = frame.sparkSession._jvm, frame._jdf.queryExecution()
    optimized = optimized_plan(frame)
    with active(isolated(frame.sparkSession, IN_FULL)):
        return PlanTexts(
            logical=normalised(_tree(jvm, execution.analyzed())),
            optimized=normalised("\n".join(_optimized(jvm, optimized, 0, set()))),
            physical=normalised("\n".join(INDENT * each.depth + _line(each) for each in operators(frame))),
        )


def optimized_plan(frame: DataFrame) -> Any:
    """The optimized plan of a frame, as the JVM has it; below what is cached, `planned_from` has the rest."""
    execution = frame._jdf.queryExecution()
    cached = _cached(execution)
    return execution.optimizedPlan() if cached is None else planned_from(cached)


def operators(frame: DataFrame) -> Iterator[Operator]:
    """The operators of a frame's physical plan, in the order of its lines."""
    execution = frame._jdf.queryExecution()
    cached = _cached(execution)
    return _operators(execution.executedPlan() if cached is None else cached, 0, set())


def normalised(text: str) -> str:
    """A plan's text without what differs between processes, lakes and numbers of partitions."""
    for pattern, put in NORMALISED:
        text = pattern.sub(put, text)
    return text


def table_folder(path: str) -> str:
    """The last folder of a table's path, or of the path of one of its files.

    >>> [table_folder(f"file:/lake/graph/cpg_nodes{rest}") for rest in ("", "/node_kind=CALL/part-1.parquet")]
    ['cpg_nodes', 'cpg_nodes']
    """
    parts = [part for part in path.split("/") if not part.endswith(".parquet") and "=" not in part]
    return parts[-1]


def _cached(execution: Any) -> Any:
    """The plan that has filled, or will fill, the cache of a persisted frame; none of another frame."""
    plan = execution.withCachedData()
    return plan.cachedPlan() if is_cache(plan) else None


def is_cache(plan: Any) -> bool:
    """Whether a plan ends here, with what is cached."""
    return str(plan.getClass().getSimpleName()) == "InMemoryRelation"


def _tree(jvm: Any, plan: Any) -> str:
    """The text of a logical plan, fetched in pieces: an answer beyond the buffer of py4j waits 40 ms."""
    text = jvm.java.lang.StringBuilder().append(plan)
    length = text.length()
    pieces = (text.substring(at, min(at + PIECE, length)) for at in range(0, length, PIECE))
    return "".join(pieces).rstrip()


def _optimized(jvm: Any, plan: Any, depth: int, seen: set[int]) -> Iterator[str]:
    """The lines of a logical plan, and below what is cached those of the plan that it comes from."""
    # A tree with something cached would be written with all of its physical plan.
    if not any(map(is_cache, _all(plan.collectLeaves()))):
        yield from (INDENT * depth + line for line in _tree(jvm, plan).splitlines())
        return
    yield INDENT * depth + plan.simpleString(ALL_FIELDS)
    if is_cache(plan):
        if _is_new(plan.cachedPlan(), seen):
            yield from _optimized(jvm, planned_from(plan.cachedPlan()), depth + 1, seen)
    else:
        for child in _all(plan.children()):
            yield from _optimized(jvm, child, depth + 1, seen)


def planned_from(plan: Any) -> Any:
    """The optimized plan that a physical one was made from; generated code has none of its own."""
    while True:
        plan = plan.inputPlan() if plan.simpleString(1).startswith(ADAPTIVE) else plan
        link = plan.logicalLink()
        if link.isDefined():
            return link.get()
        plan = plan.children().head()


def _operators(node: Any, depth: int, seen: set[int], *code: Any) -> Iterator[Operator]:
    text = str(node.simpleString(ALL_FIELDS))
    wrapper = WRAPPER.match(text)
    if wrapper:
        inner, *code_around = _unwrapped(node, wrapper[0])
        yield from _operators(inner, depth, seen, *code_around)
        return
    yield Operator(depth, text, (node, *code))
    for child in _all(node.children()):
        yield from _operators(child, depth + 1, seen)
    if text.startswith("InMemoryTableScan"):
        cached = node.relation().cachedPlan()
        if _is_new(cached, seen):
            yield from _operators(cached, depth + 1, seen)


def _unwrapped(node: Any, wrapper: str) -> tuple[Any, ...]:
    """What is inside of a wrapper, and the wrapper itself if it is generated code."""
    if wrapper == ADAPTIVE:
        return (node.executedPlan(),)
    if wrapper.endswith("QueryStage"):
        return (node.plan(),)
    inner = node.children().head()
    return (inner, node) if wrapper == "WholeStageCodegen" else (inner,)


def _is_new(cached: Any, seen: set[int]) -> bool:
    known = len(seen)
    seen.add(cached.id())
    return len(seen) > known


def _all(nodes: Any) -> Iterator[Any]:
    return (nodes.apply(number) for number in range(nodes.size()))


def _line(operator: Operator) -> str:
    """The text of an operator; of a scan with the table's folder, and the schema that Spark cuts off."""
    if operator.name != "FileScan":
        return operator.text
    scan = operator.nodes[0]
    schema = scan.requiredSchema().catalogString()
    paths = scan.relation().location().rootPaths()
    folder = table_folder(paths.head().toString()) if paths.nonEmpty() else "*"
    named = operator.text.replace("FileScan", f"FileScan {folder}", 1)
    return READ_SCHEMA.sub(lambda _: f"ReadSchema: {schema}", named)
