"""Answers to what something refers to, and how they become rows.

    answer("REFERS_TO", "NAME_REF", src, place, [Answer(user, "import", SCOPED)], rule="name")    a row of 0.9
    answer("REFERS_TO", "NAME_REF", src, place, [], rule="open_name", reason="unbound")           why not

Several answers share a group; none at all is a row that says why. What other witnesses say is weighed here:
they confirm an answer, contradict it, or add their own. Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from codeanatomy.ids import stable_id
from codeanatomy.relate.program import IMPORT, Place, Program, Use
from codeanatomy.relate.relation_rows import Evidence, Rows
from codeanatomy.relate.values.analysis import Values
from codeanatomy.relate.values.name_resolution import NameResolver, Target
from codeanatomy.relate.values.solver import WEAK, Object
from codeanatomy.relate.witnesses.claims import Claim
from codeanatomy.relate.witnesses.lookup import FileClaims

# How sure we are: by the language's grammar, by its rules, by values (one, several), by a hint.
SURE, SCOPED, VALUE, SEVERAL, HINTED = 1.0, 0.9, 0.7, 0.5, 0.3


class Answer(NamedTuple):
    """A target, how it was found and how sure we are."""

    target: Target
    method: str
    confidence: float


class Answers:
    """The rows of one file in the making."""

    def __init__(
        self,
        values: Values,
        definitions: NameResolver,
        attributes: Mapping[tuple[Object, str], None],
        file: int,
        claims: FileClaims,
    ) -> None:
        self.values = values
        self.claims = claims
        self.definitions = definitions
        self.attributes = attributes
        self.file = file
        # Nodes that hold what something outside returned.
        self.external: set[int] = set()
        self.program: Program = values.programs[file]
        self.rows = Rows(self.program.repo_id, self.program.file_id, self.program.path)
        self.uses: dict[tuple[int | None, int | None], Use] = {
            (use.place[0], use.place[1]): use for use in self.program.uses
        }
        self._imported = {
            number for number, each in enumerate(self.program.definitions) if each.kind == IMPORT
        }
        self.graph: dict[tuple[int, str], tuple[Target, float, Place, str]] = {}

    def answer(
        self,
        kind: str,
        src_kind: str,
        src: str,
        place: Place,
        answers: Sequence[Answer],
        *,
        rule: str,
        origin: str = "values",
        role: str | None = None,
        ordinal: int | None = None,
        reason: str | None = None,
        key: str | None = None,
        claims: Sequence[Claim] = (),
        known: Iterable[Target] = (),
    ) -> None:
        """A row for each answer, ours or a witness's, or one that says why there is none."""
        verdict = self.claims.witnesses.silence
        if claims:
            verdict = self.claims.verdict(place, [each.target for each in answers], claims, known)
        added = (
            [
                Answer(target, claim.witness, verdict.confidence(target, 0.0))
                for target, claim in verdict.added.items()
            ]
            if verdict.added
            else ()
        )
        if not answers and not added:
            why = reason or "unknown"
            self.rows.add(
                kind,
                src_kind,
                src,
                place=place,
                origin=origin,
                rule=rule,
                role=role,
                ordinal=ordinal,
                reason=why,
            )
            return
        group = stable_id("ambig", kind, src, role) if len(answers) + len(added) > 1 else None
        ours = Evidence(origin, key or src)
        for number, (target, method, own) in enumerate((*answers, *added)):
            is_ours = number < len(answers)
            score = own - number * 1e-3 if is_ours else own
            confidence = verdict.confidence(target, own)
            self.rows.add(
                kind,
                src_kind,
                src,
                target.kind,
                target.node,
                place=place,
                origin=origin if is_ours else method,
                rule=rule,
                method=method,
                confidence=confidence,
                score=score + confidence - own + verdict.rank(target),
                dst_qname=target.qname,
                role=role,
                ordinal=ordinal,
                group=group,
                symbol_roles=verdict.roles(target),
                evidence=[ours, *verdict.evidence(target)] if is_ours else verdict.evidence(target),
            )

    def at(self, kind: str, place: Place) -> str:
        """The id of what stands at a place of this file."""
        return self.definitions.node_id_at(kind, self.file, place)

    def _is_imported(self, numbers: Iterable[int]) -> bool:
        return not self._imported.isdisjoint(numbers)

    def _trusted(self, targets: Sequence[Target], things: Iterable[Object], place: Place) -> list[Answer]:
        """By the name at a place if that leads to the same, else by values."""
        distinct = list(dict.fromkeys(targets))
        use = self.uses.get((place[0], place[1]))
        if use is not None and len(distinct) == 1:
            named = self.definitions.targets_of_definitions(self.file, use.definitions, use.name)
            if named == (distinct[0],):
                method = "import" if self._is_imported(use.definitions) else "scope"
                return [Answer(distinct[0], method, SCOPED)]
        if all(thing & WEAK for thing in things):
            return [Answer(each, "annotation", HINTED) for each in distinct]
        return [Answer(each, "values", VALUE if len(distinct) == 1 else SEVERAL) for each in distinct]
