"""Match the arguments of a call to the parameters of a function.

    def f(a, *rest, k=1, **more)
    f(x, y, k=z, q=w)              x to a, y to rest, z to k, w to more

An unpacked argument (`*xs`, `**kw`) may go to every parameter that is still free. The value analysis and the
rows of argument passing use the same match.

Tests: `tests/unit/relate/test_arguments.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from codeanatomy.relate.program import KEYWORD, POSITIONAL, STAR, STAR_STAR, Arg, Parameter

VARIADIC = ("vararg", "kwarg")
# Kinds of parameters that arguments fill by position, and by name.
BY_POSITION, BY_NAME = ("positional_only", "positional"), ("positional", "keyword_only")


class PassedArgument(NamedTuple):
    """An argument and the parameter that receives it, by index."""

    argument: int
    parameter: int
    # Of an unpacked argument, the key of the passed element; None for any. For a variadic parameter, the key
    # in its tuple or dict.
    key: str | None = None
    # The argument is unpacked by a star: an element of it is passed.
    is_unpacked: bool = False


class ArgumentMatch(NamedTuple):
    """PassedArgument arguments, parameters without an argument, and whether Python accepts the call."""

    passed: Sequence[PassedArgument]
    unfilled: Sequence[int]
    is_accepted: bool


def match_parameters(
    parameters: Sequence[Parameter], args: Sequence[Arg], skip: int
) -> tuple[list[PassedArgument], list[int]]:
    """Return passed arguments and unfilled parameters; the first `skip` parameters are already bound."""
    numbered = list(enumerate(parameters))[skip:]
    matching = _Matching(parameters, numbered)
    for number, (how, keyword, _) in enumerate(args):
        matching.match[how](number, keyword)
    return matching.passed, [
        number for number, each in numbered if number not in matching.taken and each.how not in VARIADIC
    ]


def is_accepted_call(
    parameters: Sequence[Parameter],
    args: Sequence[Arg],
    passed: Sequence[PassedArgument],
    unfilled: Sequence[int],
) -> bool:
    """Whether Python would accept a matched call; unpacked arguments may hold anything."""
    unpacked = {each.parameter for each in passed if each.is_unpacked}
    taken = {each.argument for each in passed}
    # The number of elements that a star unpacks is unknown.
    has_star = any(how == STAR for how, _, _ in args)
    checked = (KEYWORD,) if has_star else (POSITIONAL, KEYWORD)
    is_matched = all(how not in checked or number in taken for number, (how, _, _) in enumerate(args))
    return is_matched and not any(parameters[each].is_required and each not in unpacked for each in unfilled)


class _Matching:
    """The state of a match: which parameters the arguments so far have filled."""

    def __init__(self, parameters: Sequence[Parameter], numbered: Sequence[tuple[int, Parameter]]) -> None:
        self.positions = [number for number, each in numbered if each.how in BY_POSITION]
        self.names = {each.name: number for number, each in numbered if each.how in BY_NAME}
        self.variadic = {each.how: number for number, each in enumerate(parameters) if each.how in VARIADIC}
        self.passed: list[PassedArgument] = []
        self.taken: set[int] = set()
        self.next_position = 0
        self.is_after_star = False
        # By how an argument is passed.
        self.match = {
            POSITIONAL: self.positional,
            KEYWORD: self.keyword,
            STAR: self.star,
            STAR_STAR: self.star_star,
        }

    def positional(self, number: int, _: str | None) -> None:
        """Match `f(x)`."""
        free = self.positions[self.next_position :]
        if self.is_after_star:
            # The number of parameters filled by the star before is unknown.
            self.passed += [PassedArgument(number, each) for each in free]
            self._pass_variadic("vararg", number, None)
            return
        if free:
            self.passed.append(PassedArgument(number, free[0]))
            self.taken.add(free[0])
        else:
            self._pass_variadic("vararg", number, str(self.next_position - len(self.positions)))
        self.next_position += 1

    def star(self, number: int, _: str | None) -> None:
        """Match `f(*xs)`."""
        for offset, free in enumerate(self.positions[self.next_position :]):
            key = None if self.is_after_star else str(offset)
            self.passed.append(PassedArgument(number, free, key, is_unpacked=True))
        self._pass_variadic("vararg", number, None, is_unpacked=True)
        self.is_after_star = True

    def keyword(self, number: int, name: str | None) -> None:
        """Match `f(k=x)`."""
        if name in self.names:
            self.passed.append(PassedArgument(number, self.names[name]))
            self.taken.add(self.names[name])
        else:
            self._pass_variadic("kwarg", number, repr(name))

    def star_star(self, number: int, _: str | None) -> None:
        """Match `f(**kw)`."""
        for name, free in self.names.items():
            if free not in self.taken:
                self.passed.append(PassedArgument(number, free, repr(name), is_unpacked=True))
        self._pass_variadic("kwarg", number, None, is_unpacked=True)

    def _pass_variadic(self, how: str, number: int, key: str | None, *, is_unpacked: bool = False) -> None:
        if how in self.variadic:
            self.passed.append(PassedArgument(number, self.variadic[how], key, is_unpacked))
