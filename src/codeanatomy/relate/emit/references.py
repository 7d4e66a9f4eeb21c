"""Turn the candidates of a reference into rows, weighed against other witnesses.

    ref = f.reference("REFERS_TO", "NAME_REF", place, "name")
    add_candidates(f, ref, [Candidate(user, "import", BY_RULE)])    one row with confidence 0.9
    add_candidates(f, ref, [], "unbound")                           one row without a target, with the reason

Several candidates share an ambiguity group. The claims of other witnesses (SCIP, type checker) are compared
here: they confirm a candidate, contradict it, or add their own.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from codeanatomy.file_ids import FileIds
from codeanatomy.node_ids import group_id, module_id
from codeanatomy.relate import program as ir
from codeanatomy.relate.program import Op, Place
from codeanatomy.relate.relation_rows import Evidence, Relation, RelationRows
from codeanatomy.relate.values.models.builtins import DECLARATIONS
from codeanatomy.relate.values.name_resolution import NameResolver, Target
from codeanatomy.relate.values.solver import Object, is_hint
from codeanatomy.relate.values.state import State
from codeanatomy.relate.witnesses.agreement import Verdict
from codeanatomy.relate.witnesses.claims import Claim
from codeanatomy.relate.witnesses.lookup import FileClaims

# Confidence: by the grammar, by scope and import rules, by a single value, one of several, by an annotation.
CERTAIN, BY_RULE, BY_VALUE, AMBIGUOUS, HINTED = 1.0, 0.9, 0.7, 0.5, 0.3
# Reason for missing candidates: the solver cut a set of objects.
TOO_MANY = "too_many_candidates"
# Method of what only an annotation leads to.
ANNOTATION = "annotation"
# Method of what a call runs through a wrapper that passes its arguments on.
FORWARDED = "forwarded"
# Kind and id of the node that refers to something.
Source: TypeAlias = tuple[str, str]


class Candidate(NamedTuple):
    """A possible target of a reference, the method that resolved it, and the confidence in it."""

    target: Target
    method: str
    confidence: float


class CallEdge(NamedTuple):
    """A callee of a function, with the best confidence and the first place of its calls."""

    target: Target
    confidence: float
    place: Place
    origin: str
    # Whether all calls run it through wrappers.
    is_forwarded: bool


class Reference(NamedTuple):
    """What the rows of a reference share: relation, source node, place, and the rule that resolves it."""

    kind: str
    src: Source
    place: Place
    rule: str
    origin: str = "values"
    role: str | None = None
    ordinal: int | None = None


class FileRows(Struct, eq=False, dict=True):
    """The rows of one file, with what the rules that add them look up."""

    values: State
    resolver: NameResolver
    attributes: Mapping[tuple[Object, str], None]
    # Attributes that something may set, members or not.
    stored: Container[tuple[Object, str]]
    file: int
    # The whole, of which the values may have only a part (`program.solved_part`).
    program: ir.Program
    # Nodes with more objects than the solver keeps.
    truncated: Container[int]
    claims: FileClaims

    def __post_init__(self) -> None:
        values, file, program = self.values, self.file, self.program
        # Its own, and not the resolver's: most ids of a file are needed for its rows only.
        self.ids = FileIds(program.ids)
        self.module = Target("MODULE", module_id(program.file_id), values.names[file])
        self.rows = RelationRows(program.repo_id, program.file_id, program.path)
        self.uses = {use.place[:2]: use for use in program.uses}
        self._imports = {at for at, each in enumerate(program.definitions) if each.kind == ir.IMPORT}
        # Attribute loads by the node they load into, and the called node by site.
        self.attribute_loads: dict[int, Op] = {}
        self.callees: dict[int, int] = {}
        # What is called by site, with roles: the table of the repository is slow to search.
        self.called: dict[int, Mapping[Object, str]] = {}
        # Nodes that hold results of calls whose callees are all external.
        self.external_results: set[int] = set()
        calls = values.calls.callees
        for number in range(len(program.sites)):
            called = calls.get((file, number))
            if called:
                self.called[number] = called
        for op in program.ops:
            if op[0] == ir.OP_LOAD_ATTRIBUTE:
                self.attribute_loads[op[3]] = op
            elif op[0] == ir.OP_CALL:
                self.callees[op[3]] = op[1]
                roles = self.called.get(op[3])
                if roles and all(values.kind[obj] == ir.OBJ_EXTERNAL for obj in roles):
                    self.external_results.add(op[2])
        # By calling function and called node.
        self.call_graph: dict[tuple[int, str], CallEdge] = {}

    def source(self, kind: str, place: Place) -> Source:
        return kind, self.ids.at(kind, place[0], place[1])

    def reference(self, kind: str, src_kind: str, place: Place, rule: str, *more: Any) -> Reference:
        """Return a reference from the node of a kind at a place of this file."""
        return Reference(kind, self.source(src_kind, place), place, rule, *more)

    def is_imported(self, definitions: Iterable[int]) -> bool:
        """Whether any of these definitions is an import."""
        return not self._imports.isdisjoint(definitions)

    def target(self, obj: Object, role: str = "") -> Target | None:
        """Return the node of a function, class or external name; None for declarations and other objects."""
        kind, first, second, _ = self.values.objects[obj]
        if kind == ir.OBJ_FUNCTION:
            return self.resolver.function(first, second)
        if kind == ir.OBJ_CLASS:
            return self.resolver.cls(first, second)
        if kind == ir.OBJ_EXTERNAL and not is_declaration(first, role):
            return self.resolver.external(first)
        return None

    def targets(self, objects: Iterable[Object], role: str = "") -> list[Target]:
        """Return the nodes of those objects that have one."""
        return [target for obj in objects if (target := self.target(obj, role)) is not None]

    def unknown_reason(self, node: int) -> str:
        """Return the reason why a node holds no objects."""
        if node in self.truncated:
            return TOO_MANY
        return "external_result" if node in self.external_results else "unknown_receiver"


def is_declaration(name: str, role: str) -> bool:
    """Whether an external name is a declaring decorator (`property`), or synthetic (it ends with `()`)."""
    return name.endswith("()") or (role == "decorator" and name in DECLARATIONS)


def add_candidates(
    f: FileRows,
    ref: Reference,
    candidates: Sequence[Candidate],
    reason: str | None = None,
    claims: Sequence[Claim] = (),
    alternatives: Iterable[Target] = (),
) -> None:
    """Add a row per candidate, ours or a witness's; if there is none, one row with the reason.

    `alternatives` are meanings of the name that are not candidates; a claim of one is no disagreement.
    """
    if not claims and len(candidates) == 1:
        # Most references: a third of the time of those below.
        add_row(f, ref, candidates[0], ref.src[1], None)
        return
    verdict = f.claims.witnesses.no_claims
    if claims:
        verdict = f.claims.verdict(ref.place, [each.target for each in candidates], claims, alternatives)
    kind, src, place, rule, origin, role, ordinal = ref
    if not candidates and not verdict.added:
        ends, why = (kind, *src, None, None, *place), reason or "unknown"
        f.rows.add(Relation(*ends, origin, rule, role=role, ordinal=ordinal, reason=why))
        return
    overrides = verdict.overrides if all(each.method == ANNOTATION for each in candidates) else {}
    alternatives_count = len(candidates) + len(verdict.added) + len(overrides)
    group = group_id(src[1], kind, role) if alternatives_count > 1 else None
    for number, (target, method, own) in enumerate(candidates):
        confidence = verdict.confidence(target, own)
        # Not simplified: rounded in these steps.
        score = own - number * 1e-3 + confidence - own
        add_row(f, ref, Candidate(target, method, confidence), src[1], group, verdict, score)
    for target, claim in verdict.added.items():
        claimed = Candidate(target, claim.witness, verdict.confidence(target, 0.0))
        add_row(f, ref._replace(origin=claim.witness), claimed, None, group, verdict)
    for target, claim in overrides.items():
        override = Candidate(target, claim.witness, AMBIGUOUS)
        add_row(f, ref._replace(origin=claim.witness), override, claim.key, group)


def add_row(
    f: FileRows,
    ref: Reference,
    candidate: Candidate,
    key: str | None,
    group: str | None,
    verdict: Verdict | None = None,
    score: float | None = None,
    reason: str | None = None,
) -> None:
    """Add the row of a candidate, with the evidence of its origin, if that has a key, and of witnesses."""
    (kind, src, place, rule, origin, role, ordinal), (target, method, confidence) = ref, candidate
    evidence: str | Sequence[Evidence] = key or ()
    ranked, roles = confidence if score is None else score, None
    if verdict is not None:
        bonus, roles, others = verdict.support(target)
        ranked += bonus
        if others:
            evidence = [Evidence(origin, key), *others] if key else others
    ends = (kind, *src, target.kind, target.node, *place)
    how = (origin, rule, method, confidence, ranked, None, target.qname, role)
    f.rows.add(Relation(*ends, *how, ordinal, group, roles, evidence, reason))


def rate_targets(
    f: FileRows, targets: Iterable[Target], objects: Iterable[Object], place: Place
) -> list[Candidate]:
    """Rate targets that values give: by rule if the name at the place resolves alike, else by value."""
    distinct = list(dict.fromkeys(targets))
    use = f.uses.get(place[:2])
    if use is not None and len(distinct) == 1:
        by_name = f.resolver.targets_of_definitions(f.file, use.definitions, use.name)
        if by_name == (distinct[0],):
            return [Candidate(distinct[0], "import" if f.is_imported(use.definitions) else "scope", BY_RULE)]
    if all(is_hint(obj) for obj in objects):
        return [Candidate(each, ANNOTATION, HINTED) for each in distinct]
    return rate_alternatives(distinct, "values", BY_VALUE)


def rate_alternatives(targets: Sequence[Target], method: str, certain: float = BY_RULE) -> list[Candidate]:
    """Rate targets that a method gives, of which one is right."""
    confidence = certain if len(targets) == 1 else AMBIGUOUS
    return [Candidate(each, method, confidence) for each in targets]
