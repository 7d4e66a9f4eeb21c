"""Define semantic types: the meaning of a value beyond its physical type, each with a cheap SQL check.

Ids made by `stable_id(prefix, *parts)` are `<prefix>:` and 22 characters of base64url (128 bits). Parts
always begin with the repository, so an id is unique in a lake that holds many.

>>> next(kind.check for kind in SEMANTIC_TYPES if kind.name == "FileId")
"startswith({c}, 'file:') AND length({c}) = 27"

`is_a` lists supertypes: a FileId is the NodeId of the file's node, and a NodeId is an EntityId, so
`cpg_props.entity_id` may be joined with `repo_files_v1.file_id`.

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from codeanatomy.catalog.spec import SemanticType

HASH_CHARS = 22
ANY_ID = f"instr({{c}}, ':') > 1 AND length({{c}}) - instr({{c}}, ':') = {HASH_CHARS}"
NOT_EMPTY = "{c} <> ''"
# Supertype of the ids that `normalize_evidence_v1` refers to.
EVIDENCE_KEY = "EvidenceKey"


def _id(name: str, prefix: str, doc: str, *is_a: str) -> SemanticType:
    """Declare the type of a stable id with a fixed prefix."""
    check = f"startswith({{c}}, '{prefix}:') AND length({{c}}) = {len(prefix) + 1 + HASH_CHARS}"
    return SemanticType(name, "string", doc, check, is_a)


SEMANTIC_TYPES: tuple[SemanticType, ...] = (
    # names and paths
    SemanticType("RepoId", "string", "Name of a repository, unique in its lake.", NOT_EMPTY),
    SemanticType("RunId", "string", "Name of one run or command that wrote to the lake.", NOT_EMPTY),
    SemanticType(
        "Path",
        "string",
        "Path below the repository's root, with `/` between its parts.",
        "{c} <> '' AND NOT startswith({c}, '/')",
    ),
    SemanticType("QName", "string", "Dotted qualified name, from the module's import name down.", NOT_EMPTY),
    SemanticType(
        "ScipSymbol",
        "string",
        "Symbol in SCIP's own grammar, without the version of the project that was indexed.",
        NOT_EMPTY,
    ),
    SemanticType("Sha256", "string", "SHA-256 as 64 hexadecimal digits.", "length({c}) = 64"),
    SemanticType(
        "Fingerprint",
        "string",
        "Digest of at least 128 bits, as text, of everything that can change a result.",
        f"length({{c}}) >= {HASH_CHARS}",
    ),
    # positions and scales
    SemanticType("BytePos", "bigint", "Byte offset in the file's canonical UTF-8 text.", "{c} >= 0"),
    SemanticType("LineNo0", "int", "Line number that counts from 0, lines as CPython sees them.", "{c} >= 0"),
    SemanticType("LineNo1", "int", "Line number that counts from 1, lines as CPython sees them.", "{c} >= 1"),
    SemanticType("BcOffset", "int", "Byte offset in the bytecode of a code unit.", "{c} >= 0"),
    SemanticType("Confidence", "double", "Confidence in a fact; 1 is certain.", "{c} >= 0 AND {c} <= 1"),
    # ids of graph entities
    SemanticType("EntityId", "string", "Id of a node or an edge of the graph.", ANY_ID),
    SemanticType("NodeId", "string", "Id of a node; its prefix names the kind.", ANY_ID, ("EntityId",)),
    _id("EdgeId", "edge", "Id of an edge, from kind, end nodes and span.", "EntityId"),
    _id("FileId", "file", "Id of a file, from repository and path; also the file's node.", "NodeId"),
    _id("TypeId", "type", "Id of a type, from repository and normalized type; also its node.", "NodeId"),
    _id(
        "ExprId",
        "type_expr",
        "Id of a type expression, from file, span and role; also its node.",
        "NodeId",
        EVIDENCE_KEY,
    ),
    _id("ScopeId", "scope", "Id of a scope, from file and scope key; also its node.", "NodeId"),
    _id("CodeUnitId", "code", "Id of a code object, from file and code unit key; also its node.", "NodeId"),
    _id(
        "BlockId",
        "block",
        "Id of a basic block, from code unit and first offset; also its node.",
        "NodeId",
        EVIDENCE_KEY,
    ),
    _id("EventId", "event", "Id of a def, use or del of a variable; also its node.", "NodeId", EVIDENCE_KEY),
    _id(
        "DiagId",
        "diag",
        "Id of a diagnostic, from file, position, code and message; also its node.",
        "NodeId",
        EVIDENCE_KEY,
    ),
    # ids of facts that are rows, not graph entities
    _id("SpanId", "span", "Id of a source range, from file and byte span."),
    _id("CfgEdgeId", "cfg", "Id of a control-flow edge, from its blocks and kind.", EVIDENCE_KEY),
    _id("ReachId", "reach", "Id of a pair of definition and use, from the two events.", EVIDENCE_KEY),
    _id(
        "SpanErrorId",
        "span_error",
        "Id of a position that could not be converted to a byte span.",
        EVIDENCE_KEY,
    ),
    _id("IndexId", "index", "Id of a SCIP index, from repository and index path."),
    _id("RelationId", "rel", "Id of a relation, from kind, end nodes, span and rule."),
    _id("AmbiguityGroupId", "ambig", "Id shared by the alternatives of one decision."),
    SemanticType(EVIDENCE_KEY, "string", "Id of the normalized row that evidence is about.", ANY_ID),
)


def supertypes(name: str, types: Mapping[str, SemanticType]) -> set[str]:
    """Return the names of a semantic type and of all its supertypes."""
    seen: set[str] = set()
    todo = [name]
    while todo:
        current = todo.pop()
        if current not in seen:
            seen.add(current)
            todo += types[current].is_a if current in types else ()
    return seen


BY_NAME = {semantic.name: semantic for semantic in SEMANTIC_TYPES}


def assignable(given: str, declared: str) -> bool:
    """Return whether a value of semantic type `given` may be used where `declared` is required.

    >>> assignable("FileId", "NodeId"), assignable("NodeId", "FileId")
    (True, False)
    """
    return declared in supertypes(given, BY_NAME)
