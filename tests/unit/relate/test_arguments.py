"""Which argument goes to which parameter: `inspect.Signature.bind` knows."""

from __future__ import annotations

import inspect
from inspect import Signature

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeanatomy.relate.program import KEYWORD, POSITIONAL, STAR, STAR_STAR, Arg, Parameter
from codeanatomy.relate.values.arguments import PassedArgument, match_parameters

P = inspect.Parameter
HOWS = {
    P.POSITIONAL_ONLY: "positional_only",
    P.POSITIONAL_OR_KEYWORD: "positional",
    P.VAR_POSITIONAL: "vararg",
    P.KEYWORD_ONLY: "keyword_only",
    P.VAR_KEYWORD: "kwarg",
}
NAMES = "abcdef"


@st.composite
def signatures(draw: st.DrawFn) -> Signature:
    sizes = [
        draw(st.integers(0, 2)),
        draw(st.integers(0, 2)),
        draw(st.integers(0, 1)),
        draw(st.integers(0, 2)),
        draw(st.integers(0, 1)),
    ]
    kinds = [kind for kind, size in zip(HOWS, sizes, strict=True) for _ in range(size)]
    names = [*NAMES[: len(kinds)]]
    required = draw(st.integers(0, len(kinds)))
    made = []
    for at, (name, kind) in enumerate(zip(names, kinds, strict=False)):
        gathers = kind in (P.VAR_POSITIONAL, P.VAR_KEYWORD)
        made.append(P(name, kind, default=P.empty if gathers or at < required else 0))
    return Signature(made)


CALLS = st.tuples(st.integers(0, 5), st.lists(st.sampled_from("abcdefxy"), max_size=4, unique=True))


def parameters(signature: Signature) -> list[Parameter]:
    return [
        Parameter(each.name, HOWS[each.kind], -1, -1, (None, None, None))
        for each in signature.parameters.values()
    ]


def bound(
    signature: Signature, positional: list[object], keywords: dict[str, object]
) -> dict[object, tuple[int, str | None]] | None:
    """By argument, the number of its parameter and its key there; None for a call that fails."""
    try:
        found = signature.bind(*positional, **keywords).arguments
    except TypeError:
        return None
    numbers = {name: at for at, name in enumerate(signature.parameters)}
    told: dict[object, tuple[int, str | None]] = {}
    for name, value in found.items():
        kind = signature.parameters[name].kind
        if kind is P.VAR_POSITIONAL:
            told |= {each: (numbers[name], str(at)) for at, each in enumerate(value)}
        elif kind is P.VAR_KEYWORD:
            told |= {each: (numbers[name], repr(word)) for word, each in value.items()}
        else:
            told[value] = (numbers[name], None)
    return told


@given(signatures(), CALLS)
def test_plain_arguments_go_where_python_puts_them(signature: Signature, call: tuple[int, list[str]]) -> None:
    count, words = call
    args: list[Arg] = [(POSITIONAL, None, 0)] * count + [(KEYWORD, word, 0) for word in words]
    passed, left = match_parameters(parameters(signature), args, 0)
    python = bound(signature, list(range(count)), {word: count + at for at, word in enumerate(words)})
    if python is None:
        return
    assert {each.argument: (each.parameter, each.key) for each in passed} == python
    assert not any(each.is_unpacked for each in passed)
    fed = {number for number, _ in python.values()}
    plain = [
        at
        for at, each in enumerate(signature.parameters.values())
        if HOWS[each.kind] not in ("vararg", "kwarg")
    ]
    assert left == [number for number in plain if number not in fed]


@given(signatures(), CALLS)
def test_a_bound_receiver_takes_the_first_parameter(
    signature: Signature, call: tuple[int, list[str]]
) -> None:
    own = parameters(signature)
    if not own or own[0].how not in ("positional", "positional_only"):
        return
    count, words = call
    args: list[Arg] = [(POSITIONAL, None, 0)] * count + [(KEYWORD, word, 0) for word in words]
    keywords: dict[str, object] = {word: count + at for at, word in enumerate(words)}
    python = bound(signature, ["self", *range(count)], keywords)
    if python is not None:
        passed, left = match_parameters(own, args, 1)
        assert {each.argument: (each.parameter, each.key) for each in passed} == {
            argument: place for argument, place in python.items() if argument != "self"
        }
        assert 0 not in left


def spread(
    signature: Signature, plan: list[tuple[int, int]], words: list[str]
) -> list[tuple[object, PassedArgument | None]]:
    """A call with plain and starred arguments: what Python passes, and what `match_parameters` gives."""
    args: list[Arg] = []
    values: dict[object, tuple[int, str | None]] = {}
    positional: list[object] = []
    for how, size in plan:
        for key in range(size):
            name = f"{len(args)}.{key}"
            values[name] = (len(args), str(key) if how == STAR else None)
            positional.append(name)
            if how == POSITIONAL:
                args.append((POSITIONAL, None, 0))
        if how == STAR:
            args.append((STAR, None, 0))
    keywords: dict[str, object] = {}
    for word in words:
        keywords[word] = word
        values[word] = (len(args), repr(word))
    args.append((STAR_STAR, None, 0))
    python = bound(signature, positional, keywords)
    passed, _ = match_parameters(parameters(signature), args, 0)
    found: list[tuple[object, PassedArgument | None]] = []
    for value, (number, _) in (python or {}).items():
        argument, spread_key = values[value]
        fits = [
            each
            for each in passed
            if (each.argument, each.parameter) == (argument, number)
            and (not each.is_unpacked or each.key in (None, spread_key))
        ]
        found.append((value, fits[0] if fits else None))
    return found


PLANS = st.lists(st.tuples(st.sampled_from([POSITIONAL, STAR]), st.integers(0, 2)), max_size=3)
WORDS = st.lists(st.sampled_from("abcdefxy"), max_size=2, unique=True)


@given(signatures(), PLANS, WORDS)
def test_what_stars_spread_reaches_every_parameter_it_may(
    signature: Signature, plan: list[tuple[int, int]], words: list[str]
) -> None:
    # What stands alone behind a star is another test.
    stars = [at for at, (how, _) in enumerate(plan) if how == STAR]
    plan = [each for at, each in enumerate(plan) if each[0] == STAR or not stars or at < stars[0]]
    missed = [value for value, fit in spread(signature, plan, words) if fit is None]
    assert missed == []


def test_what_stands_behind_a_star_may_be_anywhere_behind() -> None:
    three = Signature([P(name, P.POSITIONAL_OR_KEYWORD) for name in "abc"])
    plan = [(STAR, 2), (POSITIONAL, 1)]
    assert [value for value, fit in spread(three, plan, []) if fit is None] == []


@pytest.mark.parametrize("skip", [0, 1, 9])
def test_a_call_that_fails_passes_what_fits(skip: int) -> None:
    args: list[Arg] = [(POSITIONAL, None, 0)] * 1000 + [
        (KEYWORD, "nobody", 0),
        (STAR, None, 0),
        (STAR_STAR, None, 0),
    ]
    passed, left = match_parameters([Parameter("a", "positional", -1, -1, (None, None, None))], args, skip)
    assert [each.argument for each in passed] == ([0] if skip == 0 else [])
    assert left == []
