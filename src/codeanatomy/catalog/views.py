"""What people ask about, as views over the graph: data, that each engine makes a relation of.

    view("calls").sql       # "SELECT e.repo_id, ... FROM e JOIN s ON ..."
    view("calls").reads     # {"e": ("cpg_edges", {"edge_kind": ("CALL_GRAPH",)}), "s": ...}

A name in the statement of a view stands for a slice of a table, so only the files of those kinds are read, or
for rows that the reader of a snapshot has at hand (`holds`). DuckDB and Spark run the statement as it is.

Every row says its repository. Where a row tells of a fact in a source, `path` and `line` are the place of it,
`confidence` and `method` how much to trust it and why. `external` is true for what the repository does
not define itself: a builtin, the standard library, another package.

Tests: `tests/unit/catalog/test_views.py`.
"""

from __future__ import annotations

from msgspec import Struct

from codeanatomy.catalog.spec import Column, Table
from codeanatomy.catalog.tables.graph import CPG_EDGES, CPG_NODES, CPG_PROPS
from codeanatomy.catalog.tables.observe import TABLES as OBSERVE_TABLES
from codeanatomy.errors import UnknownName

# What a name in a statement stands for: a table, and which values some of its columns have.
Read = tuple[str, dict[str, tuple[str, ...]]]

OUTSIDE = ("EXTERNAL_MODULE", "QUALIFIED_NAME")

REPO_ID = Column("repo_id", "string", "Repository.", nullable=False)
PATH = Column("path", "string", "File that states it, below the repository.")
LINE = Column("line", "int", "Line in it, counted from 1.")
CONFIDENCE = Column("confidence", "double", "Trust in the row: 1, 0.9, 0.7, 0.5 or 0.3.", nullable=False)
METHOD = Column("method", "string", "How it was found; null where nothing had to be resolved.")
EXTERNAL = Column("external", "boolean", "Whether it is defined outside of the repository.", nullable=False)
RELATION = Column("relation", "string", "Kind of the edge that says so.", nullable=False)
FACT = (PATH, LINE, CONFIDENCE, METHOD)


# Of the edges `e` that give a variable its value in a file: where its name is first written, else where an
# attribute of that name is set.
FIRST_LINE = (
    "coalesce(min(CASE WHEN left(e.src_node_id, 14) <> 'attribute_ref:' THEN e.line END), min(e.line))"
)


class View(Struct, frozen=True):
    """A relation that people ask about."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    # One SELECT, with the columns in their order.
    sql: str
    # What the names in it stand for.
    reads: dict[str, Read] = {}
    # Columns of the names that stand for rows which the reader has.
    holds: dict[str, tuple[Column, ...]] = {}

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def nodes(*kinds: str) -> Read:
    return "cpg_nodes", {"node_kind": kinds}


def edges(*kinds: str) -> Read:
    return "cpg_edges", {"edge_kind": kinds}


def _end(name: str, what: str, kind: str | None = None) -> tuple[Column, ...]:
    """The columns of a node at one end of an edge."""
    return (
        Column(f"{kind or name}_id", "string", f"Node of {what}.", nullable=False),
        Column(name, "string", f"Qualified name of {what}, or its name where it has no qualified one."),
        Column(f"{kind or name}_kind", "string", f"Kind of {what}.", nullable=False),
    )


# The run that has read each repository: failures of others are not those of the published rows.
BUILT = (REPO_ID, Column("run_id", "string", "Run that has read its files.", nullable=False))

SYMBOLS = View(
    "symbols",
    "One row per thing that has a name: packages, modules, classes, functions, parameters, type aliases,"
    " variables of modules and classes (kind BINDING), and the external names that are used. Variables of"
    " functions and imported names are left out; so is a variable that is a class or function of that name.",
    (
        REPO_ID,
        Column("symbol_id", "string", "Node of the graph.", nullable=False),
        Column("kind", "string", "Its kind.", nullable=False),
        Column("subkind", "string", "Finer kind, such as method or async_function."),
        Column("name", "string", "Last part of its name."),
        Column("symbol", "string", "Qualified name, or the name where there is no qualified one."),
        Column("path", "string", "File it is defined in; of a package the folder."),
        Column(
            "line", "int", "Line where it begins, counted from 1; of a variable, where it first gets a value."
        ),
        EXTERNAL,
    ),
    f"""
        SELECT n.repo_id, n.node_id AS symbol_id, n.node_kind AS kind, n.subkind, n.name,
            coalesce(n.qualname, n.name) AS symbol, n.path, n.line,
            n.node_kind IN ('EXTERNAL_MODULE', 'QUALIFIED_NAME') AS external
        FROM n
        UNION ALL
        SELECT v.repo_id, v.node_id AS symbol_id, v.node_kind AS kind, v.subkind, v.name,
            coalesce(v.qualname, v.name) AS symbol, v.path, f.line, FALSE AS external
        FROM v
        LEFT JOIN (
            SELECT e.dst_node_id, e.path, {FIRST_LINE} AS line FROM e GROUP BY e.dst_node_id, e.path
        ) f ON f.dst_node_id = v.node_id AND f.path = v.path
        WHERE v.subkind IN ('local', 'attribute') AND v.name <> '__class__'
            AND EXISTS (
                SELECT 1 FROM n o WHERE o.node_kind IN ('MODULE', 'CLASS') AND o.repo_id = v.repo_id
                    AND o.qualname = left(v.qualname, length(v.qualname) - length(v.name) - 1)
            )
            AND NOT EXISTS (
                SELECT 1 FROM n s WHERE s.node_kind IN ('CLASS', 'FUNCTION', 'TYPE_ALIAS')
                    AND s.repo_id = v.repo_id AND s.qualname = v.qualname
            )
    """,
    {
        "n": nodes("CLASS", "FUNCTION", "TYPE_ALIAS", "MODULE", "PACKAGE", "PARAMETER", *OUTSIDE),
        "v": nodes("BINDING"),
        "e": edges("DEFINES_BINDING"),
    },
)

CALLS = View(
    "calls",
    "One row per caller and callee: all calls of a function, or of a module's own code, put together.",
    (
        REPO_ID,
        *_end("caller", "who calls"),
        *_end("callee", "what is called"),
        Column("path", "string", "File of the first call, below the repository."),
        *FACT[1:],
        EXTERNAL,
        Column("edge_id", "string", "Edge of the graph.", nullable=False),
    ),
    """
        SELECT e.repo_id, s.node_id AS caller_id, coalesce(s.qualname, s.name) AS caller,
            s.node_kind AS caller_kind, t.node_id AS callee_id, coalesce(t.qualname, t.name) AS callee,
            t.node_kind AS callee_kind, e.path, e.line, e.confidence, e.resolution_method AS method,
            t.node_kind = 'QUALIFIED_NAME' AS external, e.edge_id
        FROM e
        JOIN s ON s.node_id = e.src_node_id
        JOIN t ON t.node_id = e.dst_node_id
    """,
    {
        "e": edges("CALL_GRAPH"),
        "s": nodes("FUNCTION", "MODULE"),
        "t": nodes("FUNCTION", "QUALIFIED_NAME"),
    },
)

CALL_SITES = View(
    "call_sites",
    "One row per place that calls and what it may run there: alternatives share a group.",
    (
        REPO_ID,
        Column("site_id", "string", "Node of the call.", nullable=False),
        Column("written", "string", "What is called, as it is written; null if that is no dotted name."),
        RELATION,
        *_end("callee", "what is called"),
        Column("role", "string", "Null for a plain call, else how it runs: init, callback, decorator, ..."),
        *FACT,
        Column("group_id", "string", "Shared by alternatives; null if there is one."),
    ),
    """
        SELECT e.repo_id, e.src_node_id AS site_id, s.name AS written, e.edge_kind AS relation,
            t.node_id AS callee_id, coalesce(t.qualname, t.name) AS callee, t.node_kind AS callee_kind,
            e.role, e.path, e.line, e.confidence, e.resolution_method AS method,
            e.ambiguity_group_id AS group_id
        FROM e
        LEFT JOIN s ON s.node_id = e.src_node_id
        JOIN t ON t.node_id = e.dst_node_id
    """,
    {
        "e": edges("CALLS", "CALLS_NAME", "INSTANTIATES"),
        "s": nodes("CALLSITE", "DECORATOR"),
        "t": nodes("FUNCTION", "CLASS", "QUALIFIED_NAME"),
    },
)

REFERENCES = View(
    "references",
    "One row per place that means a symbol, and symbol. A use of a parameter is there twice: REFERS_TO has"
    " the parameter, READS the variable of that name.",
    (
        REPO_ID,
        Column("symbol_id", "string", "Node of what is meant.", nullable=False),
        Column("symbol", "string", "Qualified name of what is meant."),
        Column("symbol_kind", "string", "Kind of what is meant.", nullable=False),
        RELATION,
        Column("usage", "string", "What is done with it: load, store, del; of an import its form."),
        *FACT,
    ),
    """
        SELECT e.repo_id, t.node_id AS symbol_id, coalesce(t.qualname, t.name) AS symbol,
            t.node_kind AS symbol_kind, e.edge_kind AS relation, s.subkind AS usage, e.path, e.line,
            e.confidence, e.resolution_method AS method
        FROM e
        JOIN s ON s.node_id = e.src_node_id
        JOIN t ON t.node_id = e.dst_node_id
    """,
    {
        "e": edges("REFERS_TO", "READS", "WRITES", "DELETES", "IMPORTS_NAME"),
        "s": nodes("NAME_REF", "ATTRIBUTE_REF", "IMPORT_ALIAS"),
        "t": nodes("FUNCTION", "CLASS", "PARAMETER", "BINDING", "MODULE", "PACKAGE", *OUTSIDE),
    },
)

IMPORTS = View(
    "imports",
    "One row per imported name and what it leads to: the module (IMPORTS_MODULE), and what the name means"
    " there (IMPORTS_NAME), through any number of re-exports.",
    (
        REPO_ID,
        Column("importer", "string", "Qualified name of the module that imports."),
        Column("name", "string", "Name that becomes bound; `*` for a star."),
        Column("written", "string", "What is imported as written, with the dots of a relative import."),
        RELATION,
        *_end("target", "what is imported"),
        *FACT,
        EXTERNAL,
    ),
    """
        SELECT e.repo_id, m.qualname AS importer, s.name, s.qualname AS written, e.edge_kind AS relation,
            t.node_id AS target_id, coalesce(t.qualname, t.name) AS target, t.node_kind AS target_kind,
            e.path, e.line, e.confidence, e.resolution_method AS method,
            t.node_kind IN ('EXTERNAL_MODULE', 'QUALIFIED_NAME') AS external
        FROM e
        JOIN s ON s.node_id = e.src_node_id
        JOIN t ON t.node_id = e.dst_node_id
        LEFT JOIN m ON m.file_id = e.owner_file_id
    """,
    {
        "e": edges("IMPORTS_MODULE", "IMPORTS_NAME"),
        "s": nodes("IMPORT_ALIAS"),
        "t": nodes("FUNCTION", "CLASS", "BINDING", "MODULE", "PACKAGE", *OUTSIDE),
        "m": nodes("MODULE"),
    },
)

INHERITS = View(
    "inherits",
    "One row per class and base of it.",
    (
        REPO_ID,
        Column("class_id", "string", "Node of the class.", nullable=False),
        Column("class_name", "string", "Qualified name of the class."),
        *_end("base", "the base"),
        Column("position", "int", "Place among the bases, from 0."),
        *FACT,
        EXTERNAL,
    ),
    """
        SELECT e.repo_id, s.node_id AS class_id, coalesce(s.qualname, s.name) AS class_name,
            t.node_id AS base_id, coalesce(t.qualname, t.name) AS base, t.node_kind AS base_kind,
            e.ordinal AS position, e.path, e.line, e.confidence, e.resolution_method AS method,
            t.node_kind = 'QUALIFIED_NAME' AS external
        FROM e
        JOIN s ON s.node_id = e.src_node_id
        JOIN t ON t.node_id = e.dst_node_id
    """,
    {"e": edges("INHERITS"), "s": nodes("CLASS"), "t": nodes("CLASS", "QUALIFIED_NAME")},
)

FILES = View(
    "files",
    "One row per file that was read, or that should have been and could not.",
    (
        REPO_ID,
        Column("file_id", "string", "Node of the file.", nullable=False),
        Column("path", "string", "Where it is, below the repository."),
        Column("state", "string", "module, stub or unread."),
        Column("module", "string", "Qualified name of the module it is."),
        Column("size_bytes", "bigint", "Size of its raw bytes."),
        Column("sha256", "string", "Digest of its raw bytes."),
        Column("encoding", "string", "Encoding by BOM and PEP 263."),
        Column(
            "failures", "bigint", "How often an extractor failed on it: `errors` has them.", nullable=False
        ),
    ),
    """
        SELECT n.repo_id, n.node_id AS file_id, n.path, n.subkind AS state, m.qualname AS module,
            k.size_bytes, k.sha256, k.encoding, coalesce(x.failures, 0) AS failures
        FROM n
        LEFT JOIN m ON m.file_id = n.node_id
        LEFT JOIN (
            SELECT entity_id,
                max(CASE WHEN prop_key = 'size_bytes' THEN value_int END) AS size_bytes,
                max(CASE WHEN prop_key = 'sha256' THEN value_string END) AS sha256,
                max(CASE WHEN prop_key = 'encoding' THEN value_string END) AS encoding
            FROM p GROUP BY entity_id
        ) k ON k.entity_id = n.node_id
        LEFT JOIN (
            SELECT r.repo_id, r.path, count(*) AS failures FROM r
            JOIN built b ON b.repo_id = r.repo_id AND b.run_id = r.run_id
            GROUP BY r.repo_id, r.path
        ) x ON x.repo_id = n.repo_id AND x.path = n.path
    """,
    {
        "n": nodes("FILE"),
        "m": nodes("MODULE"),
        "p": (
            "cpg_props",
            {
                "entity_kind": ("node",),
                "node_kind": ("FILE",),
                "prop_key": ("size_bytes", "sha256", "encoding"),
            },
        ),
        "r": ("extract_error_artifacts", {}),
    },
    {"built": BUILT},
)

ERRORS = View(
    "errors",
    "One row per failure of an extractor on a file, of the run that has read each repository.",
    (
        REPO_ID,
        Column("path", "string", "What was read.", nullable=False),
        Column("line", "int", "Line it points at, counted from 1."),
        Column("extractor", "string", "Table whose extractor failed, or its witness.", nullable=False),
        Column("error_type", "string", "Class or reason, such as SyntaxError or too_large.", nullable=False),
        Column("message", "string", "What happened.", nullable=False),
    ),
    """
        SELECT r.repo_id, r.path, r.line, r.extractor_name AS extractor, r.error_type, r.message
        FROM r
        JOIN built b ON b.repo_id = r.repo_id AND b.run_id = r.run_id
    """,
    {"r": ("extract_error_artifacts", {})},
    {"built": BUILT},
)

# An event tells its variable by EVENT_OF; an argument that is a plain name has the span of that name.
FLOWS = View(
    "flows",
    "One row per step of a value: from where a variable is set to where it is used (REACHES), and from an"
    " argument to the parameter that gets it (PASSES_TO).",
    (
        REPO_ID,
        RELATION,
        Column("source_id", "string", "Node of where the value comes from.", nullable=False),
        Column(
            "source", "string", "Qualified name of the variable; null for an argument that is no plain name."
        ),
        Column("source_kind", "string", "Kind of that node: DEF_EVENT or ARGUMENT.", nullable=False),
        Column("source_line", "int", "Line of that node."),
        Column("target_id", "string", "Node of where the value goes.", nullable=False),
        Column("target", "string", "Qualified name of the variable or parameter."),
        Column("target_kind", "string", "Kind of that node: USE_EVENT or PARAMETER.", nullable=False),
        *FACT,
    ),
    """
        SELECT e.repo_id, e.edge_kind AS relation, s.node_id AS source_id,
            coalesce(sb.qualname, ab.qualname, CASE WHEN s.node_kind = 'DEF_EVENT' THEN s.name END) AS source,
            s.node_kind AS source_kind, s.line AS source_line, t.node_id AS target_id,
            coalesce(t.qualname, tb.qualname, t.name) AS target, t.node_kind AS target_kind,
            e.path, e.line, e.confidence, e.resolution_method AS method
        FROM e
        JOIN s ON s.node_id = e.src_node_id
        JOIN t ON t.node_id = e.dst_node_id
        LEFT JOIN v sv ON sv.src_node_id = s.node_id
        LEFT JOIN b sb ON sb.node_id = sv.dst_node_id
        LEFT JOIN v tv ON tv.src_node_id = t.node_id
        LEFT JOIN b tb ON tb.node_id = tv.dst_node_id
        LEFT JOIN a ON s.node_kind = 'ARGUMENT' AND a.file_id = s.file_id AND a.bstart = s.bstart
            AND a.bend = s.bend
        LEFT JOIN r ON r.src_node_id = a.node_id
        LEFT JOIN b ab ON ab.node_id = r.dst_node_id
    """,
    {
        "e": edges("REACHES", "PASSES_TO"),
        "s": nodes("DEF_EVENT", "ARGUMENT"),
        "t": nodes("USE_EVENT", "PARAMETER"),
        "v": edges("EVENT_OF"),
        "b": nodes("BINDING"),
        "a": nodes("NAME_REF"),
        "r": edges("READS"),
    },
)

DIAGNOSTICS = View(
    "diagnostics",
    "One row per complaint of a witness about a source, or disagreement between witnesses.",
    (
        REPO_ID,
        PATH,
        LINE,
        Column("witness", "string", "Who complains."),
        Column("code", "string", "Code of the complaint."),
        Column("severity", "string", "error, warning, info or hint."),
        Column("message", "string", "The complaint in words."),
        Column("diagnostic_id", "string", "Node of the graph.", nullable=False),
    ),
    """
        SELECT n.repo_id, n.path, n.line, n.subkind AS witness, n.name AS code, k.severity, k.message,
            n.node_id AS diagnostic_id
        FROM n
        LEFT JOIN (
            SELECT entity_id,
                max(CASE WHEN prop_key = 'severity' THEN value_string END) AS severity,
                max(CASE WHEN prop_key = 'message' THEN value_string END) AS message
            FROM p GROUP BY entity_id
        ) k ON k.entity_id = n.node_id
    """,
    {
        "n": nodes("DIAGNOSTIC"),
        "p": (
            "cpg_props",
            {"entity_kind": ("node",), "node_kind": ("DIAGNOSTIC",), "prop_key": ("severity", "message")},
        ),
    },
)

REPOSITORY = (
    REPO_ID,
    Column("run_id", "string", "Run that has published its rows.", nullable=False),
    Column("git_commit", "string", "Commit it was built from, if it is known."),
    Column("source", "string", "Where it was built from."),
    Column("files", "bigint", "Files that were read."),
    Column("nodes", "bigint", "Its nodes; null if it was built without a graph."),
    Column("edges", "bigint", "Its edges; null if it was built without a graph."),
)
REPOSITORIES = View(
    "repositories",
    "One row per repository of the lake.",
    REPOSITORY,
    """
        SELECT h.repo_id, h.run_id, h.git_commit, h.source, h.files, h.nodes, h.edges
        FROM built_repositories h
    """,
    holds={"built_repositories": REPOSITORY},
)


def _whole(name: str, table: Table) -> View:
    """A table as it is."""
    sql = "SELECT * FROM w"
    doc = f"{table.doc} The table `{table.name}` as it is."
    return View(name, doc, table.columns, sql, {"w": (table.name, {})})


VIEWS: tuple[View, ...] = (
    SYMBOLS,
    CALLS,
    CALL_SITES,
    REFERENCES,
    IMPORTS,
    INHERITS,
    FLOWS,
    FILES,
    ERRORS,
    DIAGNOSTICS,
    REPOSITORIES,
    _whole("nodes", CPG_NODES),
    _whole("edges", CPG_EDGES),
    _whole("properties", CPG_PROPS),
)


# What runs have done, of all of them: rows of the newest version, whichever run is published.
OBSERVED: tuple[View, ...] = tuple(_whole(table.name, table) for table in OBSERVE_TABLES)


def view(name: str) -> View:
    """The view of that name, or an error that lists what exists."""
    for each in (*VIEWS, *OBSERVED):
        if each.name == name:
            return each
    raise UnknownName("view", name, (each.name for each in (*VIEWS, *OBSERVED)))
