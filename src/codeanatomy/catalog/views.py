"""Declare the views that queries read: SELECT statements over slices of the graph tables.

    view("calls").sql       # "SELECT e.repo_id, ... FROM e JOIN s ON ..."
    view("calls").reads     # {"e": ("cpg_edges", {"edge_kind": ("CALL_GRAPH",)}), "s": ...}

A relation name in the statement stands for a slice of a table (`reads`), so that only the files of those
kinds are read, or for rows that the reader of a snapshot supplies from its manifest (`supplied`). DuckDB and
Spark run the statement unchanged.

Every row has its repository. Where a row is about a source location, `path` and `line` are that location, and
`confidence` and `method` state how certain the row is and how it was resolved. `external` is true for what
the repository does not define itself: a builtin, the standard library, another package.

Tests: `tests/unit/catalog/test_views.py`.
"""

from __future__ import annotations

from msgspec import Struct

from codeanatomy.catalog.spec import Column, Table
from codeanatomy.catalog.tables.graph import CPG_EDGES, CPG_NODES, CPG_PROPS
from codeanatomy.catalog.tables.meta import RECORDS
from codeanatomy.errors import UnknownName

# Slice of a table that a relation name stands for: table name, and allowed values by column.
TableSlice = tuple[str, dict[str, tuple[str, ...]]]

EXTERNAL_KINDS = ("EXTERNAL_MODULE", "QUALIFIED_NAME")

REPO_ID = Column("repo_id", "string", "Repository.", nullable=False)
PATH = Column("path", "string", "Source file of the fact, relative to the repository's root.")
LINE = Column("line", "int", "Line in that file, counted from 1.")
CONFIDENCE = Column("confidence", "double", "Confidence in the row: 1, 0.9, 0.7, 0.5 or 0.3.", nullable=False)
METHOD = Column("method", "string", "Method of resolution; null where nothing had to be resolved.")
EXTERNAL = Column(
    "external", "boolean", "Whether the target is defined outside of the repository.", nullable=False
)
RELATION = Column("relation", "string", "Edge kind the row comes from.", nullable=False)
SOURCE_COLUMNS = (PATH, LINE, CONFIDENCE, METHOD)

# Line of a variable's first definition in a file, over its DEFINES_BINDING edges `e`: the first assignment
# to its name, else the first assignment to an attribute of that name.
FIRST_LINE = (
    "coalesce(min(CASE WHEN left(e.src_node_id, 14) <> 'attribute_ref:' THEN e.line END), min(e.line))"
)


class View(Struct, frozen=True):
    """A named query over the graph, with its columns."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    # One SELECT statement that yields `columns` in order.
    sql: str
    # Table slices by relation name.
    reads: dict[str, TableSlice] = {}
    # Columns of the relations that the reader of a snapshot supplies.
    supplied: dict[str, tuple[Column, ...]] = {}

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def nodes(*kinds: str) -> TableSlice:
    """Slice `cpg_nodes` to these kinds."""
    return "cpg_nodes", {"node_kind": kinds}


def edges(*kinds: str) -> TableSlice:
    """Slice `cpg_edges` to these kinds."""
    return "cpg_edges", {"edge_kind": kinds}


def _end_columns(name: str, what: str, kind: str | None = None) -> tuple[Column, ...]:
    """Declare the id, name and kind columns of a node at one end of an edge."""
    return (
        Column(f"{kind or name}_id", "string", f"Node id of {what}.", nullable=False),
        Column(name, "string", f"Qualified name of {what}, or its short name if it has none."),
        Column(f"{kind or name}_kind", "string", f"Node kind of {what}.", nullable=False),
    )


# The published run of each repository; failures recorded by other runs are not about the published rows.
BUILD_COLUMNS = (REPO_ID, Column("run_id", "string", "Run that extracted its files.", nullable=False))

SYMBOLS = View(
    "symbols",
    "One row per named symbol: packages, modules, classes, functions, parameters, type aliases, variables of"
    " modules and classes (kind BINDING), and the external names that are used. Local variables of functions"
    " and imported names are left out, and so are the bindings of class and function names.",
    (
        REPO_ID,
        Column("symbol_id", "string", "Node id.", nullable=False),
        Column("kind", "string", "Node kind.", nullable=False),
        Column("subkind", "string", "Finer kind, such as method or async_function."),
        Column("name", "string", "Last part of the qualified name."),
        Column("symbol", "string", "Qualified name, or the short name if there is none."),
        Column("path", "string", "File that defines it; for a package, its folder."),
        Column(
            "line", "int", "First line, counted from 1; for a variable, the line of its first assignment."
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
        "n": nodes("CLASS", "FUNCTION", "TYPE_ALIAS", "MODULE", "PACKAGE", "PARAMETER", *EXTERNAL_KINDS),
        "v": nodes("BINDING"),
        "e": edges("DEFINES_BINDING"),
    },
)

CALLS = View(
    "calls",
    "One row per caller and callee: all calls from one function, or from module-level code, to one callee.",
    (
        REPO_ID,
        *_end_columns("caller", "the caller"),
        *_end_columns("callee", "the callee"),
        Column("path", "string", "File of the first call, relative to the repository's root."),
        *SOURCE_COLUMNS[1:],
        EXTERNAL,
        Column("edge_id", "string", "Edge id.", nullable=False),
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
    "One row per call site and possible callee; alternative callees of a call site share a group.",
    (
        REPO_ID,
        Column("site_id", "string", "Node id of the call site.", nullable=False),
        Column("written", "string", "Called expression as written; null if it is not a dotted name."),
        RELATION,
        *_end_columns("callee", "the callee"),
        Column(
            "role",
            "string",
            "How the callee is invoked: init, callback, decorator, ...; null for a plain call.",
        ),
        *SOURCE_COLUMNS,
        Column("group_id", "string", "Ambiguity group of alternative callees; null if there is only one."),
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
    "One row per reference and symbol it refers to. A use of a parameter has two rows: REFERS_TO leads to the"
    " parameter, READS to its binding.",
    (
        REPO_ID,
        Column("symbol_id", "string", "Node id of the referenced symbol.", nullable=False),
        Column("symbol", "string", "Qualified name of the referenced symbol."),
        Column("symbol_kind", "string", "Node kind of the referenced symbol.", nullable=False),
        RELATION,
        Column(
            "usage",
            "string",
            "Access: load, store, del, keyword; of an import: import, from, star; null in quotes.",
        ),
        *SOURCE_COLUMNS,
    ),
    """
        SELECT e.repo_id, t.node_id AS symbol_id, coalesce(t.qualname, t.name) AS symbol,
            t.node_kind AS symbol_kind, e.edge_kind AS relation, s.subkind AS usage, e.path, e.line,
            e.confidence, e.resolution_method AS method
        FROM e
        LEFT JOIN s ON s.node_id = e.src_node_id
        JOIN t ON t.node_id = e.dst_node_id
    """,
    {
        "e": edges("REFERS_TO", "READS", "WRITES", "DELETES", "IMPORTS_NAME"),
        "s": nodes("NAME_REF", "ATTRIBUTE_REF", "IMPORT_ALIAS", "ARGUMENT"),
        "t": nodes("FUNCTION", "CLASS", "PARAMETER", "BINDING", "MODULE", "PACKAGE", *EXTERNAL_KINDS),
    },
)

IMPORTS = View(
    "imports",
    "One row per imported name and target: the module it is imported from (IMPORTS_MODULE), and the"
    " definition it resolves to (IMPORTS_NAME), through any number of re-exports.",
    (
        REPO_ID,
        Column("importer", "string", "Qualified name of the importing module."),
        Column("name", "string", "Name that the import binds; `*` for a star import."),
        Column("written", "string", "Imported name as written, with the leading dots of a relative import."),
        RELATION,
        *_end_columns("target", "what is imported"),
        *SOURCE_COLUMNS,
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
        "t": nodes("FUNCTION", "CLASS", "BINDING", "MODULE", "PACKAGE", *EXTERNAL_KINDS),
        "m": nodes("MODULE"),
    },
)

INHERITS = View(
    "inherits",
    "One row per class and base class.",
    (
        REPO_ID,
        Column("class_id", "string", "Node id of the class.", nullable=False),
        Column("class_name", "string", "Qualified name of the class."),
        *_end_columns("base", "the base class"),
        Column("position", "int", "Index among the base classes, from 0."),
        *SOURCE_COLUMNS,
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

ENTRY_POINTS = View(
    "entry_points",
    "One row per definition that a framework or Python itself calls, and what registers it: routes, commands,"
    " tasks, tests, hooks, overrides, signatures.",
    (
        REPO_ID,
        Column("kind", "string", "http, command, task, test, ...: docs/ask.md lists them.", nullable=False),
        Column("framework", "string", "Framework of the rule that found it.", nullable=False),
        Column("name", "string", "Route, command or event; else the definition's name.", nullable=False),
        *_end_columns("symbol", "the definition"),
        Column("subkind", "string", "Finer kind of the definition, such as method."),
        Column("defined_path", "string", "File of the definition."),
        Column("defined_line", "int", "Line of the definition."),
        Column("evidence", "string", "Decorator, call, base or place it is known from.", nullable=False),
        *SOURCE_COLUMNS[:3],
        Column("method", "string", "decorator, call, base, name, block or text."),
        Column("edge_id", "string", "Edge id.", nullable=False),
    ),
    """
        SELECT e.repo_id, e.role AS kind, e.rule_name AS framework, k.entry_name AS name,
            t.node_id AS symbol_id, t.qualname AS symbol, t.node_kind AS symbol_kind, t.subkind,
            t.path AS defined_path, t.line AS defined_line, k.evidence, e.path, e.line, e.confidence,
            e.resolution_method AS method, e.edge_id
        FROM e
        JOIN t ON t.node_id = e.dst_node_id
        JOIN (
            SELECT entity_id,
                max(CASE WHEN prop_key = 'entry_name' THEN value_string END) AS entry_name,
                max(CASE WHEN prop_key = 'evidence' THEN value_string END) AS evidence
            FROM p GROUP BY entity_id
        ) k ON k.entity_id = e.edge_id
    """,
    {
        "e": edges("ENTRY_POINT"),
        "t": nodes("FUNCTION", "CLASS"),
        "p": ("cpg_props", {"entity_kind": ("edge",), "prop_key": ("entry_name", "evidence")}),
    },
)

FILES = View(
    "files",
    "One row per source file, including files that could not be read.",
    (
        REPO_ID,
        Column("file_id", "string", "Node id of the file.", nullable=False),
        Column("path", "string", "Path relative to the repository's root."),
        Column("state", "string", "module, stub or unread."),
        Column("module", "string", "Qualified name of its module."),
        Column("size_bytes", "bigint", "Size of the raw bytes."),
        Column("sha256", "string", "SHA-256 of the raw bytes."),
        Column("encoding", "string", "Encoding, by BOM and PEP 263."),
        Column(
            "failures",
            "bigint",
            "Number of extractor failures; the view `errors` lists them.",
            nullable=False,
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
    {"built": BUILD_COLUMNS},
)

ERRORS = View(
    "errors",
    "One row per failure of an extractor on a file, in the published run of each repository.",
    (
        REPO_ID,
        Column("path", "string", "File or index that was being read.", nullable=False),
        Column("line", "int", "Line of the failure, counted from 1."),
        Column("extractor", "string", "Table of the extractor that failed, or its name.", nullable=False),
        Column(
            "error_type",
            "string",
            "Exception class or reason, such as SyntaxError or too_large.",
            nullable=False,
        ),
        Column("message", "string", "Error message.", nullable=False),
    ),
    """
        SELECT r.repo_id, r.path, r.line, r.extractor_name AS extractor, r.error_type, r.message
        FROM r
        JOIN built b ON b.repo_id = r.repo_id AND b.run_id = r.run_id
    """,
    {"r": ("extract_error_artifacts", {})},
    {"built": BUILD_COLUMNS},
)

# EVENT_OF leads from an event to its variable; an argument that is a plain name has the span of that name.
FLOWS = View(
    "flows",
    "One row per step of data flow: from a definition of a variable to a use (REACHES), and from an argument"
    " to the parameter or field that receives it (PASSES_TO).",
    (
        REPO_ID,
        RELATION,
        Column("source_id", "string", "Node id of the definition or argument.", nullable=False),
        Column(
            "source",
            "string",
            "Qualified name of the variable; null for an argument that is not a plain name.",
        ),
        Column("source_kind", "string", "Kind of that node: DEF_EVENT or ARGUMENT.", nullable=False),
        Column("source_line", "int", "Line of that node."),
        Column("target_id", "string", "Node id of the use, parameter or field.", nullable=False),
        Column("target", "string", "Qualified name of the variable, parameter or field."),
        Column(
            "target_kind", "string", "Kind of that node: USE_EVENT, PARAMETER or BINDING.", nullable=False
        ),
        *SOURCE_COLUMNS,
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
        "t": nodes("USE_EVENT", "PARAMETER", "BINDING"),
        "v": edges("EVENT_OF"),
        "b": nodes("BINDING"),
        "a": nodes("NAME_REF"),
        "r": edges("READS"),
    },
)

DIAGNOSTICS = View(
    "diagnostics",
    "One row per diagnostic of a witness or of the value analysis, or disagreement between witnesses.",
    (
        REPO_ID,
        PATH,
        LINE,
        Column("witness", "string", "Witness that reported it."),
        Column("code", "string", "Code of the diagnostic."),
        Column("severity", "string", "error, warning, info or hint."),
        Column("message", "string", "Text of the diagnostic."),
        Column("diagnostic_id", "string", "Node id.", nullable=False),
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

REPOSITORY_COLUMNS = (
    REPO_ID,
    Column("run_id", "string", "Run that published its rows.", nullable=False),
    Column("git_commit", "string", "Git commit it was built from, if known."),
    Column("source", "string", "Folder or archive it was built from."),
    Column("files", "bigint", "Number of files read."),
    Column("nodes", "bigint", "Number of nodes; null if it was built without a graph."),
    Column("edges", "bigint", "Number of edges; null if it was built without a graph."),
)
REPOSITORIES = View(
    "repositories",
    "One row per repository in the lake.",
    REPOSITORY_COLUMNS,
    """
        SELECT h.repo_id, h.run_id, h.git_commit, h.source, h.files, h.nodes, h.edges
        FROM built_repositories h
    """,
    supplied={"built_repositories": REPOSITORY_COLUMNS},
)


def _table_view(name: str, table: Table) -> View:
    """Declare a view of all rows and columns of a table, with the derived ones."""
    sql = "SELECT * FROM w"
    doc = f"{table.doc} All rows of the table `{table.name}`."
    return View(name, doc, table.readable_columns, sql, {"w": (table.name, {})})


VIEWS: tuple[View, ...] = (
    SYMBOLS,
    CALLS,
    CALL_SITES,
    REFERENCES,
    IMPORTS,
    INHERITS,
    ENTRY_POINTS,
    FLOWS,
    FILES,
    ERRORS,
    DIAGNOSTICS,
    REPOSITORIES,
    _table_view("nodes", CPG_NODES),
    _table_view("edges", CPG_EDGES),
    _table_view("properties", CPG_PROPS),
)

# Views of what runs have recorded: rows of all runs, at the newest version of the table and not at a pin.
RECORD_VIEWS: tuple[View, ...] = tuple(_table_view(table.name, table) for table in RECORDS)


def view(name: str) -> View:
    """Return the view called `name`; raise UnknownName, which lists the known views."""
    for each in (*VIEWS, *RECORD_VIEWS):
        if each.name == name:
            return each
    raise UnknownName("view", name, (each.name for each in (*VIEWS, *RECORD_VIEWS)))
