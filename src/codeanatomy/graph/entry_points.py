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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from codeanatomy.catalog.entry_points import Rule, RuleSet
from codeanatomy.file_view import Columns, columns_of, iter_rows
from codeanatomy.graph.facts import MAIN, TYPING_ONLY, CallArgument, KeptFacts, PlacedDefinition, UseSite
from codeanatomy.graph.reads import SPAN

GUESSED, BY_NAME, BY_BASE = 0.5, 0.7, 0.9
CALLS = ("CALLS", "CALLS_NAME", "INSTANTIATES")
# Keywords of a registration whose text names the entry point.
KEYWORD = -1
NAME_KEYWORDS = ("name", "path", "rule", "route")
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
# The relations of a file by kind.
Relations: TypeAlias = Mapping[str, Columns]


class Registration(NamedTuple):
    """A decorator or call that may register a definition."""

    node_id: str
    span: Span
    written: str
    # None: it could not be resolved.
    callee: str | None
    confidence: float


def entry_points(
    facts: KeptFacts, relations: Relations, rules: RuleSet, more: Iterable[UseSite] = ()
) -> Columns:
    """List the entry points that a file registers; `more` are calls that only relations have."""
    # In the order of rules, which the sort keeps.
    ordered = sorted(match_rules(facts, relations, rules, more), key=lambda each: -each.confidence)
    best: dict[tuple[str, str, str], EntryFact] = {}
    for each in ordered:
        best.setdefault((each.dst_id, each.role, each.entry_name), each)
    return columns_of([*best.values(), *_read_texts(facts, relations)], *EntryFact._fields)


def match_rules(
    facts: KeptFacts, relations: Relations, rules: RuleSet, more: Iterable[UseSite] = ()
) -> list[EntryFact]:
    """Return what every rule finds, in the order of rules."""
    numbers = {id(rule): number for number, rule in enumerate(rules.rules)}
    matched = (
        *_match_sites(facts, relations, rules, more),
        *_match_bases(facts, relations, rules),
        *_match_names(facts, rules),
        *_match_blocks(facts, relations),
    )
    return [fact for _, fact in sorted(matched, key=lambda pair: numbers.get(id(pair[0]), len(numbers)))]


# Decorators and calls


def _match_sites(
    facts: KeptFacts, relations: Relations, rules: RuleSet, more: Iterable[UseSite]
) -> Iterator[Match]:
    """Yield what decorators and calls register."""
    sites = chain(facts.calls, more, facts.decorators)
    matched = [
        (site, rule)
        for site in _registrations(sites, relations)
        for rule in rules.at_site(site.callee, site.written)
    ]
    if not matched:
        return
    own = {each.node_id: each for each in facts.definitions}
    arguments = _group((each.call_id, each) for each in facts.call_arguments())
    decorated = _group(((each.bstart, each.bend), each.owner_id) for each in facts.decorators)
    references = sorted(_references(relations))
    for site, rule in matched:
        label = _label(arguments.get(site.node_id, ()), rule)
        if rule.argument is None:
            # A decorator that is a call has the span of the call.
            for each in (own[node] for node in decorated.get(site.span[:2], ()) if node in own):
                for target in [each] if rule.target == "definition" else _public(own.values(), each):
                    name = label if target is each else None
                    yield rule, _at_site(site, rule, target.node_id, name or target.name, "decorator")
            continue
        for argument in arguments.get(site.node_id, ()):
            if rule.argument in ("*", argument.keyword or argument.number):
                first, last = (bisect_left(references, (end,)) for end in (argument.bstart, argument.bend))
                for _, _, target_id, target_name in references[first:last]:
                    yield rule, _at_site(site, rule, target_id, label or target_name, "call")


def _at_site(site: Registration, rule: Rule, target: str, name: str, method: str) -> EntryFact:
    written = site.written if rule.argument is not None else f"@{site.written}"
    return _fact(site.node_id, target, rule, site.span, method, site.confidence, name, written)


def _registrations(sites: Iterable[UseSite], relations: Relations) -> Iterator[Registration]:
    """Yield decorators and calls, one per callee, or one without a callee."""
    callees = _group(
        (src, (name, confidence))
        for kind in CALLS
        for src, name, confidence in iter_rows(relations.get(kind), "src_id", "dst_qname", "confidence")
        if name is not None
    )
    for node, written, start, end, line, _ in sites:
        place = (start, end, line)
        for name, confidence in callees.get(node, ()):
            yield Registration(node, place, written or "", name, confidence)
        if node not in callees and written is not None and len(written) < MAX_WRITTEN:
            yield Registration(node, place, written, None, GUESSED)


def _references(relations: Relations) -> Iterator[tuple[int, int, str, str]]:
    """Yield names and attributes that refer to functions and classes: span, target and its name."""
    columns = ("bstart", "bend", "dst_kind", "dst_id", "dst_qname")
    for start, end, kind, target, name in iter_rows(relations.get("REFERS_TO"), *columns):
        if kind in ("FUNCTION", "CLASS") and start is not None and name is not None:
            yield start, end, target, name.rpartition(".")[2]


def _label(arguments: Sequence[CallArgument], rule: Rule) -> str | None:
    """Return the text that names what a call registers: of the rule's position, or of a keyword as `name`."""
    labels = {
        KEYWORD if each.keyword else each.number: each.text.strip("rbuRBU").strip("\"'")
        for each in reversed(arguments)
        if each.text and (each.keyword is None or each.keyword in NAME_KEYWORDS)
    }
    return labels.get(rule.label) or labels.get(KEYWORD)


def _public(own: Iterable[PlacedDefinition], cls: PlacedDefinition) -> list[PlacedDefinition]:
    return [each for each in own if each.container_id == cls.node_id and not each.name.startswith("_")]


# Classes and names


def _match_bases(facts: KeptFacts, relations: Relations, rules: RuleSet) -> Iterator[Match]:
    """Yield methods, and nested classes, of classes below the base of a rule."""
    bases: defaultdict[str, set[str]] = defaultdict(set)
    for kind in ("INHERITS", "HAS_ANCESTOR"):
        for src, name in iter_rows(relations.get(kind), "src_id", "dst_qname"):
            if name is not None:
                bases[src].add(name)
    of_class = {node: rules.of_class(frozenset(names)) for node, names in bases.items()}
    for each in facts.definitions:
        for rule, base in of_class.get(each.container_id, ()):
            if rules.fits(rule, each.name, facts.path):
                yield _of_container(each, rule, "base", BY_BASE, base)


def _match_names(facts: KeptFacts, rules: RuleSet) -> Iterator[Match]:
    """Yield definitions with the name, and in a file, of a rule that has no other condition."""
    for each in facts.definitions:
        for rule in rules.by_name if not each.container_id.startswith("function:") else ():
            if rules.fits(rule, each.name, facts.path):
                evidence = f"its name{' and file' if rule.path else ''}"
                yield _of_container(each, rule, "name", BY_NAME, evidence)


def _of_container(each: PlacedDefinition, rule: Rule, method: str, confidence: float, evidence: str) -> Match:
    span = (each.bstart, each.bend, each.line)
    return rule, _fact(each.container_id, each.node_id, rule, span, method, confidence, each.name, evidence)


def _fact(
    src: str, target: str, rule: Rule, span: Span, method: str, confidence: float, name: str, evidence: str
) -> EntryFact:
    return EntryFact(src, target, rule.kind, *span, method, confidence, rule.framework, name, evidence)


# What no pattern can express


def _match_blocks(facts: KeptFacts, relations: Relations) -> Iterator[Match]:
    """Yield what `if __name__ == "__main__"` and `__main__` modules call, and what is for type checkers."""
    path, own = facts.path, facts.definitions
    for each in own:
        for block in facts.blocks:
            if block.name == TYPING_ONLY and block.bstart <= each.bstart < block.bend:
                evidence = f"if {TYPING_ONLY} in line {block.line}"
                yield _of_container(each, BLOCK_RULES[block.name], "block", BY_BASE, evidence)
    ids = {each.node_id for each in own}
    main = [(block.bstart, block.bend) for block in facts.blocks if block.name == MAIN]
    is_program = path.rpartition("/")[2] == "__main__.py"
    if not main and not is_program:
        return
    columns = ("src_id", "dst_id", "dst_kind", *SPAN)
    # What functions of the file call, `__main__` runs only if it calls them.
    functions = [(each.bstart, each.bend) for each in own if each.kind == "FUNCTION"]
    for src, target, kind, start, end, line in iter_rows(relations.get("CALLS"), *columns):
        if start is None or any(begins <= start < ends for begins, ends in functions):
            continue
        inside = any(begins <= start < ends for begins, ends in main)
        if kind == "FUNCTION" and (inside or (is_program and target not in ids)):
            place = (start, end, line)
            rule = BLOCK_RULES[MAIN]
            yield rule, _fact(src, target, rule, place, "block", BY_BASE, path, f"{path}:{line}")


def _read_texts(facts: KeptFacts, relations: Relations) -> Iterator[EntryFact]:
    """Yield the definitions that strings of the file name."""
    labels = {(start, end): label for start, end, label in facts.labels}
    columns = ("dst_qname", *EntryFact._fields[:-3])
    for name, *cells in iter_rows(relations.get("ENTRY_POINT"), *columns):
        start, end, line = cells[3:6]
        label = labels.get((start, end))
        yield EntryFact._make((*cells, label or name, f"{facts.path}:{line}", "entry_points"))


def _group(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return dict(groups)
