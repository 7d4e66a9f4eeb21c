"""Copy functions that create functions for each call site (selective context sensitivity).

    def logged(f):                   @logged             two copies of `logged`, each with its own `wrapper`
        def wrapper(*args):          def a(): ...        that calls its own function with its own arguments
            return f(*args)          @logged
        return wrapper               def b(x): ...

With a single `wrapper`, every wrapped function would get the arguments of all the others. A copy has fresh
nodes for the function and the functions nested in it; constants, globals and variables of enclosing functions
are shared. Functions of a line or two are copied as well. Number, size and depth of copies are bounded, and
beyond the bounds calls share the original.

Tests: `tests/unit/relate/test_callgraph_cases.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from codeanatomy.relate.program import (
    NOTHING,
    OBJ_EXTERNAL_INSTANCE,
    OBJ_EXTERNAL_MEMBER,
    OBJ_FUNCTION,
    OBJ_INSTANCE,
    OP_CREATE_CLASS,
    Function,
    Op,
    Program,
)
from codeanatomy.relate.values.containers import Containers
from codeanatomy.relate.values.pending_call import SiteKey
from codeanatomy.relate.values.solver import WEAK, Object

# Copies of one function.
MAX_COPIES = 128
# Copies of functions within copies.
MAX_COPY_DEPTH = 3
# Operations of a copied function.
MAX_COPIED_OPS = 400
# A function of so few operations is copied even if it creates no function: it is cheap and separates callers.
MAX_SHORT_OPS = 8

# Rules by operation code; a rule is called with the file and the operation.
Rules: TypeAlias = Mapping[str, Callable[[int, Op], None]]


class Copies(Containers):
    """Function copies by call site."""

    def __init__(self, programs: Sequence[Program], limit: int | None = None) -> None:
        super().__init__(programs, limit)
        # Rules of each round, and the number of the current round.
        self._rounds: tuple[Rules, ...] = ()
        self._round = 0
        # Functions to copy by (file, number), each with the functions nested in it.
        self._factories = {
            (file, number): inner
            for file, program in enumerate(self.programs)
            for number, inner in copyable_functions(program).items()
        }
        self._copies_by_site: dict[tuple[Object, tuple[int, Any]], Object] = {}
        self._copy_number: int | None = None
        self._depths: list[int] = []
        self._copied_nodes: dict[int, list[int]] = {}
        # File and operations of each copy, and the copies of each file.
        self._copy_ops: list[tuple[int, list[Op]]] = []
        self._copies_by_file: dict[int, list[int]] = {}
        self._hinted_copies: list[tuple[int, Function, Mapping[int, int]]] = []
        self._copy_counts: dict[tuple[int, int], int] = {}

    def original(self, obj: Object) -> Object:
        """Return the original of a function copy; a function that is no copy as it is."""
        kind, file, number, copy = self.objects[obj >> 1]
        return obj & ~1 if copy is None else self.object(kind, file, number)

    def copy_for(self, obj: Object, where: SiteKey) -> Object:
        """Return the copy of a function for a call site; the function itself if it is not to be copied."""
        _, file, number, _ = self.objects[obj >> 1]
        return self.copy_of(obj, where) if (file, number) in self._factories else obj

    def copy_of(self, obj: Object, where: tuple[int, Any]) -> Object:
        """Return the copy of a function for a call site or other key; itself beyond the bounds."""
        _, file, number, outer = self.objects[obj >> 1]
        key = (obj & ~1, where)
        if key not in self._copies_by_site:
            inner = self._factories.get((file, number), [number])
            depth = 0 if outer is None else self._depths[outer] + 1
            used = self._copy_counts.get((file, number), 0)
            if depth >= MAX_COPY_DEPTH or used >= MAX_COPIES or self._op_count(file, inner) > MAX_COPIED_OPS:
                return obj
            self._copy_counts[file, number] = used + 1
            self._copies_by_site[key] = self._make_copy(obj, inner, depth)
        return self._copies_by_site[key]

    def program_objects(self, file: int, node: int) -> Sequence[Object]:
        """Return the objects of a file's node in its function and all copies of it.

        Hints count if there is nothing else, or only external objects while a hint names a class of the
        repository.
        """
        if node < 0:
            return ()
        shared = self.offsets[file] + node
        objects = self.points_to[shared] or {}
        copied = self._copied_nodes.get(shared)
        if copied is not None:
            objects = dict(objects)
            for each in copied:
                objects.update(self.points_to[each] or {})
        strong = [obj for obj in objects if not obj & WEAK]
        if len(strong) == len(objects):
            return strong
        declared = [obj for obj in objects if obj & WEAK and self.objects[obj >> 1].kind == OBJ_INSTANCE]
        if declared and all(self._is_external(obj) for obj in strong):
            return declared
        return strong or list(objects)

    def nodes_in_copies(self, file: int, *nodes: int) -> Iterator[tuple[int, ...]]:
        """Yield the solver's nodes of a file's nodes, in the original and in each copy of their function."""
        offset = self.offsets[file]
        yield tuple(node if node < 0 else offset + node for node in nodes)
        for copy in self._copies_by_file.get(file, ()):
            copied = self.copies[copy]
            if any(node in copied for node in nodes):
                yield tuple(node if node < 0 else copied.get(node, offset + node) for node in nodes)

    def is_truncated(self, file: int, node: int) -> bool:
        """Whether a file's node or one of its copies had more objects than the limit."""
        shared = self.offsets[file] + node
        return node >= 0 and (
            shared in self.truncated or not self.truncated.isdisjoint(self._copied_nodes.get(shared, ()))
        )

    def _is_external(self, obj: Object) -> bool:
        """Whether an object is external, so that an annotated class of the repository is more precise."""
        kind, first, _, _ = self.objects[obj >> 1]
        return kind == OBJ_EXTERNAL_MEMBER or (
            kind == OBJ_EXTERNAL_INSTANCE and not first.startswith("builtins.")
        )

    def _op_count(self, file: int, inner: Sequence[int]) -> int:
        functions = self.programs[file].functions
        return sum(functions[each].body[1] - functions[each].body[0] for each in inner)

    def _make_copy(self, obj: Object, inner: Sequence[int], depth: int) -> Object:
        """Create fresh nodes for a function and those nested in it, and apply its operations to them."""
        _, file, number, outer = self.objects[obj >> 1]
        program = self.programs[file]
        functions = program.functions
        header = functions[number].header
        bodies = [functions[each].body for each in inner]
        own = {
            node
            for first, last in ((header[2], header[3]), *((body[2], body[3]) for body in bodies))
            for node in range(first, last)
        }
        own.difference_update(program.shared)
        cells = [cell for cell in program.cells if cell[0] in inner]
        own.difference_update(cell[1] for cell in program.cells)
        own.update(cell[1] for cell in cells)
        copied = dict(self.copies[outer]) if outer is not None else {}
        for node in sorted(own):
            copied[node] = self.new_node()
            self._copied_nodes.setdefault(self.offsets[file] + node, []).append(copied[node])
        self.copies.append(copied)
        self._depths.append(depth)
        copy = len(self.copies) - 1
        self._copies_by_file.setdefault(file, []).append(copy)
        ranges = [(header[0], header[1]), *((body[0], body[1]) for body in bodies)]
        self._copy_ops.append(
            (
                file,
                [op for first, last in ranges for op in program.ops[first:last] if op[0] != OP_CREATE_CLASS],
            )
        )
        self._apply_to_copy(copy, self._rounds[: self._round + 1])
        for _, node, versions in cells:
            for version in versions:
                if version != NOTHING:
                    self.flow(copied.get(version, self.offsets[file] + version), copied[node])
        if number in inner and functions[number].hinted_result != NOTHING:
            self._hinted_copies.append((file, functions[number], copied))
        return self.object(OBJ_FUNCTION, file, number, copy)

    def _apply_to_copy(self, copy: int, rounds: Sequence[Rules]) -> None:
        """Apply the rules of some rounds to the operations of a copy."""
        file, ops = self._copy_ops[copy]
        before = self.active_copy, self._copy_number
        self.active_copy, self._copy_number = self.copies[copy], copy
        try:
            for rules in rounds:
                for op in ops:
                    rule = rules.get(op[0])
                    if rule is not None:
                        rule(file, op)
        finally:
            self.active_copy, self._copy_number = before


def copyable_functions(program: Program) -> dict[int, list[int]]:
    """Return the functions to copy, each with the functions nested in it.

    These are functions with variables that nested functions use, and short ones.
    """
    copied = {number for number, _, _ in program.cells}
    copied |= {
        number
        for number, function in enumerate(program.functions)
        if function.parameters and function.owner < 0 and function.body[1] - function.body[0] <= MAX_SHORT_OPS
    }
    inner: dict[int, list[int]] = {number: [number] for number in copied}
    for number, function in enumerate(program.functions):
        outer = function.outer
        while outer >= 0:
            if outer in inner:
                inner[outer].append(number)
            outer = program.functions[outer].outer
    # A class is not copied, so its methods would miss the arguments of the copy.
    with_classes = {cls.outer for cls in program.classes}
    return {number: nested for number, nested in inner.items() if not with_classes.intersection(nested)}
