"""Other witnesses of a repository, weighed against our own answers.

    shape.area()         ours: Square.area (0.7)      SCIP: Shape.area       an override of it: both may be right
    load().run()         ours: nothing                pyrefly: Job.run       pyrefly's answer is the row (0.9)
    f()                  ours: g (0.7)                SCIP: h                two rows, one group, a diagnostic
    f()                  ours: g (0.7)                pyrefly: g             one row, 0.9, two kinds of evidence

For each answer a witness has one of four words:

same        The same node, or another node of the same qualified name: a stub beside its module, an overload,
            a class and its constructor. The witness is evidence, and its trust is the answer's.
kin         What we found overrides what a static witness can name, or is a name outside that ends alike
            (`pathlib.Path.exists`, `pathlib.PurePath.exists`). Evidence, but no more trust.
replaced    It names a function that has a decorator, and we know what the decorator put in its place. It is
            evidence against our answer, but neither a row nor a diagnostic: what we found is what runs.
other       Evidence against our answer, and a row of its own, which may be right as well as ours.

A witness that has nothing in common with us is a `Problem`, unless both speak of things outside, which have
many names: there ours is the name by which the program imports it, and stays alone. Rank is trust, then SCIP before pyrefly before values. Tests: `tests/test_relate_witnesses.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from codeanatomy.relate.claims import PYREFLY, SCIP, Claim, Landmarks, is_declaration, last_part
from codeanatomy.relate.definitions import Definitions, Target
from codeanatomy.relate.program import Place
from codeanatomy.relate.rows import Evidence
from codeanatomy.relate.scip_claims import Occurrences, Symbols
from codeanatomy.relate.solver import MAX_OBJECTS, Object
from codeanatomy.relate.typed_claims import CallTargets, is_external_call

TRUST = {SCIP: 1.0, PYREFLY: 0.9}
# Added to the score, so that of equal trust the better witness is first.
RANK = {SCIP: 0.02, PYREFLY: 0.01}
OUTSIDE = frozenset({"QUALIFIED_NAME", "EXTERNAL_MODULE"})
VARIABLES = frozenset({"PARAMETER", "BINDING"})
PROTOCOLS = frozenset({"typing.Protocol", "typing_extensions.Protocol"})
SAME, KIN, OTHER = "same", "kin", "other"
FORMS = {
    "operator": ("operator",),
    "subscript": ("subscript",),
    "iteration": ("iteration",),
    "with": ("with",),
    "attribute": ("property",),
    "format": ("format",),
}
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
        # Witnesses that say something else, with their targets.
        self.against: dict[str, list[Target]] = {}
        self._words: dict[Target, list[tuple[Claim, str]]] = {}
        for witness in (SCIP, PYREFLY) if self.answers or not _names_outside(claims) else (PYREFLY, SCIP):
            own = [claim for claim in claims if claim.witness == witness]
            if witness == PYREFLY and any(one.kind in VARIABLES for one in self.answers):
                # It speaks of the value that a variable has.
                continue
            if own:
                self._hear(kinship, witness, own, list(known))

    def _hear(self, kinship: Kinship, witness: str, claims: Sequence[Claim], known: Sequence[Target]) -> None:
        listed = [*self.answers, *self.added]
        is_met = not self.answers
        new: list[Claim] = []
        words: dict[Target, tuple[Claim, str]] = {one: (claims[0], OTHER) for one in listed}
        for claim in claims:
            found = {one: kinship.of(one, claim) for one in listed}
            if any(kinship.of(one, claim) == SAME for one in known):
                # By a name that means this among others we have chosen from.
                found |= {one: KIN for one in self.answers if found[one] == OTHER}
            for one, word in found.items():
                if word == SAME or (word == KIN and words[one][1] == OTHER):
                    words[one] = (claim, word)
            is_met = is_met or any(found[one] != OTHER for one in self.answers)
            if all(word == OTHER for word in found.values()):
                if self.answers and (kinship.is_replaced(claim) or self._is_outside(claim.targets)):
                    is_met = True
                else:
                    new.append(claim)
        theirs = [one for claim in claims for one in claim.targets]
        for one, (claim, word) in words.items():
            if word == SAME and witness == SCIP and one in self.added:
                self.added[one] = claim
            # A call of `str` also runs `__str__`: who names the one says nothing of the other.
            is_silent = word == OTHER and is_met and is_special(one) and not named_alike(one, theirs)
            if not is_silent:
                self._words.setdefault(one, []).append((claim, word))
        if not is_met:
            self.against[witness] = theirs
        for claim in new:
            for one in claim.targets:
                if one not in self._words and len(self.added) < MAX_OBJECTS:
                    self.added[one] = claim
                    self._words[one] = [(claim, SAME)]

    def _is_outside(self, targets: Sequence[Target]) -> bool:
        """Whether these and all answers are outside, where one thing has many names."""
        return all(one.kind in OUTSIDE for one in (*self.answers, *targets))

    def confidence(self, target: Target, own: float) -> float:
        """The trust in an answer: ours, or that of the witnesses that say the same."""
        return max([own, *(TRUST[claim.witness] for claim, word in self._words.get(target, ()) if word == SAME)])

    def rank(self, target: Target) -> float:
        """What its witnesses add to its score."""
        return max([0.0, *(RANK[claim.witness] for claim, word in self._words.get(target, ()) if word == SAME)])

    def evidence(self, target: Target) -> list[Evidence]:
        """What the witnesses say of an answer."""
        return [Evidence(claim.witness, claim.key, word != OTHER) for claim, word in self._words.get(target, ())]

    def roles(self, target: Target) -> int | None:
        """The bits of SCIP, where it says the same."""
        return next((claim.roles for claim, word in self._words.get(target, ()) if word == SAME and claim.roles), None)

    def problems(self, file: int, place: Place) -> list[Problem]:
        """A diagnostic for each witness that says something else."""
        ours = names(self.answers)
        return [
            Problem(file, place, f"{witness}_disagrees", f"found {ours}, {witness} says {names(theirs)}")
            for witness, theirs in self.against.items()
        ]


def _names_outside(claims: Sequence[Claim]) -> bool:
    """Whether pyrefly names a thing outside; it knows of whose class, where SCIP knows which base."""
    return any(claim.witness == PYREFLY and claim.targets[0].kind in OUTSIDE for claim in claims)


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
        return any(name in PROTOCOLS for name in self.values.outside_bases(cls))

    def is_replaced(self, claim: Claim) -> bool:
        """Whether something else runs in place of what is claimed."""
        return is_external_call(claim) or any(map(self.landmarks.is_decorated, claim.targets))


class Witnesses:
    """The witnesses of a repository."""

    def __init__(
        self,
        definitions: Definitions,
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
        program = witnesses.landmarks.values.programs[file]
        # The identifier of each name and attribute by the place of the whole, and calls by what they call.
        self._identifiers = {use.place[:2]: use.place for use in program.uses}
        self._identifiers |= {place[:2]: place for place, _ in program.open_uses}
        self._calls: dict[tuple[int | None, int | None], Place] = {}
        # Of these the type checker says that they are read.
        self._deleted = {program.sites[op[-1]].place for op in program.ops if op[0] == "d" and "__delitem__" in op[2]}
        for site in program.sites:
            if site.role == "attribute":
                self._identifiers[site.place[:2]] = site.inner
            elif site.role == "call":
                self._calls[site.inner[:2]] = site.place

    def name(self, place: Place) -> list[Claim]:
        """What a name refers to."""
        start, end, _ = place
        return [*self.scip.reference(start, end), *self.typed.reference(start, end)]

    def attribute(self, identifier: Place, whole: Place, name: str) -> list[Claim]:
        """What an attribute refers to; of one that is called, what the call says."""
        found = self.name(identifier)
        call = self._calls.get(whole[:2])
        return found if call is None else [*found, *self.typed.called_identifier(call, name)]

    def call(self, place: Place, inner: Place) -> list[Claim]:
        """What a call runs, by its place and that of the called expression: `str(x)` runs `__str__` too."""
        own = self.typed.implicit(place, ("dunder",))
        return [*self._callable(inner, self.typed.call(place)), *own]

    def decorator(self, place: Place) -> list[Claim]:
        """What applying a decorator runs."""
        return self._callable(place, self.typed.decorator(place))

    def _callable(self, inner: Place, typed: Sequence[Claim]) -> list[Claim]:
        identifier = self._identifiers.get(inner[:2])
        scip = [] if identifier is None else self.scip.call(identifier[0], identifier[1])
        return [claim for claim in (*scip, *typed) if not any(map(is_declaration, claim.targets))]

    def implicit(self, place: Place, role: str) -> list[Claim]:
        """What an operator, a subscript, a loop and the like run."""
        found = self.typed.implicit(place, FORMS.get(role, ()))
        if place not in self._deleted:
            return found
        return [claim for claim in found if any(last_part(one) == "__delitem__" for one in claim.targets)]

    def passed(self, place: Place) -> list[Claim]:
        """The functions that a call is given to run."""
        return self.typed.implicit(place, ("argument",))

    def verdict(
        self, place: Place, answers: Iterable[Target], claims: Sequence[Claim], known: Iterable[Target] = ()
    ) -> Verdict:
        """The claims weighed; what disagrees is noted."""
        if not claims:
            return self.witnesses.silence
        found = Verdict(self.witnesses.kinship, answers, claims, known)
        if found.against:
            self.witnesses.problems += found.problems(self.file, place)
        return found
