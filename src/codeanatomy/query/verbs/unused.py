"""`unused`: functions and classes that nothing in the lake uses, and how sure that is.

    unused(reader, kind="function")
    # shop.waste._forgotten   FUNCTION  shop/waste.py:12  0.9  not named    nothing says its name
    # shop.waste.Bin.empty    FUNCTION  shop/waste.py:31  0.3  unresolved   `x.empty` is said in shop/a.py:7, ...

A use is an edge that arrives at the definition, or at the name it is bound to, from outside of its own text:
recursion is none. What overrides a method that is used is used, since the base may be called with it; so is
what another repository of the lake calls by its qualified name, and what `__all__` lists. Never listed are
lambdas, dunder names, stubs and test code. What is inside of a listed definition is left out, unless it is
surer.

Whether something is dead can only be told as far as names can be followed:

| confidence | `method` | |
|---|---|---|
| 0.9 | `not named` | private, and nothing says its name |
| 0.7 | `namesake`, `computed` | private; what says its name means others, or names are made by `getattr(x, y)` near it |
| 0.5 | `public` | who uses the package may use it |
| 0.3 | `unresolved`, `text` | its name is an attribute of something unknown, or stands in a text |
| 0.3 | `decorated`, `hooked` | a decorator, a metaclass or `__init_subclass__` may have kept it |
| 0.3 | `base outside`, `overridden`, `overrides` | code outside, or of a base that may be live, may call it |

Private is a name, or one around it, that begins with `_`, and whatever is inside of a function. Tests:
`tests/test_verb_unused.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from codeanatomy.errors import UsageError
from codeanatomy.query.reading import Reader
from codeanatomy.query.usage import Definition, Surroundings, surroundings, unused_definitions
from codeanatomy.query.verbs.found import Found, held

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
NOTES = (
    "what is used by name from configuration, templates, entry points or other programs is not seen",
    "confidence: 0.9 private and not named, 0.7 private, 0.5 public, 0.3 may be reached in a way that is not followed",
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
    around = surroundings(reader, definitions)
    judged = [(each, verdict) for each in definitions if (verdict := judge(each, around))]
    rows = [_row(each, verdict) for each, verdict in outermost(judged) if wanted in (None, each.kind)]
    rows.sort(key=lambda row: (-row["confidence"], row["repo_id"], row["path"], row["line"], row["symbol_id"]))
    return held(COLUMNS, rows, NOTES)


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
    if hook := around.hooks.get(each.node_id):
        return "hooked", f"{hook} is told of it"
    if base := around.base_outside(each):
        return "base outside", f"{base} may call it" if each.kind == "FUNCTION" else f"{base} may know of it"
    if other := around.overridden_by_used(each):
        return "overridden", f"{other} overrides it and is used"
    if other := around.overrides_weak(each, lambda base: _weak(base, around) is not None):
        return "overrides", f"{other}, which it overrides, may be used"
    if place := around.unresolved_place(each):
        return "unresolved", f"{place} says its name and could not be resolved"
    if place := around.text_place(each):
        return "text", f"its name is a text in {place}"
    return None
