"""Define semantic types: the meaning of a value beyond its physical type, each with a cheap SQL check.

Ids of nodes and of rows in files are made of definition keys (`node_ids`), 16 characters of base64url:

    file:-Ypa08bsXihimzV9               <prefix>:<key>
    block:-Ypa08bsXihimzV9.000003       <prefix>:<key>.<name or number>
    type:shop:list[int]                 <prefix>:<repository>:<text>, for what is in no file
    CALLS;callsite:...;function:...     <kind>;<source>;<target>[;<repeat>], for an edge

>>> next(kind.check for kind in SEMANTIC_TYPES if kind.name == "FileId")
"startswith({c}, 'file:') AND length({c}) = 21"

`is_a` lists supertypes: a FileId is the NodeId of the file's node, and a NodeId is an EntityId, so
`cpg_props.entity_id` may be joined with `repo_files_v1.file_id`.

Tests: `tests/unit/catalog/test_catalog.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from codeanatomy.catalog.spec import SemanticType

# Characters of a definition key, and of 128 bits, in base64url.
KEY_CHARS = 16
HASH_CHARS = 22
ANY_ID = "instr({c}, ':') > 1 AND length({c}) > instr({c}, ':')"
# An id without `;`, which separates the ends of an edge.
NODE_ID = f"{ANY_ID} AND instr({{c}}, ';') = 0"
EDGE_ID = "instr({c}, ';') > 1 AND instr({c}, ':') > instr({c}, ';')"
NOT_EMPTY = "{c} <> ''"
# Supertype of the ids that `normalize_evidence_v1` refers to.
EVIDENCE_KEY = "EvidenceKey"


def _of_definition(name: str, prefix: str, doc: str, *is_a: str) -> SemanticType:
    """Declare the type of ids of a prefix and a definition key."""
    return SemanticType(name, "string", doc, _has_length(prefix, KEY_CHARS), is_a)


def _of_part(name: str, prefix: str, doc: str, *is_a: str) -> SemanticType:
    """Declare the type of ids of a prefix, a definition key, and a name or number."""
    end = len(prefix) + KEY_CHARS + 2
    check = f"startswith({{c}}, '{prefix}:') AND substr({{c}}, {end}, 1) = '.' AND length({{c}}) > {end}"
    return SemanticType(name, "string", doc, check, is_a)


def _has_length(prefix: str, characters: int) -> str:
    return f"startswith({{c}}, '{prefix}:') AND length({{c}}) = {len(prefix) + 1 + characters}"


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
    SemanticType("NodeId", "string", "Id of a node; its prefix names the kind.", NODE_ID, ("EntityId",)),
    SemanticType("EdgeId", "string", "Id of an edge, of its kind and end nodes.", EDGE_ID, ("EntityId",)),
    _of_definition("FileId", "file", "Id of a file, of its module's key; also the file's node.", "NodeId"),
    SemanticType(
        "TypeId",
        "string",
        "Id of a type, of repository and normalized type; also its node.",
        "startswith({c}, 'type:') AND instr(substr({c}, 6), ':') > 1",
        ("NodeId",),
    ),
    _of_part("ExprId", "type_expr", "Id of a type expression; also its node.", "NodeId", EVIDENCE_KEY),
    _of_definition("ScopeId", "scope", "Id of a scope; also its node.", "NodeId"),
    _of_definition("CodeUnitId", "code", "Id of a code object; also its node.", "NodeId"),
    _of_part("BlockId", "block", "Id of a basic block; also its node.", "NodeId", EVIDENCE_KEY),
    _of_part(
        "EventId", "event", "Id of a def, use or del of a variable; also its node.", "NodeId", EVIDENCE_KEY
    ),
    _of_part(
        "DiagId", "diag", "Id of a diagnostic, with kind and code; also its node.", "NodeId", EVIDENCE_KEY
    ),
    # ids of facts that are rows, not graph entities
    _of_part("SpanId", "span", "Id of a source range, of the file's key and the byte span."),
    _of_part("CfgEdgeId", "cfg", "Id of a control-flow edge.", EVIDENCE_KEY),
    _of_part("ReachId", "reach", "Id of a pair of definition and use.", EVIDENCE_KEY),
    _of_part("SpanErrorId", "span_error", "Id of a position that has no byte span.", EVIDENCE_KEY),
    SemanticType(
        "IndexId",
        "string",
        "Id of a SCIP index, a hash of repository and index path.",
        _has_length("index", HASH_CHARS),
    ),
    SemanticType(
        "AmbiguityGroupId",
        "string",
        "Id shared by the alternatives of one decision, of the source node and the kind of edge.",
        "startswith({c}, 'ambig:') AND instr({c}, ';') > 0",
    ),
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
