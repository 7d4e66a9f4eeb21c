"""Weigh the claims of other witnesses against our own candidates.

    shape.area()    ours: Square.area (0.7)   SCIP: Shape.area     overridden by ours: both may be right
    load().run()    ours: nothing             pyrefly: Job.run     pyrefly's claim is the row (0.9)
    f()             ours: g (0.7)             SCIP: h              two rows, one group, a diagnostic
    f()             ours: g (0.7)             pyrefly: g           one row, 0.9, with both as evidence

For each candidate a witness agrees, is compatible, or disagrees:

agrees       It names the same node, or another node of the same qualified name: a stub beside its module, an
             overload, a class and its constructor. Evidence, and the candidate gets the witness's confidence.
compatible   The candidate overrides what the witness names, or both are external names that end alike
             (`pathlib.Path.exists`, `pathlib.PurePath.exists`), or the candidate is a class of which the
             witness names only the constructor. Evidence, without more confidence. But `Mock.exists` and
             `Fake.exists` of a class that inherits nothing only stand in for the `Path.exists` of a witness.
disagrees    Evidence against the candidate. The witness's target becomes a row too, as it may be right.

A claim that disagrees with all candidates gets no row in two cases, where the candidates are more precise: it
names a decorated function, and we know what the decorator replaced it with; or both are external, where one
definition has many names, and ours is the name by which the program imports it. Every other claim that
matches no candidate is a diagnostic. Scores rank by confidence, then SCIP before pyrefly before
values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from codeanatomy.relate.program import Place
from codeanatomy.relate.relation_rows import Evidence, RelationDiagnostic
from codeanatomy.relate.values.external_names import WITHOUT_MEMBERS, ancestors, is_made_on_access
from codeanatomy.relate.values.hierarchy import bases, external_bases, mro
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.solver import MAX_OBJECTS, Object
from codeanatomy.relate.witnesses.claims import CONSTRUCTORS, PYREFLY, SCIP, Claim, DefinitionIndex, last_part

CONFIDENCE = {SCIP: 1.0, PYREFLY: 0.9}
# Added to the score, so that of equal confidence the better witness is first.
RANK = {SCIP: 0.02, PYREFLY: 0.01}
AGREES, COMPATIBLE, DISAGREES = "agrees", "compatible", "disagrees"
EXTERNAL_KINDS = frozenset({"QUALIFIED_NAME", "EXTERNAL_MODULE"})
VARIABLE_KINDS = frozenset({"PARAMETER", "BINDING"})
PROTOCOLS = frozenset({"typing.Protocol", "typing_extensions.Protocol"})
# Bases of which a class inherits no methods of its own kind.
MEMBERLESS = frozenset({*WITHOUT_MEMBERS, "abc.ABC", "builtins.object"})
# Names shown in a message.
MAX_SHOWN = 4


class Verdict:
    """The outcome of comparing the candidates at one place with the claims of all witnesses."""

    def __init__(
        self,
        index: DefinitionIndex,
        candidates: Iterable[Target],
        claims: Sequence[Claim],
        alternatives: Iterable[Target] = (),
    ) -> None:
        self.candidates = list(dict.fromkeys(candidates))
        # Targets that only a witness names, with its claim.
        self.added: dict[Target, Claim] = {}
        # Witnesses that agree with no candidate, with all targets they name.
        self.against: dict[str, list[Target]] = {}
        # What may run instead of a claimed method: counts where nothing else is known of the receiver.
        self.overrides = {target: claim for claim in claims for target in claim.overrides}
        self._index = index
        # Further meanings of the name that are not candidates.
        self._alternatives = list(alternatives)
        self._positions: dict[Target, list[tuple[Claim, str]]] = {}
        if len(claims) == len(self.candidates) == 1 and self._confirms(claims[0], self.candidates[0]):
            # More than half of all verdicts: nothing else is to be compared.
            self._positions[self.candidates[0]] = [(claims[0], AGREES)]
            self.overrides.pop(self.candidates[0], None)
            return
        for witness in self._witness_order(claims):
            own = [claim for claim in claims if claim.witness == witness]
            if own:
                self._compare(witness, own)
        for target in (*self.candidates, *self.added):
            self.overrides.pop(target, None)

    @staticmethod
    def _confirms(claim: Claim, candidate: Target) -> bool:
        """Whether a claim names a candidate that it can name: the type checker names no variables."""
        return candidate in claim.targets and (claim.witness == SCIP or candidate.kind not in VARIABLE_KINDS)

    def _witness_order(self, claims: Sequence[Claim]) -> tuple[str, ...]:
        if any(target.kind in VARIABLE_KINDS for target in self.candidates):
            # The type checker names the value of a variable, not the variable.
            return (SCIP,)
        is_external = any(
            claim.witness == PYREFLY and claim.targets[0].kind in EXTERNAL_KINDS for claim in claims
        )
        # It names an external method by the class of the receiver, SCIP by the base that defines it.
        return (PYREFLY, SCIP) if is_external and not self.candidates else (SCIP, PYREFLY)

    def _compare(self, witness: str, claims: Sequence[Claim]) -> None:
        """Note the position of a witness on each target so far, and the targets it adds."""
        best = dict.fromkeys((*self.candidates, *self.added), (claims[0], DISAGREES))
        new: list[Claim] = []
        is_match = not self.candidates
        for claim in claims:
            positions = self._positions_of(claim)
            for target, position in positions.items():
                if position == AGREES or (position == COMPATIBLE and best[target][1] == DISAGREES):
                    best[target] = (claim, position)
            is_match = is_match or any(positions[target] != DISAGREES for target in self.candidates)
            if all(position == DISAGREES for position in positions.values()):
                if self._is_less_precise(claim):
                    is_match = True
                else:
                    new.append(claim)
        claimed = [target for claim in claims for target in claim.targets]
        self._note(witness, best, claimed if is_match else ())
        if not is_match:
            self.against[witness] = claimed
        for claim in new:
            for target in claim.targets:
                if target not in self._positions and len(self.added) < MAX_OBJECTS:
                    self.added[target] = claim
                    self._positions[target] = [(claim, AGREES)]

    def _positions_of(self, claim: Claim) -> dict[Target, str]:
        """Return the position of a claim on each target so far."""
        positions = {
            target: _position(self._index, target, claim) for target in (*self.candidates, *self.added)
        }
        if any(_position(self._index, target, claim) == AGREES for target in self._alternatives):
            positions |= {target: COMPATIBLE for target in self.candidates if positions[target] == DISAGREES}
        return positions

    def _is_less_precise(self, claim: Claim) -> bool:
        """Whether our candidates are better than a claim that disagrees with them."""
        if not self.candidates:
            return False
        if all(target.kind in EXTERNAL_KINDS for target in (*self.candidates, *claim.targets)):
            pairs = product(self.candidates, claim.targets)
            return not all(is_stand_in(candidate, target) for candidate, target in pairs)
        # It only states that an instance of an external class is called, or something else runs instead.
        return all(
            target.kind == "QUALIFIED_NAME" and last_part(target) == "__call__" for target in claim.targets
        ) or any(map(self._index.is_decorated, claim.targets))

    def _note(
        self, witness: str, positions: dict[Target, tuple[Claim, str]], claimed: Sequence[Target]
    ) -> None:
        for target, (claim, position) in positions.items():
            if position == AGREES and witness == SCIP and target in self.added:
                self.added[target] = claim
            # A call of `str` also runs `__str__`: a witness that names one does not deny the other.
            is_unrelated = (
                position == DISAGREES
                and claimed
                and is_special(target)
                and last_part(target) not in map(last_part, claimed)
            )
            if not is_unrelated:
                self._positions.setdefault(target, []).append((claim, position))

    def confidence(self, target: Target, own: float) -> float:
        """Return the confidence in a target: our own, or that of the best witness that agrees."""
        positions = self._positions.get(target) if self._positions else None
        if not positions:
            return own
        return max([own, *(CONFIDENCE[claim.witness] for claim, position in positions if position == AGREES)])

    def support(self, target: Target) -> tuple[float, int | None, list[Evidence]]:
        """Return what witnesses add to the row of a target.

        This is its bonus in the score and the symbol roles (bits) of SCIP, both if they agree; and evidence.
        """
        positions = self._positions.get(target) if self._positions else None
        if not positions:
            return 0.0, None, []
        agreeing = [claim for claim, position in positions if position == AGREES]
        roles = next((claim.roles for claim in agreeing if claim.roles), None)
        evidence = [
            Evidence(claim.witness, claim.key, position != DISAGREES) for claim, position in positions
        ]
        return max([0.0, *(RANK[claim.witness] for claim in agreeing)]), roles, evidence

    def disagreements(self, place: Place) -> list[RelationDiagnostic]:
        """Return a diagnostic for each witness that agrees with no candidate."""
        ours = _shown_names(self.candidates)
        return [
            RelationDiagnostic(
                "disagreement",
                f"{witness}_disagrees",
                f"found {ours}, {witness} says {_shown_names(claimed)}",
                place,
                "info",
            )
            for witness, claimed in self.against.items()
        ]


def is_special(target: Target) -> bool:
    """Whether a target is a special method, which the language itself calls."""
    name = last_part(target)
    return name.startswith("__") and name.endswith("__")


def is_stand_in(candidate: Target, claimed: Target) -> bool:
    """Whether a candidate is an attribute that its class makes on access, and the claim one of another class.

    >>> names = ("unittest.mock.Mock.stat", "pathlib.Path.stat")
    >>> mock, path = (Target("QUALIFIED_NAME", name, name) for name in names)
    >>> is_stand_in(mock, path), is_stand_in(path, mock)
    (True, False)
    """
    owner, _, name = (candidate.qname or "").rpartition(".")
    return is_made_on_access(owner, name) and (claimed.qname or "").rpartition(".")[0] not in ancestors(owner)


def _shown_names(targets: Sequence[Target]) -> str:
    """Return the first few names of targets, for a message."""
    shown = [target.qname or target.kind.lower() for target in targets[:MAX_SHOWN]]
    more = len(targets) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _position(index: DefinitionIndex, candidate: Target, claim: Claim) -> str:
    """Return the position of a claim on a candidate: AGREES, COMPATIBLE or DISAGREES."""
    position = DISAGREES
    for target in claim.targets:
        if target.node == candidate.node or (target.qname is not None and target.qname == candidate.qname):
            return AGREES
        if position == DISAGREES and _is_compatible(index, candidate, target, is_open=claim.is_open):
            position = COMPATIBLE
    return position


def _is_compatible(index: DefinitionIndex, candidate: Target, claimed: Target, *, is_open: bool) -> bool:
    if candidate.kind == "CLASS" and last_part(claimed) in CONSTRUCTORS:
        cls = index.cls(candidate.qname)
        return cls is not None and claimed in index.call_targets(cls)
    if last_part(candidate) != last_part(claimed) or not last_part(claimed):
        return False
    if candidate.kind in EXTERNAL_KINDS:
        return claimed.kind in EXTERNAL_KINDS and not is_stand_in(candidate, claimed)
    owner = index.owner(candidate)
    if owner is None or not is_open:
        return False
    if claimed.kind in EXTERNAL_KINDS:
        return is_special(claimed) or _inherits_from_outside(index, owner)
    base = index.owner(claimed)
    return base is not None and (
        base in mro(index.values, owner) or not PROTOCOLS.isdisjoint(external_bases(index.values, base))
    )


def _inherits_from_outside(index: DefinitionIndex, cls: Object) -> bool:
    """Whether a class may have members of a class that is not of the repository."""
    values = index.values
    own = [each for each in mro(values, cls) if values.is_repository_class(each)]
    is_known = all(len(bases(values, each)) == len(values.cls(each)[1].bases) for each in own)
    return not is_known or not MEMBERLESS.issuperset(external_bases(values, cls))
