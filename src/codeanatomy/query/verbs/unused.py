"""List functions and classes that nothing in the lake uses, with a confidence (`unused`).

    unused(reader, kind="function")
    # shop.waste._forgotten   FUNCTION  shop/waste.py:12  0.9  not named    its name does not occur elsewhere
    # shop.waste.Bin.empty    FUNCTION  shop/waste.py:31  0.3  unresolved   shop/a.py:7 has its name and ...

A use is an edge that arrives at the definition, or at the variable it is bound to, from outside of its own
text: recursion does not count. Also used are overrides of a used method, since they may run in its place;
definitions that another repository of the lake calls by their qualified name; and names in `__all__`.
Lambdas, dunder names, stubs and test code are never listed. Definitions inside of a listed one are left out,
unless they have a higher confidence.

Dead code can only be detected as far as names can be followed:

| confidence | `method` | |
|---|---|---|
| 0.9 | `not named` | private, and its name does not occur elsewhere in its repository |
| 0.7 | `namesake` | private; all occurrences of its name refer to other definitions |
| 0.7 | `computed` | private; its file, or one of its class hierarchy, has `getattr(x, y)` |
| 0.5 | `public` | users of the package may use it |
| 0.3 | `unresolved`, `uncertain` | its name is an attribute that is unresolved, or has a low confidence |
| 0.3 | `text` | its name, or the beginning of it, is a string literal: `getattr(x, "as_" + y)` |
| 0.3 | `computed` | a method, and its class hierarchy has `getattr(self, x)` |
| 0.3 | `decorated`, `hooked` | a decorator, a metaclass or `__init_subclass__` may have registered it |
| 0.3 | `base outside`, `overridden`, `overrides` | external code, or that of a used base, may call it |

A definition is private if its name, or one around it, begins with `_`, or if it is inside of a function.

Tests: `tests/unit/query/test_verb_unused.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from codeanatomy.errors import UsageError
from codeanatomy.query.answers import COLUMNS as SHARED
from codeanatomy.query.engines.statements import InlineRows, Reader, nodes
from codeanatomy.query.verbs.result import VerbResult, query_result
from codeanatomy.query.walks.usage import UnusedCandidate, UsageContext
from codeanatomy.query.walks.usage_facts import read_usage_context, unused_candidates

COLUMNS = (
    "symbol",
    "kind",
    "subkind",
    "path",
    "line",
    "confidence",
    "method",
    "detail",
    "repo_id",
    "symbol_id",
)
KINDS = ("FUNCTION", "CLASS")
VERDICT_COLUMNS = tuple(SHARED[name] for name in ("symbol_id", "confidence", "method", "detail"))
NOTES = (
    "uses by name from configuration, templates, entry points or other programs are not seen",
    "0.9: private and not named, 0.7: private, 0.5: public, 0.3: may be used in ways that are not followed",
)


class UnusedVerdict(Struct, frozen=True):
    """The confidence that nothing uses a definition, and the reason."""

    confidence: float
    method: str
    detail: str


def unused(reader: Reader, *, kind: str | None = None, repo_id: str | None = None) -> VerbResult:
    """List functions and classes that nothing uses, the highest confidence first."""
    wanted = kind.upper() if kind else None
    if wanted and wanted not in KINDS:
        raise UsageError(
            f"--kind must be function or class, got {kind!r}", "use --kind function or --kind class"
        )
    candidates = unused_candidates(reader, repo_id)
    context = read_usage_context(reader, candidates, repo_id)
    judged = [(each, verdict) for each in candidates if (verdict := judge(each, context))]
    rows = [
        (each.node_id, verdict.confidence, verdict.method, verdict.detail)
        for each, verdict in outermost(judged)
        if wanted in (None, each.kind)
    ]
    return query_result(
        COLUMNS,
        "SELECT n.qualname AS symbol, n.node_kind AS kind, n.subkind, n.path, n.line, h.confidence, h.method,"
        " h.detail, n.repo_id, n.node_id AS symbol_id FROM h JOIN n ON n.node_id = h.symbol_id",
        {"h": InlineRows(VERDICT_COLUMNS, rows), "n": nodes(KINDS, repo_id)},
        order=("confidence DESC", "repo_id", "path", "line", "symbol", "symbol_id"),
        notes=NOTES,
    )


def judge(each: UnusedCandidate, context: UsageContext) -> UnusedVerdict | None:
    """Return the confidence that nothing uses a candidate; None if it is known to be used."""
    if each.is_test or context.is_exported(each) or context.overrides_used(each):
        return None
    possible_use = _possible_use(each, context)
    if possible_use:
        return UnusedVerdict(0.3, *possible_use)
    if not context.is_private(each):
        return UnusedVerdict(0.5, "public", "nothing in the lake uses it; users of the package may")
    if place := context.namesakes.get(each.node_id):
        return UnusedVerdict(
            0.7, "namesake", f"occurrences of its name, such as {place}, refer to other definitions"
        )
    if place := context.computed_names_place(each):
        return UnusedVerdict(0.7, "computed", f"attribute names are computed in {place}")
    return UnusedVerdict(0.9, "not named", "its name does not occur elsewhere")


def _possible_use(each: UnusedCandidate, context: UsageContext) -> tuple[str, str] | None:
    """Return the method and detail of a possible use that no edge shows."""
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


def _possible_use_by_name(each: UnusedCandidate, context: UsageContext) -> tuple[str, str] | None:
    """Return the method and detail of an occurrence of its name that cannot be followed."""
    if place := context.unresolved_place(each):
        return "unresolved", f"{place} has its name and could not be resolved"
    if place := context.uncertain_place(each):
        return "uncertain", f"{place} has its name and was resolved with low confidence"
    if place := context.text_place(each):
        return "text", f"its name is a string in {place}"
    if place := context.prefix_place(each):
        return "text", f"its name begins with a string in {place}, where attribute names are computed"
    if place := context.computed_on_self_place(each):
        return "computed", f"attribute names of its class are computed in {place}"
    return None


def outermost(
    judged: Sequence[tuple[UnusedCandidate, UnusedVerdict]],
) -> list[tuple[UnusedCandidate, UnusedVerdict]]:
    """Drop candidates inside of another one of at least the same confidence; `judged` is in file order."""
    kept: list[tuple[UnusedCandidate, UnusedVerdict]] = []
    enclosing: list[tuple[UnusedCandidate, UnusedVerdict]] = []
    for each, verdict in judged:
        while enclosing and not _is_inside(each, enclosing[-1][0]):
            enclosing.pop()
        if not any(outer.confidence >= verdict.confidence for _, outer in enclosing):
            kept.append((each, verdict))
        enclosing.append((each, verdict))
    return kept


def _is_inside(each: UnusedCandidate, outer: UnusedCandidate) -> bool:
    return outer.repo_id == each.repo_id and outer.contains(each.path, each.bstart)
