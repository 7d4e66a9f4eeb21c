"""The kinds of edges, one literal each, by family; symbols, types and flow are in `edge_kinds_more`.

An edge's id is `stable_id("edge", kind, src, dst, bstart, bend, role, ordinal)`: two arguments that are
passed to one parameter, or a type that has another twice among its arguments, are two edges.

Tests: `tests/test_kinds.py`.
"""

from __future__ import annotations

from codeanatomy.catalog.edge_kinds_more import EVIDENCE, FLOW, SCIP, TYPE
from codeanatomy.catalog.kind_spec import FULL, EdgeKind, Ends, Facts, Prop

DEFINED = ("CLASS", "FUNCTION")
CALLERS = ("CALLSITE", "DECORATOR", "AST_NODE")
REFERENCES = ("NAME_REF", "ATTRIBUTE_REF")
MEANT = (
    "FUNCTION",
    "CLASS",
    "PARAMETER",
    "BINDING",
    "MODULE",
    "PACKAGE",
    "EXTERNAL_MODULE",
    "QUALIFIED_NAME",
)
RELATIONS = ("relations_v1",)
CUT = Prop("cut", "string", "Why further candidates are missing; absent if none are.")


def _related(
    name: str,
    family: str,
    doc: str,
    example: str,
    *ends: Ends,
    role: str = "",
    ordinal: str = "",
    props: tuple[Prop, ...] = (),
) -> EdgeKind:
    """A kind whose edges are the resolved relations of that name."""
    facts = Facts(f"relations.{name}")
    return EdgeKind(
        name, family, doc, example, RELATIONS, ends, facts, role=role, ordinal=ordinal, props=props
    )


CONTAINMENT = (
    EdgeKind(
        "CONTAINS",
        "containment",
        "What is inside of what: packages and files of a repository, modules of a package, definitions.",
        "class A:\n    def f(self): ...   # module contains A, A contains f",
        ("repo_files_v1", "ast_files_v1", "libcst_files_v1", "relations_v1"),
        (
            Ends(("REPOSITORY",), ("FILE", "PACKAGE", "MODULE")),
            Ends(("PACKAGE",), ("PACKAGE", "MODULE")),
            Ends(("MODULE", "CLASS", "FUNCTION"), (*DEFINED, "TYPE_ALIAS")),
        ),
        Facts("contained"),
        "syntax",
        "containment",
        per_dst="one",
        owner="either",
    ),
    _related(
        "DECLARES_MODULE",
        "containment",
        "A file is a module.",
        "# pkg/mod.py -> pkg.mod",
        Ends(("FILE",), ("MODULE",)),
    ),
    EdgeKind(
        "AST_PARENT_OF",
        "containment",
        "A syntax node and one below it.",
        "x = 1   # Assign -> Name as targets 0, Assign -> Constant as value",
        ("ast_files_v1",),
        (Ends(("AST_NODE",), ("AST_NODE",)),),
        Facts("ast", {"src_id": "parent_id", "dst_id": "node_id", "role": "slot", "ordinal": "idx"}),
        "ast",
        "syntax",
        per_dst="at most one",
        role="field of the parent that holds it",
        ordinal="place in that field if it is a list",
    ),
    EdgeKind(
        "HAS_PARAMETER",
        "containment",
        "A function and a parameter of it.",
        "def f(x, y): ...",
        ("libcst_files_v1", "ast_files_v1"),
        (Ends(("FUNCTION",), ("PARAMETER",)),),
        Facts("parameters", {"src_id": "owner_id", "dst_id": "node_id", "ordinal": "index", "role": "kind"}),
        "libcst",
        "syntax",
        per_dst="one",
        role="form of the parameter",
        ordinal="place among the parameters",
    ),
    EdgeKind(
        "HAS_ARGUMENT",
        "containment",
        "A call and an argument of it.",
        "f(1, key=2)",
        ("libcst_files_v1", "ast_files_v1"),
        (Ends(("CALLSITE",), ("ARGUMENT",)),),
        Facts("arguments", {"src_id": "call_id", "dst_id": "node_id", "ordinal": "index", "role": "name"}),
        "libcst",
        "syntax",
        per_dst="one",
        role="the keyword",
        ordinal="place in the call",
    ),
    EdgeKind(
        "HAS_DECORATOR",
        "containment",
        "A definition and a decorator of it.",
        "@cache\ndef f(): ...",
        ("libcst_files_v1", "ast_files_v1"),
        (Ends(DEFINED, ("DECORATOR",)),),
        Facts("decorators", {"src_id": "owner_id", "dst_id": "node_id", "ordinal": "index"}),
        "libcst",
        "syntax",
        per_dst="one",
        ordinal="place in the source; the outermost is 0",
    ),
    EdgeKind(
        "HAS_DOCSTRING",
        "containment",
        "A module or definition and its docstring.",
        'def f():\n    """What f does."""',
        ("libcst_files_v1", "ast_files_v1"),
        (Ends(("MODULE", "CLASS", "FUNCTION"), ("DOCSTRING",)),),
        Facts("docstrings", {"src_id": "owner_id", "dst_id": "node_id"}),
        "libcst",
        "syntax",
        per_src="at most one",
        per_dst="one",
    ),
    EdgeKind(
        "HAS_COMMENT",
        "containment",
        "A file and a comment in it.",
        "x = 1  # why",
        ("libcst_files_v1",),
        (Ends(("FILE",), ("COMMENT",)),),
        Facts("comments", {"src_id": "file_id", "dst_id": "node_id"}),
        "libcst",
        "syntax",
        per_dst="one",
        profiles=FULL,
    ),
    EdgeKind(
        "SYNTAX_OF",
        "containment",
        "Something in the source and the syntax node that spells it.",
        "f(x)   # the call site and the node Call",
        ("ast_files_v1", "libcst_files_v1"),
        (
            Ends(
                (
                    "MODULE",
                    "CLASS",
                    "FUNCTION",
                    "PARAMETER",
                    "IMPORT_ALIAS",
                    "DECORATOR",
                    "DOCSTRING",
                    "TYPE_ALIAS",
                    "TYPE_PARAM",
                    "NAME_REF",
                    "ATTRIBUTE_REF",
                    "CALLSITE",
                    "ARGUMENT",
                    "LITERAL",
                    "TYPE_EXPR",
                ),
                ("AST_NODE",),
            ),
        ),
        Facts("spelled"),
        "ast",
        "same_place",
        per_src="at most one",
    ),
)

SCOPE = (
    _related(
        "OWNS_SCOPE",
        "scope",
        "What makes a scope.",
        "def f(): ...   # f -> scope of f",
        Ends(("MODULE", "CLASS", "FUNCTION", "AST_NODE"), ("SCOPE",)),
        role="module, class, function, lambda, comprehension, ...",
    ),
    EdgeKind(
        "SCOPE_PARENT",
        "scope",
        "A scope and the one around it.",
        "def f():\n    x = lambda: 0   # lambda -> f",
        ("symtable_files_v1", "relations_v1"),
        (Ends(("SCOPE",), ("SCOPE",)),),
        Facts("scopes", {"src_id": "node_id", "dst_id": "parent_id", "role": "subkind"}),
        "symtable",
        "scope",
        per_src="at most one",
        role="type of the inner scope",
    ),
    EdgeKind(
        "SCOPE_BINDS",
        "scope",
        "A scope and a name of it.",
        "x = 1   # module -> x",
        ("symtable_files_v1", "relations_v1"),
        (Ends(("SCOPE",), ("BINDING",)),),
        Facts("bindings", {"src_id": "scope_id", "dst_id": "node_id", "role": "name"}),
        "symtable",
        "scope",
        per_dst="one",
        role="the name",
    ),
    _related(
        "BINDING_RESOLVES_TO",
        "scope",
        "A name that a scope has from another scope of the file.",
        "def f():\n    global x   # x of f -> x of the module",
        Ends(("BINDING",), ("BINDING",)),
        role="global, nonlocal or free",
    ),
    _related(
        "DEFINES_BINDING",
        "scope",
        "A place that gives a name its value.",
        "def f(a): b = a; self.c = b",
        Ends(
            (
                "NAME_REF",
                "ATTRIBUTE_REF",
                "CLASS",
                "FUNCTION",
                "PARAMETER",
                "IMPORT_ALIAS",
                "TYPE_PARAM",
            ),
            ("BINDING",),
        ),
    ),
    _related(
        "READS",
        "scope",
        "A name and the binding it reads, by the compiler's symbol tables.",
        "print(x)",
        Ends(("NAME_REF",), ("BINDING",)),
        role="how the compiler gets at it: fast, deref, global or name",
    ),
    _related(
        "WRITES",
        "scope",
        "A name and the binding it writes.",
        "x = 1",
        Ends(("NAME_REF",), ("BINDING",)),
        role="how the compiler gets at it: fast, deref, global or name",
    ),
    _related(
        "DELETES",
        "scope",
        "A name and the binding it deletes.",
        "del x",
        Ends(("NAME_REF",), ("BINDING",)),
        role="how the compiler gets at it: fast, deref, global or name",
    ),
    EdgeKind(
        "TYPE_PARAM_OF",
        "scope",
        "A type parameter and what it is a parameter of; variables that are imported are not followed.",
        "class Box(Generic[T]): ...",
        ("ast_files_v1", "libcst_files_v1"),
        (Ends(("TYPE_PARAM",), ("CLASS", "FUNCTION", "TYPE_ALIAS")),),
        Facts("type_param_uses"),
        "ast",
        "type_parameter",
        ordinal="place among the type parameters",
    ),
)

IMPORT = (
    _related(
        "IMPORTS_MODULE",
        "import",
        "An import and the module it names.",
        "from pkg.mod import f   # -> pkg.mod",
        Ends(("IMPORT_ALIAS",), ("MODULE", "PACKAGE", "EXTERNAL_MODULE")),
        role="python-stdlib, if it is of the standard library",
    ),
    _related(
        "IMPORTS_NAME",
        "import",
        "An import and what the imported name means, through any number of re-exports.",
        "from pkg.mod import f   # -> function f",
        Ends(
            ("IMPORT_ALIAS",),
            MEANT,
        ),
    ),
    _related(
        "RE_EXPORTS",
        "import",
        "A module and what it imports for others.",
        "# pkg/__init__.py\nfrom .mod import f   # pkg -> function f",
        Ends(("MODULE",), ("FUNCTION", "CLASS", "BINDING", "MODULE")),
        role="the name it has there",
    ),
)

RESOLUTION = (
    _related(
        "REFERS_TO",
        "resolution",
        "A name or attribute and what it means.",
        "a.run()   # run -> function A.run",
        Ends(REFERENCES, MEANT),
    ),
    _related(
        "CALLS",
        "resolution",
        "A call and a function that it may run; also calls that are written as operators, loops, `with`.",
        "f(x)   # -> function f",
        Ends(CALLERS, ("FUNCTION",)),
        role="null for a plain call, else how it runs: init, callback, decorator, attribute, ...",
        props=(CUT,),
    ),
    _related(
        "CALLS_NAME",
        "resolution",
        "A call that leaves the repository.",
        "len(x)   # -> builtins.len",
        Ends(CALLERS, ("QUALIFIED_NAME",)),
        role="as of CALLS",
        props=(CUT,),
    ),
    _related(
        "INSTANTIATES",
        "resolution",
        "A call and the class of which it makes an instance.",
        "A()   # -> class A",
        Ends(CALLERS, ("CLASS",)),
        role="as of CALLS",
        props=(CUT,),
    ),
    _related(
        "CALL_GRAPH",
        "resolution",
        "Who calls whom: all calls of a function, or of a module's own code, put together.",
        "def f(): g()   # f -> g",
        Ends(("FUNCTION", "MODULE"), ("FUNCTION", "QUALIFIED_NAME")),
    ),
    _related(
        "PASSES_TO",
        "resolution",
        "An argument and the parameter that gets its value.",
        "def f(x): ...\nf(1)   # 1 -> x",
        Ends(("ARGUMENT",), ("PARAMETER",)),
        role="name of the parameter",
        ordinal="place of the argument",
    ),
    _related(
        "INHERITS",
        "resolution",
        "A class and a base of it.",
        "class A(Base): ...",
        Ends(("CLASS",), ("CLASS", "QUALIFIED_NAME")),
        ordinal="place among the bases",
    ),
    _related(
        "OVERRIDES",
        "resolution",
        "A method and the one of a base that it replaces, by MRO.",
        "class A(Base):\n    def run(self): ...   # -> Base.run",
        Ends(("FUNCTION",), ("FUNCTION",)),
    ),
    _related(
        "DECORATES",
        "resolution",
        "A decorator and what it decorates.",
        "@cache\ndef f(): ...",
        Ends(("DECORATOR",), DEFINED),
    ),
)

EDGES = (*CONTAINMENT, *SCOPE, *IMPORT, *RESOLUTION, *SCIP, *TYPE, *FLOW, *EVIDENCE)
