"""Agreement with scip-python and with pyrefly, neither of which our analysis has seen here.

    PYTHONPATH=tests python bench/agreement.py [PACKAGE ...] [--all] [--only scip|pyrefly]

scip-python: of the references that it resolves to definitions in the repository, the share that we resolve
to the same; and of ours, where it answers at all, the share that it confirms. Two answers are the same if a
place of ours is one of its places. It names one place for overloads and for a property with its setter:
whatever stands in the name of a function or class is a place of the definition.

pyrefly: the same for pairs of a call site and a function of the repository that is called there. An override
of a target that pyrefly calls overridable is that target.

What differs is listed by cause. Exit code 1 below the limits.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import corpus
from analysis import Analysis, analyse
from answers import Answer, Answers, Site
from witnesses import Cells, pyrefly_cells, scip_cells

PACKAGES = ("requests", "flask")
LIMIT = 0.97
CALL_FORMS = ("call", "init", "new")


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
    differences: Sequence[Difference]


# scip-python


class Reference(NamedTuple):
    """A place where SCIP says that something is used, and the places of its definition, if they are inside."""

    site: Site
    symbol: str
    definitions: frozenset[Site]


def references(said: Mapping[str, Cells], names: set[Site]) -> list[Reference]:
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


def against_scip(package: str, analysis: Analysis, answers: Answers) -> Shares:
    told = references(scip_cells(corpus.package(package), package), answers.names)
    inside = [each for each in told if each.definitions]
    differences = []
    for each in inside:
        answer = answers.at(*each.site)
        if not same(each.definitions, answer.sites):
            cause = why(answers, each.definitions, answer)
            differences.append(Difference(cause, each.site, places(each.definitions), places(answer.sites)))
    known = {each.site: each for each in told}
    ours = [(site, answer) for site in answers.all() if (answer := answers.at(*site)).sites]
    answered = [(known[site], answer) for site, answer in ours if site in known]
    # A symbol without a definition is outside, or a local that it knows nothing of.
    answered = [each for each in answered if each[0].definitions or not is_local(each[0].symbol)]
    confirmed = sum(1 for each, answer in answered if same(each.definitions, answer.sites))
    for each, answer in answered:
        if not each.definitions:
            cause = f"{answer.kind}: inside for us, outside for SCIP"
            differences.append(Difference(cause, each.site, each.symbol, places(answer.sites)))
    counts = (len(inside), sum(1 for each in inside if same(each.definitions, answers.at(*each.site).sites)))
    return Shares("scip-python", *counts, len(answered), confirmed, len(ours) - len(answered), differences)


def is_local(symbol: str) -> bool:
    return " local " in symbol


# pyrefly


class Target(NamedTuple):
    """A function of the repository that pyrefly says is called, or what would run in its place."""

    site: Site
    is_overridable: bool


def against_pyrefly(package: str, analysis: Analysis, answers: Answers) -> Shares:
    told: dict[Site, set[Target]] = {}
    answered: set[Site] = set()
    for path, cells in pyrefly_cells(corpus.package(package)).items():
        rows = cells["call_targets"]
        fields = ("call_bstart", "call_bend", "call_form", "target_path", "target_bstart", "target_bend")
        columns = (rows[name] for name in (*fields, "is_override_candidate"))
        for start, end, form, target_path, first, last, is_overridable in zip(*columns, strict=True):
            if form in CALL_FORMS and start is not None:
                answered.add((path, start, end))
                if first is not None:
                    target = Target((target_path, first, last), is_overridable)
                    told.setdefault((path, start, end), set()).add(target)
    ours = answers.calls()
    differences = []
    theirs = found = mine = confirmed = silent = 0
    for site in sorted({*told, *ours}):
        targets, answer = told.get(site, set()), ours.get(site, Answer("", frozenset()))
        for target in sorted(targets):
            theirs += 1
            if any(is_target(answers, target, each) for each in answer.sites):
                found += 1
            else:
                cause = f"ours lacks it: {why(answers, [target.site], answer)}"
                differences.append(Difference(cause, site, places([target.site]), places(answer.sites)))
        if site not in answered:
            silent += len(answer.sites)
            continue
        for each in sorted(answer.sites):
            mine += 1
            if any(is_target(answers, target, each) for target in targets):
                confirmed += 1
            else:
                cause = f"pyrefly lacks it: {why(answers, [target.site for target in targets], answer)}"
                differences.append(Difference(cause, site, places(t.site for t in targets), places([each])))
    return Shares("pyrefly", theirs, found, mine, confirmed, silent, differences)


def is_target(answers: Answers, target: Target, site: Site) -> bool:
    if site == target.site:
        return True
    return target.is_overridable and answers.text(site) == answers.text(target.site) and (
        answers.derives(site, target.site)
    )


# What both have in common


def why(answers: Answers, theirs: Iterable[Site], answer: Answer) -> str:
    """Why two disagree, as far as the rows tell."""
    kind = answer.kind or "no row of ours"
    pairs = [(one, other) for one in theirs for other in answer.sites]
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
    print(f"    it confirms {shares.confirmed:,} of our {shares.ours:,} ({second:.1%}) and is silent on {shares.silent:,}")
    grouped: dict[str, list[Difference]] = {}
    for each in shares.differences:
        grouped.setdefault(each.cause, []).append(each)
    for cause, group in sorted(grouped.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"    {len(group):5} {cause}")
        for each in group if show_all else group[:2]:
            print(f"            {answers.where(each.site)}: theirs {each.theirs}; ours {each.ours}")
    return min(first, second) >= LIMIT


AGAINST: Mapping[str, Callable[[str, Analysis, Answers], Shares]] = {
    "scip": against_scip,
    "pyrefly": against_pyrefly,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--all", action="store_true", help="list every difference")
    parser.add_argument("--only", choices=AGAINST, help="against one of the two")
    given = parser.parse_args()
    is_enough = True
    for package in given.packages:
        print(package, flush=True)
        analysis = analyse(corpus.package(package))
        answers = Answers(analysis)
        for name, compare in AGAINST.items():
            if given.only in (None, name):
                is_enough &= tell(compare(package, analysis, answers), answers, given.all)
    if not is_enough:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
