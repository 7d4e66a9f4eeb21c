"""`unused`: functions and classes that nothing in the lake uses, and how sure that is.

    unused(reader, kind="function")
    # shop.waste._forgotten   FUNCTION  shop/waste.py:12  0.9  not named    nothing says its name
    # shop.waste.Bin.empty    FUNCTION  shop/waste.py:31  0.3  unresolved   shop/a.py:7 says its name, ...

A use is an edge that arrives at the definition, or at the name it is bound to, from outside of its own text:
recursion is none. What overrides a method that is used is used, since the base may be called with it; so is
what another repository of the lake calls by its qualified name, and what `__all__` lists. Never listed are
lambdas, dunder names, stubs and test code. What is inside of a listed definition is left out, unless it is
surer.

Whether something is dead can only be told as far as names can be followed:

| confidence | `method` | |
|---|---|---|
| 0.9 | `not named` | private, and nothing in its repository says its name |
| 0.7 | `namesake` | private; whatever says its name means something else |
| 0.7 | `computed` | private; its file, or one of its class's family, has `getattr(x, y)` |
| 0.5 | `public` | who uses the package may use it |
| 0.3 | `unresolved`, `uncertain` | its name is an attribute of something that is not known, or not for sure |
| 0.3 | `text` | its name, or the beginning of it, is a text: `getattr(x, "as_" + y)` |
| 0.3 | `computed` | a method, and its class, or one of the family, has `getattr(self, x)` |
| 0.3 | `decorated`, `hooked` | a decorator, a metaclass or `__init_subclass__` may have kept it |
| 0.3 | `base outside`, `overridden`, `overrides` | code outside, or of a base that may be live, may call it |

Private is a name, or one around it, that begins with `_`, and whatever is inside of a function. Tests:
`tests/unit/query/test_verb_unused.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from codeanatomy.errors import UsageError
from codeanatomy.query.answers import COLUMNS as SHARED
from codeanatomy.query.engines.statements import Held, Reader, nodes
from codeanatomy.query.verbs.result import Found, found
from codeanatomy.query.walks.usage import Definition, Surroundings
from codeanatomy.query.walks.usage_facts import surroundings, unused_definitions

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
JUDGED = tuple(SHARED[name] for name in ("symbol_id", "confidence", "method", "detail"))
NOTES = (
    "what is used by name from configuration, templates, entry points or other programs is not seen",
    "0.9: private and not named, 0.7: private, 0.5: public, 0.3: may be used in ways that are not followed",
)


class Verdict(Struct, frozen=True):
    """How sure it is that nothing uses a definition, and why."""

    confidence: float
    method: str
    detail: str


def unused(reader: Reader, *, kind: str | None = None, repo_id: str | None = None) -> Found:
    """Functions and classes that nothing uses, the surest first."""
    wanted = kind.upper() if kind else None
    if wanted and wanted not in KINDS:
        raise UsageError(f"{kind!r} is no kind that may be unused", "kinds: function, class")
    definitions = unused_definitions(reader, repo_id)
    around = surroundings(reader, definitions, repo_id)
    judged = [(each, verdict) for each in definitions if (verdict := judge(each, around))]
    rows = [
        (each.node_id, verdict.confidence, verdict.method, verdict.detail)
        for each, verdict in outermost(judged)
        if wanted in (None, each.kind)
    ]
    return found(
        COLUMNS,
        "SELECT n.qualname AS symbol, n.node_kind AS kind, n.subkind, n.path, n.line, h.confidence, h.method,"
        " h.detail, n.repo_id, n.node_id AS symbol_id FROM h JOIN n ON n.node_id = h.symbol_id",
        {"h": Held(JUDGED, rows), "n": nodes(KINDS, repo_id)},
        order=("confidence DESC", "repo_id", "path", "line", "symbol", "symbol_id"),
        notes=NOTES,
    )


def judge(each: Definition, around: Surroundings) -> Verdict | None:
    """How sure it is that nothing uses a definition; none if something may well."""
    if each.is_test or around.is_exported(each) or around.overrides_used(each):
        return None
    weak = _weak(each, around)
    if weak:
        return Verdict(0.3, *weak)
    if not around.is_private(each):
        return Verdict(0.5, "public", "nothing in the lake uses it; who uses the package may")
    if place := around.namesakes.get(each.node_id):
        return Verdict(0.7, "namesake", f"what says its name, such as {place}, means something else")
    if place := around.computes_names(each):
        return Verdict(0.7, "computed", f"names of attributes are computed in {place}")
    return Verdict(0.9, "not named", "nothing says its name")


def _weak(each: Definition, around: Surroundings) -> tuple[str, str] | None:
    """A way in which it may be used that is not followed: a word, and more words."""
    if decorator := around.decorators.get(each.node_id):
        return "decorated", f"@{decorator} may have kept it"
    if hook := around.hook(each):
        return "hooked", f"{hook} is told of it"
    if base := around.base_outside(each):
        return "base outside", f"{base} may call it" if each.kind == "FUNCTION" else f"{base} may know of it"
    if other := around.overridden_by_used(each):
        return "overridden", f"{other} overrides it and is used"
    if other := around.overrides_weak(each, lambda base: _weak(base, around) is not None):
        return "overrides", f"{other}, which it overrides, may be used"
    return _named(each, around)


def _named(each: Definition, around: Surroundings) -> tuple[str, str] | None:
    """A way in which its name may be said that is not followed."""
    if place := around.unresolved_place(each):
        return "unresolved", f"{place} says its name and could not be resolved"
    if place := around.uncertain_place(each):
        return "uncertain", f"what {place} says by its name is not known for sure"
    if place := around.text_place(each):
        return "text", f"its name is a text in {place}"
    if place := around.made_in(each):
        return "text", f"its name begins with a text in {place}, where names are computed"
    if place := around.computes_own_names(each):
        return "computed", f"names of attributes of its class are computed in {place}"
    return None


def outermost(judged: Sequence[tuple[Definition, Verdict]]) -> list[tuple[Definition, Verdict]]:
    """Those that are not inside of another that is at least as sure; they come in the order of the source."""
    outer: list[tuple[Definition, Verdict]] = []
    around: list[tuple[Definition, Verdict]] = []
    for each, verdict in judged:
        while around and not _is_inside(each, around[-1][0]):
            around.pop()
        if not any(one.confidence >= verdict.confidence for _, one in around):
            outer.append((each, verdict))
        around.append((each, verdict))
    return outer


def _is_inside(each: Definition, outer: Definition) -> bool:
    return outer.repo_id == each.repo_id and outer.holds(each.path, each.bstart)
