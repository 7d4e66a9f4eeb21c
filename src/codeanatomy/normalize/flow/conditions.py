"""Find how the tests of a file are written, where the compiler tests something else.

`if not x: f()` jumps over `f()` if `x` is true, and `assert x is not None` tests whether `x` is None. An edge
is labelled as the source has it: the body of an `if` follows its condition being true.

    if not (a and b): f()     a false -> f(), b false -> f(): branch_true
                              b true  -> after it:            branch_false

A condition is the test of `if`, `while`, `assert`, `x if test else y`, a guard of `case`, or an `if` of a
comprehension. It consists of operands, joined by `and`, `or`, `not` and the arms of a conditional expression.
An operand below `not` is labelled by the truth of the outermost `not` around it; below none, by its own.
The span of a label is that of the expression it speaks of.

- The jump of an operand has the span of the operand. 3.11 gives most of them the span of the statement: there
  the end of the instruction before the jump, which computes the value, is that of the operand (only the
  beginning of a call in several lines is another one).
- 3.13 gives a jump over `x is None` backwards the span of what follows. The operand is that of the
  instruction that loads `x`, or if it is fused with another one, the only such test of that variable on the
  line.
- The compiler rewrites `not a is b` to `a is not b`, at the span of the first: the instruction shows which
  one is executed.
- Where `not` is a value, as in `x = not a or b`, it is executed, and nothing is inverted.

Tests: `tests/unit/normalize/test_conditions.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from codeanatomy.file_view import Columns

Span: TypeAlias = tuple[int | None, int | None]
# Fields of nodes that are read.
FIELDS = ("parent_ast_id", "slot", "kind", "name", "bstart", "bend", "line")
CONDITION_SLOTS = frozenset({"test", "ifs", "guard"})
ARMS = frozenset({"body", "orelse"})
# Operators that the compiler inverts, and whether they have `not`.
INVERTIBLE = {"Is": False, "IsNot": True, "In": False, "NotIn": True}
INVERTIBLE_OPCODES = frozenset({"IS_OP", "CONTAINS_OP"})
# Texts of their argument if they are executed as `is not` and `not in`.
NEGATIVE = frozenset({"1", "is not", "not in"})


class Operand(NamedTuple):
    """An operand of a condition: the span its label speaks of, and whether that has the opposite truth."""

    span: Span
    is_inverted: bool
    # Of a single comparison `is`, `is not`, `in`, `not in`: whether it is one with `not`.
    has_negative_operator: bool | None


class Conditions:
    """The operands of a file's conditions by span, by end, and by a variable they test for None."""

    def __init__(self, nodes: Columns) -> None:
        self._operands: dict[Span, Operand] = {}
        self._by_end: dict[int | None, Operand] = {}
        self._by_variable: dict[tuple[int | None, str], list[Operand]] = defaultdict(list)
        if nodes:
            self._read(_Reader(nodes))

    def _read(self, tree: _Reader) -> None:
        for node, operand in tree.operands():
            self._operands[tree.span(node)] = operand
            self._by_end[tree.ends[node]] = operand
            if tree.kinds[node] == "NamedExpr":
                # What it stores last.
                self._by_end[tree.ends[node + 1]] = operand
            elif operand.has_negative_operator is not None:
                self._by_end[tree.ends[node + 1]] = operand
                if tree.kinds[node + 1] == "Name":
                    self._by_variable[tree.lines[node + 1], tree.names[node + 1]].append(operand)

    def label(self, instructions: Columns, decider: int, truth: bool) -> bool:
        """Return the label of the edge that a conditional jump takes if its test has this truth."""
        operand = self._operand(instructions, decider)
        if operand is None:
            return truth
        negative = operand.has_negative_operator
        if negative is not None and negative != _is_executed_negative(instructions, decider):
            truth = not truth
        return truth != operand.is_inverted

    def span(self, instructions: Columns, decider: int) -> Span:
        """Return the span that the labels of a conditional jump speak of."""
        operand = self._operand(instructions, decider)
        return _span(instructions, decider) if operand is None else operand.span

    def _operand(self, instructions: Columns, decider: int) -> Operand | None:
        operand = self._operands.get(_span(instructions, decider))
        name = instructions["opname"][decider]
        if operand is not None or not decider or not name.startswith("POP_JUMP"):
            return operand
        end, loaded = instructions["bend"][decider - 1], instructions["argval"][decider - 1]
        if name.endswith("NONE") and loaded is not None and ", " in loaded:
            tested = self._by_variable.get((instructions["line"][decider - 1], loaded.partition(", ")[2]), [])
            return tested[0] if len(tested) == 1 else None
        return None if end is None else self._by_end.get(end)


def _span(instructions: Columns, index: int) -> Span:
    return instructions["bstart"][index], instructions["bend"][index]


def _is_executed_negative(instructions: Columns, decider: int) -> bool:
    """Return whether a jump follows `is not` or `not in`; jumps by None test whether something is None."""
    names: Sequence[str] = instructions["opname"]
    if names[decider].endswith("NONE"):
        return False
    return names[decider - 1] in INVERTIBLE_OPCODES and instructions["argval"][decider - 1] in NEGATIVE


class _Reader:
    """Read the operands from the syntax tree, whose nodes are in preorder."""

    def __init__(self, nodes: Columns) -> None:
        columns = (nodes[name] for name in FIELDS)
        self.parents, self.slots, self.kinds, self.names, self.starts, self.ends, self.lines = columns

    def operands(self) -> Iterator[tuple[int, Operand]]:
        """Yield the operands of all conditions by node."""
        for root, slot in enumerate(self.slots):
            if slot not in CONDITION_SLOTS:
                continue
            pending: list[tuple[int, bool, int | None]] = [(root, False, None)]
            while pending:
                node, is_inverted, outermost = pending.pop()
                kind = self.kinds[node]
                if kind == "UnaryOp" and self.kinds[node + 1] == "Not":
                    outermost = node if outermost is None else outermost
                    pending.append((node + 2, not is_inverted, outermost))
                elif kind in {"BoolOp", "IfExp"}:
                    pending += [(child, is_inverted, outermost) for child in self._parts(node)]
                else:
                    labelled = self.span(node if outermost is None else outermost)
                    yield node, Operand(labelled, is_inverted, self._operator(node))

    def span(self, node: int) -> Span:
        return self.starts[node], self.ends[node]

    def _parts(self, node: int) -> Iterator[int]:
        """Yield what a boolean operation joins, or the arms of a conditional expression."""
        for child in self._children(node):
            if self.slots[child] == "values" or self.slots[child] in ARMS:
                yield child

    def _children(self, node: int) -> Iterator[int]:
        child = node + 1
        while child < len(self.parents) and self.parents[child] >= node:
            if self.parents[child] == node:
                yield child
            child += 1

    def _operator(self, node: int) -> bool | None:
        """Return whether the operator of a comparison has `not`; None if it has several, or another one."""
        if self.kinds[node] != "Compare":
            return None
        operators = [self.kinds[child] for child in self._children(node) if self.slots[child] == "ops"]
        return INVERTIBLE.get(operators[0]) if len(operators) == 1 else None
