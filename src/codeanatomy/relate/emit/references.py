"""Turn the candidates of a reference into rows, weighed against other witnesses.

    add_candidates("REFERS_TO", "NAME_REF", src, place, [Candidate(user, "import", BY_RULE)], rule="name")
        one row with confidence 0.9
    add_candidates("REFERS_TO", "NAME_REF", src, place, [], rule="open_name", reason="unbound")
        one row without a target, with the reason

Several candidates share an ambiguity group. The claims of other witnesses (SCIP, type checker) are compared
here: they confirm a candidate, contradict it, or add their own. Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from codeanatomy.file_ids import FileIds
from codeanatomy.node_ids import group_id
from codeanatomy.relate.program import IMPORT, Place, Program, Use
from codeanatomy.relate.relation_rows import Evidence, RelationRows
from codeanatomy.relate.values.analysis import Values
from codeanatomy.relate.values.name_resolution import NameResolver, Target
from codeanatomy.relate.values.solver import WEAK, Object
from codeanatomy.relate.witnesses.claims import Claim
from codeanatomy.relate.witnesses.lookup import FileClaims

# Confidence: by the grammar, by scope and import rules, by a single value, one of several, by an annotation.
CERTAIN, BY_RULE, BY_VALUE, AMBIGUOUS, HINTED = 1.0, 0.9, 0.7, 0.5, 0.3


class Candidate(NamedTuple):
    """A possible target of a reference, the method that resolved it, and the confidence in it."""

    target: Target
    method: str
    confidence: float


class ReferenceRows:
    """Collects the relation rows of one file."""

    def __init__(
        self,
        values: Values,
        resolver: NameResolver,
        attributes: Mapping[tuple[Object, str], None],
        file: int,
        claims: FileClaims,
    ) -> None:
        self.values = values
        self.claims = claims
        self.resolver = resolver
        self.attributes = attributes
        self.file = file
        # Nodes that hold results of external calls.
        self.external_results: set[int] = set()
        self.program: Program = values.programs[file]
        # Its own, and not the resolver's: most ids of a file are needed for its rows only.
        self.ids = FileIds(self.program.ids)
        self.rows = RelationRows(self.program.repo_id, self.program.file_id, self.program.path)
        self.uses: dict[tuple[int | None, int | None], Use] = {
            (use.place[0], use.place[1]): use for use in self.program.uses
        }
        self._import_definitions = {
            number for number, each in enumerate(self.program.definitions) if each.kind == IMPORT
        }
        # By calling function and called node: the callee, best confidence, first place, origin.
        self.call_graph: dict[tuple[int, str], tuple[Target, float, Place, str]] = {}

    def add_candidates(
        self,
        kind: str,
        src_kind: str,
        src: str,
        place: Place,
        candidates: Sequence[Candidate],
        *,
        rule: str,
        origin: str = "values",
        role: str | None = None,
        ordinal: int | None = None,
        reason: str | None = None,
        claims: Sequence[Claim] = (),
        alternatives: Iterable[Target] = (),
    ) -> None:
        """Add a row per candidate, ours or a witness's; if there is none, one row with the reason.

        `alternatives` are meanings of the name that are not candidates; a claim of one is no disagreement.
        """
        if candidates and not claims:
            self._add_unclaimed(kind, src_kind, src, place, candidates, rule, origin, role, ordinal)
            return
        verdict = self.claims.verdict(place, [each.target for each in candidates], claims, alternatives)
        added = (
            [
                Candidate(target, claim.witness, verdict.confidence(target, 0.0))
                for target, claim in verdict.added.items()
            ]
            if verdict.added
            else ()
        )
        if not candidates and not added:
            self.rows.add(
                kind,
                src_kind,
                src,
                place=place,
                origin=origin,
                rule=rule,
                role=role,
                ordinal=ordinal,
                reason=reason or "unknown",
            )
            return
        group = group_id(src, kind, role) if len(candidates) + len(added) > 1 else None
        for number, (target, method, own) in enumerate((*candidates, *added)):
            is_own = number < len(candidates)
            score = own - number * 1e-3 if is_own else own
            confidence = verdict.confidence(target, own)
            self.rows.add(
                kind,
                src_kind,
                src,
                target.kind,
                target.node,
                place=place,
                origin=origin if is_own else method,
                rule=rule,
                method=method,
                confidence=confidence,
                score=score + confidence - own + verdict.rank(target),
                dst_qname=target.qname,
                role=role,
                ordinal=ordinal,
                group=group,
                symbol_roles=verdict.roles(target),
                evidence=joined_evidence(origin, src if is_own else None, verdict.evidence(target)),
            )

    def _add_unclaimed(
        self,
        kind: str,
        src_kind: str,
        src: str,
        place: Place,
        candidates: Sequence[Candidate],
        rule: str,
        origin: str,
        role: str | None,
        ordinal: int | None,
    ) -> None:
        """Add the same rows where no witness claims anything, which is the usual case, in half the time."""
        group = group_id(src, kind, role) if len(candidates) > 1 else None
        for number, (target, method, confidence) in enumerate(candidates):
            self.rows.add(
                kind,
                src_kind,
                src,
                target.kind,
                target.node,
                place=place,
                origin=origin,
                rule=rule,
                method=method,
                confidence=confidence,
                # Not simplified: claims give the same sum, rounded in the same steps.
                score=confidence - number * 1e-3 + confidence - confidence,
                dst_qname=target.qname,
                role=role,
                ordinal=ordinal,
                group=group,
                evidence=src,
            )

    def node_at(self, kind: str, place: Place) -> str:
        """Return the id of the node of a kind at a place of this file."""
        return self.ids.at(kind, place[0], place[1])

    def _is_imported(self, numbers: Iterable[int]) -> bool:
        return not self._import_definitions.isdisjoint(numbers)

    def _candidates(
        self, targets: Sequence[Target], objects: Iterable[Object], place: Place
    ) -> list[Candidate]:
        """Rate targets that values give: by rule if the name at the place resolves alike, else by value."""
        distinct = list(dict.fromkeys(targets))
        use = self.uses.get((place[0], place[1]))
        if use is not None and len(distinct) == 1:
            by_name = self.resolver.targets_of_definitions(self.file, use.definitions, use.name)
            if by_name == (distinct[0],):
                method = "import" if self._is_imported(use.definitions) else "scope"
                return [Candidate(distinct[0], method, BY_RULE)]
        if all(obj & WEAK for obj in objects):
            return [Candidate(each, "annotation", HINTED) for each in distinct]
        confidence = BY_VALUE if len(distinct) == 1 else AMBIGUOUS
        return [Candidate(each, "values", confidence) for each in distinct]


def joined_evidence(origin: str, key: str | None, others: Sequence[Evidence]) -> str | Sequence[Evidence]:
    """Return the evidence of a row: that of its origin, if it has a key, and that of other witnesses.

    >>> joined_evidence("values", "callsite:1", [])
    'callsite:1'
    """
    if key is None or not others:
        return key or others
    return [Evidence(origin, key), *others]
