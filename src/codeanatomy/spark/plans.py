"""Render the plans of a frame as text that is the same on every machine.

    plan_texts(frame).optimized
    # Project [file_id, mtime_ns]
    # +- Filter repo_id IN (requests)
    #    +- Relation [repo_id,file_id,path,...,mtime_ns,...] parquet

Ids that Spark assigns anew in each process, paths, sizes and numbers of partitions are removed:

>>> normalise_plan("Exchange hashpartitioning(file_id#12, 8), REPARTITION_BY_NUM, [plan_id=7]")
'Exchange hashpartitioning(file_id, *), REPARTITION_BY_NUM'

A persisted frame has its plan inside of the cache. The physical plan is read from there, as it ran if it has
run; the optimized plan is the one it was planned from, so nothing is planned a second time. Both must be read
before the frame is unpersisted. A cached plan that is read twice is written once.

The physical plan is written line by line from its operators, whose metrics `metrics` reads: the number of an
operator is that of its line. Stages and generated code wrap operators and are left out.

Tests: `tests/spark/test_plans.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import Struct
from pyspark.sql import DataFrame

from codeanatomy.spark.session import activate_session, clone_session
from codeanatomy.spark.settings import ALL_FIELDS, IN_FULL

# Characters fetched from the JVM per call.
PIECE = 4000

# Substitutions in order; the first ones remove what the patterns of the others do not expect.
SUBSTITUTIONS = tuple(
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        # Expressions: file_id#12, mtime_ns#7L, subquery#3.
        (r"#\d+L?\b", ""),
        (r",? \[(?:plan_)?id=#?\d*\]", ""),
        # Variables of lambdas, and names that the optimizer generates.
        (r"\blambda ([a-z]+)_\d+\b", r"lambda \1"),
        (r"\b(_gen_alias_|_common_expr_)\d+\b", r"\1"),
        # Location, number and version of the files.
        (r"Location: .*?(?=, PartitionFilters:|, PushedFilters:|, ReadSchema:|$)", "Location: *"),
        (r"\b(?:file|hdfs|abfss?|wasbs?|gs|s3[an]?|dbfs):/[^\s,\])`'\"]*", "*"),
        # Numbers of partitions.
        (r"\b((?:hash|range)partitioning|shufflepartitionidpassthrough)\((.*), \d+\)", r"\1(\2, *)"),
        (r"\b(RoundRobinPartitioning)\(\d+\)", r"\1(*)"),
        (r"\b(RepartitionByExpression \[.*?\]), \d+", r"\1, *"),
        (r"\b(Repartition) \d+,", r"\1 *,"),
        (r"\bpmod\((hash\([^()]*\)), \d+\)", r"pmod(\1, *)"),
        (r"\bsplits=(?:Some\(\d+\)|\d+)", "splits=*"),
        # Ids and addresses of objects.
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
    """The normalised plans of a frame."""

    logical: str
    optimized: str
    physical: str


class Operator(NamedTuple):
    """An operator of a physical plan, which is one line of it."""

    depth: int
    # Spark's text, ids and paths included.
    text: str
    # The JVM's operator, and the code generation stage if it is the outermost operator of one.
    nodes: tuple[Any, ...]

    @property
    def name(self) -> str:
        """Its first word: Exchange, FileScan, MapInArrow."""
        return self.text.split(maxsplit=1)[0]


def plan_texts(frame: DataFrame) -> PlanTexts:
    """Return the analysed, the optimized and the physical plan of a frame."""
    jvm, execution = frame.sparkSession._jvm, frame._jdf.queryExecution()
    optimized = optimized_plan(frame)
    session = frame.sparkSession
    if any(session.conf.get(key, None) != value for key, value in IN_FULL.items()):
        session = clone_session(session, IN_FULL)
    with activate_session(session):
        return PlanTexts(
            logical=normalise_plan(_plan_text(jvm, execution.analyzed())),
            optimized=normalise_plan("\n".join(_optimized_lines(jvm, optimized, 0, set()))),
            physical=normalise_plan(
                "\n".join(INDENT * each.depth + _line(each) for each in operators(frame))
            ),
        )


def optimized_plan(frame: DataFrame) -> Any:
    """Return the JVM's optimized plan of a frame; `logical_plan_of` has those of cached frames in it."""
    execution = frame._jdf.queryExecution()
    cached = _cached_plan(execution)
    return execution.optimizedPlan() if cached is None else logical_plan_of(cached)


def operators(frame: DataFrame) -> Iterator[Operator]:
    """Yield the operators of a frame's physical plan, in the order of its lines."""
    execution = frame._jdf.queryExecution()
    cached = _cached_plan(execution)
    return _operators(execution.executedPlan() if cached is None else cached, 0, set())


def normalise_plan(text: str) -> str:
    """Remove from a plan's text what differs between processes, lakes and numbers of partitions."""
    for pattern, replacement in SUBSTITUTIONS:
        text = pattern.sub(replacement, text)
    return text


def table_folder(path: str) -> str:
    """Return the name of a table's folder from its path or the path of one of its files.

    >>> [table_folder(f"file:/lake/graph/cpg_nodes{rest}") for rest in ("", "/node_kind=CALL/part-1.parquet")]
    ['cpg_nodes', 'cpg_nodes']
    """
    parts = [part for part in path.split("/") if not part.endswith(".parquet") and "=" not in part]
    return parts[-1]


def _cached_plan(execution: Any) -> Any:
    """Return the physical plan that fills the cache of a persisted frame; None for another frame."""
    plan = execution.withCachedData()
    return plan.cachedPlan() if is_cache(plan) else None


def is_cache(plan: Any) -> bool:
    """Whether a node is a cached relation."""
    return str(plan.getClass().getSimpleName()) == "InMemoryRelation"


def _plan_text(jvm: Any, plan: Any) -> str:
    """Return the text of a logical plan, fetched in pieces: more than py4j's buffer at once takes 40 ms."""
    text = jvm.java.lang.StringBuilder().append(plan)
    length = text.length()
    pieces = (text.substring(start, min(start + PIECE, length)) for start in range(0, length, PIECE))
    return "".join(pieces).rstrip()


def _optimized_lines(jvm: Any, plan: Any, depth: int, seen: set[int]) -> Iterator[str]:
    """Yield the lines of a logical plan, and below each cached relation those of its own plan."""
    # The text of a plan with a cached relation would contain the whole physical plan of it.
    if not any(map(is_cache, _all(plan.collectLeaves()))):
        yield from (INDENT * depth + line for line in _plan_text(jvm, plan).splitlines())
        return
    yield INDENT * depth + plan.simpleString(ALL_FIELDS)
    if is_cache(plan):
        if _is_new(plan.cachedPlan(), seen):
            yield from _optimized_lines(jvm, logical_plan_of(plan.cachedPlan()), depth + 1, seen)
    else:
        for child in _all(plan.children()):
            yield from _optimized_lines(jvm, child, depth + 1, seen)


def logical_plan_of(plan: Any) -> Any:
    """Return the optimized plan that a physical plan was made from; generated code has no link to it."""
    while True:
        plan = plan.inputPlan() if plan.simpleString(1).startswith(ADAPTIVE) else plan
        link = plan.logicalLink()
        if link.isDefined():
            return link.get()
        plan = plan.children().head()


def _operators(node: Any, depth: int, seen: set[int], *codegen: Any) -> Iterator[Operator]:
    text = str(node.simpleString(ALL_FIELDS))
    wrapper = WRAPPER.match(text)
    if wrapper:
        inner, *around = _unwrap(node, wrapper[0])
        yield from _operators(inner, depth, seen, *around)
        return
    yield Operator(depth, text, (node, *codegen))
    for child in _all(node.children()):
        yield from _operators(child, depth + 1, seen)
    if text.startswith("InMemoryTableScan"):
        cached = node.relation().cachedPlan()
        if _is_new(cached, seen):
            yield from _operators(cached, depth + 1, seen)


def _unwrap(node: Any, wrapper: str) -> tuple[Any, ...]:
    """Return the node inside of a wrapper, and the wrapper itself if it is a code generation stage."""
    if wrapper == ADAPTIVE:
        return (node.executedPlan(),)
    if wrapper.endswith("QueryStage"):
        return (node.plan(),)
    inner = node.children().head()
    return (inner, node) if wrapper == "WholeStageCodegen" else (inner,)


def _is_new(cached: Any, seen: set[int]) -> bool:
    before = len(seen)
    seen.add(cached.id())
    return len(seen) > before


def _all(nodes: Any) -> Iterator[Any]:
    return (nodes.apply(number) for number in range(nodes.size()))


def _line(operator: Operator) -> str:
    """Return the text of an operator; of a scan with the table's folder and the untruncated schema."""
    if operator.name != "FileScan":
        return operator.text
    scan = operator.nodes[0]
    schema = scan.requiredSchema().catalogString()
    paths = scan.relation().location().rootPaths()
    folder = table_folder(paths.head().toString()) if paths.nonEmpty() else "*"
    named = operator.text.replace("FileScan", f"FileScan {folder}", 1)
    return READ_SCHEMA.sub(lambda _: f"ReadSchema: {schema}", named)
