"""Look up the claims of SCIP and a type checker by the places of our names, attributes and calls.

    witnesses = Witnesses(resolver, attributes)
    claims = FileClaims(witnesses, program)
    verdict = claims.verdict(place, [target], claims.name(place))      # see `witnesses.agreement`
    verdict.confidence(target, 0.7), verdict.added

SCIP resolves identifiers. If an identifier names a function or class, a call of it calls that; a variable may
hold anything, so SCIP claims nothing about a call of it. The type checker resolves calls, and references to
functions and classes that are not called. Without witnesses there are no claims, and every candidate stays as
it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codeanatomy.relate.program import OP_SPECIAL_METHOD, Place, Program
from codeanatomy.relate.relation_rows import RelationDiagnostic
from codeanatomy.relate.values.name_resolution import NameResolver, Target
from codeanatomy.relate.values.solver import Object
from codeanatomy.relate.witnesses.agreement import Verdict
from codeanatomy.relate.witnesses.claims import Claim, DefinitionIndex, is_declaration, last_part
from codeanatomy.relate.witnesses.scip import Occurrences, ScipSymbols
from codeanatomy.relate.witnesses.type_checker import CallTargets, CheckedTargets

# Forms of call in the type checker's report, by our role.
FORMS = {role: (role,) for role in ("operator", "subscript", "iteration", "with", "format")}
FORMS |= {"attribute": ("property",), "callback": ("argument",)}
DELETE_ITEM = "__delitem__"


class Witnesses:
    """The other witnesses of a repository."""

    def __init__(self, resolver: NameResolver, attributes: Mapping[tuple[Object, str], None]) -> None:
        self.index = DefinitionIndex(resolver, attributes)
        self.symbols = ScipSymbols(self.index)
        self.checked = CheckedTargets(self.index)
        # The verdict where no witness claims anything.
        self.no_claims = Verdict(self.index, (), ())


class FileClaims:
    """The claims of the witnesses about the places of one file."""

    def __init__(self, witnesses: Witnesses, program: Program) -> None:
        self.witnesses = witnesses
        self.scip = Occurrences(witnesses.symbols, program)
        self.checker = CallTargets(witnesses.checked, program)
        # Where all candidates are contradicted; an identifier and the call of it on one line are one.
        self.disagreements: dict[tuple[int | None, str, str], RelationDiagnostic] = {}
        # Identifiers of names and attributes by the place of the whole expression; calls by their callee's.
        self._identifiers: dict[tuple[int | None, int | None], Place] = {}
        self._calls: dict[tuple[int | None, int | None], Place] = {}
        # The type checker reports these subscripts as reads.
        self._deleted: set[Place] = set()
        # No witness has evidence about the file: there are no claims.
        self.is_empty = not program.scip and not program.checker_calls
        if self.is_empty:
            return
        self._identifiers |= {use.place[:2]: use.place for use in program.uses}
        self._identifiers |= {place[:2]: place for place, _ in program.unbound_uses}
        self._deleted |= {
            program.sites[op[-1]].place
            for op in program.ops
            if op[0] == OP_SPECIAL_METHOD and DELETE_ITEM in op[2]
        }
        for site in program.sites:
            if site.role == "attribute":
                self._identifiers[site.place[:2]] = site.inner
            elif site.role == "call":
                self._calls[site.inner[:2]] = site.place

    def name(self, place: Place) -> list[Claim]:
        if self.is_empty:
            return []
        start, end, _ = place
        return [*self.scip.claims(start, end), *self.checker.reference(start, end)]

    def attribute(self, identifier: Place, whole: Place, name: str) -> list[Claim]:
        """Return the claims about what an attribute refers to, also those about a call of it."""
        claims = self.name(identifier)
        call = self._calls.get(whole[:2])
        return claims if call is None else [*claims, *self.checker.called_identifier(call, name)]

    def call(self, place: Place, inner: Place) -> list[Claim]:
        """Return the claims about a call, by its place and its callee's; `str(x)` also runs `__str__`."""
        special = self.checker.implicit(place, ("dunder",))
        return [*self._callable(inner, self.checker.call(place)), *special]

    def decorator(self, place: Place) -> list[Claim]:
        return self._callable(place, self.checker.decorator(place))

    def _callable(self, inner: Place, checker: Sequence[Claim]) -> list[Claim]:
        identifier = self._identifiers.get(inner[:2])
        scip = [] if identifier is None else self.scip.claims(*identifier[:2], called=True)
        return [claim for claim in (*scip, *checker) if not any(map(is_declaration, claim.targets))]

    def implicit(self, place: Place, role: str) -> list[Claim]:
        """Return the claims about what an operator, a loop and the like run, or callbacks."""
        claims = self.checker.implicit(place, FORMS.get(role, ()))
        if place not in self._deleted:
            return claims
        return [claim for claim in claims if DELETE_ITEM in map(last_part, claim.targets)]

    def verdict(
        self,
        place: Place,
        candidates: Iterable[Target],
        claims: Sequence[Claim],
        alternatives: Iterable[Target] = (),
    ) -> Verdict:
        """Weigh claims against candidates and record disagreements."""
        if not claims:
            return self.witnesses.no_claims
        verdict = Verdict(self.witnesses.index, candidates, claims, alternatives)
        for each in verdict.disagreements(place):
            self.disagreements.setdefault((place[2], each.code, each.message), each)
        return verdict
