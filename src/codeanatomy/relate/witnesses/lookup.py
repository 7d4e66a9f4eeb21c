"""Other witnesses of a repository: SCIP and a type checker, by the places of our names and calls.

    witnesses = Witnesses(definitions, attributes, problems)
    claims = witnesses.of_file(file)
    verdict = claims.verdict(place, [target], claims.name(place))      # weighed, see `verdicts`
    verdict.confidence(target, 0.7), verdict.added

SCIP speaks of identifiers. A call of a function or class that an identifier names is a call of it; a variable
may hold anything, so that of a call of it SCIP says nothing. The type checker speaks of the expressions that
call, and of functions and classes that are only mentioned. Without witnesses there are no claims, and every
answer stays as it is. Tests: `tests/unit/relate/test_witnesses.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codeanatomy.relate.program import Place
from codeanatomy.relate.values.name_resolution import NameResolver, Target
from codeanatomy.relate.values.solver import Object
from codeanatomy.relate.witnesses.agreement import Kinship, Problem, Verdict
from codeanatomy.relate.witnesses.claims import Claim, Landmarks, is_declaration, last_part
from codeanatomy.relate.witnesses.scip import Occurrences, Symbols
from codeanatomy.relate.witnesses.type_checker import CallTargets

# What the type checker calls it, by our role.
FORMS = {
    "operator": ("operator",),
    "subscript": ("subscript",),
    "iteration": ("iteration",),
    "with": ("with",),
    "attribute": ("property",),
    "format": ("format",),
}
DELETE = "__delitem__"


class Witnesses:
    """The witnesses of a repository."""

    def __init__(
        self,
        definitions: NameResolver,
        attributes: Mapping[tuple[Object, str], None],
        problems: list[Problem] | None = None,
    ) -> None:
        self.landmarks = Landmarks(definitions, attributes)
        self.kinship = Kinship(self.landmarks)
        self.symbols = Symbols(self.landmarks)
        # Where disagreements are noted.
        self.problems = [] if problems is None else problems
        self.silence = Verdict(self.kinship, (), ())

    def of_file(self, file: int) -> FileClaims:
        """What they say of one file."""
        return FileClaims(self, file)


class FileClaims:
    """What the witnesses say of the places of one file."""

    def __init__(self, witnesses: Witnesses, file: int) -> None:
        self.witnesses = witnesses
        self.file = file
        self.scip = Occurrences(witnesses.symbols, file)
        self.typed = CallTargets(witnesses.landmarks, file)
        self._noted: set[tuple[int | None, str, str]] = set()
        program = witnesses.landmarks.values.programs[file]
        # No witness speaks of the file, so that nobody needs to be asked.
        self.is_silent = not program.scip and not program.typed
        if self.is_silent:
            return
        # The identifier of each name and attribute by the place of the whole, and calls by what they call.
        self._identifiers = {use.place[:2]: use.place for use in program.uses}
        self._identifiers |= {place[:2]: place for place, _ in program.open_uses}
        self._calls: dict[tuple[int | None, int | None], Place] = {}
        # Of these the type checker says that they are read.
        self._deleted = {
            program.sites[op[-1]].place for op in program.ops if op[0] == "d" and DELETE in op[2]
        }
        for site in program.sites:
            if site.role == "attribute":
                self._identifiers[site.place[:2]] = site.inner
            elif site.role == "call":
                self._calls[site.inner[:2]] = site.place

    def name(self, place: Place) -> list[Claim]:
        """What a name refers to."""
        if self.is_silent:
            return []
        start, end, _ = place
        return [*self.scip.reference(start, end), *self.typed.reference(start, end)]

    def attribute(self, identifier: Place, whole: Place, name: str) -> list[Claim]:
        """What an attribute refers to; of one that is called, what the call says."""
        if self.is_silent:
            return []
        found = self.name(identifier)
        call = self._calls.get(whole[:2])
        return found if call is None else [*found, *self.typed.called_identifier(call, name)]

    def call(self, place: Place, inner: Place) -> list[Claim]:
        """What a call runs, by its place and that of the called expression: `str(x)` runs `__str__` too."""
        if self.is_silent:
            return []
        own = self.typed.implicit(place, ("dunder",))
        return [*self._callable(inner, self.typed.call(place)), *own]

    def decorator(self, place: Place) -> list[Claim]:
        """What applying a decorator runs."""
        if self.is_silent:
            return []
        return self._callable(place, self.typed.decorator(place))

    def _callable(self, inner: Place, typed: Sequence[Claim]) -> list[Claim]:
        identifier = self._identifiers.get(inner[:2])
        scip = [] if identifier is None else self.scip.call(identifier[0], identifier[1])
        return [claim for claim in (*scip, *typed) if not any(map(is_declaration, claim.targets))]

    def implicit(self, place: Place, role: str) -> list[Claim]:
        """What an operator, a subscript, a loop and the like run."""
        if self.is_silent:
            return []
        found = self.typed.implicit(place, FORMS.get(role, ()))
        if place not in self._deleted:
            return found
        return [claim for claim in found if any(last_part(one) == DELETE for one in claim.targets)]

    def passed(self, place: Place) -> list[Claim]:
        """The functions that a call is given to run."""
        if self.is_silent:
            return []
        return self.typed.implicit(place, ("argument",))

    def function(self, target: Target) -> Object | None:
        """The function that a target is."""
        return self.witnesses.landmarks.function(target)

    def verdict(
        self, place: Place, answers: Iterable[Target], claims: Sequence[Claim], known: Iterable[Target] = ()
    ) -> Verdict:
        """The claims weighed; what disagrees is noted."""
        if not claims:
            return self.witnesses.silence
        found = Verdict(self.witnesses.kinship, answers, claims, known)
        for problem in found.problems(self.file, place):
            # An identifier and the call of it are one matter.
            matter = (place[2], problem.code, problem.message)
            if matter not in self._noted:
                self._noted.add(matter)
                self.witnesses.problems.append(problem)
        return found
