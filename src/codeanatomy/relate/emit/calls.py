"""Emit rows of calls: callees, passed arguments, and edges of the call graph.

    f(x)     CALLS from the call to f, PASSES_TO from x to f's parameter, CALL_GRAPH from the caller to f
    w(x)     of a wrapper of f the same to w, and to f, with the method `forwarded`
    f(a=x)   the same, and REFERS_TO from the argument to f's parameter, at the span of `a`

The confidence depends on how the callee was resolved: by names alone, by values, or by an annotation. Other
witnesses confirm a callee, or add one that only they know.

Applying `property`, `staticmethod` or `classmethod` is a declaration, not a call. In the call graph a call of
a class counts as calls of the constructors that it runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from codeanatomy.node_ids import group_id
from codeanatomy.relate import program as ir
from codeanatomy.relate.emit import references as refs
from codeanatomy.relate.emit.absent_attributes import absence_reason
from codeanatomy.relate.emit.cut_receivers import cut_functions
from codeanatomy.relate.emit.references import Candidate, FileRows, Reference, Source
from codeanatomy.relate.program import NOTHING, Arg, Op, Site
from codeanatomy.relate.values import results
from codeanatomy.relate.values.arguments import VARIADIC, PassedArgument, match_parameters
from codeanatomy.relate.values.forwarding import forwarded_calls
from codeanatomy.relate.values.function_copies import original
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.records import DEFAULT_FACTORY, find_record
from codeanatomy.relate.values.rules.functions import match_arguments
from codeanatomy.relate.values.solver import MAX_OBJECTS, Object, as_hint, is_hint, strong
from codeanatomy.relate.values.state import EXTERNAL_MEMBER, State
from codeanatomy.relate.witnesses.agreement import Verdict
from codeanatomy.relate.witnesses.claims import Claim

# Kinds of receivers whose members are resolved by import rules.
IMPORTED_KINDS = frozenset({ir.OBJ_MODULE, ir.OBJ_NAMESPACE, ir.OBJ_EXTERNAL})
CALL_KINDS = {"FUNCTION": "CALLS", "CLASS": "INSTANTIATES"}
CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})
# Kinds of callables that external calls create: `functools.wraps(f)`, `x.setter`, `f.register`.
EXTERNAL_CALLABLES = (
    *(ir.OBJ_WRAPS, ir.OBJ_PROPERTY_DECORATOR, ir.OBJ_SINGLEDISPATCH_REGISTER, ir.OBJ_CONTEXT_MANAGER),
    ir.OBJ_NAMED_TUPLE,
)
CLASS_OF_UNKNOWN_NAME = (ir.OBJ_EXTERNAL_INSTANCE, "builtins.type")
# Roles of functions that run at a call without being its callee.
INDIRECT_ROLES = frozenset({"callback", DEFAULT_FACTORY})
# Roles in which one special method stands in for another, such as `__len__` for `__bool__`: one of them runs.
INTERCHANGEABLE_ROLES = frozenset({"operator", "truth", "format"})
# Methods that run for every attribute access, before the attribute's own accessor.
ATTRIBUTE_HOOKS = frozenset({"__getattribute__", "__setattr__", "__delattr__"})


class CallSource(NamedTuple):
    """A site that runs functions, with the verdicts on its callees by how they run."""

    number: int
    site: Site
    src: Source
    # Of implicit calls and decorators.
    role: str | None
    verdicts: Mapping[str, Verdict]
    # The written arguments, and the reason why callees may be missing.
    args: Sequence[Arg] = ()
    reason: str | None = None

    def reference(self, target: Target, role: str | None, origin: str = "values") -> Reference:
        """Return the reference to a callee."""
        kind = CALL_KINDS.get(target.kind, "CALLS_NAME")
        return Reference(kind, self.src, self.site.place, "call", origin, role)

    def group(self, method_name: str = "") -> str:
        """Return the id of the ambiguity group of the callees."""
        return group_id(self.src[1], "CALLS", self.role, method_name)


def is_counted(values: State, callee: Object) -> bool:
    """Whether a callee is a node of the call graph: a function or an external name; not a class."""
    kind, first, _, _ = values.objects[callee]
    return kind == ir.OBJ_FUNCTION or (
        kind == ir.OBJ_EXTERNAL and not refs.is_declaration(first, "decorator")
    )


def add_explicit_call(f: FileRows, op: Op) -> None:
    """Add the rows of a call or of an applied decorator."""
    _, node, _, number, args = op
    site = f.program.sites[number]
    objects = f.called.get(number, {})
    is_decorator = site.role == "decorator"
    if is_decorator or site.place[0] is not None:
        src = f.source("DECORATOR" if is_decorator else "CALLSITE", site.place)
    else:
        src = ("AST_NODE", f.ids.ast(site.ast_id))
    role = site.role if is_decorator else None
    callees = results.certain_callees(f.values, objects)
    load = f.attribute_loads.get(node)
    stored: list[tuple[Object, str]] = []
    if load is not None and callees:
        stored = _stored_members(f, number, load[2], callees)
        callees += stored
        # As hints: no values were passed to them.
        further = [as_hint(obj) for obj in cut_functions(f, load)]
        callees += [(obj, site.role) for obj in further[: max(0, MAX_OBJECTS - len(callees))]]
    verdicts = _verdicts(f, site, callees)
    verdict = verdicts[site.role]
    if not verdict.added and not f.targets((obj for obj, _ in callees), site.role):
        # A decorator that is only a declaration gets no row.
        if not callees or src[0] == "CALLSITE":
            reason = "external_result" if callees else _uncalled_reason(f, node)
            refs.add_candidates(f, Reference("CALLS", src, site.place, "call", role=role), [], reason)
        return
    is_truncated = (
        (f.file, number) in f.values.calls.truncated_sites
        or node in f.truncated
        or (load is not None and load[1] in f.truncated)
    )
    cut_reason = refs.TOO_MANY if is_truncated else None
    call = CallSource(number, site, src, role, verdicts, args, cut_reason)
    primary = [obj for obj, how in callees if how == site.role and not _is_constructor(f, obj, objects)]
    overrides = verdict.overrides if all(is_hint(obj) for obj, _ in callees) else {}
    alternatives = len(primary) + len(set(verdict.added.values())) + len(overrides) + len(stored)
    # Default factories of fields run whichever class is called: they are no alternatives.
    _add_calls(f, call, [each for each in callees if each[1] != DEFAULT_FACTORY], alternatives)
    _add_calls(f, call, [each for each in callees if each[1] == DEFAULT_FACTORY], 1)
    _add_claimed_calls(f, call, verdict, call.group() if alternatives > 1 else None, overrides)
    _add_forwarded_calls(f, call)


def _stored_members(
    f: FileRows, number: int, name: str, callees: Sequence[tuple[Object, str]]
) -> list[tuple[Object, str]]:
    """Return the external methods that the called attribute holds, and that are not looked up by its name.

    After `self._send = send` it may be `Adapter.send` of a library, or a function of ours.
    """
    roles = f.called[number]
    return [
        (obj, role)
        for obj, role in roles.items()
        if role == EXTERNAL_MEMBER
        and not is_hint(obj)
        and (obj, role) not in callees
        and f.values.objects[obj].first.rpartition(".")[2] != name
    ]


def add_implicit_calls(f: FileRows, number: int) -> None:
    """Add calls of special methods that an operator, a loop, `with` and the like run."""
    site = f.program.sites[number]
    callees = results.certain_callees(f.values, f.called.get(number, {}))
    own = [each for each in callees if f.values.kind[each[0]] in (ir.OBJ_FUNCTION, ir.OBJ_CLASS)]
    targets = f.targets(obj for obj, _ in own)
    verdict = f.claims.verdict(site.place, targets, f.claims.implicit(site.place, site.role))
    add_calls_by_method(f, number, site.role, own, verdict)


def add_calls_by_method(
    f: FileRows, number: int, role: str, callees: Sequence[tuple[Object, str]], verdict: Verdict
) -> None:
    """Add the rows of a syntax node that runs methods, such as `__enter__` and `__exit__` of `with`."""
    if not callees and not verdict.added:
        return
    site = f.program.sites[number]
    src, verdicts = ("AST_NODE", f.ids.ast(site.ast_id)), {how: verdict for _, how in callees}
    call = CallSource(number, site, src, role, verdicts)
    by_method: dict[str, list[tuple[Object, str]]] = {}
    for obj, how in callees:
        by_method.setdefault(_method_name(f, obj, role), []).append((obj, how))
    overrides = verdict.overrides if all(is_hint(obj) for obj, _ in callees) else {}
    for name, pairs in by_method.items():
        _add_calls(f, call, pairs, len(pairs) + len(overrides), name)
    _add_claimed_calls(f, call, verdict, call.group() if overrides else None, overrides)


def _method_name(f: FileRows, obj: Object, role: str) -> str:
    """Return the special method that a role looks up; of the callees that share the name, one runs."""
    if role in INTERCHANGEABLE_ROLES or f.values.kind[obj] != ir.OBJ_FUNCTION:
        return ""
    name = f.values.function(obj)[1].name
    if role == "attribute":
        return name if name in ATTRIBUTE_HOOKS else ""
    # Fixtures of different names all run.
    return name if role == "fixture" or (name.startswith("__") and name.endswith("__")) else ""


def _add_calls(
    f: FileRows, call: CallSource, callees: Sequence[tuple[Object, str]], alternatives: int, name: str = ""
) -> None:
    """Add the rows of a site; callees are (object, how it runs), `alternatives` counts exclusive ones."""
    if not callees:
        return
    site, group = call.site, call.group(name) if alternatives > 1 else None
    targets = {obj: target for obj, _ in callees if (target := f.target(obj, site.role)) is not None}
    candidates = refs.rate_targets(f, targets.values(), [obj for obj, _ in callees], site.inner)
    rated = {each.target: each for each in candidates}
    for obj, how in callees:
        if obj not in targets:
            continue
        target, method, confidence = rated[targets[obj]]
        if alternatives <= 1 and method == "values":
            confidence = refs.BY_VALUE
            by_name = _method_by_name(f, call, target) if how not in INDIRECT_ROLES else None
            if by_name:
                method, confidence = by_name, refs.BY_RULE
        if how == "callback":
            method = "callback"
        verdict = call.verdicts[how]
        candidate = Candidate(target, method, verdict.confidence(target, confidence))
        role = call.role or (how if how != site.role else None)
        ref = call.reference(target, role)
        refs.add_row(f, ref, candidate, call.src[1], group, verdict, reason=call.reason)
        if is_counted(f.values, obj):
            _count(f, site, candidate)
        if how != "callback":
            passed = f.values.calls.arguments.get(((f.file, call.number), strong(obj)))
            if passed is None and is_hint(obj) and f.values.kind[obj] == ir.OBJ_FUNCTION:
                # The analysis passes no values through annotations, but the call is written with these.
                passed = (call.args, _bound_parameters(f, obj))
            _add_arguments(f, call, obj, passed or ((), 0), candidate, group)


def _bound_parameters(f: FileRows, obj: Object) -> int:
    """Return how many parameters of a function are bound, not passed: the receiver of a method."""
    _, function = f.values.function(obj)
    return int(function.owner >= 0 and function.binds != "nothing")


def _add_forwarded_calls(f: FileRows, call: CallSource) -> None:
    """Add the rows of what the call runs through wrappers, which stay callees."""
    written = len(f.program.arguments.get(call.number, ()))
    forwarded = forwarded_calls(f.values, (f.file, call.number), written)
    if not forwarded:
        return
    confidence = refs.BY_VALUE if sum(not each.is_constructor for each in forwarded) == 1 else refs.AMBIGUOUS
    group = call.group(refs.FORWARDED) if confidence == refs.AMBIGUOUS else None
    for each in forwarded:
        target = f.target(each.callee)
        if target is None:
            continue
        candidate = Candidate(target, refs.FORWARDED, confidence)
        refs.add_row(f, call.reference(target, refs.FORWARDED), candidate, call.src[1], group)
        if target.kind == "FUNCTION":
            _count(f, call.site, candidate)
        _add_arguments(f, call, each.callee, (each.args, each.skip), candidate, group)


def _add_claimed_calls(
    f: FileRows, call: CallSource, verdict: Verdict, group: str | None, overrides: dict[Target, Claim]
) -> None:
    """Add the rows of callees that only other witnesses claim, and of what overrides a claimed one."""
    for target, claim in (verdict.added | overrides).items():
        is_override = target in overrides
        confidence = refs.AMBIGUOUS if is_override else verdict.confidence(target, 0.0)
        candidate = Candidate(target, claim.witness, confidence)
        ref = call.reference(target, claim.role or call.role, claim.witness)
        refs.add_row(f, ref, candidate, claim.key if is_override else None, group, verdict)
        if target.kind != "CLASS":
            _count(f, call.site, candidate, claim.witness)
        obj = f.claims.witnesses.index.function(target)
        if obj is not None and claim.role is None:
            passed = (call.args, _bound_parameters(f, obj))
            _add_arguments(f, call, obj, passed, candidate, group, claim.witness)


def _add_arguments(
    f: FileRows,
    call: CallSource,
    obj: Object,
    passed: tuple[Sequence[Arg], int],
    candidate: Candidate,
    group: str | None,
    origin: str = "values",
) -> None:
    """Add the rows of the arguments that a call passes to a callee; the first parameters may be bound."""
    args, skip = passed
    places = f.program.arguments.get(call.number, ())
    is_forwarded = candidate.method == refs.FORWARDED
    is_known = candidate.target.kind != "QUALIFIED_NAME" and call.src[0] == "CALLSITE"
    if not places or not is_known or (len(args) != len(places) and not is_forwarded):
        # A partial or a callback gets other arguments than those written at the call.
        return
    keywords = f.program.keywords.get(call.number, {})
    for each, name, receiver in _receivers(f, obj, args, skip, candidate.target):
        number = args[each.argument][2] if is_forwarded else each.argument
        if not 0 <= number < len(places):
            continue
        src, how = f.source("ARGUMENT", places[number]), candidate[1:]
        ref = Reference("PASSES_TO", src, places[number], "argument", origin, name, number)
        refs.add_row(f, ref, Candidate(receiver._replace(qname=None), *how), call.src[1], group)
        if number in keywords and receiver.qname is not None:
            # The keyword names the parameter or field: a reference at its own span.
            ref = Reference("REFERS_TO", src, keywords[number], "keyword", origin, "keyword")
            refs.add_row(f, ref, Candidate(receiver, *how), call.src[1], group)


def _receivers(
    f: FileRows, obj: Object, args: Sequence[Arg], skip: int, callee: Target
) -> Iterator[tuple[PassedArgument, str, Target]]:
    """Yield each argument with the name and node of the parameter or field that gets it.

    The node of a variadic parameter, which no keyword names, has no qualified name.
    """
    if f.values.kind[obj] == ir.OBJ_CLASS:
        record = find_record(f.values, strong(obj))
        fields = [each for each in record.fields if each.is_init] if record is not None else []
        for passed in match_parameters([each.parameter for each in fields], args, 0)[0]:
            owner, declared, _, _ = fields[passed.parameter]
            yield passed, declared.name, f.resolver.attribute(owner, declared.name)
        return
    file, function = f.values.function(obj)
    for passed in match_arguments(f.values, original(f.values, obj), args, skip).passed:
        parameter = function.parameters[passed.parameter]
        name = None if parameter.how in VARIADIC else f"{callee.qname}.{parameter.name}"
        node = f.resolver.parameter(file, parameter.place)
        yield passed, parameter.name, Target("PARAMETER", node, name)


def _count(f: FileRows, site: Site, candidate: Candidate, origin: str = "values") -> None:
    """Note an edge of the call graph; it has the best confidence and the first place of its calls."""
    key = (site.function, candidate.target.node)
    is_forwarded = candidate.method == refs.FORWARDED
    known = f.call_graph.get(key)
    if known is None or (known.is_forwarded and not is_forwarded):
        f.call_graph[key] = refs.CallEdge(
            candidate.target, candidate.confidence, site.place, origin, is_forwarded
        )
    elif known.confidence < candidate.confidence and known.is_forwarded == is_forwarded:
        f.call_graph[key] = known._replace(confidence=candidate.confidence)


def _verdicts(f: FileRows, site: Site, callees: Sequence[tuple[Object, str]]) -> dict[str, Verdict]:
    """Compare the callees of a call with the claims of other witnesses, by how the callees run."""
    claims, hows = f.claims, {site.role, *(how for _, how in callees)}
    if claims.is_empty:
        return dict.fromkeys(hows, claims.witnesses.no_claims)
    is_decorator = site.role == "decorator"
    claimed = claims.decorator(site.place) if is_decorator else claims.call(site.place, site.inner)
    called = f.targets((obj for obj, how in callees if how not in INDIRECT_ROLES), site.role)
    callbacks = f.targets(obj for obj, how in callees if how == "callback")
    verdicts = dict.fromkeys(hows, claims.verdict(site.place, called, claimed))
    verdicts[DEFAULT_FACTORY] = claims.witnesses.no_claims
    callback_claims = claims.implicit(site.place, "callback") if callbacks else ()
    return verdicts | {"callback": claims.verdict(site.place, callbacks, callback_claims)}


def _is_constructor(f: FileRows, obj: Object, called: Mapping[Object, str]) -> bool:
    """Whether a callee runs because a class is called."""
    is_function = f.values.kind[obj] == ir.OBJ_FUNCTION
    return (
        is_function
        and f.values.function(obj)[1].name in CONSTRUCTORS
        and any(f.values.kind[other] == ir.OBJ_CLASS for other in called)
    )


def _method_by_name(f: FileRows, call: CallSource, target: Target) -> str | None:
    """Return the resolution method if names alone resolve a callee, else None.

    They do for a class, a member of a module, and an external name.
    """
    load = f.attribute_loads.get(f.callees.get(call.number, NOTHING))
    if load is not None:
        receivers = results.program_objects(f.values, f.file, load[1])
        kinds = {"weak" if is_hint(obj) else f.values.kind[obj] for obj in receivers}
        return "import" if kinds and kinds <= IMPORTED_KINDS else None
    use = f.uses.get(call.site.inner[:2])
    if use is None:
        is_builtin = target.kind == "QUALIFIED_NAME" and (target.qname or "").startswith("builtins.")
        return "builtin" if is_builtin else None
    by_name = f.resolver.targets_of_definitions(f.file, use.definitions, use.name)
    if len(by_name) == 1 and by_name[0].kind in ("CLASS", "QUALIFIED_NAME"):
        return "import" if f.is_imported(use.definitions) else "scope"
    return None


def _uncalled_reason(f: FileRows, node: int) -> str:
    """Return the reason why a call has no callee."""
    objects = results.program_objects(f.values, f.file, node)
    if objects:
        return _not_callable_reason(f, objects)
    load = f.attribute_loads.get(node)
    if load is None:
        return f.unknown_reason(node).replace("unknown_receiver", "unknown_value")
    return absence_reason(f, results.program_objects(f.values, f.file, load[1]), load[2], load[1])


def _not_callable_reason(f: FileRows, objects: Sequence[Object]) -> str:
    """Return the reason why calling these objects runs nothing."""
    keys = [f.values.objects[obj] for obj in objects]
    if all(key.kind == ir.OBJ_HINTED_CALLABLE or key[:2] == CLASS_OF_UNKNOWN_NAME for key in keys):
        # The annotation only states that the value is callable, or a class.
        return "unknown_value"
    is_external = any(
        key.kind in EXTERNAL_CALLABLES
        or (key.kind == ir.OBJ_EXTERNAL_INSTANCE and not key.first.startswith("builtins."))
        for key in keys
    )
    return "external_result" if is_external else "not_callable"
