"""Apply calls: record callees, pass arguments to parameters, return results.

    f(x)          objects of x flow into the parameter of f, objects of its result into the call
    obj.m(x)      obj is in `self`
    g()           of a generator function: an OBJ_GENERATOR; of an async function: an OBJ_COROUTINE

A call through a hint returns the result as a hint, but passes no arguments. A function that returns a
parameter unchanged returns each caller its own argument. External functions are modelled in `models`.

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codeanatomy.relate.program import (
    OBJ_BOUND_METHOD,
    OBJ_CLASS,
    OBJ_CONTAINER,
    OBJ_CONTAINER_METHOD,
    OBJ_CONTEXT_FUNCTION,
    OBJ_CONTEXT_MANAGER,
    OBJ_COROUTINE,
    OBJ_EXTERNAL,
    OBJ_EXTERNAL_INSTANCE,
    OBJ_EXTERNAL_MEMBER,
    OBJ_FUNCTION,
    OBJ_GENERATOR,
    OBJ_HINTED_CALLABLE,
    OBJ_INSTANCE,
    OBJ_PARTIAL,
    OBJ_PROPERTY,
    OBJ_PROPERTY_DECORATOR,
    OBJ_SINGLEDISPATCH,
    OBJ_SINGLEDISPATCH_REGISTER,
    OBJ_STATIC_OR_CLASS_METHOD,
    OBJ_TYPE_CALL,
    OBJ_WRAPS,
    Arg,
    Program,
)
from codeanatomy.relate.values.arguments import (
    VARIADIC,
    ArgumentMatch,
    PassedArgument,
    is_accepted_call,
    match_parameters,
)
from codeanatomy.relate.values.containers import CONTAINERS
from codeanatomy.relate.values.external_names import is_class_like, makes_instance
from codeanatomy.relate.values.function_copies import Copies
from codeanatomy.relate.values.models.builtins import BUILTIN_MODELS
from codeanatomy.relate.values.models.container_methods import call_container_method
from codeanatomy.relate.values.models.library import DECORATORS, LIBRARY_MODELS
from codeanatomy.relate.values.pending_call import NOWHERE, Call, SiteKey, positional
from codeanatomy.relate.values.solver import WEAK, Object, prefer_strong

MODELS = {**BUILTIN_MODELS, **LIBRARY_MODELS}
# Nested calls derived from one call in the source.
MAX_DEPTH = 10
# Role of a callee that is a member of an external object.
EXTERNAL_MEMBER = "member"
# Roles of callees that the source calls itself, rather than an external function on its behalf.
DIRECT_ROLES = frozenset({"call", "decorator"})
DEFINITION_KINDS = (OBJ_FUNCTION, OBJ_CLASS)
UNPACKED_BY_KEY = ("tuple", "list", "dict")


class Calls(Copies):
    """Callees by call site."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(programs, limit)
        # By site: callees with their roles. By site and callee: arguments, and number of bound parameters.
        self.calls: dict[SiteKey, dict[Object, str]] = {}
        self.arguments: dict[tuple[SiteKey, Object], tuple[Sequence[Arg], int]] = {}
        # Sites with more callees than the limit.
        self.truncated_sites: set[SiteKey] = set()
        # Functions that are called, and classes decorated with `dataclass`.
        self.invoked: set[Object] = set()
        self.dataclasses: set[Object] = set()
        self._entered_calls: set[tuple[Any, ...]] = set()
        self._argument_matches: dict[tuple[Any, ...], ArgumentMatch] = {}
        self._parameter_node_lists: dict[Object, list[int]] = {}
        self._accessors_called: set[tuple[Any, ...]] = set()
        self._entered_partials: set[tuple[Any, ...]] = set()
        # How objects are called, by kind.
        self._call_rules: Mapping[str, Callable[[Object, Call], None]] = {
            OBJ_FUNCTION: self._call_function,
            OBJ_BOUND_METHOD: self._call_bound,
            OBJ_CONTEXT_FUNCTION: self._call_context_function,
            OBJ_CLASS: self._call_class,
            OBJ_TYPE_CALL: self._call_type_call,
            OBJ_INSTANCE: self._call_instance,
            OBJ_EXTERNAL: self._call_external,
            OBJ_EXTERNAL_MEMBER: self._call_external_member,
            OBJ_EXTERNAL_INSTANCE: self._call_external_instance,
            OBJ_CONTAINER_METHOD: self._call_container_method,
            OBJ_STATIC_OR_CLASS_METHOD: self._call_static_or_class_method,
            OBJ_PARTIAL: self._call_partial,
            OBJ_SINGLEDISPATCH: self._call_singledispatch,
            OBJ_SINGLEDISPATCH_REGISTER: self._call_register,
            OBJ_WRAPS: self._call_wraps,
            OBJ_HINTED_CALLABLE: self._call_hinted,
            OBJ_PROPERTY_DECORATOR: self._call_property_decorator,
        }

    def bind_partial(self, obj: Object, receiver: Object, node: int) -> None:
        """Bind a `partialmethod` to an instance: a partial with the instance as first argument."""
        _, where, bound, _ = self.objects[obj >> 1]
        first = self.new_node()
        self.add(first, receiver)
        partial = self.object(
            OBJ_PARTIAL, (where, receiver), bound.with_args([positional(first), *bound.args])
        )
        self.flow(self.field(obj, "callee"), self.field(partial, "callee"))
        self.add(node, partial)

    def enter_context(self, objects: Sequence[Object], dst: int, where: SiteKey) -> None:
        """Enter context managers: put the value that `with` binds into dst."""
        raise NotImplementedError

    def add_instances(self, objects: Sequence[Object], dst: int, weak: int) -> None:
        """Put instances of classes, of the repository or external, into dst."""
        raise NotImplementedError

    def instantiate(self, cls: Object, call: Call) -> None:
        """Call a class."""
        raise NotImplementedError

    def construct(self, cls: Object, call: Call) -> None:
        """Create an instance by `__new__` and `__init__`."""
        raise NotImplementedError

    def constant_argument(self, call: Call, position: int) -> str | None:
        """Return a constant argument as a Python literal; None if it is not constant."""
        file, site = call.where
        texts = self.programs[file].constant_arguments.get(site, ()) if file >= 0 else ()
        return texts[position] if position < len(texts) else None

    def string_argument(self, call: Call, position: int) -> str | None:
        """Return a constant string argument; None if it is none."""
        key = self.constant_argument(call, position)
        return key[1:-1] if key and key[0] in "'\"" else None

    def call_node(self, node: int, call: Call, weak: int = 0) -> None:
        """Call all objects of a node, as hints if weak."""
        self.subscribe(node, self._invoke_as_hints if weak else self.invoke, call)

    def _invoke_as_hints(self, objects: Sequence[Object], call: Call) -> None:
        self.invoke([obj | WEAK for obj in objects], call)

    def record(self, call: Call, obj: Object, role: str = "") -> None:
        """Record that an object is called at a site."""
        if call.where[0] < 0:
            return
        callees = self.calls.get(call.where)
        if callees is None:
            callees = self.calls[call.where] = {}
        elif obj in callees:
            return
        # Copies of a function share their sites; a class comes with its constructors.
        if len(callees) >= self.limit:
            classes = sum(self.objects[each >> 1].kind == OBJ_CLASS for each in callees)
            if len(callees) - 2 * classes >= self.limit:
                self.truncated_sites.add(call.where)
                return
        callees[obj] = role or call.role

    def callees(self, where: SiteKey) -> list[tuple[Object, str]]:
        """Return the callees at a site with their roles.

        Hints count if there is nothing better. A member of an external object, of which only the name is
        known, is no better than a hint that names a function of the repository.
        """
        roles = self.calls.get(where)
        if not roles:
            return []
        strong = [obj for obj in roles if not obj & WEAK]
        if len(strong) == len(roles) and EXTERNAL_MEMBER not in roles.values():
            return list(roles.items())
        hinted = [obj for obj in roles if obj & WEAK and self.objects[obj >> 1].kind in DEFINITION_KINDS]
        if hinted and all(roles[obj] == EXTERNAL_MEMBER for obj in strong):
            return [(obj, roles[obj]) for obj in hinted]
        known = [obj for obj in strong if roles[obj] != EXTERNAL_MEMBER]
        if any(self.objects[obj >> 1].kind == OBJ_FUNCTION and roles[obj] in DIRECT_ROLES for obj in known):
            return [(obj, roles[obj]) for obj in known]
        return [(obj, roles[obj]) for obj in prefer_strong(roles)]

    def invoke(self, objects: Sequence[Object], call: Call) -> None:
        """Call objects."""
        if call.depth > MAX_DEPTH:
            return
        for obj in objects:
            run = self._call_rules.get(self.objects[obj >> 1].kind)
            if run is not None:
                run(obj, call)

    def _call_function(self, obj: Object, call: Call) -> None:
        self.enter_function(obj, None, call)

    def _call_bound(self, obj: Object, call: Call) -> None:
        _, function, receiver, _ = self.objects[obj >> 1]
        self._call_with_receiver(function | obj & WEAK, receiver, call)

    def _call_context_function(self, obj: Object, call: Call) -> None:
        self._call_with_receiver(obj, None, call)

    def _call_with_receiver(self, function: Object, receiver: Object | None, call: Call) -> None:
        """Call a function, plain or decorated with `contextmanager`."""
        kind, inner, _, _ = self.objects[function >> 1]
        weak = function & WEAK
        if kind == OBJ_CONTEXT_FUNCTION:
            self.enter_function(inner | weak, receiver, call.with_args(call.args, -1))
            self.add(call.dst, self.object(OBJ_CONTEXT_MANAGER, inner) | weak)
        else:
            self.enter_function(function, receiver, call)

    def _call_class(self, obj: Object, call: Call) -> None:
        self.instantiate(obj, call)

    def _call_type_call(self, obj: Object, call: Call) -> None:
        self.construct(self.objects[obj >> 1].first, call)

    def _call_instance(self, obj: Object, call: Call) -> None:
        self.call_special_method([obj], ["__call__"], call)

    def _call_external(self, obj: Object, call: Call) -> None:
        self._call_external_name(obj, self.objects[obj >> 1].first, call)

    def _call_external_member(self, obj: Object, call: Call) -> None:
        _, name, receiver, _ = self.objects[obj >> 1]
        self._call_external_name(self.object(OBJ_EXTERNAL, name) | obj & WEAK, name, call, is_member=True)
        if receiver is not None:
            self._call_inherited(name, receiver, call)

    def _call_inherited(self, name: str, receiver: Object, call: Call) -> None:
        """Call a method that an instance of the repository inherits from an external class."""
        owner, _, method = name.rpartition(".")
        if name == "threading.Thread.start":
            self.call_node(self.attribute_node(receiver, "run"), call.with_args([], -1, "callback"))
        elif owner in CONTAINERS and self.objects[receiver >> 1].kind == OBJ_INSTANCE:
            call_container_method(self, self.instance_container(receiver, CONTAINERS[owner]), method, call)

    def _call_external_instance(self, obj: Object, call: Call) -> None:
        """Call an instance of an external class: a decorator is assumed to return the definition."""
        if call.is_decorator:
            self.flow(call.argument(0), call.dst)

    def _call_container_method(self, obj: Object, call: Call) -> None:
        """Call a method of a builtin container."""
        _, container, name, _ = self.objects[obj >> 1]
        self.record(call, self.object(OBJ_EXTERNAL, f"{self.container_class(container)}.{name}") | obj & WEAK)
        call_container_method(self, container, name, call)

    def _call_static_or_class_method(self, obj: Object, call: Call) -> None:
        self.call_node(self.field(obj, "inner"), call, obj & WEAK)

    def _call_singledispatch(self, obj: Object, call: Call) -> None:
        self.call_node(self.field(obj, "any"), call, obj & WEAK)

    def _call_register(self, obj: Object, call: Call) -> None:
        """Call `@f.register`, with or without the type in parentheses."""
        dispatcher = self.objects[obj >> 1].first
        for position in range(len(call.args)):
            self.subscribe(call.argument(position), self._register_overload, dispatcher)
        if call.is_decorator:
            self.flow(call.argument(0), call.dst)
        else:
            self.add(call.dst, obj)

    def _call_wraps(self, obj: Object, call: Call) -> None:
        """Call `functools.wraps(f)`: returns its argument, whose `__wrapped__` is f."""
        self.subscribe(call.argument(0), self.remember_wrapped, self.field(obj, "wrapped"))
        self.flow(call.argument(0), call.dst)

    def _call_hinted(self, obj: Object, call: Call) -> None:
        """Call an annotated `Callable`: its result is a hint."""
        self.flow(self.field(obj, "result"), call.dst, WEAK)

    def remember_wrapped(self, objects: Sequence[Object], wrapped: int) -> None:
        """Set `__wrapped__` of functions."""
        for obj in objects:
            self.flow(wrapped, self.field(obj, "__wrapped__"))

    def _register_overload(self, objects: Sequence[Object], dispatcher: Object) -> None:
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_FUNCTION:
                self.add(self.field(dispatcher, "any"), obj)

    def _call_property_decorator(self, obj: Object, call: Call) -> None:
        """Call `x.setter`, `x.getter` or `x.deleter`: returns a new property."""
        _, original, part, _ = self.objects[obj >> 1]
        changed = self.object(OBJ_PROPERTY, call.where, part)
        for name in ("fget", "fset", "fdel"):
            self.flow(self.field(original, name), self.field(changed, name))
        self.flow(
            call.argument(0), self.field(changed, {"setter": "fset", "getter": "fget"}.get(part, "fdel"))
        )
        self.add(call.dst, changed)

    def _call_partial(self, obj: Object, call: Call) -> None:
        # Once per site: partials that refer to each other would be followed along every path.
        key = (obj, call.where, call.role, call.dst)
        if key not in self._entered_partials:
            self._entered_partials.add(key)
            bound: Call = self.objects[obj >> 1].second
            inner = call.with_args([*bound.args, *call.args])
            self.call_node(self.field(obj, "callee"), inner, obj & WEAK)

    def enter_function(self, obj: Object, receiver: Object | None, call: Call) -> None:
        """Call a function: record it, pass the arguments and return the result."""
        key = (obj, receiver, call)
        if key in self._entered_calls:
            return
        self._entered_calls.add(key)
        _, function = self.function(obj)
        skip = int(receiver is not None)
        original = self.original(obj)
        passed, unfilled, is_accepted = self.match_arguments(original, call.args, skip)
        if not is_accepted and call.role in DIRECT_ROLES:
            # Python would raise a TypeError.
            return
        weak = obj & WEAK
        self.record(call, original | weak)
        if not weak:
            self.arguments.setdefault((call.where, original), (call.args, skip))
            self.invoked.add(original)
            obj = self.copy_for(obj, call.where)
            nodes = self._parameter_nodes(obj)
            if receiver is not None and nodes:
                self.add(nodes[0], receiver)
            for each in passed:
                how = function.parameters[each.parameter].how
                self._pass_argument(call.args[each.argument][2], how, nodes[each.parameter], each)
            for number in unfilled:
                self.flow(self.function_node(obj, function.parameters[number].default), nodes[number])
        self._flow_result(obj, receiver, call, passed, unfilled)

    def match_arguments(self, function: Object, args: Sequence[Arg], skip: int) -> ArgumentMatch:
        """Match arguments to the parameters of a function that is no copy; cached by the form of the call."""
        key = (function, skip, tuple([(how, keyword) for how, keyword, _ in args]))
        result = self._argument_matches.get(key)
        if result is None:
            parameters = self.function(function)[1].parameters
            passed, unfilled = match_parameters(parameters, args, skip)
            result = self._argument_matches[key] = ArgumentMatch(
                passed, unfilled, is_accepted_call(parameters, args, passed, unfilled)
            )
        return result

    def _parameter_nodes(self, obj: Object) -> list[int]:
        """Return the nodes of the parameters of a function or copy."""
        nodes = self._parameter_node_lists.get(obj)
        if nodes is None:
            parameters = self.function(obj)[1].parameters
            nodes = self._parameter_node_lists[obj] = [
                self.function_node(obj, each.node) for each in parameters
            ]
        return nodes

    def _pass_argument(self, src: int, how: str, dst: int, each: PassedArgument) -> None:
        """Let the objects of an argument flow into a parameter of kind `how`."""
        if src < 0:
            return
        if each.is_unpacked:
            if how == "kwarg" or (how == "vararg" and each.key is None):
                if how == "kwarg":
                    self.subscribe(dst, self._merge_into, src)
                    return
                element = self.new_node()
                self.subscribe(src, self._unpack_objects, None, element)
                self.subscribe(dst, self._put_into, None, element, NOWHERE)
                return
            self.subscribe(src, self._pass_unpacked, each.key, dst)
        elif how in VARIADIC:
            self.subscribe(dst, self._put_into, each.key, src, NOWHERE)
        else:
            self.flow(src, dst)

    def _pass_unpacked(self, objects: Sequence[Object], key: str | None, dst: int) -> None:
        for obj in objects:
            if self.objects[obj >> 1].kind == OBJ_CONTAINER and self.container_kind(obj) in UNPACKED_BY_KEY:
                for node in self.element_nodes(obj, key):
                    self.flow(node, dst, obj & WEAK)
            else:
                self.iterate_objects([obj], dst, NOWHERE)

    def _flow_result(
        self,
        obj: Object,
        receiver: Object | None,
        call: Call,
        passed: Sequence[PassedArgument],
        unfilled: Sequence[int],
    ) -> None:
        """Let the result of a function flow into the node of the call."""
        if call.dst < 0:
            return
        _, function = self.function(obj)
        weak = obj & WEAK
        if function.is_generator:
            self.add(call.dst, self.object(OBJ_GENERATOR, obj & ~1) | weak)
            return
        if function.is_async:
            self.add(call.dst, self.object(OBJ_COROUTINE, obj & ~1) | weak)
            return
        self.flow(self.function_node(obj, function.result), call.dst, weak)
        for number in function.returned:
            parameter = function.parameters[number]
            if number == 0 and receiver is not None:
                self.add(call.dst, receiver | weak)
            given = [each for each in passed if each.parameter == number]
            for each in given:
                if not each.is_unpacked:
                    self.flow(call.args[each.argument][2], call.dst, weak)
            if any(each.is_unpacked for each in given) or parameter.how in VARIADIC:
                self.flow(self.function_node(obj, parameter.node), call.dst, weak)
            if number in unfilled:
                self.flow(self.function_node(obj, parameter.default), call.dst, weak)

    def _call_external_name(self, obj: Object, name: str, call: Call, *, is_member: bool = False) -> None:
        """Call an external function or class, by its model or by what its name suggests."""
        self.record(call, obj, EXTERNAL_MEMBER if is_member else "")
        model = MODELS.get(name)
        if model is not None:
            model(self, call, obj)
        elif call.is_decorator:
            # An unknown decorator is assumed to return the definition.
            self.flow(call.argument(0), call.dst)
        elif name.endswith(".__new__"):
            self.subscribe(call.argument(0), self.add_instances, call.dst, 0)
        elif name in DECORATORS:
            self.flow(call.argument(0), call.dst)
        elif call.dst >= 0 and is_class_like(name):
            self.add(call.dst, self.object(OBJ_EXTERNAL_INSTANCE, name) | obj & WEAK)
        elif call.dst >= 0 and makes_instance(name):
            self.add(call.dst, self.object(OBJ_EXTERNAL_INSTANCE, name.rpartition(".")[0]) | obj & WEAK)

    def call_accessor(
        self,
        node: int,
        args: Sequence[Object],
        dst: int,
        receiver: Object,
        name: str,
        bound: Object | None = None,
        how: str = "get",
        value: int = -1,
    ) -> None:
        key = (node, dst, receiver, name, how, value)
        if key in self._accessors_called:
            return
        self._accessors_called.add(key)
        given = []
        for arg in args:
            node_of_arg = self.new_node()
            self.add(node_of_arg, arg)
            given.append(positional(node_of_arg))
        if value >= 0:
            given.append(positional(value))
        call = Call(NOWHERE, given, dst, role="attribute")
        self.subscribe(node, self._call_accessor, call, receiver & ~1, name, how, bound)

    def _call_accessor(
        self,
        objects: Sequence[Object],
        call: Call,
        receiver: Object,
        name: str,
        how: str,
        bound: Object | None,
    ) -> None:
        for obj in objects:
            kind, first, second, _ = self.objects[obj >> 1]
            function = first if kind == OBJ_BOUND_METHOD else obj
            if self.objects[function >> 1].kind != OBJ_FUNCTION:
                continue
            called = self.accessor_calls.setdefault((name, how), {})
            called.setdefault(receiver, {})[self.original(function)] = None
            if self.function(function)[1].name == "__getattr__":
                # One copy per attribute name, because the result of `__getattr__` depends on it.
                function = self.copy_of(function, (call.where[0], name)) | function & WEAK
            self.enter_function(function, second if kind == OBJ_BOUND_METHOD else bound, call)

    def call_special_method(self, objects: Sequence[Object], names: Sequence[str], call: Call) -> None:
        """Call the first of these special methods that the class of each instance has."""
        names = tuple(names)
        for obj in objects:
            kind, first, _, _ = self.objects[obj >> 1]
            if kind == OBJ_INSTANCE:
                self.watch_attribute(first, names[0], self._call_first_special, obj, names, call)
            elif kind == OBJ_CLASS:
                self._call_class_special(obj, names, call)

    def _call_class_special(self, obj: Object, names: Sequence[str], call: Call) -> None:
        for value in self.metaclass_nodes(obj):
            self.subscribe(value, self._call_metaclass_special, obj, names, call)

    def _call_metaclass_special(
        self, metas: Sequence[Object], obj: Object, names: Sequence[str], call: Call
    ) -> None:
        for meta in metas:
            if self.objects[meta >> 1].kind == OBJ_CLASS:
                self.call_special_method([self.object(OBJ_INSTANCE, meta & ~1)], names, call)

    def _call_first_special(self, _: Object | None, obj: Object, names: Sequence[str], call: Call) -> None:
        cls = self.objects[obj >> 1].first
        for name in names:
            holder = self.defining_class(cls, name)
            if self.is_repository_class(holder):
                self.call_node(self.attribute_node(obj, name), call, obj & WEAK)
                return
