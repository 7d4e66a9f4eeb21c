"""Compare what two runs have cost, and what may be the reason: plans, settings, versions and sources.

    compared = compare_runs("lake", "20260501T12", "20260502T09")
    compared.costs[0]        # CostDifference("rule", "graph", "rows_of_files", seconds_a=4.1, ...)
    compared.frames[0]       # FrameDifference("graph", "graph rows", plan="changed", ...)
    compared.operators[0]    # OperatorDifference("graph", "graph rows", "added", "Sort", ...)
    compared.facts[0]        # FactDifference("witness_versions.libcst_files_v1", "1.8.2/4", "1.8.6/4")

Costs are those of `run_costs`; of runs that have not recorded them, those of the manifest and of
`delta_mutations`, which have neither extractors nor rules. Frames are paired by step, name and number, and
the operators of two plans as `diff` pairs lines; one whose line is the same is listed if its time differs.
Facts are the columns of the manifest that describe what a run was made with, so a new column of that kind is
compared without a change here. No JVM.

Tests: `tests/unit/query/test_run_comparison.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, TypeVar

from msgspec import Struct, structs

from codeanatomy.delta.read.light import light_table
from codeanatomy.errors import TableMissing, UsageError
from codeanatomy.lake.snapshot import RecordedRun, find_run, recorded_runs
from codeanatomy.query.status.activity import STEP_SUFFIX
from codeanatomy.query.status.run_costs import table_costs
from codeanatomy.query.status.run_reports import ARTIFACTS, STEP_OF, RunSummary, summarize_run

COSTS = "run_costs"
SCOPES = ("step", "part", "extractor", "rule", "table")
DEFAULT_LINES = 10
# Columns of the manifest that differ between any two runs, or describe what a run has made and not from what.
OUTCOME_FIELDS = frozenset(
    {
        *("run_id", "repo_id", "started_at", "finished_at", "error", "trace_id", "step_ms", "artifact_ids"),
        *("input_pins", "output_pins", "row_counts", "error_counts", "change_windows", "plan_fingerprints"),
    }
)
# Columns that each repository of a run has for itself; the others are those of the run.
REPOSITORY_FIELDS = ("status", "mode", "repo_root", "git_commit", "source_digest")

# Facts that show that something differs, and not what.
HASHES = re.compile("hash$|fingerprints|digest")

Change = Literal["same", "changed", "added", "removed"]
# Scope, step and name of a cost.
CostKey = tuple[str, str, str]
# Step, name and number of a frame among those of that name.
FrameKey = tuple[str, str, int]
Line = TypeVar("Line")


class CostDifference(Struct, frozen=True):
    """What a part, step, extractor, rule or table has cost in two runs; None if unknown."""

    scope: str
    # Empty for a part of the run.
    step: str
    name: str
    seconds_a: float | None = None
    seconds_b: float | None = None
    rows_a: int | None = None
    rows_b: int | None = None
    bytes_a: int | None = None
    bytes_b: int | None = None

    @property
    def seconds(self) -> float:
        """How much longer the second run took."""
        return (self.seconds_b or 0) - (self.seconds_a or 0)


class FrameDifference(Struct, frozen=True):
    """A frame of two runs; `added` is only in the second, `removed` only in the first."""

    step: str
    frame: str
    plan: Change
    seconds_a: float | None
    seconds_b: float | None
    plan_hash_a: str | None
    plan_hash_b: str | None


class OperatorDifference(Struct, frozen=True):
    """An operator that differs in plan or in time, with its metrics in each run."""

    step: str
    frame: str
    change: Change
    operator: str
    # Its line in the plan of each run; None if it has none.
    line_a: str | None
    line_b: str | None
    metrics_a: dict[str, int] = {}
    metrics_b: dict[str, int] = {}


class FactDifference(Struct, frozen=True):
    """A setting, version or source that differs; None if a run has none."""

    name: str
    a: str | None
    b: str | None


class RunComparison(Struct, frozen=True):
    """Two runs side by side; costs by scope, then the largest difference of seconds first."""

    a: RunSummary
    b: RunSummary
    costs: tuple[CostDifference, ...]
    frames: tuple[FrameDifference, ...]
    operators: tuple[OperatorDifference, ...]
    facts: tuple[FactDifference, ...]
    # What could not be compared, in English.
    notes: tuple[str, ...]
    # Number of lines left out: by scope of costs, of frames, operators and facts.
    cut: dict[str, int]


class _Frame(Struct, frozen=True):
    """A recorded frame."""

    seconds: float | None
    plan_hash: str | None
    # Lines of the physical plan, and metrics by number of the line.
    lines: tuple[str, ...]
    metrics: dict[int, dict[str, int]]


def compare_runs(
    root: str, run_a: str, run_b: str = "latest", *, limit: int | None = DEFAULT_LINES
) -> RunComparison:
    """Compare two runs, given by their ids or prefixes of them; at most `limit` lines of each kind."""
    runs = recorded_runs(root)
    a, b = find_run(runs, run_a), find_run(runs, run_b)
    if a.run_id == b.run_id:
        raise UsageError(f"{run_a!r} and {run_b!r} are the same run", "name two runs of `codeanatomy runs`")
    cut: dict[str, int] = {}

    def take(kind: str, lines: Sequence[Line]) -> Sequence[Line]:
        if limit is not None and len(lines) > limit:
            cut[kind] = len(lines) - limit
        return lines[:limit]

    notes: list[str] = []
    costs = _compare_costs(_costs(root, a, notes), _costs(root, b, notes))
    frames_a, frames_b = _frames(root, a.run_id), _frames(root, b.run_id)
    frames = _compare_frames(frames_a, frames_b)
    operators = [
        each
        for key in frames
        if key in frames_a and key in frames_b
        for each in _compare_operators(key, frames_a[key], frames_b[key])
    ]
    return RunComparison(
        summarize_run(a),
        summarize_run(b),
        tuple(line for scope in SCOPES for line in take(scope, costs.get(scope, []))),
        tuple(take("frames", sorted(frames.values(), key=_by_seconds))),
        tuple(take("operators", sorted(_without_repeated(operators), key=_by_time))),
        tuple(take("facts", list(_compare_facts(a, b)))),
        tuple(notes),
        cut,
    )


def _costs(root: str, run: RecordedRun, notes: list[str]) -> dict[CostKey, dict[str, Any]]:
    """Return the costs of a run, with those that only the manifest has."""
    columns = ["scope", "step_name", "name", "seconds", "rows", "bytes"]
    rows = _read(root, COSTS, columns, run.run_id)
    costs = {(row["scope"], row["step_name"] or "", row["name"]): row for row in rows}
    if not costs:
        notes.append(
            f"run {run.run_id} has not recorded its costs: only its steps and tables are compared;"
            " build again to compare extractors and rules"
        )
        for name, each in table_costs(root, run.run_id).items():
            figures = {"seconds": each.milliseconds / 1000, "rows": each.rows, "bytes": each.bytes}
            costs["table", STEP_OF.get(name, ""), name] = figures
    for name, milliseconds in run.rows[0].step_ms.items():
        step = name.removesuffix(STEP_SUFFIX)
        key = ("part", "", name) if step == name else ("step", step, step)
        costs.setdefault(key, {"seconds": milliseconds / 1000})
    return costs


def _compare_costs(
    a: Mapping[CostKey, Mapping[str, Any]], b: Mapping[CostKey, Mapping[str, Any]]
) -> dict[str, list[CostDifference]]:
    """Return the costs of two runs by scope, the largest difference first."""
    lines: dict[str, list[CostDifference]] = {}
    for key in dict.fromkeys((*a, *b)):
        figures: dict[str, Any] = {
            f"{name}_{run}": costs.get(key, {}).get(name)
            for run, costs in (("a", a), ("b", b))
            for name in ("seconds", "rows", "bytes")
        }
        lines.setdefault(key[0], []).append(CostDifference(*key, **figures))
    return {
        scope: sorted(each, key=lambda line: (-abs(line.seconds), line.step, line.name))
        for scope, each in lines.items()
    }


def _frames(root: str, run_id: str) -> dict[FrameKey, _Frame]:
    """Return the recorded frames of a run."""
    columns = ["step_name", "frame_no", "frame_name", "plan_hash", "physical_plan", "operator_metrics"]
    rows = _read(root, ARTIFACTS, [*columns, "duration_ms", "event_no"], run_id)
    frames: dict[FrameKey, _Frame] = {}
    numbered = [row for row in rows if row["frame_no"] is not None]
    for row in sorted(numbered, key=lambda row: row["event_no"]):
        step, name = row["step_name"], row["frame_name"]
        number = sum(key[:2] == (step, name) for key in frames)
        metrics: dict[int, dict[str, int]] = {}
        for each in row["operator_metrics"] or ():
            metrics.setdefault(each["operator_no"], {})[each["metric"]] = each["value"]
        milliseconds = row["duration_ms"]
        frames[step, name, number] = _Frame(
            None if milliseconds is None else milliseconds / 1000,
            row["plan_hash"],
            tuple((row["physical_plan"] or "").splitlines()),
            metrics,
        )
    return frames


def _compare_frames(
    a: Mapping[FrameKey, _Frame], b: Mapping[FrameKey, _Frame]
) -> dict[FrameKey, FrameDifference]:
    frames = {}
    for key in dict.fromkeys((*a, *b)):
        one, other = a.get(key), b.get(key)
        plan: Change = "removed" if other is None else "added"
        if one is not None and other is not None:
            plan = "same" if one.plan_hash == other.plan_hash else "changed"
        figures = (getattr(each, name, None) for name in ("seconds", "plan_hash") for each in (one, other))
        frames[key] = FrameDifference(key[0], _frame_name(key), plan, *figures)
    return frames


def _frame_name(key: FrameKey) -> str:
    """Name a frame; with its number if the step has several of the name.

    >>> _frame_name(("graph", "shared rows", 0)), _frame_name(("graph", "shared rows", 1))
    ('shared rows', 'shared rows (2)')
    """
    _, name, number = key
    return f"{name} ({number + 1})" if number else name


def _by_seconds(frame: FrameDifference) -> tuple[bool, float]:
    """Order frames: those whose plans differ first, then by the difference of seconds."""
    return frame.plan == "same", -abs((frame.seconds_b or 0) - (frame.seconds_a or 0))


def _compare_operators(key: FrameKey, a: _Frame, b: _Frame) -> Iterator[OperatorDifference]:
    """Yield the operators that differ, or took another time, in the order of the plans."""
    # An operator that moves is the same, so depth is left out.
    lines_a, lines_b = ([line.strip() for line in each.lines] for each in (a, b))
    matcher = SequenceMatcher(None, lines_a, lines_b, autojunk=False)
    for change, from_a, to_a, from_b, to_b in matcher.get_opcodes():
        if change == "equal":
            for number_a, number_b in zip(range(from_a, to_a), range(from_b, to_b), strict=True):
                same = _operator(key, (a, lines_a, number_a), (b, lines_b, number_b))
                if _milliseconds(same.metrics_a) != _milliseconds(same.metrics_b):
                    yield same
        else:
            pairs = _pair(lines_a, range(from_a, to_a), lines_b, range(from_b, to_b))
            for one, other in pairs:
                yield _operator(key, (a, lines_a, one), (b, lines_b, other))


def _without_repeated(operators: Iterable[OperatorDifference]) -> Iterator[OperatorDifference]:
    """Leave out operators of an earlier frame, which the plan of a later one repeats."""
    seen = set()
    for each in operators:
        metrics = (*each.metrics_a.items(), None, *each.metrics_b.items())
        key = (each.line_a, each.line_b, metrics)
        if each.change in ("added", "removed") or key not in seen:
            yield each
        seen.add(key)


def _by_time(operator: OperatorDifference) -> tuple[bool, float]:
    """Order operators: those that differ as in the plans, then the others by the difference of time."""
    if operator.change != "same":
        return False, 0.0
    return True, -abs(_milliseconds(operator.metrics_b) - _milliseconds(operator.metrics_a))


def _milliseconds(metrics: Mapping[str, int]) -> int:
    """Return the longest of the times among the metrics of an operator: they overlap.

    >>> _milliseconds({"output_rows": 9000, "sort_time_ms": 20, "shuffle_write_time_ns": 31_000_000})
    31
    """
    times = {"_ms": 1, "_ns": 1_000_000}
    return max(
        (value // times[name[-3:]] for name, value in metrics.items() if name[-3:] in times), default=0
    )


def _pair(
    lines_a: Sequence[str], a: Sequence[int], lines_b: Sequence[str], b: Sequence[int]
) -> Iterator[tuple[int | None, int | None]]:
    """Pair lines of two plans whose operators have the same name, in order; the others have no partner."""
    names_a = [lines_a[number].split()[0] for number in a]
    names_b = [lines_b[number].split()[0] for number in b]
    matcher = SequenceMatcher(None, names_a, names_b, autojunk=False)
    for change, from_a, to_a, from_b, to_b in matcher.get_opcodes():
        if change == "equal":
            yield from zip(a[from_a:to_a], b[from_b:to_b], strict=True)
        else:
            yield from ((number, None) for number in a[from_a:to_a])
            yield from ((None, number) for number in b[from_b:to_b])


def _operator(
    key: FrameKey,
    a: tuple[_Frame, Sequence[str], int | None],
    b: tuple[_Frame, Sequence[str], int | None],
) -> OperatorDifference:
    (frame_a, lines_a, number_a), (frame_b, lines_b, number_b) = a, b
    line_a = None if number_a is None else lines_a[number_a]
    line_b = None if number_b is None else lines_b[number_b]
    change: Change = "same" if line_a == line_b else "changed"
    if line_a is None or line_b is None:
        change = "added" if line_a is None else "removed"
    return OperatorDifference(
        key[0],
        _frame_name(key),
        change,
        (line_a or line_b or "").split()[0],
        line_a,
        line_b,
        {} if number_a is None else frame_a.metrics.get(number_a, {}),
        {} if number_b is None else frame_b.metrics.get(number_b, {}),
    )


def _compare_facts(a: RecordedRun, b: RecordedRun) -> Iterator[FactDifference]:
    """Yield the facts of the runs that differ, then those of their repositories; hashes come last."""
    facts_a, facts_b = dict(_run_facts(a)), dict(_run_facts(b))
    names = dict.fromkeys((*facts_a, *facts_b))
    fields = [*dict.fromkeys(name.partition(".")[0] for name in names)]
    # Entries of a map that only the second run has stay with the others.
    ordered = sorted(names, key=lambda name: fields.index(name.partition(".")[0]))
    for name in sorted(ordered, key=lambda name: bool(HASHES.search(name))):
        one, other = facts_a.get(name), facts_b.get(name)
        if one != other:
            yield FactDifference(name, one, other)


def _run_facts(run: RecordedRun) -> Iterator[tuple[str, str | None]]:
    for name, value in structs.asdict(run.rows[0]).items():
        if name not in OUTCOME_FIELDS and name not in REPOSITORY_FIELDS:
            yield from _flat_facts(name, value)
    for row in sorted(run.rows, key=lambda row: row.repo_id):
        for name in REPOSITORY_FIELDS:
            yield f"{name} of {row.repo_id}", _fact_text(getattr(row, name))


def _flat_facts(name: str, value: object) -> Iterator[tuple[str, str | None]]:
    """Yield a fact, or those of a map by key."""
    if isinstance(value, Mapping):
        yield from ((f"{name}.{key}", _fact_text(value[key])) for key in sorted(value))
    else:
        yield name, _fact_text(value)


def _fact_text(value: object) -> str | None:
    return None if value is None else str(value)


def _read(root: str, name: str, columns: Sequence[str], run_id: str) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = light_table(root, name, columns, {"run_id": [run_id]}).to_pylist()
    except TableMissing:
        return []
    return rows


# Columns of the lines of a comparison as one list.
LINE_COLUMNS = (
    *("kind", "step", "name", "seconds_a", "seconds_b", "rows_a", "rows_b", "bytes_a", "bytes_b"),
    *("change", "a", "b"),
)


def comparison_lines(compared: RunComparison) -> list[dict[str, Any]]:
    """Return a comparison as rows of one shape: costs, frames, operators and facts."""
    lines: list[dict[str, Any]] = [
        {"kind": each.scope, **{name: getattr(each, name) for name in LINE_COLUMNS[1:9]}}
        for each in compared.costs
    ]
    for frame in compared.frames:
        seconds = {"seconds_a": frame.seconds_a, "seconds_b": frame.seconds_b}
        hashes = {"a": frame.plan_hash_a, "b": frame.plan_hash_b}
        key = {"kind": "frame", "step": frame.step, "name": frame.frame, "change": frame.plan}
        lines.append({**key, **seconds, **hashes})
    lines += [
        {
            "kind": "operator",
            "step": each.step,
            "name": each.frame,
            "rows_a": each.metrics_a.get("output_rows"),
            "rows_b": each.metrics_b.get("output_rows"),
            "change": each.change,
            "a": each.line_a,
            "b": each.line_b,
        }
        for each in compared.operators
    ]
    lines += [{"kind": "fact", "name": each.name, "a": each.a, "b": each.b} for each in compared.facts]
    return [{name: line.get(name) for name in LINE_COLUMNS} for line in lines]
