"""Calls: what runs, what it is given, and what comes back.

    f(x)          the parameter of f holds what x holds, the call what f returns
    obj.m(x)      `self` holds obj
    g()           of a generator: something to iterate over; of a coroutine: something to await

A call through a hint gives a result, which is a hint too, but passes nothing into the function. A function
that returns a parameter as it is gives each caller its own argument back.

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
from codeanatomy.relate.values.arguments import GATHERING, Matched, Passed, fits, match
from codeanatomy.relate.values.containers import CONTAINERS
from codeanatomy.relate.values.external_names import is_class_like, makes_instance
from codeanatomy.relate.values.function_copies import Copies
from codeanatomy.relate.values.models.builtins import BUILTIN_MODELS
from codeanatomy.relate.values.models.containers import container_method
from codeanatomy.relate.values.models.library import DECORATORS, LIBRARY_MODELS
from codeanatomy.relate.values.pending_call import NOWHERE, Call, Where, plain
from codeanatomy.relate.values.solver import WEAK, Object, best

MODELS = {**BUILTIN_MODELS, **LIBRARY_MODELS}
# Calls that a call stands for, one for the other.
MAX_DEPTH = 10
# Role of what is called as a member of something outside.
MEMBER = "member"
# Roles of what is called itself, and not on behalf of something outside.
PRIMARY = frozenset({"call", "decorator"})


class Calls(Copies):
    """What is called where."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(programs, limit)
        self.calls: dict[Where, dict[Object, str]] = {}
        self.arguments: dict[tuple[Where, Object], tuple[Sequence[Arg], int]] = {}
        # Sites at which more is called than is told.
        self.crowded: set[Where] = set()
        self.invoked: set[Object] = set()
        self.dataclasses: set[Object] = set()
        self._entered: set[tuple[Any, ...]] = set()
        self._matched: dict[tuple[Any, ...], Matched] = {}
        self._parameters: dict[Object, list[int]] = {}
        self._hooked: set[tuple[Any, ...]] = set()
        self._partials: set[tuple[Any, ...]] = set()
        # What a call of a thing does, by its kind.
        self._callable: Mapping[str, Callable[[Object, Call], None]] = {
            OBJ_FUNCTION: self._call_function,
            OBJ_BOUND_METHOD: self._call_bound,
            OBJ_CONTEXT_FUNCTION: self._call_context,
            OBJ_CLASS: self._call_class,
            OBJ_TYPE_CALL: self._call_type,
            OBJ_INSTANCE: self._call_instance,
            OBJ_EXTERNAL: self._call_outside,
            OBJ_EXTERNAL_MEMBER: self._call_member,
            OBJ_EXTERNAL_INSTANCE: self._call_unknown,
            OBJ_CONTAINER_METHOD: self._call_method,
            OBJ_STATIC_OR_CLASS_METHOD: self._call_wrapped,
            OBJ_PARTIAL: self._call_partial,
            OBJ_SINGLEDISPATCH: self._call_dispatcher,
            OBJ_SINGLEDISPATCH_REGISTER: self._call_register,
            OBJ_WRAPS: self._call_wraps,
            OBJ_HINTED_CALLABLE: self._call_hinted,
            OBJ_PROPERTY_DECORATOR: self._call_property,
        }

    def bind_partial(self, thing: Object, receiver: Object, node: int) -> None:
        """A `partialmethod` on an instance: a partial that begins with it."""
        _, where, held, _ = self.things[thing >> 1]
        first = self.node()
        self.add(first, receiver)
        made = self.thing(OBJ_PARTIAL, (where, receiver), held.with_args([plain(first), *held.args]))
        self.flow(self.field(thing, "callee"), self.field(made, "callee"))
        self.add(node, made)

    def entered(self, things: Sequence[Object], dst: int, where: Where) -> None:
        """What `with` binds, and what it runs."""
        raise NotImplementedError

    def instances(self, things: Sequence[Object], dst: int, weak: int) -> None:
        """Instances of classes, of the repository or outside."""
        raise NotImplementedError

    def instantiate(self, cls: Object, call: Call) -> None:
        """A class is called."""
        raise NotImplementedError

    def construct(self, cls: Object, call: Call) -> None:
        """An instance is made."""
        raise NotImplementedError

    def key(self, call: Call, place: int) -> str | None:
        """A constant argument as Python spells it."""
        file, site = call.where
        texts = self.programs[file].texts.get(site, ()) if file >= 0 else ()
        return texts[place] if place < len(texts) else None

    def text(self, call: Call, place: int) -> str | None:
        """A constant argument that is a string."""
        key = self.key(call, place)
        return key[1:-1] if key and key[0] in "'\"" else None

    def wait_call(self, node: int, call: Call, weak: int = 0) -> None:
        """Call everything that is in a node."""
        self.wait(node, self._invoke_weakly if weak else self.invoke, call)

    def _invoke_weakly(self, things: Sequence[Object], call: Call) -> None:
        self.invoke([thing | WEAK for thing in things], call)

    def record(self, call: Call, thing: Object, role: str = "") -> None:
        """Note that a thing is called at a site."""
        if call.where[0] < 0:
            return
        found = self.calls.get(call.where)
        if found is None:
            found = self.calls[call.where] = {}
        elif thing in found:
            return
        # Copies of a function share their sites; a class comes with its constructors.
        if len(found) >= self.limit:
            classes = sum(self.things[each >> 1].kind == OBJ_CLASS for each in found)
            if len(found) - 2 * classes >= self.limit:
                self.crowded.add(call.where)
                return
        found[thing] = role or call.role

    def called(self, where: Where) -> list[tuple[Object, str]]:
        """What is called at a site, and as what.

        Hints count where there is nothing better; a member of something outside, of which only the name is
        known, is no better than a hint that names a function of the repository.
        """
        found = self.calls.get(where)
        if not found:
            return []
        strong = [thing for thing in found if not thing & WEAK]
        if len(strong) == len(found) and MEMBER not in found.values():
            return list(found.items())
        hinted = [
            thing
            for thing in found
            if thing & WEAK and self.things[thing >> 1].kind in (OBJ_FUNCTION, OBJ_CLASS)
        ]
        if hinted and all(found[thing] == MEMBER for thing in strong):
            return [(thing, found[thing]) for thing in hinted]
        known = [thing for thing in strong if found[thing] != MEMBER]
        if any(self.things[thing >> 1].kind == OBJ_FUNCTION and found[thing] in PRIMARY for thing in known):
            return [(thing, found[thing]) for thing in known]
        return [(thing, found[thing]) for thing in best(found)]

    def invoke(self, things: Sequence[Object], call: Call) -> None:
        """Call things."""
        if call.depth > MAX_DEPTH:
            return
        for thing in things:
            run = self._callable.get(self.things[thing >> 1].kind)
            if run is not None:
                run(thing, call)

    def _call_function(self, thing: Object, call: Call) -> None:
        self.enter(thing, None, call)

    def _call_bound(self, thing: Object, call: Call) -> None:
        _, function, receiver, _ = self.things[thing >> 1]
        self._call_with(function | thing & WEAK, receiver, call)

    def _call_context(self, thing: Object, call: Call) -> None:
        self._call_with(thing, None, call)

    def _call_with(self, function: Object, receiver: Object | None, call: Call) -> None:
        """A function, or one that `contextmanager` has wrapped."""
        kind, inner, _, _ = self.things[function >> 1]
        weak = function & WEAK
        if kind == OBJ_CONTEXT_FUNCTION:
            self.enter(inner | weak, receiver, call.with_args(call.args, -1))
            self.add(call.dst, self.thing(OBJ_CONTEXT_MANAGER, inner) | weak)
        else:
            self.enter(function, receiver, call)

    def _call_class(self, thing: Object, call: Call) -> None:
        self.instantiate(thing, call)

    def _call_type(self, thing: Object, call: Call) -> None:
        self.construct(self.things[thing >> 1].one, call)

    def _call_instance(self, thing: Object, call: Call) -> None:
        self.special([thing], ["__call__"], call)

    def _call_outside(self, thing: Object, call: Call) -> None:
        self._outside(thing, self.things[thing >> 1].one, call)

    def _call_member(self, thing: Object, call: Call) -> None:
        _, name, receiver, _ = self.things[thing >> 1]
        self._outside(self.thing(OBJ_EXTERNAL, name) | thing & WEAK, name, call, is_member=True)
        if receiver is not None:
            self._call_inherited(name, receiver, call)

    def _call_inherited(self, name: str, receiver: Object, call: Call) -> None:
        """What a method from outside does with an instance of the repository."""
        owner, _, method = name.rpartition(".")
        if name == "threading.Thread.start":
            self.wait_call(self.attr(receiver, "run"), call.with_args([], -1, "callback"))
        elif owner in CONTAINERS and self.things[receiver >> 1].kind == OBJ_INSTANCE:
            container_method(self, self.contents(receiver, CONTAINERS[owner]), method, call)

    def _call_unknown(self, thing: Object, call: Call) -> None:
        """An instance of a class outside: as a decorator it is taken to give the definition back."""
        if call.is_decorator:
            self.flow(call.argument(0), call.dst)

    def _call_method(self, thing: Object, call: Call) -> None:
        """A method of a builtin container."""
        _, container, name, _ = self.things[thing >> 1]
        self.record(call, self.thing(OBJ_EXTERNAL, f"{self.type_of(container)}.{name}") | thing & WEAK)
        container_method(self, container, name, call)

    def _call_wrapped(self, thing: Object, call: Call) -> None:
        self.wait_call(self.field(thing, "inner"), call, thing & WEAK)

    def _call_dispatcher(self, thing: Object, call: Call) -> None:
        self.wait_call(self.field(thing, "any"), call, thing & WEAK)

    def _call_register(self, thing: Object, call: Call) -> None:
        """`@f.register`, with or without the type in parentheses."""
        dispatcher = self.things[thing >> 1].one
        for place in range(len(call.args)):
            self.wait(call.argument(place), self._registered, dispatcher)
        if call.is_decorator:
            self.flow(call.argument(0), call.dst)
        else:
            self.add(call.dst, thing)

    def _call_wraps(self, thing: Object, call: Call) -> None:
        """`functools.wraps(f)` gives what it is applied to, which remembers f."""
        self.wait(call.argument(0), self.wrapping, self.field(thing, "wrapped"))
        self.flow(call.argument(0), call.dst)

    def _call_hinted(self, thing: Object, call: Call) -> None:
        """Something that an annotation says is called, and what that gives."""
        self.flow(self.field(thing, "result"), call.dst, WEAK)

    def wrapping(self, things: Sequence[Object], wrapped: int) -> None:
        """Functions remember what they wrap."""
        for thing in things:
            self.flow(wrapped, self.field(thing, "__wrapped__"))

    def _registered(self, things: Sequence[Object], dispatcher: Object) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == OBJ_FUNCTION:
                self.add(self.field(dispatcher, "any"), thing)

    def _call_property(self, thing: Object, call: Call) -> None:
        """`x.setter` and the like make another property."""
        _, prop, part, _ = self.things[thing >> 1]
        made = self.thing(OBJ_PROPERTY, call.where, part)
        for name in ("fget", "fset", "fdel"):
            self.flow(self.field(prop, name), self.field(made, name))
        self.flow(call.argument(0), self.field(made, {"setter": "fset", "getter": "fget"}.get(part, "fdel")))
        self.add(call.dst, made)

    def _call_partial(self, thing: Object, call: Call) -> None:
        # Once for a site: partials that hold each other would be followed along every path.
        key = (thing, call.where, call.role, call.dst)
        if key not in self._partials:
            self._partials.add(key)
            held: Call = self.things[thing >> 1].two
            inner = call.with_args([*held.args, *call.args])
            self.wait_call(self.field(thing, "callee"), inner, thing & WEAK)

    def enter(self, thing: Object, receiver: Object | None, call: Call) -> None:
        """A function runs with the arguments of a call."""
        key = (thing, receiver, call)
        if key in self._entered:
            return
        self._entered.add(key)
        _, function = self.function(thing)
        skip = int(receiver is not None)
        original = self.original(thing)
        passed, left, is_accepted = self.matched(original, call.args, skip)
        if not is_accepted and call.role in PRIMARY:
            # Python would refuse it.
            return
        weak = thing & WEAK
        self.record(call, original | weak)
        if not weak:
            self.arguments.setdefault((call.where, original), (call.args, skip))
            self.invoked.add(original)
            thing = self.copy_for(thing, call.where)
            nodes = self._parameter_nodes(thing)
            if receiver is not None and nodes:
                self.add(nodes[0], receiver)
            for each in passed:
                how = function.parameters[each.parameter].how
                self._pass(call.args[each.argument][2], how, nodes[each.parameter], each)
            for number in left:
                self.flow(self.node_of(thing, function.parameters[number].default), nodes[number])
        self._result(thing, receiver, call, passed, left)

    def matched(self, function: Object, args: Sequence[Arg], skip: int) -> Matched:
        """What is passed to a function that is no copy; it is called in few ways from many places."""
        key = (function, skip, tuple([(how, keyword) for how, keyword, _ in args]))
        found = self._matched.get(key)
        if found is None:
            parameters = self.function(function)[1].parameters
            passed, left = match(parameters, args, skip)
            found = self._matched[key] = Matched(passed, left, fits(parameters, args, passed, left))
        return found

    def _parameter_nodes(self, thing: Object) -> list[int]:
        """The nodes of the parameters of a function, or of a copy."""
        found = self._parameters.get(thing)
        if found is None:
            parameters = self.function(thing)[1].parameters
            found = self._parameters[thing] = [self.node_of(thing, each.node) for each in parameters]
        return found

    def _pass(self, src: int, how: str, dst: int, each: Passed) -> None:
        if src < 0:
            return
        if each.is_spread:
            if how == "kwarg" or (how == "vararg" and each.key is None):
                if how == "kwarg":
                    self.wait(dst, self._merge_all, src)
                    return
                part = self.node()
                self.wait(src, self._unpacked, None, part)
                self.wait(dst, self._put_all, None, part, NOWHERE)
                return
            self.wait(src, self._spread, each.key, dst)
        elif how in GATHERING:
            self.wait(dst, self._put_all, each.key, src, NOWHERE)
        else:
            self.flow(src, dst)

    def _spread(self, things: Sequence[Object], key: str | None, dst: int) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == OBJ_CONTAINER and self.kind_of(thing) in (
                "tuple",
                "list",
                "dict",
            ):
                for node in self.element(thing, key):
                    self.flow(node, dst, thing & WEAK)
            else:
                self.each([thing], dst, NOWHERE)

    def _result(
        self,
        thing: Object,
        receiver: Object | None,
        call: Call,
        passed: Sequence[Passed],
        left: Sequence[int],
    ) -> None:
        if call.dst < 0:
            return
        _, function = self.function(thing)
        weak = thing & WEAK
        if function.is_generator:
            self.add(call.dst, self.thing(OBJ_GENERATOR, thing & ~1) | weak)
            return
        if function.is_async:
            self.add(call.dst, self.thing(OBJ_COROUTINE, thing & ~1) | weak)
            return
        self.flow(self.node_of(thing, function.result), call.dst, weak)
        for number in function.returned:
            parameter = function.parameters[number]
            if number == 0 and receiver is not None:
                self.add(call.dst, receiver | weak)
            given = [each for each in passed if each.parameter == number]
            for each in given:
                if not each.is_spread:
                    self.flow(call.args[each.argument][2], call.dst, weak)
            if any(each.is_spread for each in given) or parameter.how in GATHERING:
                self.flow(self.node_of(thing, parameter.node), call.dst, weak)
            if number in left:
                self.flow(self.node_of(thing, parameter.default), call.dst, weak)

    def _outside(self, thing: Object, name: str, call: Call, *, is_member: bool = False) -> None:
        self.record(call, thing, MEMBER if is_member else "")
        model = MODELS.get(name)
        if model is not None:
            model(self, call, thing)
        elif call.is_decorator:
            # Whatever it makes of the definition still stands for it.
            self.flow(call.argument(0), call.dst)
        elif name.endswith(".__new__"):
            self.wait(call.argument(0), self.instances, call.dst, 0)
        elif name in DECORATORS:
            self.flow(call.argument(0), call.dst)
        elif call.dst >= 0 and is_class_like(name):
            self.add(call.dst, self.thing(OBJ_EXTERNAL_INSTANCE, name) | thing & WEAK)
        elif call.dst >= 0 and makes_instance(name):
            self.add(call.dst, self.thing(OBJ_EXTERNAL_INSTANCE, name.rpartition(".")[0]) | thing & WEAK)

    def run_hook(
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
        if key in self._hooked:
            return
        self._hooked.add(key)
        given = []
        for arg in args:
            holder = self.node()
            self.add(holder, arg)
            given.append(plain(holder))
        if value >= 0:
            given.append(plain(value))
        call = Call(NOWHERE, given, dst, role="attribute")
        self.wait(node, self._run_hook, call, receiver & ~1, name, how, bound)

    def _run_hook(
        self,
        things: Sequence[Object],
        call: Call,
        receiver: Object,
        name: str,
        how: str,
        bound: Object | None,
    ) -> None:
        for thing in things:
            kind, one, two, _ = self.things[thing >> 1]
            function = one if kind == OBJ_BOUND_METHOD else thing
            if self.things[function >> 1].kind != OBJ_FUNCTION:
                continue
            run = self.attr_calls.setdefault((name, how), {})
            run.setdefault(receiver, {})[self.original(function)] = None
            if self.function(function)[1].name == "__getattr__":
                # What is asked for is told by name, so names must not mix.
                function = self.copy_of(function, (call.where[0], name)) | function & WEAK
            self.enter(function, two if kind == OBJ_BOUND_METHOD else bound, call)

    def special(self, things: Sequence[Object], names: Sequence[str], call: Call) -> None:
        """Call the first of these special methods that the class of each instance has."""
        names = tuple(names)
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == OBJ_INSTANCE:
                self.watch(one, names[0], self._first_special, thing, names, call)
            elif kind == OBJ_CLASS:
                self._on_class_special(thing, names, call)

    def _on_class_special(self, thing: Object, names: Sequence[str], call: Call) -> None:
        for value in self.metaclasses(thing):
            self.wait(value, self._meta_special, thing, names, call)

    def _meta_special(self, metas: Sequence[Object], thing: Object, names: Sequence[str], call: Call) -> None:
        for meta in metas:
            if self.things[meta >> 1].kind == OBJ_CLASS:
                self.special([self.thing(OBJ_INSTANCE, meta & ~1)], names, call)

    def _first_special(self, _: Object | None, thing: Object, names: Sequence[str], call: Call) -> None:
        cls = self.things[thing >> 1].one
        for name in names:
            holder = self.find(cls, name)
            if self.is_own(holder):
                self.wait_call(self.attr(thing, name), call, thing & WEAK)
                return
