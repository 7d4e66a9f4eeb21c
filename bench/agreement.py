"""Agreement with scip-python and with pyrefly, neither of which our analysis has seen here.

    PYTHONPATH=tests python bench/agreement.py [PACKAGE ...] [--all] [--only scip|pyrefly]

scip-python: of the references that it resolves to definitions in the repository, the share that we resolve
to the same; and of ours, where it answers at all, the share that it confirms. Two answers are the same if a
place of ours is one of its places. It names one place for overloads and for a property with its setter:
whatever stands in the name of a function or class is a place of the definition.

pyrefly: the same for pairs of a call site and a function of the repository that is called there. An override
of a target that pyrefly calls overridable is that target.

What differs is listed by cause. Exit code 1 if a share of scip-python's is below the limit.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from analysis import analyse
from answers import NOTHING, Answer, Answers, Site
from witnesses import Cells, pyrefly_cells, scip_cells

from support import corpus

PACKAGES = ("requests", "flask")
LIMIT = 0.97
LIMITED = ("scip",)
CALL_FORMS = ("call", "init", "new", "dunder")


class Difference(NamedTuple):
    """One disagreement."""

    cause: str
    site: Site
    theirs: str
    ours: str


class Shares(NamedTuple):
    """Two shares and what is missing from them."""

    title: str
    # Theirs, and of them ours.
    theirs: int
    found: int
    # Ours where they answer, of them theirs, and ours where they do not.
    ours: int
    confirmed: int
    silent: int
    # Of all ours where they answer: single targets, and those of them that they name too.
    targets: int
    confirmed_targets: int
    differences: Sequence[Difference]


# scip-python


class Reference(NamedTuple):
    """A use that SCIP knows of, with the places of the definition if that is in the repository."""

    site: Site
    symbol: str
    definitions: frozenset[Site]


def references(said: Mapping[str, Cells], names: Container[Site]) -> list[Reference]:
    """All references; locals are told apart by their files, and names of definitions are definitions."""
    told = dict.fromkeys(occurrences(said))
    definitions: dict[str, set[Site]] = {}
    for site, symbol, is_definition in told:
        if is_definition or site in names:
            definitions.setdefault(symbol, set()).add(site)
    return [
        Reference(site, symbol, frozenset(definitions.get(symbol, ())))
        for site, symbol, is_definition in told
        if not is_definition and site not in names
    ]


def occurrences(said: Mapping[str, Cells]) -> Iterator[tuple[Site, str, bool]]:
    for path, cells in said.items():
        found = cells["occurrences"]
        columns = (found[name] for name in ("bstart", "bend", "symbol", "is_definition"))
        for start, end, symbol, is_definition in zip(*columns, strict=True):
            if start is not None and symbol is not None:
                key = f"{path} {symbol}" if symbol.startswith("local ") else symbol
                yield (path, start, end), key, is_definition


def same(theirs: Iterable[Site], ours: Iterable[Site]) -> bool:
    """Whether one place of the two is the same; the alias of an import is longer than its name."""
    return any(
        path == other and first <= start and end <= last and (end > start or first == last)
        for path, start, end in theirs
        for other, first, last in ours
    )


def against_scip(package: str, answers: Answers) -> Shares:
    told = references(scip_cells(corpus.package(package), package), answers.names)
    inside = [each for each in told if each.definitions]
    differences = []
    for each in inside:
        answer = answers.at(*each.site)
        if not confirms(each, answer):
            cause = why(answers, each.definitions, answer)
            differences.append(Difference(cause, each.site, places(each.definitions), places(answer.sites)))
    found = len(inside) - len(differences)
    known = {each.site: each for each in told if each.definitions or is_outside(each.symbol, package)}
    ours = [(site, answer) for site in answers.all() if (answer := answers.at(*site)).sites]
    answered = [(known[site], answer) for site, answer in ours if site in known]
    confirmed = sum(1 for each, answer in answered if confirms(each, answer))
    for each, answer in answered:
        if not each.definitions:
            cause = f"{answer.kind}: inside for us, outside for SCIP"
            differences.append(Difference(cause, each.site, each.symbol, places(answer.sites)))
    silent = len(ours) - len(answered)
    targets = [(each, target) for each, answer in answered for target in answer.targets]
    named = sum(1 for each, target in targets if same(each.definitions, target))
    counts = (len(inside), found, len(answered), confirmed, silent, len(targets), named)
    return Shares("scip-python", *counts, differences)


def confirms(reference: Reference, answer: Answer) -> bool:
    return same(reference.definitions, answer.sites | answer.aliases)


def is_outside(symbol: str, package: str) -> bool:
    """Whether a symbol without a definition is of another package; else SCIP has lost sight of it."""
    return " local " not in symbol and not symbol.startswith(f"scip-python python {package} ")


# pyrefly


class Target(NamedTuple):
    """A function of the repository that pyrefly says is called, or what would run in its place."""

    site: Site
    is_overridable: bool


def against_pyrefly(package: str, answers: Answers) -> Shares:
    told = pyrefly_targets(package)
    ours = answers.calls()
    lacking, unconfirmed = [], []
    theirs = mine = silent = 0
    for site in sorted({*told, *ours}):
        answer = ours.get(site, NOTHING)
        if site not in told:
            silent += len(answer.sites)
            continue
        targets = told[site]
        theirs += len(targets)
        mine += len(answer.sites)
        for target in sorted(targets):
            if not any(is_target(answers, target, each) for each in answer.sites):
                cause = f"ours lacks it: {why(answers, [target.site], answer)}"
                lacking.append(Difference(cause, site, places([target.site]), places(answer.sites)))
        for each in sorted(answer.sites):
            if not any(is_target(answers, target, each) for target in targets):
                cause = f"pyrefly lacks it: {why(answers, [target.site for target in targets], answer)}"
                unconfirmed.append(Difference(cause, site, places(t.site for t in targets), places([each])))
    named = mine - len(unconfirmed)
    counts = (theirs, theirs - len(lacking), mine, named, silent, mine, named)
    return Shares("pyrefly", *counts, [*lacking, *unconfirmed])


def pyrefly_targets(package: str) -> dict[Site, set[Target]]:
    """By call site; an empty set if all that is called is outside."""
    told: dict[Site, set[Target]] = {}
    for path, cells in pyrefly_cells(corpus.package(package)).items():
        rows = cells["call_targets"]
        fields = ("call_bstart", "call_bend", "call_form", "target_path", "target_bstart", "target_bend")
        columns = (rows[name] for name in (*fields, "is_override_candidate"))
        for start, end, form, target_path, first, last, is_overridable in zip(*columns, strict=True):
            if form in CALL_FORMS and start is not None:
                found = told.setdefault((path, start, end), set())
                if first is not None:
                    found.add(Target((target_path, first, last), is_overridable))
    return told


def is_target(answers: Answers, target: Target, site: Site) -> bool:
    if site == target.site:
        return True
    is_override = answers.text(site) == answers.text(target.site) and answers.derives(site, target.site)
    return target.is_overridable and is_override


# What both have in common


def why(answers: Answers, theirs: Iterable[Site], answer: Answer) -> str:
    """Why two disagree, as far as the rows tell."""
    kind = answer.kind or "no row of ours"
    pairs = [(one, other) for one in theirs for other in answer.sites]
    if any(answers.wraps(other, one) for one, other in pairs):
        return f"{kind}: ours is the wrapper that a decorator made"
    if any(answers.derives(other, one) for one, other in pairs):
        return f"{kind}: ours is in a subclass"
    if any(answers.derives(one, other) for one, other in pairs):
        return f"{kind}: ours is in a base class"
    if answer.sites:
        return f"{kind}: another definition" if pairs else f"{kind}: outside for them"
    if answer.outside:
        return f"{kind}: outside for us"
    return f"{kind}: {', '.join(sorted(answer.reasons))}" if answer.reasons else f"{kind}: no target"


def places(sites: Iterable[Site]) -> str:
    return ", ".join(f"{path}:{start}" for path, start, _ in sorted(sites)[:3]) or "-"


def tell(shares: Shares, answers: Answers, show_all: bool) -> bool:
    """Print the shares and what is missing; whether they reach the limits."""
    first = shares.found / max(1, shares.theirs)
    second = shares.confirmed / max(1, shares.ours)
    print(f"  {shares.title}: of its {shares.theirs:,} answers ours has {shares.found:,} ({first:.1%});")
    confirmed = f"{shares.confirmed:,} of our {shares.ours:,} ({second:.1%})"
    print(f"    it confirms {confirmed} and is silent on {shares.silent:,};")
    each = shares.confirmed_targets / max(1, shares.targets)
    print(f"    counted by single targets, {shares.confirmed_targets:,} of {shares.targets:,} ({each:.1%})")
    grouped: dict[str, list[Difference]] = {}
    for difference in shares.differences:
        grouped.setdefault(difference.cause, []).append(difference)
    for cause, group in sorted(grouped.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"    {len(group):5} {cause}")
        for one in group if show_all else group[:2]:
            print(f"            {answers.where(one.site)}: theirs {one.theirs}; ours {one.ours}")
    return min(first, second) >= LIMIT


AGAINST: Mapping[str, Callable[[str, Answers], Shares]] = {
    "scip": against_scip,
    "pyrefly": against_pyrefly,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--all", action="store_true", help="list every difference")
    parser.add_argument("--only", choices=AGAINST, help="against one of the two")
    given = parser.parse_args()
    is_enough = True
    for package in given.packages:
        print(package, flush=True)
        answers = Answers(analyse(corpus.package(package)))
        for name, compare in AGAINST.items():
            if given.only in (None, name):
                is_enough &= tell(compare(package, answers), answers, given.all) or name not in LIMITED
    if not is_enough:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
