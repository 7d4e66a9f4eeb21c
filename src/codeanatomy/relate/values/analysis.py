"""The rules of values: what calls, iteration, subscripts and the like do to the sets of objects.

    values = Values(programs)
    values.solve()
    values.calls[file, site]        # what is called there: things, hints with their lowest bit set

Rules run in three rounds, each to its fixpoint: names, imports and attributes; then calls; then, for
functions that nothing in the repository calls, what their parameters must be (`self` is an instance of its
class, a default is one of the values) and may be (an annotation is a hint). A call through a hint gives a
result, which is a hint too, but passes nothing into the function.

The rules lie in layers, each on the one before: `solver`, `world`, `hierarchy`, `attributes`, `containers`,
`copies`, `calls`, `classes`. All instances of a class are one object. Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codeanatomy.relate.program import (
    HINT_CALLABLE,
    HINT_CLASS,
    HINT_CONTAINER,
    HINT_DICT,
    HINT_INSTANCE,
    HINT_TUPLE,
    HINT_UNION,
    NOTHING,
    OBJ_CLASS,
    OBJ_CLOSING,
    OBJ_CONSTANT,
    OBJ_CONTAINER,
    OBJ_CONTEXT_MANAGER,
    OBJ_EXTERNAL,
    OBJ_EXTERNAL_INSTANCE,
    OBJ_FUNCTION,
    OBJ_HINTED_CALLABLE,
    OBJ_INSTANCE,
    OBJ_PROPERTY,
    OBJ_STRING,
    OBJ_STRING_PREFIX,
    OP_ANNOTATE,
    OP_AWAIT,
    OP_BINARY,
    OP_CALL,
    OP_COPY,
    OP_CREATE_CLASS,
    OP_DELETE_ATTRIBUTE,
    OP_EXCEPT,
    OP_IMPORT,
    OP_ISINSTANCE,
    OP_ITERATE,
    OP_LOAD_ATTRIBUTE,
    OP_LOAD_ITEM,
    OP_MAKE,
    OP_RAISE,
    OP_SPECIAL_METHOD,
    OP_STORE_ATTRIBUTE,
    OP_STORE_ITEM,
    OP_STORE_KEY,
    OP_UNBOUND_NAME,
    OP_UNPACK,
    OP_UPDATE,
    OP_WITH,
    OP_YIELD_FROM,
    Op,
    Program,
)
from codeanatomy.relate.values.classes import Classes
from codeanatomy.relate.values.external_names import is_subclass
from codeanatomy.relate.values.pending_call import NOWHERE, Call, Where, plain
from codeanatomy.relate.values.solver import WEAK, Object

# What the right side is asked of a comparison; of other operators it is `r` and the name.
REFLECTED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
# `object.__ne__` asks `__eq__`; what `total_ordering` adds asks the one that is there.
FALLBACKS = {
    "ne": ("__ne__", "__eq__"),
    **{
        name: tuple(f"__{each}__" for each in (name, "lt", "le", "gt", "ge"))
        for name in ("lt", "le", "gt", "ge")
    },
}
# Of annotations: what stands there is no class.
SPECIAL_FORMS = ("typing.", "typing_extensions.", "collections.abc.")


class Values(Classes):
    """The value analysis of a repository."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(programs, limit)
        # All exceptions of the repository's classes.
        self.raised = self.node()
        self._raised_in = [self.node() for _ in self.programs]
        self._rounds = (
            {
                OP_COPY: self._copy,
                OP_MAKE: self._make,
                OP_UNBOUND_NAME: self._open,
                OP_IMPORT: self._import,
                OP_LOAD_ATTRIBUTE: self._load,
            },
            {
                OP_STORE_ATTRIBUTE: self._store,
                OP_CALL: self._call,
                OP_LOAD_ITEM: self._item,
                OP_STORE_ITEM: self._set_item,
                OP_STORE_KEY: self._set_key,
                OP_UPDATE: self._update,
                OP_ITERATE: self._iterate,
                OP_UNPACK: self._unpack,
                OP_WITH: self._with,
                OP_AWAIT: self._await,
                OP_YIELD_FROM: self._yield_from,
                OP_SPECIAL_METHOD: self._special,
                OP_BINARY: self._operator,
                OP_RAISE: self._raise,
                OP_EXCEPT: self._except,
                OP_ISINSTANCE: self._isinstance,
                OP_DELETE_ATTRIBUTE: self._delete,
                OP_CREATE_CLASS: self.create_class,
            },
            {OP_ANNOTATE: self._hint, OP_EXCEPT: self._caught_unraised},
        )

    def solve(self) -> None:
        """All rounds."""
        for number, rules in enumerate(self._rounds):
            self._round = number
            for copy in range(len(self.copies)):
                self._apply_to_copy(copy, (rules,))
            for file, program in enumerate(self.programs):
                for op in program.ops:
                    rule = rules.get(op[0])
                    if rule is not None:
                        rule(file, op)
                if number == 0:
                    for index in range(len(program.classes)):
                        self.follow_bases(file, index)
            self.run()
            if number == 1:
                self._enter_uncalled()
                self.run()
        self._hint_results()
        self._apply_unknown_decorators()
        self.run()

    def _copy(self, file: int, op: Op) -> None:
        self.flow(self.at(file, op[1]), self.at(file, op[2]))

    def _make(self, file: int, op: Op) -> None:
        _, node, kind, what = op
        if kind == OBJ_CONSTANT:
            self.add(self.at(file, node), self.thing(OBJ_EXTERNAL_INSTANCE, f"builtins.{what}"))
            return
        if kind in (OBJ_STRING, OBJ_STRING_PREFIX):
            self.add(self.at(file, node), self.thing(kind, what))
            return
        thing = self.thing(
            kind, file, what, self._copy_number if kind in (OBJ_FUNCTION, OBJ_CONTAINER) else None
        )
        if kind == OBJ_CONTAINER:
            self._kinds[thing], self._sizes[thing] = self.programs[file].containers[what]
        self.add(self.at(file, node), thing)

    def _open(self, file: int, op: Op) -> None:
        self.unbound(file, op[1], self.at(file, op[2]))

    def _import(self, file: int, op: Op) -> None:
        self.imported(file, op[2], self.at(file, op[1]))

    def _load(self, file: int, op: Op) -> None:
        self.wait(self.at(file, op[1]), self.load_from, op[2], self.at(file, op[3]))

    def _store(self, file: int, op: Op) -> None:
        src = self.at(file, op[3])
        self.wait(self.at(file, op[1]), self.store, op[2], self.node() if src < 0 else src)

    def _delete(self, file: int, op: Op) -> None:
        self.wait(self.at(file, op[1]), self._delete_from, op[2])

    def _delete_from(self, things: Sequence[Object], name: str) -> None:
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == OBJ_INSTANCE:
                if self.is_own(self.find(one, "__delattr__")):
                    text = self.thing(OBJ_STRING, name)
                    self.run_hook(self.attr(thing, "__delattr__"), [text], -1, thing, name, how="del")
                holder = self.find(one, name)
                if self.is_own(holder):
                    self.wait(self.class_field(holder, name), self._run_delete, thing, name)

    def _run_delete(self, things: Sequence[Object], receiver: Object, name: str) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == OBJ_PROPERTY:
                hook = self.field(thing, "fdel")
                self.run_hook(hook, [], -1, receiver, name, bound=receiver, how="del")

    def _set_item(self, file: int, op: Op) -> None:
        _, received, key, src, site = op
        self.wait(self.at(file, received), self._put_all, key, self.at(file, src), (file, site))

    def _set_key(self, file: int, op: Op) -> None:
        self.wait(self.at(file, op[1]), self._put_key, self.at(file, op[2]))

    def _update(self, file: int, op: Op) -> None:
        self.wait(self.at(file, op[1]), self._merge_all, self.at(file, op[2]))

    def _item(self, file: int, op: Op) -> None:
        _, received, key, dst, site, key_value = op
        call = Call((file, site), [plain(self.at(file, key_value))], self.at(file, dst), role="subscript")
        self.wait(self.at(file, received), self._items, key, call)

    def _iterate(self, file: int, op: Op) -> None:
        _, src, dst, site = op
        self.elements(self.at(file, src), self.at(file, dst), (file, site))

    def _unpack(self, file: int, op: Op) -> None:
        _, src, place, dst = op
        self.wait(self.at(file, src), self._unpacked, place, self.at(file, dst))

    def _with(self, file: int, op: Op) -> None:
        _, src, dst, site = op
        self.wait(self.at(file, src), self.entered, self.at(file, dst), (file, site))

    def entered(self, things: Sequence[Object], dst: int, where: Where) -> None:
        """What `with` binds, and what it runs."""
        is_async = self.programs[where[0]].sites[where[1]].role == "async_with"
        enter, leave = ("__aenter__", "__aexit__") if is_async else ("__enter__", "__exit__")
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == OBJ_INSTANCE:
                if not self.is_own(self.find(one, enter)):
                    # From outside: nearly all give themselves.
                    self.add(dst, thing)
                given = self.node() if is_async else dst
                self.special([thing], [enter], Call(where, [], given, role="with"))
                if is_async:
                    self.wait(given, self._awaited, dst, where)
                self.special([thing], [leave], Call(where, [], -1, role="with"))
            elif kind == OBJ_CLOSING:
                self.flow(self.field(thing, "inner"), dst, thing & WEAK)
                self.wait(self.field(thing, "inner"), self._closed, Call(where, [], -1, role="with"))
            elif kind == OBJ_CONTEXT_MANAGER:
                self.flow(self.node_of(one, self.function(one)[1].yields), dst, thing & WEAK)
            elif kind == OBJ_EXTERNAL_INSTANCE:
                self.add(dst, thing)

    def _closed(self, things: Sequence[Object], call: Call) -> None:
        """What `closing` closes at the end."""
        for thing in things:
            if self.things[thing >> 1].kind == OBJ_INSTANCE:
                self.wait_call(self.attr(thing, "close"), call)

    def _await(self, file: int, op: Op) -> None:
        _, src, dst, site = op
        self.wait(self.at(file, src), self._awaited, self.at(file, dst), (file, site))

    def _yield_from(self, file: int, op: Op) -> None:
        self.wait(self.at(file, op[1]), self._returned_by, self.at(file, op[2]))

    def _special(self, file: int, op: Op) -> None:
        _, received, names, args, dst, site = op
        role = self.programs[file].sites[site].role
        given = [(how, word, self.at(file, node)) for how, word, node in args]
        call = Call((file, site), given, self.at(file, dst), role=role)
        self.wait(self.at(file, received), self.special, tuple(names), call)

    def _operator(self, file: int, op: Op) -> None:
        _, left, right, name, dst, site = op
        where = (file, site)
        first, second = self.at(file, left), self.at(file, right)
        bare = name.removeprefix("i")
        names = tuple(dict.fromkeys((f"__{name}__", f"__{bare}__")))
        names = FALLBACKS.get(name, names)
        call = Call(where, [plain(second)], self.at(file, dst), role="operator")
        self.wait(first, self._operate, names, call)
        reflected = Call(where, [plain(first)], self.at(file, dst), role="operator")
        self.wait(second, self._reflect, f"__{REFLECTED.get(name, 'r' + bare)}__", names, first, reflected)

    def _operate(self, things: Sequence[Object], names: Sequence[str], call: Call) -> None:
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == OBJ_INSTANCE:
                self.special([thing], names, call)
            elif kind == OBJ_CONTAINER:
                both = self.make_container(self.kind_of(thing), call.where)
                self.put(both, None, self.field(thing, "[*]"))
                self.wait(call.argument(0), self.merge_from, both)
                self.add(call.dst, both)
            elif kind == OBJ_STRING or (
                kind == OBJ_EXTERNAL_INSTANCE and one.startswith(("builtins.", "pathlib."))
            ):
                self.add(
                    call.dst, self.thing(OBJ_EXTERNAL_INSTANCE, "builtins.str" if kind == OBJ_STRING else one)
                )
                if names[0] == "__mod__":
                    self._format(call)

    def _format(self, call: Call) -> None:
        """`"%s" % x` and `"%s" % (x, y)`."""
        shown = Call(call.where, [], -1, role="operator")
        self.wait(call.argument(0), self.special, ("__str__", "__repr__"), shown)
        self.wait(call.argument(0), self._format_all, shown)

    def _format_all(self, things: Sequence[Object], shown: Call) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == OBJ_CONTAINER:
                self.wait(self.field(thing, "[*]"), self.special, ("__str__", "__repr__"), shown)

    def _reflect(
        self, things: Sequence[Object], name: str, names: Sequence[str], left: int, call: Call
    ) -> None:
        for other in self.objects[left] or ():
            kind, one, _, _ = self.things[other >> 1]
            if kind == OBJ_INSTANCE and any(self.find(one, each) is not None for each in names):
                return
        self.special(things, [name], call)

    def _raise(self, file: int, op: Op) -> None:
        call = Call((file, op[2]), [], -1, role="raise")
        self.wait(self.at(file, op[1]), self._raised, call)

    def _raised(self, things: Sequence[Object], call: Call) -> None:
        for thing in things:
            kind = self.things[thing >> 1].kind
            if kind == OBJ_CLASS:
                self.invoke([thing], call)
            if kind in (OBJ_CLASS, OBJ_INSTANCE):
                instance = self.thing(OBJ_INSTANCE, thing & ~1) if kind == OBJ_CLASS else thing
                self.add(self.raised, instance)
                self.add(self._raised_in[call.where[0]], instance)

    def _except(self, file: int, op: Op) -> None:
        self.wait(self.at(file, op[1]), self._caught, file, self.at(file, op[2]))

    def _caught(self, classes: Sequence[Object], file: int, dst: int) -> None:
        """What is raised anywhere and of the class; of classes outside, in this file, or just an instance."""
        for cls in classes:
            kind = self.things[cls >> 1].kind
            if kind == OBJ_CLASS:
                self.wait(self.raised, self._kept, cls & ~1, dst)
            elif kind == OBJ_CONTAINER:
                self.wait(self.field(cls, "[*]"), self._caught, file, dst)
            else:
                self.instances([cls], dst, 0)
                self.wait(self._raised_in[file], self._kept, cls & ~1, dst)

    def _caught_unraised(self, file: int, op: Op) -> None:
        """A class that nothing in the repository raises is still what its handler says."""
        if not self.objects[self.at(file, op[2])]:
            self.wait(self.at(file, op[1]), self.instances, self.at(file, op[2]), 0)

    def instances(self, things: Sequence[Object], dst: int, weak: int) -> None:
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == OBJ_CLASS:
                self.add(dst, self.thing(OBJ_INSTANCE, thing & ~1) | weak)
            elif kind == OBJ_EXTERNAL and not one.startswith(SPECIAL_FORMS):
                self.add(dst, self.thing(OBJ_EXTERNAL_INSTANCE, one) | weak)
            elif kind == OBJ_CONTAINER:
                self.wait(self.field(thing, "[*]"), self.instances, dst, weak)

    def _isinstance(self, file: int, op: Op) -> None:
        _, src, classes, dst = op
        self.wait(self.at(file, classes), self._narrow, self.at(file, src), self.at(file, dst))

    def _narrow(self, classes: Sequence[Object], src: int, dst: int) -> None:
        for cls in classes:
            kind = self.things[cls >> 1].kind
            if kind == OBJ_CONTAINER:
                self.wait(self.field(cls, "[*]"), self._narrow, src, dst)
            elif kind in (OBJ_CLASS, OBJ_EXTERNAL):
                self.wait(src, self._kept, cls & ~1, dst)
                self.instances([cls], dst, WEAK)

    def _kept(self, things: Sequence[Object], cls: Object, dst: int) -> None:
        outside = self.things[cls >> 1]
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == OBJ_INSTANCE:
                keep = cls in self.mro(one) or any(
                    is_subclass(base, outside.one) for base in self.outside_bases(one)
                )
            elif kind in (OBJ_EXTERNAL_INSTANCE, OBJ_STRING):
                keep = outside.kind == OBJ_EXTERNAL and outside.one == (
                    one if kind == OBJ_EXTERNAL_INSTANCE else "builtins.str"
                )
            elif kind == OBJ_CONTAINER:
                keep = outside.kind == OBJ_EXTERNAL and outside.one == f"builtins.{self.kind_of(thing)}"
            else:
                keep = outside.kind == OBJ_EXTERNAL
            if keep:
                self.add(dst, thing)

    def _hint(self, file: int, op: Op) -> None:
        self.hinted(file, op[1], self.at(file, op[2]))

    def hinted(self, file: int, hint: Sequence[Any] | None, dst: int) -> None:
        """What an annotation says, as hints."""
        if hint is None:
            return
        kind = hint[0]
        if kind == HINT_INSTANCE:
            self.wait(self.at(file, hint[1]), self.instances, dst, WEAK)
        elif kind == HINT_CLASS:
            self.wait(self.at(file, hint[1]), self._classes, dst)
        elif kind == HINT_UNION:
            for each in hint[1]:
                self.hinted(file, each, dst)
        elif kind == HINT_CALLABLE:
            function = self.thing(OBJ_HINTED_CALLABLE, dst)
            self.hinted(file, hint[1], self.field(function, "result"))
            self.add(dst, function | WEAK)
        elif kind in (HINT_CONTAINER, HINT_TUPLE, HINT_DICT):
            self._hinted_container(file, hint, dst)

    def _hinted_container(self, file: int, hint: Sequence[Any], dst: int) -> None:
        container = self.thing(OBJ_CONTAINER, "hint", dst)
        self._kinds[container] = {HINT_CONTAINER: hint[1], HINT_TUPLE: "tuple", HINT_DICT: "dict"}[hint[0]]
        inner: list[tuple[str | None, Any]] = [(None, hint[-1])]
        if hint[0] == HINT_TUPLE:
            inner = [(str(at), each) for at, each in enumerate(hint[1])]
        elif hint[0] == HINT_DICT:
            self.hinted(file, hint[1], self.field(container, "[keys]"))
        for key, each in inner:
            node = self.node()
            self.hinted(file, each, node)
            self.put(container, key, node)
        self.add(dst, container | WEAK)

    def _classes(self, things: Sequence[Object], dst: int) -> None:
        for thing in things:
            if self.things[thing >> 1].kind in (OBJ_CLASS, OBJ_EXTERNAL):
                self.add(dst, thing | WEAK)

    def _call(self, file: int, op: Op) -> None:
        _, callee, dst, site, args = op
        given = [(how, word, self.at(file, node)) for how, word, node in args]
        role = self.programs[file].sites[site].role
        result = self.at(file, dst)
        if role == "decorator":
            result = self.node()
            self.wait(result, self._decorated, given[0][2], self.at(file, dst))
        call = Call((file, site), given, result, is_decorator=role == "decorator", role=role)
        self.wait_call(self.at(file, callee), call)

    def _decorated(self, things: Sequence[Object], given: int, dst: int) -> None:
        """What a decorator makes: of a class, that class or one made in a function, no other it has seen."""
        classes = [
            thing & ~1 for thing in self.objects[given] or () if self.things[thing >> 1].kind == OBJ_CLASS
        ]
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            cls = {OBJ_CLASS: thing & ~1, OBJ_INSTANCE: one}.get(kind)
            is_other = cls is not None and cls not in classes and self.cls(cls)[1].outer < 0
            if not (classes and is_other):
                self.add(dst, thing)

    def _enter_uncalled(self) -> None:
        """`self` is an instance of its class, `cls` the class, defaults are values."""
        for file, program in enumerate(self.programs):
            for number, function in enumerate(program.functions):
                thing = self.thing(OBJ_FUNCTION, file, number)
                nodes = [self.at(file, each.node) for each in function.parameters]
                if function.owner >= 0 and function.parameters and not self.objects[nodes[0]]:
                    cls = self.thing(OBJ_CLASS, file, function.owner)
                    if function.parameters[0].how in ("positional", "positional_only"):
                        for each in self._heirs(cls, function.name):
                            self._receive(each, function.binds, nodes[0])
                if thing not in self.invoked:
                    for node, parameter in zip(nodes, function.parameters, strict=True):
                        self.flow(self.at(file, parameter.default), node)

    def _heirs(self, cls: Object, name: str) -> list[Object]:
        """The class, and those below that have the method from it."""
        found = {cls: None}
        todo = [cls]
        while todo and len(found) < self.limit:
            for each in self._subclasses.get(todo.pop(), ()):
                if each not in found and self.find(each, name) == cls:
                    found[each] = None
                    todo.append(each)
        return list(found)

    def _receive(self, cls: Object, binds: str, node: int) -> None:
        if binds == "nothing":
            return
        if binds in ("class", "class_argument"):
            self.add(node, cls)
            return
        instance = self.thing(OBJ_INSTANCE, cls)
        self.add(node, instance)
        holder = self.find(cls, "__init__")
        if self.is_own(holder):
            self.wait(self.class_field(holder, "__init__"), self._assume, instance)

    def _assume(self, things: Sequence[Object], instance: Object) -> None:
        """An instance was made somewhere else, by its `__init__`."""
        for thing in things:
            if self.things[thing >> 1].kind == OBJ_FUNCTION and thing & ~1 not in self.invoked:
                _, function = self.function(thing)
                if function.parameters:
                    self.add(self.node_of(thing, function.parameters[0].node), instance)

    def _apply_unknown_decorators(self) -> None:
        """What a decorator that nothing is known of makes of a definition still stands for it."""
        for file, program in enumerate(self.programs):
            for op in program.ops:
                if (
                    op[0] == OP_CALL
                    and program.sites[op[3]].role == "decorator"
                    and not self.held(file, op[1])
                ):
                    for src, dst in self.everywhere(file, op[4][0][2], op[2]):
                        self.flow(src, dst)

    def _hint_results(self) -> None:
        """A result that no value is known of is what its annotation says."""
        shared: Mapping[int, int] = {}
        hinted = [
            (file, function, shared)
            for file, program in enumerate(self.programs)
            for function in program.functions
            if function.hinted_result != NOTHING
        ]
        for file, function, copied in [*hinted, *self._hinted_copies]:
            offset = self.offsets[file]
            says, result, yields = (
                copied.get(node, offset + node) if node >= 0 else node
                for node in (function.hinted_result, function.result, function.yields)
            )
            if not self.objects[result] and not function.returned:
                if function.is_generator:
                    self.elements(says, yields, NOWHERE)
                else:
                    self.flow(says, result)
