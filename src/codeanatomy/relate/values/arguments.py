"""Which argument of a call goes to which parameter.

    def f(a, *rest, k=1, **more)
    f(x, y, k=z, q=w)              x to a, y to rest, z to k, w to more

What a star spreads may go to every parameter that is still free. The same rule serves values and rows.

Tests: `tests/unit/relate/test_arguments.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from codeanatomy.relate.program import KEYWORD, POSITIONAL, STAR, STAR_STAR, Arg, Parameter

VARIADIC = ("vararg", "kwarg")


class Passed(NamedTuple):
    """An argument, by number, and the parameter it goes to."""

    argument: int
    parameter: int
    # Of what is spread, the key it is taken from; None for any. Of what is gathered, the key it is put at.
    key: str | None = None
    # The argument is spread by a star, so only a part of it is passed.
    is_spread: bool = False


class ArgumentMatch(NamedTuple):
    """What is passed, the parameters that get nothing, and whether Python accepts the call."""

    passed: Sequence[Passed]
    left: Sequence[int]
    is_accepted: bool


def match(parameters: Sequence[Parameter], args: Sequence[Arg], skip: int) -> tuple[list[Passed], list[int]]:
    """What is passed, and the parameters that get nothing; the first ones are skipped if bound already."""
    matching = _Matching(parameters, skip)
    for number, (how, keyword, _) in enumerate(args):
        if how == POSITIONAL:
            matching.positional(number)
        elif how == STAR:
            matching.star(number)
        elif how == KEYWORD:
            matching.keyword(number, keyword)
        elif how == STAR_STAR:
            matching.star_star(number)
    left = [
        number
        for number, each in enumerate(parameters)
        if number >= skip and number not in matching.taken and each.how not in VARIADIC
    ]
    return matching.passed, left


def fits(
    parameters: Sequence[Parameter], args: Sequence[Arg], passed: Sequence[Passed], left: Sequence[int]
) -> bool:
    """Whether Python would accept a call that was matched; what stars spread may be anything."""
    hows = {how for how, _, _ in args}
    spread = {each.parameter for each in passed if each.is_spread}
    taken = {each.argument for each in passed}
    lost = [
        number
        for number, (how, _, _) in enumerate(args)
        if how in (POSITIONAL, KEYWORD) and number not in taken
    ]
    missing = [number for number in left if parameters[number].is_required and number not in spread]
    if STAR in hows:
        # How many it spreads nobody knows.
        lost = [number for number in lost if args[number][0] == KEYWORD]
    return not lost and not missing


class _Matching:
    """What the arguments so far have taken."""

    def __init__(self, parameters: Sequence[Parameter], skip: int) -> None:
        numbered = [(number, each) for number, each in enumerate(parameters) if number >= skip]
        self.places = [number for number, each in numbered if each.how in ("positional_only", "positional")]
        self.names = {
            each.name: number for number, each in numbered if each.how in ("positional", "keyword_only")
        }
        self.gathering = {each.how: number for number, each in enumerate(parameters) if each.how in VARIADIC}
        self.passed: list[Passed] = []
        self.taken: set[int] = set()
        self.place = 0
        self.is_spread = False

    def positional(self, number: int) -> None:
        """`f(x)`"""
        free = self.places[self.place :]
        if self.is_spread:
            # How many the star has taken nobody knows.
            self.passed += [Passed(number, each) for each in free]
            self._gather("vararg", number, None)
            return
        if free:
            self.passed.append(Passed(number, free[0]))
            self.taken.add(free[0])
        else:
            self._gather("vararg", number, str(self.place - len(self.places)))
        self.place += 1

    def star(self, number: int) -> None:
        """`f(*xs)`"""
        for offset, free in enumerate(self.places[self.place :]):
            key = None if self.is_spread else str(offset)
            self.passed.append(Passed(number, free, key, is_spread=True))
        self._gather("vararg", number, None, is_spread=True)
        self.is_spread = True

    def keyword(self, number: int, name: str | None) -> None:
        """`f(k=x)`"""
        if name in self.names:
            self.passed.append(Passed(number, self.names[name]))
            self.taken.add(self.names[name])
        else:
            self._gather("kwarg", number, repr(name))

    def star_star(self, number: int) -> None:
        """`f(**kw)`"""
        for name, free in self.names.items():
            if free not in self.taken:
                self.passed.append(Passed(number, free, repr(name), is_spread=True))
        self._gather("kwarg", number, None, is_spread=True)

    def _gather(self, how: str, number: int, key: str | None, *, is_spread: bool = False) -> None:
        if how in self.gathering:
            self.passed.append(Passed(number, self.gathering[how], key, is_spread))
