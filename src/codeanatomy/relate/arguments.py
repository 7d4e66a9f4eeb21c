"""Which argument of a call goes to which parameter.

    def f(a, *rest, k=1, **more)
    f(x, y, k=z, q=w)              x to a, y to rest, z to k, w to more

What a star spreads may go to every parameter that is still free. The same rule serves values and rows.

Tests: `tests/test_relate_arguments.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from codeanatomy.relate.program import KEYWORD, POSITIONAL, STAR, STAR_STAR, Arg, Parameter


class Passed(NamedTuple):
    """An argument, by number, and the parameter it goes to."""

    argument: int
    parameter: int
    # Of what is spread, the key it is taken from; None for any. Of what is gathered, the key it is put at.
    key: str | None = None
    # The argument is spread by a star, so only a part of it is passed.
    is_spread: bool = False


def match(parameters: Sequence[Parameter], args: Sequence[Arg], skip: int) -> tuple[list[Passed], list[int]]:
    """What is passed, and the parameters that get nothing; the first ones are skipped if bound already."""
    positional = [
        number
        for number, each in enumerate(parameters)
        if each.how in ("positional_only", "positional") and number >= skip
    ]
    gathering = {
        each.how: number for number, each in enumerate(parameters) if each.how in ("vararg", "kwarg")
    }
    by_name = {
        each.name: number
        for number, each in enumerate(parameters)
        if each.how in ("positional", "keyword_only") and number >= skip
    }
    passed: list[Passed] = []
    taken: set[int] = set()
    place = 0
    spread = False
    for number, (how, keyword, _) in enumerate(args):
        if how == POSITIONAL and spread:
            # How many the star has taken nobody knows.
            passed += [Passed(number, free) for free in positional[place:]]
            passed += [Passed(number, gathering["vararg"])] if "vararg" in gathering else []
        elif how == POSITIONAL:
            if place < len(positional):
                passed.append(Passed(number, positional[place]))
                taken.add(positional[place])
            elif "vararg" in gathering:
                passed.append(Passed(number, gathering["vararg"], str(place - len(positional))))
            place += 1
        elif how == STAR:
            for offset, free in enumerate(positional[place:]):
                passed.append(Passed(number, free, None if spread else str(offset), is_spread=True))
            if "vararg" in gathering:
                passed.append(Passed(number, gathering["vararg"], is_spread=True))
            spread = True
        elif how == KEYWORD:
            if keyword in by_name:
                passed.append(Passed(number, by_name[keyword]))
                taken.add(by_name[keyword])
            elif "kwarg" in gathering:
                passed.append(Passed(number, gathering["kwarg"], repr(keyword)))
        elif how == STAR_STAR:
            for name, free in by_name.items():
                if free not in taken:
                    passed.append(Passed(number, free, repr(name), is_spread=True))
            if "kwarg" in gathering:
                passed.append(Passed(number, gathering["kwarg"], is_spread=True))
    fed = taken
    left = [
        number
        for number, each in enumerate(parameters)
        if number >= skip and number not in fed and each.how not in ("vararg", "kwarg")
    ]
    return passed, left
