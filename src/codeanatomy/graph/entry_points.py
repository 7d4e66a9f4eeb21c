"""List the definitions that frameworks call, by the rules of `catalog.entry_points`.

    @app.route("/items")      # CALLS_NAME flask.Flask.route
    def items(): ...          # decorator -> items: role http, name /items, rule flask, confidence 0.7

Decorators and calls are matched by the qualified names that they were resolved to, and by their text where
they could not be resolved: a `written` rule is a guess with confidence 0.5. A class has the bases of its
bases, in the repository and outside of it. What no pattern can express is added here: blocks of
`if __name__ == "__main__"` and `if TYPE_CHECKING`. Names in strings are relations: a file does not know the
definitions of others. Of several rules that find a definition by the same kind and name, the most certain
counts, then the first.

Tests: `tests/unit/graph/test_entry_points.py`, with a source of each framework in `tests/cases/entry_points`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from codeanatomy.catalog.entry_points import Rule
from codeanatomy.file_view import Columns, columns_of, iter_rows
from codeanatomy.graph import definitions, uses
from codeanatomy.graph.context import Context, GraphDefinition
from codeanatomy.graph.reads import SPAN

GUESSED, BY_NAME, BY_BASE = 0.5, 0.7, 0.9
CALLS = ("CALLS", "CALLS_NAME", "INSTANTIATES")
# Keywords of a registration whose text names the entry point.
KEYWORD = -1
NAME_KEYWORDS = ("name", "path", "rule", "route")
TYPING_ONLY, MAIN = "TYPE_CHECKING", "__name__"
BLOCK_RULES = {TYPING_ONLY: Rule("python", "typing"), MAIN: Rule("python", "main")}
# Longer texts of calls are no names.
MAX_WRITTEN = 100


Span: TypeAlias = tuple[int | None, int | None, int | None]


class EntryFact(NamedTuple):
    """An entry point: the edge from what registers it, whose span it has."""

    src_id: str
    dst_id: str
    role: str
    bstart: int | None
    bend: int | None
    line: int | None
    resolution_method: str
    confidence: float
    rule_name: str
    entry_name: str
    evidence: str
    origin: str = "entry_points"


Match: TypeAlias = tuple[Rule, EntryFact]


class Registration(NamedTuple):
    """A decorator or call that may register a definition."""

    node_id: str
    span: Span
    written: str
    # None: it could not be resolved.
    callee: str | None
    confidence: float


def entry_points(context: Context) -> Columns:
    """List the entry points that the file registers."""
    # In the order of rules, which the sort keeps.
    ordered = sorted(match_rules(context), key=lambda each: -each.confidence)
    best: dict[tuple[str, str, str], EntryFact] = {}
    for each in ordered:
        best.setdefault((each.dst_id, each.role, each.entry_name), each)
    return columns_of([*best.values(), *_read_texts(context)], *EntryFact._fields)


def match_rules(context: Context) -> list[EntryFact]:
    """Return what every rule finds, in the order of rules."""
    unique = {each.node_id: each for each in context.definitions.values()}
    own = [each for each in unique.values() if each.bstart is not None and each.subkind != "lambda"]
    numbers = {id(rule): number for number, rule in enumerate(context.rules.rules)}
    matched = (
        *_match_sites(context, {each.node_id: each for each in own}),
        *_match_bases(context, own),
        *_match_names(context, own),
        *_match_blocks(context, own),
    )
    return [fact for _, fact in sorted(matched, key=lambda pair: numbers.get(id(pair[0]), len(numbers)))]


# Decorators and calls


def _match_sites(context: Context, own: dict[str, GraphDefinition]) -> Iterator[Match]:
    """Yield what decorators and calls register."""
    matched = [
        (site, rule) for site in _sites(context) for rule in context.rules.at_site(site.callee, site.written)
    ]
    if not matched:
        return
    arguments = _group(
        (call, (index, keyword, start, end))
        for call, index, keyword, start, end in iter_rows(
            context.cached(uses.arguments), "call_id", "index", "name", "bstart", "bend"
        )
    )
    texts = {
        (start, end): text
        for text, subkind, start, end in iter_rows(
            context.cached(uses.literals), "name", "subkind", "bstart", "bend"
        )
        if subkind == "str"
    }
    decorated = _group(
        ((start, end), owner)
        for owner, start, end in iter_rows(
            context.cached(definitions.decorators), "owner_id", "bstart", "bend"
        )
    )
    references = sorted(_references(context))
    for site, rule in matched:
        label = _label(arguments.get(site.node_id, ()), texts, rule)
        if rule.argument is None:
            # A decorator that is a call has the span of the call.
            for each in (own[node] for node in decorated.get(site.span[:2], ()) if node in own):
                for target in [each] if rule.target == "definition" else _public(own.values(), each):
                    name = label if target is each else None
                    yield rule, _at_site(site, rule, target.node_id, name or target.name, "decorator")
            continue
        for index, keyword, start, end in arguments.get(site.node_id, ()):
            if rule.argument in ("*", keyword or index):
                inside = references[bisect_left(references, (start,)) : bisect_left(references, (end,))]
                for _, _, target_id, target_name in inside:
                    yield rule, _at_site(site, rule, target_id, label or target_name, "call")


def _at_site(site: Registration, rule: Rule, target: str, name: str, method: str) -> EntryFact:
    written = site.written if rule.argument is not None else f"@{site.written}"
    return _fact(site.node_id, target, rule, site.span, method, site.confidence, name, written)


def _sites(context: Context) -> Iterator[Registration]:
    """Yield decorators and calls, one per callee, or one without a callee."""
    callees = _group(
        (src, (name, confidence))
        for kind in CALLS
        for src, name, confidence in iter_rows(
            context.relations_of(kind), "src_id", "dst_qname", "confidence"
        )
        if name is not None
    )
    for make in (uses.calls, definitions.decorators):
        for node, written, *span in iter_rows(context.cached(make), "node_id", "name", *SPAN):
            place = (span[0], span[1], span[2])
            for name, confidence in callees.get(node, ()):
                yield Registration(node, place, written or "", name, confidence)
            if node not in callees and written is not None and len(written) < MAX_WRITTEN:
                yield Registration(node, place, written, None, GUESSED)


def _references(context: Context) -> Iterator[tuple[int, int, str, str]]:
    """Yield names and attributes that refer to functions and classes: span, target and its name."""
    columns = ("bstart", "bend", "dst_kind", "dst_id", "dst_qname")
    for start, end, kind, target, name in iter_rows(context.relations_of("REFERS_TO"), *columns):
        if kind in ("FUNCTION", "CLASS") and start is not None and name is not None:
            yield start, end, target, name.rpartition(".")[2]


def _label(
    arguments: Sequence[tuple[int, str | None, int, int]], texts: dict[tuple[int, int], str], rule: Rule
) -> str | None:
    """Return the text that names what a call registers: of the rule's position, or of a keyword as `name`."""
    labels = {
        KEYWORD if keyword else index: text.strip("rbuRBU").strip("\"'")
        for index, keyword, start, end in reversed(arguments)
        if (text := texts.get((start, end))) and (keyword is None or keyword in NAME_KEYWORDS)
    }
    return labels.get(rule.label) or labels.get(KEYWORD)


def _public(own: Iterable[GraphDefinition], cls: GraphDefinition) -> list[GraphDefinition]:
    return [each for each in own if each.container_id == cls.node_id and not each.name.startswith("_")]


# Classes and names


def _match_bases(context: Context, own: Sequence[GraphDefinition]) -> Iterator[Match]:
    """Yield methods, and nested classes, of classes below the base of a rule."""
    bases: defaultdict[str, set[str]] = defaultdict(set)
    for kind in ("INHERITS", "HAS_ANCESTOR"):
        for src, name in iter_rows(context.relations_of(kind), "src_id", "dst_qname"):
            if name is not None:
                bases[src].add(name)
    rules = {node: context.rules.of_class(frozenset(names)) for node, names in bases.items()}
    for each in own:
        for rule, base in rules.get(each.container_id, ()):
            if context.rules.fits(rule, each.name, context.file.path):
                yield _of_container(each, rule, "base", BY_BASE, base)


def _match_names(context: Context, own: Sequence[GraphDefinition]) -> Iterator[Match]:
    """Yield definitions with the name, and in a file, of a rule that has no other condition."""
    for each in own:
        for rule in context.rules.by_name if not each.container_id.startswith("function:") else ():
            if context.rules.fits(rule, each.name, context.file.path):
                evidence = f"its name{' and file' if rule.path else ''}"
                yield _of_container(each, rule, "name", BY_NAME, evidence)


def _of_container(each: GraphDefinition, rule: Rule, method: str, confidence: float, evidence: str) -> Match:
    span = (each.bstart, each.bend, each.line)
    return rule, _fact(each.container_id, each.node_id, rule, span, method, confidence, each.name, evidence)


def _fact(
    src: str, target: str, rule: Rule, span: Span, method: str, confidence: float, name: str, evidence: str
) -> EntryFact:
    return EntryFact(src, target, rule.kind, *span, method, confidence, rule.framework, name, evidence)


# What no pattern can express


def _match_blocks(context: Context, own: Sequence[GraphDefinition]) -> Iterator[Match]:
    """Yield what `if __name__ == "__main__"` and `__main__` modules call, and what is for type checkers."""
    blocks = list(_if_blocks(context))
    path = context.file.path
    for each in own:
        for name, begins, ends, line in blocks:
            if name == TYPING_ONLY and begins <= (each.bstart or 0) < ends:
                evidence = f"if {TYPING_ONLY} in line {line}"
                yield _of_container(each, BLOCK_RULES[name], "block", BY_BASE, evidence)
    ids = {each.node_id for each in own}
    main = [(begins, ends) for name, begins, ends, _ in blocks if name == MAIN]
    is_program = path.rpartition("/")[2] == "__main__.py"
    if not main and not is_program:
        return
    columns = ("src_id", "dst_id", "dst_kind", *SPAN)
    # What functions of the file call, `__main__` runs only if it calls them.
    functions = [(each.bstart or 0, each.bend or 0) for each in own if each.kind == "FUNCTION"]
    for src, target, kind, start, end, line in iter_rows(context.relations_of("CALLS"), *columns):
        if start is None or any(begins <= start < ends for begins, ends in functions):
            continue
        inside = any(begins <= start < ends for begins, ends in main)
        if kind == "FUNCTION" and (inside or (is_program and target not in ids)):
            place = (start, end, line)
            rule = BLOCK_RULES[MAIN]
            yield rule, _fact(src, target, rule, place, "block", BY_BASE, path, f"{path}:{line}")


def _if_blocks(context: Context) -> Iterator[tuple[str, int, int, int | None]]:
    """Yield the bodies of `if` statements that test `TYPE_CHECKING` or `__name__`: name, span, line."""
    syntax = context.syntax
    for node, name in enumerate(syntax.name):
        if name not in BLOCK_RULES or syntax.kind[node] not in ("Name", "Attribute"):
            continue
        test, parent = node, syntax.parent[node]
        while parent is not None and syntax.kind[parent] in ("Compare", "BoolOp"):
            test, parent = parent, syntax.parent[parent]
        if parent is None or syntax.kind[parent] != "If" or syntax.slot[test] != "test":
            continue
        start, end = syntax.bstart[parent], syntax.bend[parent]
        for other in syntax.children(parent, "orelse")[:1]:
            end = syntax.bstart[other]
        if start is not None and end is not None:
            yield name, start, end, syntax.line[node]


def _read_texts(context: Context) -> Iterator[EntryFact]:
    """Yield the definitions that strings of the file name."""
    syntax = context.syntax
    columns = ("dst_qname", *EntryFact._fields[:-3])
    for name, *cells in iter_rows(context.relations_of("ENTRY_POINT"), *columns):
        start, end, line = cells[3:6]
        text = syntax.value[syntax.at(start, end)[-1]] or ""
        # `web = shop.web:run` declares `web`.
        label = text[1:-1].rpartition("=")[0].strip()
        yield EntryFact._make((*cells, label or name, f"{context.file.path}:{line}", "entry_points"))


def _group(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return dict(groups)
