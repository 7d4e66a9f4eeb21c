"""List functions and classes that nothing in the lake uses, with a confidence (`unused`).

    unused(reader, kind="function")
    # shop.waste._forgotten   FUNCTION  shop/waste.py:12  0.9  not named    its name does not occur elsewhere
    # note: not listed: 41 entry points (30 test, 11 http), 12 below confidence 0.7 (9 public, 3 unresolved)

A use is an edge that arrives at the definition, or at the variable it is bound to, from outside of its own
text: recursion does not count. Also used are overrides of a used method, since they may run in its place;
definitions that another repository of the lake calls by their qualified name; and names in `__all__`.
Lambdas, dunder names, stubs, signatures (abstract, overloaded, of protocols, for type checkers) are never
listed, test code only with `include_tests`. Definitions inside of a listed one are left out, unless they
have a higher confidence.

Dead code can only be detected as far as names can be followed:

| confidence | `method` | |
|---|---|---|
| 0.9 | `not named` | private, and its name does not occur elsewhere in its repository |
| 0.7 | `namesake` | private; all occurrences of its name refer to other definitions |
| 0.7 | `computed` | private; its file, or one of its class hierarchy, has `getattr(x, y)` |
| 0.7 | `program` | a function or class of a program: its package answers requests and exports no names |
| 0.5 | `public` | users of the package may use it: its name is public, or re-exported under a public one |
| 0.5 | `member` | a public method of a private class that is used: external code may get its objects |
| 0.3 | `unresolved`, `uncertain` | its name is an attribute that is unresolved, or has a low confidence |
| 0.3 | `unparsed` | a file that could not be parsed has its name, or is its own |
| 0.3 | `text` | a string is its name, begins it (`getattr(x, "as_" + y)`), or is code that calls it |
| 0.3 | `computed` | a method, and its class hierarchy has `getattr(self, x)` |
| 0.3 | `loaded` | public; its module has `globals()` or the like, or a computed name or string imports it |
| 0.3 | `decorated`, `hooked` | a decorator, a metaclass or `__init_subclass__` may have registered it |
| 0.3 | `base outside`, `overridden`, `overrides` | external code, or that of a used base, may call it |
| 0 | `entry point` | a framework calls it, by a rule of `catalog.entry_points` |

A definition is private if its name, or one around it, begins with `_`, or if it is inside of a function,
unless it is re-exported. By default rows have a confidence of at least 0.7, and a note counts the others.

Tests: `tests/unit/query/test_verb_unused.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from codeanatomy.catalog.entry_points import match_any
from codeanatomy.errors import UsageError
from codeanatomy.query.answers import COLUMNS as SHARED
from codeanatomy.query.engines.statements import InlineRows, Reader, nodes
from codeanatomy.query.verbs.result import VerbResult, query_result
from codeanatomy.query.walks.entry_points import EntryPoint, by_definition, read_entry_points
from codeanatomy.query.walks.usage import DEFAULT_CONFIDENCE, Definition, UsageContext
from codeanatomy.query.walks.usage_facts import read_stubs, read_usage_context, unused_candidates

COLUMNS = (
    "symbol",
    "kind",
    "subkind",
    "path",
    "line",
    "source",
    "confidence",
    "method",
    "detail",
    "repo_id",
    "symbol_id",
)
KINDS = ("FUNCTION", "CLASS")
VERDICT_COLUMNS = tuple(SHARED[name] for name in ("symbol_id", "confidence", "method", "detail"))
NOTES = ("uses from templates, documents, configuration or other programs are not seen",)
ENTRY_POINT = "entry point"
# Verdicts because a call site could not be resolved: whether it is used is not known.
UNKNOWN = ("unresolved", "uncertain")


class UnusedVerdict(Struct, frozen=True):
    """The confidence that nothing uses a definition, and the reason."""

    confidence: float
    method: str
    detail: str


def unused(
    reader: Reader,
    *,
    kind: str | None = None,
    min_confidence: float = DEFAULT_CONFIDENCE,
    path: str | None = None,
    include_tests: bool = False,
    repo_id: str | None = None,
) -> VerbResult:
    """List functions and classes that nothing uses, the highest confidence first."""
    wanted = kind.upper() if kind else None
    if wanted and wanted not in KINDS:
        raise UsageError(
            f"--kind must be function or class, got {kind!r}", "use --kind function or --kind class"
        )
    if not 0 <= min_confidence <= 1:
        raise UsageError(f"--min-confidence must be 0-1, got {min_confidence}", "use 0.7, or 0.3 for more")
    entries = read_entry_points(reader, repo_id)
    of_definitions = by_definition(entries)
    candidates = unused_candidates(reader, repo_id)
    context = read_usage_context(reader, candidates, entries, repo_id)
    stubs = read_stubs(reader, candidates)
    judged = []
    for each in candidates:
        if each.node_id in stubs or (each.is_test and not include_tests):
            continue
        verdict = judge(each, context, of_definitions.get(each.node_id))
        if verdict:
            judged.append((each, verdict))
    in_path = match_any((path, f"{path.rstrip('/')}/*")) if path else match_any(("*",))
    chosen = [
        (each, verdict)
        for each, verdict in outermost(judged)
        if wanted in (None, each.kind) and in_path.fullmatch(each.path)
    ]
    rows = [
        (each.node_id, verdict.confidence, verdict.method, verdict.detail)
        for each, verdict in chosen
        if verdict.confidence >= min_confidence
    ]
    held = [(each, verdict) for each, verdict in chosen if verdict.confidence < min_confidence]
    return query_result(
        COLUMNS,
        "SELECT n.qualname AS symbol, n.node_kind AS kind, n.subkind, n.path, n.line,"
        " CAST(NULL AS STRING) AS source, h.confidence, h.method,"
        " h.detail, n.repo_id, n.node_id AS symbol_id FROM h JOIN n ON n.node_id = h.symbol_id",
        {"h": InlineRows(VERDICT_COLUMNS, rows), "n": nodes(KINDS, repo_id)},
        order=("confidence DESC", "repo_id", "path", "line", "symbol", "symbol_id"),
        notes=(*_held_notes(held, of_definitions), *NOTES),
        unknown=any(verdict.method in UNKNOWN for _, verdict in held),
    )


def _held_notes(
    held: Sequence[tuple[Definition, UnusedVerdict]], entries: Mapping[str, EntryPoint]
) -> Iterator[str]:
    """Yield what is not listed, and why."""
    roots = Counter(entries[each.node_id].kind for each, verdict in held if verdict.method == ENTRY_POINT)
    reasons = Counter(verdict.method for _, verdict in held if verdict.method != ENTRY_POINT)
    if roots:
        counts = f"{roots.total():,} entry points ({_counts(roots)})"
        yield f"not listed: {counts}; `find --entry-points` lists them"
    if reasons:
        yield f"not listed: {reasons.total():,} that may be used ({_counts(reasons)}): --min-confidence 0.3"
    if unknown := sum(reasons[method] for method in UNKNOWN):
        yield f"unknown whether {unknown:,} of these are used: call sites of their names are not resolved"


def _counts(counter: Counter[str]) -> str:
    ordered = sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count:,} {name}" for name, count in ordered)


def judge(each: Definition, context: UsageContext, entry: EntryPoint | None = None) -> UnusedVerdict | None:
    """Return the confidence that nothing uses a candidate; None if it is known to be used, or is no code."""
    if context.is_exported(each) or context.overrides_used(each) or (entry and entry.is_declaration):
        return None
    if entry:
        return UnusedVerdict(
            0.0, ENTRY_POINT, f"{entry.kind} {entry.name} of {entry.framework}: {entry.evidence}"
        )
    possible_use = _possible_use(each, context)
    if possible_use:
        return UnusedVerdict(0.3, *possible_use)
    if not context.is_private(each):
        if place := context.loading_place(each):
            return UnusedVerdict(0.3, "loaded", f"modules or their names are looked up in {place}")
        if context.is_program_part(each):
            return UnusedVerdict(
                0.7, "program", "nothing in the lake uses it, and its package exports no names"
            )
        return UnusedVerdict(0.5, "public", "nothing in the lake uses it; users of the package may")
    if context.is_public_member(each):
        return UnusedVerdict(0.5, "member", "its class is used, and external code may get its objects")
    if place := context.namesakes.get(each.node_id):
        return UnusedVerdict(
            0.7, "namesake", f"occurrences of its name, such as {place}, refer to other definitions"
        )
    if place := context.computed_names_place(each):
        return UnusedVerdict(0.7, "computed", f"attribute names are computed in {place}")
    return UnusedVerdict(0.9, "not named", "its name does not occur elsewhere")


def _possible_use(each: Definition, context: UsageContext) -> tuple[str, str] | None:
    """Return the method and detail of a possible use that no edge shows."""
    if place := context.unparsed_place(each):
        return "unparsed", f"{place} has its name and could not be parsed"
    if decorator := context.decorators.get(each.node_id):
        return "decorated", f"@{decorator} may have registered it"
    if hook := context.hook(each):
        return "hooked", f"{hook} runs when it is created and may have registered it"
    if base := context.external_base(each):
        return "base outside", f"{base} may call it" if each.kind == "FUNCTION" else f"{base} may register it"
    if other := context.overridden_by_used(each):
        return "overridden", f"{other} overrides it and is used"
    if other := context.overrides_maybe_used(each, lambda base: _possible_use(base, context) is not None):
        return "overrides", f"{other}, which it overrides, may be used"
    return _possible_use_by_name(each, context)


def _possible_use_by_name(each: Definition, context: UsageContext) -> tuple[str, str] | None:
    """Return the method and detail of an occurrence of its name that cannot be followed."""
    if place := context.unresolved_place(each):
        return "unresolved", f"{place} has its name and could not be resolved"
    if place := context.uncertain_place(each):
        return "uncertain", f"{place} has its name and was resolved with low confidence"
    if place := context.outside_place(each):
        return "uncertain", f"{place} has its name, of an object from outside"
    if place := context.text_place(each):
        return "text", f"its name is a string in {place}"
    if place := context.prefix_place(each):
        return "text", f"its name begins with a string in {place}, where attribute names are computed"
    if place := context.computed_on_self_place(each):
        return "computed", f"attribute names of its class are computed in {place}"
    return None


def outermost(
    judged: Sequence[tuple[Definition, UnusedVerdict]],
) -> list[tuple[Definition, UnusedVerdict]]:
    """Drop candidates inside of another one of at least the same confidence; `judged` is in file order."""
    kept: list[tuple[Definition, UnusedVerdict]] = []
    enclosing: list[tuple[Definition, UnusedVerdict]] = []
    for each, verdict in judged:
        while enclosing and not _is_inside(each, enclosing[-1][0]):
            enclosing.pop()
        if not any(outer.confidence >= verdict.confidence for _, outer in enclosing):
            kept.append((each, verdict))
        enclosing.append((each, verdict))
    return kept


def _is_inside(each: Definition, outer: Definition) -> bool:
    return outer.repo_id == each.repo_id and outer.contains(each.path, each.bstart)
