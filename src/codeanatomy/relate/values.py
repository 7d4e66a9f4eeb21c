"""The rules of values: what calls, iteration, subscripts and the like do to the sets of objects.

    values = Values(programs)
    values.solve()
    values.calls[file, site]        # what is called there: things, hints with their lowest bit set

Rules run in three rounds, each to its fixpoint: names, imports and attributes; then calls; then, for
functions that nothing in the repository calls, what their parameters must be (`self` is an instance of its
class, a default is one of the values) and may be (an annotation is a hint). A call through a hint gives a
result, which is a hint too, but passes nothing into the function.

All instances of a class are one object, all calls of a function one; a function that returns a parameter as
it is gives each caller its own argument back. Tests: `tests/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from codeanatomy.relate.arguments import match
from codeanatomy.relate.attributes import Attributes
from codeanatomy.relate.models import DECORATORS, MODELS, container_method
from codeanatomy.relate.outside import is_class_like, makes_instance, may_have
from codeanatomy.relate.program import NOTHING, POSITIONAL, STAR, VARIABLE, Arg, Function, Op, Program
from codeanatomy.relate.solver import WEAK, Object, best

MAX_DEPTH = 10
# Role of what is called as a member of something outside.
MEMBER = "member"
# Of annotations: what stands there is no class.
SPECIAL_FORMS = ("typing.", "typing_extensions.", "collections.abc.")
# Copies of a function, in how many others, and how large it may be.
MAX_COPIES = 128
MAX_COPY_DEPTH = 3
MAX_COPIED_OPS = 400
# A site: file and number. Numbers below zero are of attributes that run code.
Where = tuple[int, int]


class Call:
    """A call that waits for what it calls."""

    __slots__ = ("args", "depth", "dst", "is_decorator", "role", "where")

    def __init__(
        self,
        where: Where,
        args: Sequence[Arg],
        dst: int,
        *,
        is_decorator: bool = False,
        role: str = "",
        depth: int = 0,
    ) -> None:
        self.where = where
        # Nodes among all.
        self.args = args
        self.dst = dst
        self.is_decorator = is_decorator
        self.role = role
        # How many calls it stands for: of a partial of a partial, of a class that is its own constructor.
        self.depth = depth

    def with_args(self, args: Sequence[Arg], dst: int | None = None, role: str = "") -> Call:
        """The same call with other arguments: of a partial, or of a callback."""
        to = self.dst if dst is None else dst
        return Call(self.where, args, to, role=role or self.role, depth=self.depth + 1)

    def argument(self, place: int, keyword: str | None = None) -> int:
        """The node of an argument by place or keyword; -1 if it is not given."""
        given = [arg for arg in self.args if arg[0] == POSITIONAL]
        if keyword is not None:
            for _, name, node in self.args:
                if name == keyword:
                    return node
        return given[place][2] if 0 <= place < len(given) else NOTHING


class Values(Attributes):
    """The value analysis of a repository."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(programs, limit)
        self.calls: dict[Where, dict[Object, str]] = {}
        self.arguments: dict[tuple[Where, Object], tuple[Sequence[Arg], int]] = {}
        self.invoked: set[Object] = set()
        self.dataclasses: set[Object] = set()
        # All exceptions of the repository's classes.
        self.raised = self.node()
        self._entered: set[tuple[Any, ...]] = set()
        self._kinds: dict[Object, str] = {}
        self._types: dict[Object, str] = {}
        self._sizes: dict[Object, int] = {}
        self._hooked: set[tuple[Any, ...]] = set()
        # Functions that make functions of their variables, with all functions in them.
        self._factories = {
            (file, number): inner
            for file, program in enumerate(self.programs)
            for number, inner in factories(program).items()
        }
        self._copied: dict[tuple[Object, Where], Object] = {}
        self._copy_number: int | None = None
        self._depths: list[int] = []
        self._copied_nodes: dict[int, list[int]] = {}
        self._copy_ops: list[tuple[int, list[Op]]] = []
        self._hinted_copies: list[tuple[int, Function, Mapping[int, int]]] = []
        self._round = 0
        self._used: dict[tuple[int, int], int] = {}
        self._rounds = (
            {"=": self._copy, "o": self._make, "n": self._open, "m": self._import, ".": self._load},
            {
                ":": self._store,
                "(": self._call,
                "[": self._item,
                "]": self._set_item,
                "k": self._set_key,
                "u": self._update,
                "*": self._iterate,
                ",": self._unpack,
                "w": self._with,
                "a": self._await,
                "y": self._yield_from,
                "d": self._special,
                "b": self._operator,
                "r": self._raise,
                "e": self._except,
                "i": self._isinstance,
                "x": self._delete,
                "c": self._create_class,
            },
            {"t": self._hint, "e": self._caught_unraised},
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
        self.run()

    # -- simple rules

    def _copy(self, file: int, op: Op) -> None:
        self.flow(self.at(file, op[1]), self.at(file, op[2]))

    def _make(self, file: int, op: Op) -> None:
        _, node, kind, what = op
        if kind == "K":
            self.add(self.at(file, node), self.thing("Y", f"builtins.{what}"))
            return
        if kind == "J":
            self.add(self.at(file, node), self.thing("J", what))
            return
        thing = self.thing(kind, file, what, self._copy_number if kind == "F" else None)
        if kind == "L":
            self._kinds[thing], self._sizes[thing] = self.programs[file].containers[what]
        self.add(self.at(file, node), thing)

    def _open(self, file: int, op: Op) -> None:
        self.unbound(file, op[1], self.at(file, op[2]))

    def _import(self, file: int, op: Op) -> None:
        self.imported(file, op[2], self.at(file, op[1]))

    def _load(self, file: int, op: Op) -> None:
        self.wait(self.at(file, op[1]), self.load_from, op[2], self.at(file, op[3]))

    def load_from(self, things: Sequence[Object], name: str, dst: int) -> None:
        """An attribute of things."""
        for thing in things:
            self.flow(self.attr(thing, name), dst, thing & WEAK)

    def _store(self, file: int, op: Op) -> None:
        src = self.at(file, op[3])
        self.wait(self.at(file, op[1]), self.store, op[2], self.node() if src < 0 else src)

    def _delete(self, file: int, op: Op) -> None:
        self.wait(self.at(file, op[1]), self._delete_from, op[2])

    def _delete_from(self, things: Sequence[Object], name: str) -> None:
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == "I":
                holder = self.find(one, name)
                if holder is not None and self.things[holder >> 1].kind == "C":
                    self.wait(self.class_field(holder, name), self._run_delete, thing, name)

    def _run_delete(self, things: Sequence[Object], receiver: Object, name: str) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == "P":
                hook = self.field(thing, "fdel")
                self.run_hook(hook, [], -1, receiver, name, bound=receiver, how="del")

    # -- containers

    def kind_of(self, container: Object) -> str:
        """list, tuple, dict, set or generator."""
        return self._kinds.get(container & ~1, "list")

    def type_of(self, container: Object) -> str:
        """The class of a container."""
        return self._types.get(container & ~1) or f"builtins.{self.kind_of(container)}"

    def container_has(self, container: Object, name: str) -> bool:
        kind = self.kind_of(container)
        return hasattr(Generator, name) if kind == "generator" else may_have(f"builtins.{kind}", name) or bool(
            self._types.get(container & ~1)
        )

    def make_container(self, kind: str, where: Where, mark: str = "", cls: str = "") -> Object:
        """A container that a call makes."""
        thing = self.thing("L", where[0], (where[1], mark or kind))
        self._kinds[thing] = kind
        if cls:
            self._types[thing] = cls
        return thing

    def put(self, container: Object, key: str | None, src: int) -> None:
        """An element, at a constant key or anywhere."""
        container &= ~1
        every = self.field(container, "[*]")
        place = self.field(container, "[?]" if key is None else f"[{key}]")
        self.flow(src, place)
        self.flow(place, every)

    def element(self, container: Object, key: str | None) -> list[int]:
        """The nodes that an element may be in."""
        container &= ~1
        if key is None or (key.startswith("-") and self.kind_of(container) != "dict"):
            return [self.field(container, "[*]")]
        return [self.field(container, f"[{key}]"), self.field(container, "[?]")]

    def shuffle(self, container: Object) -> None:
        """Elements may be at any place from now on."""
        self.flow(self.field(container, "[*]"), self.field(container, "[?]"))

    def _set_item(self, file: int, op: Op) -> None:
        _, received, key, src, site = op
        self.wait(self.at(file, received), self._put_all, key, self.at(file, src), (file, site))

    def _put_all(self, things: Sequence[Object], key: str | None, src: int, where: Where) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == "L":
                self.put(thing, None if key == ":" else key, src)
            elif where[1] >= 0:
                self.special([thing], ["__setitem__"], Call(where, [_plain(-1), _plain(src)], -1, role="subscript"))

    def _set_key(self, file: int, op: Op) -> None:
        self.wait(self.at(file, op[1]), self._put_key, self.at(file, op[2]))

    def _put_key(self, things: Sequence[Object], src: int) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == "L":
                self.flow(src, self.field(thing, "[keys]"))

    def _update(self, file: int, op: Op) -> None:
        self.wait(self.at(file, op[1]), self._merge_all, self.at(file, op[2]))

    def _merge_all(self, things: Sequence[Object], src: int) -> None:
        for thing in things:
            self.wait(src, self.merge_from, thing & ~1)

    def merge_from(self, others: Sequence[Object], container: Object) -> None:
        """All elements of other containers, at their keys."""
        for other in others:
            if self.things[other >> 1].kind != "L":
                continue
            self.wait_fields(other & ~1, container)

    def wait_fields(self, other: Object, container: Object) -> None:
        """What is known of the keys of a container when this runs, and everything at any place."""
        for name, node in list(self.fields.get(other, {}).items()) if other != container else ():
            if name.startswith("[") and name not in ("[*]", "[?]"):
                self.flow(node, self.field(container, name))
                if name != "[keys]":
                    self.flow(self.field(container, name), self.field(container, "[*]"))
        self.put(container, None, self.field(other, "[?]"))
        self.flow(self.field(other, "[*]"), self.field(container, "[*]"))

    def _item(self, file: int, op: Op) -> None:
        _, received, key, dst, site, key_value = op
        call = Call((file, site), [_plain(self.at(file, key_value))], self.at(file, dst), role="subscript")
        self.wait(self.at(file, received), self._items, key, call)

    def _items(self, things: Sequence[Object], key: str | None, call: Call) -> None:
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == "L":
                if key == ":":
                    self.add(call.dst, thing)
                    continue
                for node in self.element(thing, key):
                    self.flow(node, call.dst, thing & WEAK)
                for node in self._missing(thing):
                    self.flow(node, call.dst)
            elif kind == "C" and self.is_enum(thing & ~1):
                self.add(call.dst, self.thing("I", thing & ~1) | thing & WEAK)
            elif kind == "C":
                # A generic class with its parameters is still the class.
                self.add(call.dst, thing)
                if self.find(thing & ~1, "__class_getitem__") is not None:
                    self.wait_call(self.attr(thing, "__class_getitem__"), call)
            elif kind == "X" or (kind == "Y" and one in ("builtins.str", "builtins.bytes")):
                self.add(call.dst, thing)
            elif kind == "J":
                self.add(call.dst, self.thing("Y", "builtins.str"))
            elif kind == "I":
                self.special([thing], ["__getitem__", "__missing__"], call)

    def _missing(self, container: Object) -> list[int]:
        """What a defaultdict makes."""
        made = self.fields.get(container & ~1, {}).get("[factory]")
        return [] if made is None else [made]

    def _iterate(self, file: int, op: Op) -> None:
        _, src, dst, site = op
        self.elements(self.at(file, src), self.at(file, dst), (file, site))

    def elements(self, src: int, dst: int, where: Where) -> None:
        """What iteration over the things of a node gives."""
        self.wait(src, self.each, dst, where)

    def each(self, things: Sequence[Object], dst: int, where: Where) -> None:
        """What iteration over things gives."""
        for thing in things:
            kind, one, two, _ = self.things[thing >> 1]
            weak = thing & WEAK
            if kind == "L":
                keyed = self.kind_of(thing) == "dict"
                self.flow(self.field(thing, "[keys]" if keyed else "[*]"), dst, weak)
            elif kind == "D":
                self._view(one, two, dst, weak)
            elif kind == "G":
                self.flow(self.nodes_of(one)(self.function(one)[1].yields), dst, weak)
            elif kind == "Y" and one in ("builtins.str", "builtins.bytes"):
                self.add(dst, thing)
            elif kind == "J":
                self.add(dst, self.thing("Y", "builtins.str"))
            elif kind == "C" and self.is_enum(thing & ~1):
                self.add(dst, self.thing("I", thing & ~1) | weak)
            elif kind == "I":
                self._each_of_instance(thing, dst, where)

    def _view(self, container: Object, part: str, dst: int, weak: int) -> None:
        if part == "values":
            self.flow(self.field(container, "[*]"), dst, weak)
        elif part == "keys":
            self.flow(self.field(container, "[keys]"), dst, weak)
        else:
            pair = self.thing("L", "items", container)
            self._kinds[pair] = "tuple"
            self.put(pair, "0", self.field(container, "[keys]"))
            self.put(pair, "1", self.field(container, "[*]"))
            self.add(dst, pair | weak)

    def _each_of_instance(self, thing: Object, dst: int, where: Where) -> None:
        iterator = self.node()
        cls = self.things[thing >> 1].one
        for name, next_name in (("__aiter__", "__anext__"), ("__iter__", "__next__")):
            if self.find(cls, name) is not None:
                self.special([thing], [name], Call(where, [], iterator, role="iteration"))
                self.wait(iterator, self.next_of, next_name, dst, where)
                return
        call = Call(where, [_plain(-1)], dst, role="iteration")
        self.special([thing], ["__getitem__"], call)

    def next_of(self, things: Sequence[Object], name: str, dst: int, where: Where) -> None:
        """What `next` of iterators gives."""
        for thing in things:
            if self.things[thing >> 1].kind != "I":
                self.each([thing], dst, where)
                continue
            if name == "__anext__":
                given = self.node()
                self.special([thing], [name], Call(where, [], given, role="iteration"))
                self.wait(given, self._awaited, dst, where)
            else:
                self.special([thing], [name], Call(where, [], dst, role="iteration"))

    def _unpack(self, file: int, op: Op) -> None:
        _, src, place, dst = op
        self.wait(self.at(file, src), self._unpacked, place, self.at(file, dst))

    def _unpacked(self, things: Sequence[Object], place: str | None, dst: int) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == "L" and self.kind_of(thing) in ("tuple", "list"):
                for key in self._places(thing, place):
                    for node in self.element(thing, key):
                        self.flow(node, dst, thing & WEAK)
            else:
                # What runs is told at the site of the assignment.
                self.each([thing], dst, (-1, -1))

    def _places(self, container: Object, place: str | None) -> list[str | None]:
        """The keys that are unpacked: `-1` from the end, `1:1` all but the first and the last."""
        size = self._sizes.get(container & ~1, -1)
        if place is None or (size < 0 and not place.isdigit()):
            return [None]
        if ":" in place:
            start, end = place.split(":")
            return [str(number) for number in range(int(start), size - int(end))] or [None]
        return [str(size + int(place)) if place.startswith("-") else place]

    # -- other statements

    def _with(self, file: int, op: Op) -> None:
        _, src, dst, site = op
        self.wait(self.at(file, src), self._entered_by, self.at(file, dst), (file, site))

    def _entered_by(self, things: Sequence[Object], dst: int, where: Where) -> None:
        is_async = self.programs[where[0]].sites[where[1]].role == "async_with"
        enter, leave = ("__aenter__", "__aexit__") if is_async else ("__enter__", "__exit__")
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == "I":
                given = self.node() if is_async else dst
                self.special([thing], [enter], Call(where, [], given, role="with"))
                if is_async:
                    self.wait(given, self._awaited, dst, where)
                self.special([thing], [leave], Call(where, [], -1, role="with"))
            elif kind == "V":
                self.flow(self.nodes_of(one)(self.function(one)[1].yields), dst, thing & WEAK)
            elif kind == "Y":
                self.add(dst, thing)

    def _await(self, file: int, op: Op) -> None:
        _, src, dst, site = op
        self.wait(self.at(file, src), self._awaited, self.at(file, dst), (file, site))

    def _awaited(self, things: Sequence[Object], dst: int, where: Where) -> None:
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == "A":
                self.flow(self.nodes_of(one)(self.function(one)[1].result), dst, thing & WEAK)
            elif kind == "I" and self.find(one, "__await__") is not None:
                given = self.node()
                self.special([thing], ["__await__"], Call(where, [], given, role="await"))
                self.wait(given, self._returned_by, dst)
            elif kind in ("L", "I"):
                # What gathers results, and objects that other libraries await.
                self.add(dst, thing)

    def _yield_from(self, file: int, op: Op) -> None:
        self.wait(self.at(file, op[1]), self._returned_by, self.at(file, op[2]))

    def _returned_by(self, things: Sequence[Object], dst: int) -> None:
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == "G":
                self.flow(self.nodes_of(one)(self.function(one)[1].result), dst, thing & WEAK)

    def _special(self, file: int, op: Op) -> None:
        _, received, names, args, dst, site = op
        role = self.programs[file].sites[site].role
        given = [(how, word, self.at(file, node)) for how, word, node in args]
        call = Call((file, site), given, self.at(file, dst), role=role)
        self.wait(self.at(file, received), self.special, tuple(names), call)

    def special(self, things: Sequence[Object], names: Sequence[str], call: Call) -> None:
        """Call the first of these special methods that the class of each instance has."""
        names = tuple(names)
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == "I":
                self.watch(one, names[0], self._first_special, thing, names, call)
            elif kind == "C":
                self._on_class_special(thing, names, call)

    def _on_class_special(self, thing: Object, names: Sequence[str], call: Call) -> None:
        file, declared = self.cls(thing)
        for word, value in declared.keywords:
            if word == "metaclass":
                self.wait(self.at(file, value), self._meta_special, thing, names, call)

    def _meta_special(self, metas: Sequence[Object], thing: Object, names: Sequence[str], call: Call) -> None:
        for meta in metas:
            if self.things[meta >> 1].kind == "C":
                self.special([self.thing("I", meta & ~1)], names, call)

    def _first_special(self, _: Object | None, thing: Object, names: Sequence[str], call: Call) -> None:
        cls = self.things[thing >> 1].one
        for name in names:
            holder = self.find(cls, name)
            if holder is not None and self.things[holder >> 1].kind == "C":
                self.wait_call(self.attr(thing, name), call, thing & WEAK)
                return

    def _operator(self, file: int, op: Op) -> None:
        _, left, right, name, dst, site = op
        where = (file, site)
        first, second = self.at(file, left), self.at(file, right)
        plain = name[1:] if name.startswith("i") and name not in ("invert",) else name
        names = (f"__{name}__", f"__{plain}__") if plain != name else (f"__{name}__",)
        call = Call(where, [_plain(second)], self.at(file, dst), role="operator")
        self.wait(first, self._operate, names, call)
        reflected = Call(where, [_plain(first)], self.at(file, dst), role="operator")
        self.wait(second, self._reflect, f"__r{plain}__", names, first, reflected)

    def _operate(self, things: Sequence[Object], names: Sequence[str], call: Call) -> None:
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == "I":
                self.special([thing], names, call)
            elif kind == "L":
                both = self.make_container(self.kind_of(thing), call.where)
                self.put(both, None, self.field(thing, "[*]"))
                self.wait(call.argument(0), self.merge_from, both)
                self.add(call.dst, both)
            elif kind == "Y" and one.startswith("builtins."):
                self.add(call.dst, thing)
            elif kind == "J":
                self.add(call.dst, self.thing("Y", "builtins.str"))

    def _reflect(
        self, things: Sequence[Object], name: str, names: Sequence[str], left: int, call: Call
    ) -> None:
        for other in self.objects[left] or ():
            kind, one, _, _ = self.things[other >> 1]
            if kind == "I" and any(self.find(one, each) is not None for each in names):
                return
        self.special(things, [name], call)

    def _raise(self, file: int, op: Op) -> None:
        self.wait(self.at(file, op[1]), self._raised, Call((file, op[2]), [], -1, role="raise"))

    def _raised(self, things: Sequence[Object], call: Call) -> None:
        for thing in things:
            kind = self.things[thing >> 1].kind
            if kind == "C":
                self.invoke([thing], call)
                self.add(self.raised, self.thing("I", thing & ~1))
            elif kind == "I":
                self.add(self.raised, thing)

    def _except(self, file: int, op: Op) -> None:
        self.wait(self.at(file, op[1]), self._caught, self.at(file, op[2]))

    def _caught(self, classes: Sequence[Object], dst: int) -> None:
        """What is raised anywhere and of the class; for classes outside, just an instance."""
        for cls in classes:
            kind = self.things[cls >> 1].kind
            if kind == "C":
                self.wait(self.raised, self._kept, cls & ~1, dst)
            elif kind == "L":
                self.wait(self.field(cls, "[*]"), self._caught, dst)
            else:
                self._instances([cls], dst, 0)

    def _caught_unraised(self, file: int, op: Op) -> None:
        """A class that nothing in the repository raises is still what its handler says."""
        if not self.objects[self.at(file, op[2])]:
            self.wait(self.at(file, op[1]), self._instances, self.at(file, op[2]), 0)

    def _instances(self, things: Sequence[Object], dst: int, weak: int) -> None:
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == "C":
                self.add(dst, self.thing("I", thing & ~1) | weak)
            elif kind == "X" and not one.startswith(SPECIAL_FORMS):
                self.add(dst, self.thing("Y", one) | weak)
            elif kind == "L":
                self.wait(self.field(thing, "[*]"), self._instances, dst, weak)

    def _isinstance(self, file: int, op: Op) -> None:
        _, src, classes, dst = op
        self.wait(self.at(file, classes), self._narrow, self.at(file, src), self.at(file, dst))

    def _narrow(self, classes: Sequence[Object], src: int, dst: int) -> None:
        for cls in classes:
            kind = self.things[cls >> 1].kind
            if kind == "L":
                self.wait(self.field(cls, "[*]"), self._narrow, src, dst)
            elif kind in ("C", "X"):
                self.wait(src, self._kept, cls & ~1, dst)
                self._instances([cls], dst, WEAK)

    def _kept(self, things: Sequence[Object], cls: Object, dst: int) -> None:
        outside = self.things[cls >> 1]
        for thing in things:
            kind, one, _, _ = self.things[thing >> 1]
            if kind == "I":
                keep = cls in self.mro(one)
            elif kind in ("Y", "J"):
                keep = outside.kind == "X" and outside.one == (one if kind == "Y" else "builtins.str")
            elif kind == "L":
                keep = outside.kind == "X" and outside.one == f"builtins.{self.kind_of(thing)}"
            else:
                keep = outside.kind == "X"
            if keep:
                self.add(dst, thing)

    def _hint(self, file: int, op: Op) -> None:
        self.hinted(file, op[1], self.at(file, op[2]))

    def hinted(self, file: int, hint: Sequence[Any] | None, dst: int) -> None:
        """What an annotation says, as hints."""
        if hint is None:
            return
        kind = hint[0]
        if kind == "n":
            self.wait(self.at(file, hint[1]), self._instances, dst, WEAK)
        elif kind == "c":
            self.wait(self.at(file, hint[1]), self._classes, dst)
        elif kind == "u":
            for each in hint[1]:
                self.hinted(file, each, dst)
        elif kind in ("l", "t"):
            container = self.thing("L", "hint", dst)
            self._kinds[container] = hint[1] if kind == "l" else "tuple"
            inner = [(None, hint[2])] if kind == "l" else [(str(at), each) for at, each in enumerate(hint[1])]
            for key, each in inner:
                node = self.node()
                self.hinted(file, each, node)
                self.put(container, key, node)
            self.add(dst, container | WEAK)

    def _classes(self, things: Sequence[Object], dst: int) -> None:
        for thing in things:
            if self.things[thing >> 1].kind in ("C", "X"):
                self.add(dst, thing | WEAK)

    # -- calls

    def _call(self, file: int, op: Op) -> None:
        _, callee, dst, site, args = op
        given = [(how, word, self.at(file, node)) for how, word, node in args]
        role = self.programs[file].sites[site].role
        call = Call(
            (file, site), given, self.at(file, dst), is_decorator=role == "decorator", role=role
        )
        self.wait_call(self.at(file, callee), call)

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
        found = self.calls.setdefault(call.where, {})
        if thing not in found:
            found[thing] = role or call.role

    def called(self, where: Where) -> list[tuple[Object, str]]:
        """What is called at a site, and as what.

        Hints count where there is nothing better; a member of something outside, of which only the name is known,
        is no better than a hint that names a function of the repository.
        """
        found = self.calls.get(where, {})
        strong = [thing for thing in best(found) if not thing & WEAK]
        hinted = [thing for thing in found if thing & WEAK and self.things[thing >> 1].kind in ("F", "C")]
        if hinted and all(found[thing] == MEMBER for thing in strong):
            return [(thing, found[thing]) for thing in hinted]
        return [(thing, found[thing]) for thing in best(found)]

    def invoke(self, things: Sequence[Object], call: Call) -> None:
        """Call things."""
        if call.depth > MAX_DEPTH:
            return
        for thing in things:
            kind, one, two, _ = self.things[thing >> 1]
            weak = thing & WEAK
            if kind == "F":
                self.enter(thing, None, call)
            elif kind == "B":
                self._invoke_bound(one, two, call, weak)
            elif kind == "C":
                self._instantiate(thing, call)
            elif kind == "X":
                self._outside(thing, one, call)
            elif kind == "H":
                self._outside(self.thing("X", one) | weak, one, call, is_member=True)
            elif kind == "I":
                self.watch(one, "__call__", self._first_special, thing, ["__call__"], call)
            elif kind == "E":
                self.record(call, self.thing("X", f"{self.type_of(one)}.{two}") | weak)
                container_method(self, one, two, call)
            elif kind == "U":
                self._invoke_partial(thing, call)
            elif kind == "T":
                self.wait_call(self.field(thing, "inner"), call, weak)
            elif kind == "Q":
                self._property_part(one, two, call)
            elif kind == "W":
                self.enter(one | weak, None, call.with_args(call.args, -1))
                self.add(call.dst, self.thing("V", one) | weak)
            elif kind == "Z":
                self._construct(one, call)

    def _invoke_bound(self, function: Object, receiver: Object, call: Call, weak: int) -> None:
        if self.things[function >> 1].kind == "W":
            inner = self.things[function >> 1].one
            self.enter(inner | weak, receiver, call.with_args(call.args, -1))
            self.add(call.dst, self.thing("V", inner) | weak)
        else:
            self.enter(function | weak, receiver, call)

    def _invoke_partial(self, thing: Object, call: Call) -> None:
        held: Call = self.things[thing >> 1].two
        self.wait_call(self.field(thing, "callee"), call.with_args([*held.args, *call.args]), thing & WEAK)

    def enter(self, thing: Object, receiver: Object | None, call: Call) -> None:
        """A function runs with the arguments of a call."""
        key = (thing, receiver, call)
        if key in self._entered:
            return
        self._entered.add(key)
        weak = thing & WEAK
        self.record(call, self.original(thing) | weak)
        if not weak:
            self.arguments.setdefault((call.where, self.original(thing)), (call.args, int(receiver is not None)))
            self.invoked.add(self.original(thing))
            thing = self.copy_for(thing, call.where)
        _, function = self.function(thing)
        at = self.nodes_of(thing)
        skip = 0 if receiver is None else 1
        passed, left = match(function.parameters, call.args, skip)
        nodes = [at(each.node) for each in function.parameters]
        if not weak:
            if receiver is not None and nodes:
                self.add(nodes[0], receiver)
            for each in passed:
                self._pass(call.args[each.argument][2], function.parameters[each.parameter].how, nodes, each)
            for number in left:
                self.flow(at(function.parameters[number].default), nodes[number])
        self._result(thing, receiver, call, passed, left)

    def _pass(self, src: int, how: str, nodes: Sequence[int], each: Any) -> None:
        dst = nodes[each.parameter]
        if src < 0:
            return
        if each.is_spread:
            if how == "kwarg" or (how == "vararg" and each.key is None):
                if how == "kwarg":
                    self.wait(dst, self._merge_all, src)
                    return
                part = self.node()
                self.wait(src, self._unpacked, None, part)
                self.wait(dst, self._put_all, None, part, (-1, -1))
                return
            self.wait(src, self._spread, each.key, dst)
        elif how in ("vararg", "kwarg"):
            self.wait(dst, self._put_all, each.key, src, (-1, -1))
        else:
            self.flow(src, dst)

    def _spread(self, things: Sequence[Object], key: str | None, dst: int) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == "L" and self.kind_of(thing) in ("tuple", "list", "dict"):
                for node in self.element(thing, key):
                    self.flow(node, dst, thing & WEAK)
            else:
                self.each([thing], dst, (-1, -1))

    def _result(
        self, thing: Object, receiver: Object | None, call: Call, passed: Sequence[Any], left: Sequence[int]
    ) -> None:
        if call.dst < 0:
            return
        _, function = self.function(thing)
        at = self.nodes_of(thing)
        weak = thing & WEAK
        if function.is_generator:
            self.add(call.dst, self.thing("G", thing & ~1) | weak)
            return
        if function.is_async:
            self.add(call.dst, self.thing("A", thing & ~1) | weak)
            return
        self.flow(at(function.result), call.dst, weak)
        for number in function.returned:
            if number == 0 and receiver is not None:
                self.add(call.dst, receiver | weak)
            for each in passed:
                if each.parameter == number and not each.is_spread:
                    self.flow(call.args[each.argument][2], call.dst, weak)
                elif each.parameter == number:
                    self.flow(at(function.parameters[number].node), call.dst, weak)
            if number in left:
                self.flow(at(function.parameters[number].default), call.dst, weak)
            if function.parameters[number].how in ("vararg", "kwarg"):
                self.flow(at(function.parameters[number].node), call.dst, weak)

    def _instantiate(self, cls: Object, call: Call) -> None:
        """A class is called: by its metaclass, or directly."""
        file, declared = self.cls(cls)
        for word, value in declared.keywords:
            if word == "metaclass":
                self.wait(self.at(file, value), self._instantiate_by, cls, call)
        for base in self.mro(cls & ~1)[1:]:
            if self.things[base >> 1].kind == "C":
                other, inherited = self.cls(base)
                for word, value in inherited.keywords:
                    if word == "metaclass":
                        self.wait(self.at(other, value), self._instantiate_by, cls, call)
        self.record(call, cls)
        if not self._has_metacall(cls & ~1):
            self._construct(cls, call)

    def _has_metacall(self, cls: Object) -> bool:
        for each in self.mro(cls):
            if self.things[each >> 1].kind != "C":
                continue
            file, declared = self.cls(each)
            for word, value in declared.keywords:
                if word != "metaclass" or value < 0:
                    continue
                for meta in self.objects[self.at(file, value)] or ():
                    if self.things[meta >> 1].kind == "C":
                        holder = self.find(meta & ~1, "__call__")
                        if holder is not None and self.things[holder >> 1].kind == "C":
                            return True
        return False

    def _instantiate_by(self, metas: Sequence[Object], cls: Object, call: Call) -> None:
        for meta in metas:
            if self.things[meta >> 1].kind == "C":
                holder = self.find(meta & ~1, "__call__")
                if holder is not None and self.things[holder >> 1].kind == "C":
                    self.wait(self.class_field(holder, "__call__"), self._meta_call, cls, call)

    def _meta_call(self, things: Sequence[Object], cls: Object, call: Call) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == "F":
                self.enter(thing, cls & ~1, call)

    def _construct(self, cls: Object, call: Call) -> None:
        """`__new__` and `__init__` run, or what a dataclass has instead."""
        weak = cls & WEAK
        instance = self.thing("I", cls & ~1)
        new = self.find(cls & ~1, "__new__")
        if new is not None and self.things[new >> 1].kind == "C":
            made = self.node()
            self.wait(self.class_field(new, "__new__"), self._run_new, cls & ~1, call.with_args(call.args, made))
            self.flow(made, call.dst, weak)
        self.add(call.dst, instance | weak) if call.dst >= 0 else None
        holder = self.find(cls & ~1, "__init__")
        own = holder is not None and self.things[holder >> 1].kind == "C"
        if own:
            self.wait_call(self.attr(instance, "__init__"), call.with_args(call.args, -1, call.role), weak)
        else:
            self.watch(cls & ~1, "__init__", self._late_init, instance, call.with_args(call.args, -1), weak)
            if not weak:
                self._fill(cls & ~1, instance, call)

    def _late_init(self, holder: Object | None, instance: Object, call: Call, weak: int) -> None:
        if holder is not None and self.things[holder >> 1].kind == "C":
            self.wait_call(self.attr(instance, "__init__"), call, weak)

    def _run_new(self, things: Sequence[Object], cls: Object, call: Call) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == "F":
                self.enter(thing, cls, call)

    def _fill(self, cls: Object, instance: Object, call: Call) -> None:
        """The fields of a dataclass or NamedTuple from the arguments."""
        order = [each for each in self.mro(cls) if self.things[each >> 1].kind == "C"]
        names = list(dict.fromkeys(name for each in reversed(order) for name in self.cls(each)[1].fields))
        tuples = "typing.NamedTuple" in self.outside_bases(cls)
        if not tuples and not any(each in self.dataclasses for each in order):
            return
        place = 0
        for how, word, node in call.args:
            if how == POSITIONAL and place < len(names):
                self.flow(node, self.field(instance, names[place]))
                place += 1
            elif word is not None and word in names:
                self.flow(node, self.field(instance, word))
        self._default_fields(order, instance, names, call)
        if self.is_own(self.find(cls, "__post_init__")):
            self.wait_call(self.attr(instance, "__post_init__"), call.with_args([], -1))

    def _default_fields(self, order: Sequence[Object], instance: Object, names: Sequence[str], call: Call) -> None:
        """What `field(default_factory=...)` makes."""
        for each in order:
            for name in self.cls(each)[1].fields:
                if name in names and name in self.cls(each)[1].attrs:
                    self.wait(self.class_field(each, name), self._default_field, self.field(instance, name), call)

    def _default_field(self, things: Sequence[Object], dst: int, call: Call) -> None:
        for thing in things:
            if self.things[thing >> 1].kind == "O":
                self.flow(self.field(thing, "default"), dst)
                self.wait_call(self.field(thing, "default_factory"), call.with_args([], dst))

    def is_own(self, holder: Object | None) -> bool:
        """Whether what was found is in a class of the repository."""
        return holder is not None and self.things[holder >> 1].kind == "C"

    # -- classes come to be

    def _create_class(self, file: int, op: Op) -> None:
        """The metaclass, the base's `__init_subclass__` and `__set_name__` run; members of an Enum are made."""
        _, number, site = op
        cls = self.thing("C", file, number)
        call = Call((file, site), [], -1, role="class")
        declared = self.programs[file].classes[number]
        for each in self.mro(cls):
            if self.things[each >> 1].kind == "C":
                other, inherited = self.cls(each)
                for word, value in inherited.keywords:
                    if word == "metaclass":
                        self.wait(self.at(other, value), self._create_by, cls, call)
        holder = self.find(cls, "__init_subclass__", after=cls)
        if self.is_own(holder) and holder is not None:
            self.wait(self.class_field(holder, "__init_subclass__"), self._init_subclass, cls, call)
        for name in declared.attrs:
            self.wait(self.class_field(cls, name), self._set_name, call)
        if self.is_enum(cls) and self.is_own(self.find(cls, "__init__")):
            members = [name for name, (_, numbers) in declared.attrs.items() if self._is_member(file, name, numbers)]
            for name in members:
                node = self.at(file, declared.attrs[name][0])
                given = [(STAR, None, node)] if node >= 0 else []
                self.wait_call(self.attr(self.thing("I", cls), "__init__"), call.with_args(given, -1))

    def _is_member(self, file: int, name: str, numbers: Sequence[int]) -> bool:
        kinds = {self.programs[file].definitions[number].kind for number in numbers}
        return not name.startswith("_") and kinds == {VARIABLE}

    def _create_by(self, metas: Sequence[Object], cls: Object, call: Call) -> None:
        for meta in metas:
            if self.things[meta >> 1].kind != "C":
                continue
            for name in ("__prepare__", "__new__", "__init__"):
                holder = self.find(meta & ~1, name)
                if holder is not None and self.is_own(holder):
                    receiver = cls if name == "__init__" else meta & ~1
                    self.wait(self.class_field(holder, name), self._init_subclass, receiver, call)

    def _init_subclass(self, things: Sequence[Object], receiver: Object, call: Call) -> None:
        for thing in things:
            kind = self.things[thing >> 1].kind
            if kind == "F":
                self.enter(thing, receiver, call)
            elif kind == "T":
                self.wait(self.field(thing, "inner"), self._init_subclass, receiver, call)

    def _set_name(self, things: Sequence[Object], call: Call) -> None:
        self.special([thing for thing in things if self.things[thing >> 1].kind == "I"], ["__set_name__"], call)

    def _outside(self, thing: Object, name: str, call: Call, *, is_member: bool = False) -> None:
        self.record(call, thing, MEMBER if is_member else "")
        model = MODELS.get(name)
        if model is not None:
            model(self, call, thing)
        elif call.is_decorator:
            # Whatever it makes of the definition still stands for it.
            self.flow(call.argument(0), call.dst)
        elif name in DECORATORS:
            self.flow(call.argument(0), call.dst)
        elif call.dst >= 0 and is_class_like(name):
            self.add(call.dst, self.thing("Y", name) | thing & WEAK)
        elif call.dst >= 0 and makes_instance(name):
            self.add(call.dst, self.thing("Y", name.rpartition(".")[0]) | thing & WEAK)

    def _property_part(self, prop: Object, part: str, call: Call) -> None:
        made = self.thing("P", call.where, part)
        for name in ("fget", "fset", "fdel"):
            self.flow(self.field(prop, name), self.field(made, name))
        self.flow(call.argument(0), self.field(made, {"setter": "fset", "getter": "fget"}.get(part, "fdel")))
        self.add(call.dst, made)

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
            given.append(_plain(holder))
        if value >= 0:
            given.append(_plain(value))
        call = Call((-1, -1), given, dst, role="attribute")
        self.wait(node, self._run_hook, call, (receiver & ~1, name, how), bound)

    def _run_hook(
        self, things: Sequence[Object], call: Call, key: tuple[Object, str, str], bound: Object | None
    ) -> None:
        for thing in things:
            kind, one, two, _ = self.things[thing >> 1]
            function = one if kind == "B" else thing
            if self.things[function >> 1].kind != "F":
                continue
            self.attr_calls.setdefault(key, {})[function & ~1] = None
            self.enter(function, two if kind == "B" else bound, call)

    # -- copies of functions that make functions

    def original(self, thing: Object) -> Object:
        """The function that all copies share."""
        kind, file, number, copy = self.things[thing >> 1]
        return thing & ~1 if copy is None else self.thing(kind, file, number)

    def copy_for(self, thing: Object, where: Where) -> Object:
        """The copy of a function for a place that calls it; itself, unless it makes functions.

        A decorator that returns a wrapper is called for many functions. Were there one wrapper for all of them,
        every wrapped function would get the arguments of all the others.
        """
        _, file, number, outer = self.things[thing >> 1]
        if (file, number) not in self._factories:
            return thing
        key = (thing & ~1, where)
        if key not in self._copied:
            inner = self._factories[file, number]
            depth = 0 if outer is None else self._depths[outer] + 1
            used = self._used.get((file, number), 0)
            if depth >= MAX_COPY_DEPTH or used >= MAX_COPIES or self._size(file, inner) > MAX_COPIED_OPS:
                return thing
            self._used[file, number] = used + 1
            self._copied[key] = self._copy_of(thing, inner, depth)
        return self._copied[key]

    def held(self, file: int, node: int) -> Sequence[Object]:
        """The objects in a node of a program, of all copies of its function."""
        if node < 0:
            return ()
        shared = self.offsets[file] + node
        found = dict.fromkeys(self.objects[shared] or ())
        for each in self._copied_nodes.get(shared, ()):
            found.update(dict.fromkeys(self.objects[each] or ()))
        strong = [thing for thing in found if not thing & WEAK]
        declared = [thing for thing in found if thing & WEAK and self.things[thing >> 1].kind == "I"]
        if declared and all(self._is_vague(thing) for thing in strong):
            return declared
        return best(found)

    def _is_vague(self, thing: Object) -> bool:
        """Whether a thing is from outside, so that a declared class of the repository tells more."""
        kind, one, _, _ = self.things[thing >> 1]
        return kind == "H" or (kind == "Y" and not one.startswith("builtins."))

    def _size(self, file: int, inner: Sequence[int]) -> int:
        functions = self.programs[file].functions
        return sum(functions[each].body[1] - functions[each].body[0] for each in inner)

    def _copy_of(self, thing: Object, inner: Sequence[int], depth: int) -> Object:
        """Fresh nodes for a function and all in it, and its rules once more for them."""
        _, file, number, outer = self.things[thing >> 1]
        program = self.programs[file]
        functions = program.functions
        header = functions[number].header
        bodies = [functions[each].body for each in inner]
        own = {node for first, last in ((header[2], header[3]), *((body[2], body[3]) for body in bodies)) for node in range(first, last)}
        own.difference_update(program.shared)
        cells = [cell for cell in program.cells if cell[0] in inner]
        own.difference_update(cell[1] for cell in program.cells)
        own.update(cell[1] for cell in cells)
        copied = dict(self.copies[outer]) if outer is not None else {}
        for node in sorted(own):
            copied[node] = self.node()
            self._copied_nodes.setdefault(self.offsets[file] + node, []).append(copied[node])
        self.copies.append(copied)
        self._depths.append(depth)
        copy = len(self.copies) - 1
        ranges = [(header[0], header[1]), *((body[0], body[1]) for body in bodies)]
        self._copy_ops.append((file, [op for first, last in ranges for op in program.ops[first:last] if op[0] != "c"]))
        self._apply_to_copy(copy, self._rounds[: self._round + 1])
        for _, node, versions in cells:
            for version in versions:
                if version != NOTHING:
                    self.flow(copied.get(version, self.offsets[file] + version), copied[node])
        if number in inner and functions[number].hinted_result != NOTHING:
            self._hinted_copies.append((file, functions[number], copied))
        return self.thing("F", file, number, copy)

    def _apply_to_copy(self, copy: int, rounds: Sequence[Mapping[str, Callable[[int, Op], None]]]) -> None:
        """The rules of some rounds, for the nodes of a copy."""
        file, ops = self._copy_ops[copy]
        before = self.copied, self._copy_number
        self.copied, self._copy_number = self.copies[copy], copy
        try:
            for rules in rounds:
                for op in ops:
                    rule = rules.get(op[0])
                    if rule is not None:
                        rule(file, op)
        finally:
            self.copied, self._copy_number = before

    # -- functions that nobody calls

    def _enter_uncalled(self) -> None:
        """`self` is an instance of its class, `cls` the class, defaults are values."""
        for file, program in enumerate(self.programs):
            for number, function in enumerate(program.functions):
                thing = self.thing("F", file, number)
                nodes = [self.at(file, each.node) for each in function.parameters]
                if function.owner >= 0 and function.parameters and not self.objects[nodes[0]]:
                    cls = self.thing("C", file, function.owner)
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
        instance = self.thing("I", cls)
        self.add(node, instance)
        holder = self.find(cls, "__init__")
        if holder is not None and self.things[holder >> 1].kind == "C":
            self.wait(self.class_field(holder, "__init__"), self._assume, instance)

    def _assume(self, things: Sequence[Object], instance: Object) -> None:
        """An instance was made somewhere else, by its `__init__`."""
        for thing in things:
            if self.things[thing >> 1].kind == "F":
                _, function = self.function(thing)
                if function.parameters:
                    self.add(self.nodes_of(thing)(function.parameters[0].node), instance)

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
                    self.elements(says, yields, (-1, -1))
                else:
                    self.flow(says, result)


def _plain(node: int) -> Arg:
    return (POSITIONAL, None, node)


def factories(program: Program) -> dict[int, list[int]]:
    """Functions whose variables inner functions see, each with itself and all functions in it."""
    makers = {number for number, _, _ in program.cells}
    inner: dict[int, list[int]] = {number: [number] for number in makers}
    for number, function in enumerate(program.functions):
        outer = function.outer
        while outer >= 0:
            if outer in inner:
                inner[outer].append(number)
            outer = program.functions[outer].outer
    return inner
