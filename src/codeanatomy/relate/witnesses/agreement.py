"""Claims of other witnesses weighed against our own answers.

    shape.area()    ours: Square.area (0.7)   SCIP: Shape.area     which it overrides: both may be right
    load().run()    ours: nothing             pyrefly: Job.run     pyrefly's answer is the row (0.9)
    f()             ours: g (0.7)             SCIP: h              two rows, one group, a diagnostic
    f()             ours: g (0.7)             pyrefly: g           one row, 0.9, with both as evidence

For each answer a witness has one of three words:

same    The same node, or another node of the same qualified name: a stub beside its module, an overload, a
        class and its constructor. The witness is evidence, and its trust is the answer's.
kin     What we found overrides what a static witness can name, or is a name outside that ends alike
        (`pathlib.Path.exists`, `pathlib.PurePath.exists`), or is a class of which it names only the
        constructor. Evidence, but no more trust.
other   Evidence against our answer; and what the witness says instead is a row too, as it may be right.

A claim that is other than all our answers gets no row in two cases, since ours is the better answer. It names
a function that has a decorator, and we know what the decorator put in its place. Or both are outside, where
one thing has many names: ours is the one by which the program imports it. Everything else that has nothing
in common with us is a `Problem`. Rank is trust, then SCIP before pyrefly before values.

Tests: `tests/unit/relate/test_witnesses.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from codeanatomy.relate.program import Place
from codeanatomy.relate.relation_rows import Evidence
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.solver import MAX_OBJECTS, Object
from codeanatomy.relate.witnesses.claims import CONSTRUCTORS, PYREFLY, SCIP, Claim, Landmarks, last_part

TRUST = {SCIP: 1.0, PYREFLY: 0.9}
# Added to the score, so that of equal trust the better witness is first.
RANK = {SCIP: 0.02, PYREFLY: 0.01}
SAME, KIN, OTHER = "same", "kin", "other"
OUTSIDE = frozenset({"QUALIFIED_NAME", "EXTERNAL_MODULE"})
VARIABLES = frozenset({"PARAMETER", "BINDING"})
PROTOCOLS = frozenset({"typing.Protocol", "typing_extensions.Protocol"})
# Names in a message.
SHOWN = 4


class Problem(NamedTuple):
    """A diagnostic: what we say and what a witness says have nothing in common."""

    file: int
    place: Place
    code: str
    message: str


class Verdict:
    """What all witnesses together say of the answers at one place."""

    def __init__(
        self,
        kinship: Kinship,
        answers: Iterable[Target],
        claims: Sequence[Claim],
        known: Iterable[Target] = (),
    ) -> None:
        self.answers = list(dict.fromkeys(answers))
        # What nobody but a witness says, with what it rests on.
        self.added: dict[Target, Claim] = {}
        # Witnesses that say something else, with all that they say.
        self.against: dict[str, list[Target]] = {}
        self._kinship = kinship
        # What else the name may mean, which we have not chosen.
        self._known = list(known)
        self._words: dict[Target, list[tuple[Claim, str]]] = {}
        for witness in self._order(claims):
            own = [claim for claim in claims if claim.witness == witness]
            if own:
                self._hear(witness, own)

    def _order(self, claims: Sequence[Claim]) -> tuple[str, ...]:
        if any(one.kind in VARIABLES for one in self.answers):
            # The type checker speaks of the value that a variable has.
            return (SCIP,)
        is_typed = any(claim.witness == PYREFLY and claim.targets[0].kind in OUTSIDE for claim in claims)
        # Of a method outside it knows the class of the receiver, where SCIP knows the base that has it.
        return (PYREFLY, SCIP) if is_typed and not self.answers else (SCIP, PYREFLY)

    def _hear(self, witness: str, claims: Sequence[Claim]) -> None:
        listed = [*self.answers, *self.added]
        words: dict[Target, tuple[Claim, str]] = dict.fromkeys(listed, (claims[0], OTHER))
        new: list[Claim] = []
        is_met = not self.answers
        for claim in claims:
            found = self._found(claim, listed)
            for one, word in found.items():
                if word == SAME or (word == KIN and words[one][1] == OTHER):
                    words[one] = (claim, word)
            is_other = all(word == OTHER for word in found.values())
            is_worse = is_other and self._is_worse(claim)
            if is_other and not is_worse:
                new.append(claim)
            is_met = is_met or is_worse or any(found[one] != OTHER for one in self.answers)
        said = [one for claim in claims for one in claim.targets]
        self._note(witness, words, said if is_met else ())
        if not is_met:
            self.against[witness] = said
        self._add(new)

    def _found(self, claim: Claim, listed: Sequence[Target]) -> dict[Target, str]:
        """The word for each answer."""
        found = {one: self._kinship.of(one, claim) for one in listed}
        if any(self._kinship.of(one, claim) == SAME for one in self._known):
            found |= {one: KIN for one in self.answers if found[one] == OTHER}
        return found

    def _is_worse(self, claim: Claim) -> bool:
        """Whether our answers are the better ones, though they are others."""
        if not self.answers:
            return False
        if all(one.kind in OUTSIDE for one in (*self.answers, *claim.targets)):
            return True
        return self._kinship.is_replaced(claim)

    def _note(self, witness: str, words: dict[Target, tuple[Claim, str]], said: Sequence[Target]) -> None:
        for one, (claim, word) in words.items():
            if word == SAME and witness == SCIP and one in self.added:
                self.added[one] = claim
            # A call of `str` also runs `__str__`: who only names the one says nothing of the other.
            is_silent = word == OTHER and said and is_special(one) and not named_alike(one, said)
            if not is_silent:
                self._words.setdefault(one, []).append((claim, word))

    def _add(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            for one in claim.targets:
                if one not in self._words and len(self.added) < MAX_OBJECTS:
                    self.added[one] = claim
                    self._words[one] = [(claim, SAME)]

    def confidence(self, target: Target, own: float) -> float:
        """The trust in an answer: ours, or that of the witnesses that say the same."""
        if not self._words or target not in self._words:
            return own
        return max([own, *(TRUST[claim.witness] for claim in self._same(target))])

    def rank(self, target: Target) -> float:
        """What its witnesses add to its score."""
        if not self._words or target not in self._words:
            return 0.0
        return max([0.0, *(RANK[claim.witness] for claim in self._same(target))])

    def roles(self, target: Target) -> int | None:
        """The bits of SCIP, where it says the same."""
        if not self._words or target not in self._words:
            return None
        return next((claim.roles for claim in self._same(target) if claim.roles), None)

    def _same(self, target: Target) -> Iterator[Claim]:
        return (claim for claim, word in self._words.get(target, ()) if word == SAME)

    def evidence(self, target: Target) -> list[Evidence]:
        """What the witnesses say of an answer."""
        if not self._words:
            return []
        words = self._words.get(target, ())
        return [Evidence(claim.witness, claim.key, word != OTHER) for claim, word in words]

    def problems(self, file: int, place: Place) -> list[Problem]:
        """A diagnostic for each witness that says something else."""
        ours = names(self.answers)
        return [
            Problem(file, place, f"{witness}_disagrees", f"found {ours}, {witness} says {names(said)}")
            for witness, said in self.against.items()
        ]


def is_special(target: Target) -> bool:
    """Whether it is a method that the language itself runs."""
    name = last_part(target)
    return name.startswith("__") and name.endswith("__")


def named_alike(target: Target, others: Iterable[Target]) -> bool:
    """Whether one of these ends in the same name."""
    return any(last_part(one) == last_part(target) for one in others)


def names(targets: Sequence[Target]) -> str:
    """The first of these, for people."""
    shown = [one.qname or one.kind.lower() for one in targets[:SHOWN]]
    more = len(targets) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def is_called_outside(claim: Claim) -> bool:
    """Whether it says no more than that an instance of a class outside is called."""
    return all(one.kind == "QUALIFIED_NAME" and last_part(one) == "__call__" for one in claim.targets)


class Kinship:
    """How an answer and a claim are related."""

    def __init__(self, landmarks: Landmarks) -> None:
        self.landmarks = landmarks
        self.values = landmarks.values

    def of(self, answer: Target, claim: Claim) -> str:
        """One of the words."""
        found = OTHER
        for one in claim.targets:
            if one.node == answer.node or (one.qname is not None and one.qname == answer.qname):
                return SAME
            if found == OTHER and self._is_kin(answer, one, is_open=claim.is_open):
                found = KIN
        return found

    def _is_kin(self, answer: Target, named: Target, *, is_open: bool) -> bool:
        if answer.kind == "CLASS" and last_part(named) in CONSTRUCTORS:
            cls = self.landmarks.cls(answer.qname)
            return cls is not None and named in self.landmarks.called(cls)
        if last_part(answer) != last_part(named) or not last_part(named):
            return False
        if answer.kind in OUTSIDE:
            return named.kind in OUTSIDE
        owner = self._owner(answer)
        if owner is None or not is_open:
            return False
        if named.kind in OUTSIDE:
            return True
        above = self._owner(named)
        return above is not None and (above in self.values.mro(owner) or self._is_protocol(above))

    def _owner(self, target: Target) -> Object | None:
        if target.kind not in ("FUNCTION", "BINDING") or target.qname is None:
            return None
        return self.landmarks.cls(target.qname.rpartition(".")[0])

    def _is_protocol(self, cls: Object) -> bool:
        return any(name in PROTOCOLS for name in self.values.external_bases(cls))

    def is_replaced(self, claim: Claim) -> bool:
        """Whether something else runs in place of what is claimed."""
        return is_called_outside(claim) or any(map(self.landmarks.is_decorated, claim.targets))
