r"""Extract CPython's syntax tree: every node with its span, and the definitions, calls and imports in it.

>>> from codeanatomy.catalog.settings import ExtractOptions
>>> from codeanatomy.sources.source_file import Source
>>> text = "é = f(1)\n"
>>> result = ast_files_v1(Source("a.py", text.encode(), text, "utf-8", False), ExtractOptions())
>>> nodes = result.cells["nodes"]
>>> for row in zip(*(nodes[field] for field in ("ast_id", "kind", "slot", "name", "bstart", "bend"))):
...     print(*row)
0 Module None None 0 10
1 Assign body None 0 9
2 Name targets é 0 2
3 Store ctx None None None
4 Call value None 5 9
5 Name func f 5 6
6 Load ctx None None None
7 Constant args None 7 8

The decoded text is parsed, so a cookie has no effect and columns count bytes of UTF-8, as our spans do.
`nodes` are those of `ast.walk(ast.parse(text))`, in preorder. Which fields of a node hold nodes, which an
identifier and which a constant is read from the grammar that CPython keeps in the docstring of each class
(`Name(identifier id, expr_context ctx)`), so the nodes of a newer Python need no change here.

- `name` is the node's first field of identifiers; several are joined: `global a, b` has the name `a, b`.
- `value` is the `repr` of a constant; of a FormattedValue, the letter after `!`.
- A qualname has a part for every definition whose *body* contains the node, `<lambda>` for a lambda. There is
  no `<locals>` and no part for a comprehension, and a `global` statement changes nothing.
- Fields that do not apply are null: parameters of a class, bases of a function.
- The module spans the whole file; nodes without a position (Load, Add, arguments, ...) have no span.
- Before Python 3.12 the pieces of an f-string have the span of the string, or of the literals up to their
  own. The expressions in it were parsed separately, and some positions are wrong (a bare `{a, b}`, a string
  over several lines): each is parsed again from the text under its span, and if the result differs, the spans
  of the expression are null and a problem points at the string.
- `# type: ignore` needs a second parse, which reads type comments too. If one of those is misplaced,
  `type_ignores` is null.

Tests: `tests/unit/extract/test_ast_files.py`.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Collection
from typing import Any, TypeAlias

from codeanatomy.catalog.settings import ExtractOptions
from codeanatomy.definitions import definitions_of
from codeanatomy.extract.evidence import ExtractorResult, Problem, problem_from
from codeanatomy.sources.source_file import Source

VERSION = f"ast, python {sys.version_info.major}.{sys.version_info.minor}, rules 3"

Columns: TypeAlias = dict[str, list[Any]]
# Nodes by ast_id.
NodesById: TypeAlias = dict[int, Any]
# Kind, fields that hold nodes (last first), field of the identifier, field of the constant, has a position,
# list it is collected in. A plain tuple: this is unpacked for every node.
Shape: TypeAlias = tuple[str, tuple[str, ...], str | None, str | None, bool, str | None]

# Exceptions of CPython for a file that is invalid or nested too deeply.
PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, SystemError)
FIELD = re.compile(r"(\w+)[*?]* (\w+)")
SCALARS = frozenset({"identifier", "constant", "string", "int"})
TYPE_IGNORE = re.compile(rb"#[ \t]*type:[ \t]*ignore")
FSTRINGS_ARE_PARSED_SEPARATELY = sys.version_info < (3, 12)

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Nodes that are collected in another list, too.
COLLECTED: dict[type[ast.AST], str] = {
    **dict.fromkeys((*FUNCTIONS, ast.ClassDef), "defs"),
    **dict.fromkeys((ast.Import, ast.ImportFrom), "imports"),
    ast.Call: "calls",
    ast.FormattedValue: "values",
}
# The order in which `_flatten` writes a row.
NODE_FIELDS = ("parent_ast_id", "slot", "idx", "kind", "name", "value", "bstart", "bend", "line")
SPAN_FIELDS = ("bstart", "bend", "line")
MISPLACED = "Python before 3.12 misplaces an expression in this f-string; its spans are left out"


def ast_files_v1(source: Source, options: ExtractOptions) -> ExtractorResult:
    """Extract the tree of a file; only a problem if CPython cannot parse it."""
    with warnings.catch_warnings():
        # The bytecode extractor records them.
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source.text)
        except PARSE_ERRORS as error:
            return ExtractorResult({}, (problem_from(source, "parse", error),))
        nodes, collected = _flatten(tree, source, options.max_value_chars)
        for i, value in collected["values"].items():
            nodes["value"][i] = chr(value.conversion) if value.conversion >= 0 else None
        problems = []
        if FSTRINGS_ARE_PARSED_SEPARATELY:
            problems = _drop_wrong_spans(source, nodes, collected["values"])
        cells = {
            "nodes": nodes,
            "defs": _defs(nodes, collected["defs"]),
            "definitions": definitions_of(nodes),
            "calls": _calls(nodes, collected["calls"]),
            "imports": _imports(nodes, collected["imports"]),
            "docstrings": _docstrings(source, {0: tree, **collected["defs"]}),
        }
        try:
            cells["type_ignores"] = _type_ignores(source)
        except PARSE_ERRORS as error:
            problems.append(problem_from(source, "type_comments", error, "info"))
    return ExtractorResult(cells, tuple(problems))


class _Shapes(dict[type[ast.AST], Shape]):
    """The shapes of node classes, each computed for the first node of its class."""

    def __missing__(self, cls: type[ast.AST]) -> Shape:
        fields = FIELD.findall(cls.__doc__ or "")
        if tuple(field for _, field in fields) != cls._fields:
            raise TypeError(f"the docstring of ast.{cls.__name__} does not list its fields: {cls.__doc__}")
        shape = self[cls] = (
            cls.__name__,
            tuple(field for kind, field in reversed(fields) if kind not in SCALARS),
            next((field for kind, field in fields if kind == "identifier"), None),
            next((field for kind, field in fields if kind == "constant"), None),
            "lineno" in cls._attributes,
            COLLECTED.get(cls),
        )
        return shape


_SHAPES = _Shapes()


# A call for each of some million nodes would cost more than the branches.
def _flatten(tree: ast.AST, source: Source, max_chars: int) -> tuple[Columns, dict[str, NodesById]]:  # noqa: C901, PLR0912
    """Return the columns of all nodes in preorder, and the nodes collected in each list.

    Rows are appended to one flat list that is sliced into columns at the end, which is cheaper than nine
    appends. A Name writes the row of its context along with its own.
    """
    cells: list[Any] = []
    collected: dict[str, NodesById] = {group: {} for group in COLLECTED.values()}
    stack: list[tuple[Any, int | None, str | None, int | None]] = [(tree, None, None, None)]
    pop, push, shapes = stack.pop, stack.append, _SHAPES
    # By line from 1; the entry of the next line is the end of a line.
    starts = [0, *source.line_starts, len(source.utf8)]
    ast_id = -1
    while stack:
        node, parent, slot, idx = pop()
        ast_id += 1
        kind, children, name_field, constant, has_position, group = shapes[type(node)]
        fields = node.__dict__
        if has_position:
            line, last = fields["lineno"], fields["end_lineno"]
            try:
                bstart, bend = starts[line] + fields["col_offset"], starts[last] + fields["end_col_offset"]
                if bstart > starts[line + 1] or bend > starts[last + 1]:
                    bstart = bend = line = None
            except IndexError:
                bstart = bend = line = None
            if kind == "Name":
                cells += (parent, slot, idx, kind, fields["id"], None, bstart, bend, line)
                cells += (ast_id, "ctx", None, type(fields["ctx"]).__name__, None, None, None, None, None)
                ast_id += 1
                continue
            name = fields[name_field] if name_field else None
            if type(name) is list:
                name = ", ".join(name) or None
            value = _constant_text(fields[constant], max_chars) if constant else None
            cells += (parent, slot, idx, kind, name, value, bstart, bend, line)
        else:
            cells += (parent, slot, idx, kind, None, None, None, None, None)
        if group:
            collected[group][ast_id] = node
        for field in children:
            child = fields[field]
            if type(child) is list:
                index = len(child)
                for item in reversed(child):
                    index -= 1
                    # The keys of `{**a}` and the defaults of keyword-only parameters have gaps.
                    if item is not None:
                        push((item, ast_id, field, index))
            elif child is not None:
                push((child, ast_id, field, None))
    columns: Columns = {"ast_id": list(range(ast_id + 1))}
    columns |= {field: cells[offset :: len(NODE_FIELDS)] for offset, field in enumerate(NODE_FIELDS)}
    columns["bstart"][0], columns["bend"][0], columns["line"][0] = 0, len(source.utf8), 1
    return columns, collected


def _constant_text(value: Any, max_chars: int) -> str:
    try:
        return repr(value)[:max_chars]
    except ValueError:
        # Python refuses to write very long integers in decimal; such a one is not decimal in the file either.
        return hex(value)[:max_chars]


def _spans(nodes: Columns, ids: Collection[int]) -> Columns:
    return {field: [nodes[field][i] for i in ids] for field in SPAN_FIELDS}


def _defs(nodes: Columns, defs: NodesById) -> Columns:
    params = [node.args if isinstance(node, FUNCTIONS) else None for node in defs.values()]
    return {
        "ast_id": list(defs),
        "kind": [nodes["kind"][i] for i in defs],
        "name": [nodes["name"][i] for i in defs],
        "qualname": _qualnames(nodes, defs),
        "posonly_count": [args and len(args.posonlyargs) for args in params],
        "arg_count": [args and len(args.args) for args in params],
        "kwonly_count": [args and len(args.kwonlyargs) for args in params],
        "has_vararg": [args and args.vararg is not None for args in params],
        "has_kwarg": [args and args.kwarg is not None for args in params],
        "decorator_count": [len(getattr(node, "decorator_list", ())) for node in defs.values()],
        "base_count": [len(node.bases) if isinstance(node, ast.ClassDef) else None for node in defs.values()],
        "type_param_count": [len(getattr(node, "type_params", ())) for node in defs.values()],
        **_spans(nodes, defs),
    }


def _qualnames(nodes: Columns, defs: NodesById) -> list[str]:
    """Return the qualname of each definition; a decorator, default, annotation or base is outside of one."""
    parents, slots, names = nodes["parent_ast_id"], nodes["slot"], nodes["name"]
    qualnames: dict[int, str] = {}
    for i in defs:
        child, parent = i, parents[i]
        while parent is not None and not (parent in qualnames and slots[child] == "body"):
            child, parent = parent, parents[parent]
        own = names[i] or "<lambda>"
        qualnames[i] = own if parent is None else f"{qualnames[parent]}.{own}"
    return list(qualnames.values())


def _calls(nodes: Columns, calls: NodesById) -> Columns:
    # The called expression is the first field of a call, so it has the next id.
    called = [i + 1 for i in calls]
    return {
        "ast_id": list(calls),
        "func_ast_id": called,
        "func_kind": [nodes["kind"][i] for i in called],
        "func_name": [nodes["name"][i] for i in called],
        "arg_count": [len(node.args) for node in calls.values()],
        "keyword_count": [len(node.keywords) for node in calls.values()],
        "starred_count": [[type(arg) for arg in node.args].count(ast.Starred) for node in calls.values()],
        "kw_star_count": [[keyword.arg for keyword in node.keywords].count(None) for node in calls.values()],
        **_spans(nodes, calls),
    }


def _imports(nodes: Columns, statements: NodesById) -> Columns:
    rows = [(i, node, k, alias) for i, node in statements.items() for k, alias in enumerate(node.names)]
    # An import has no other children than aliases, and these have none.
    ids = [i + 1 + k for i, _, k, _ in rows]
    return {
        "ast_id": ids,
        "kind": [nodes["kind"][i] for i, _, _, _ in rows],
        "module": [getattr(node, "module", None) for _, node, _, _ in rows],
        "name": [alias.name for _, _, _, alias in rows],
        "asname": [alias.asname for _, _, _, alias in rows],
        "alias_index": [k for _, _, k, _ in rows],
        "level": [getattr(node, "level", 0) for _, node, _, _ in rows],
        "stmt_bstart": [nodes["bstart"][i] for i, _, _, _ in rows],
        "stmt_bend": [nodes["bend"][i] for i, _, _, _ in rows],
        **_spans(nodes, ids),
    }


def _docstrings(source: Source, owners: NodesById) -> Columns:
    """Return the docstrings as `ast.get_docstring(clean=False)` does."""
    rows = [
        (i, node, node.body[0].value)
        for i, node in owners.items()
        # The body of a lambda is not a list.
        if isinstance(node.body, list)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
        and isinstance(node.body[0].value.value, str)
    ]
    return {
        "owner_ast_id": [i for i, _, _ in rows],
        "owner_kind": [type(node).__name__ for _, node, _ in rows],
        "owner_name": [getattr(node, "name", None) for _, node, _ in rows],
        "text": [literal.value for _, _, literal in rows],
        "bstart": [source.offset_at(literal.lineno, literal.col_offset) for _, _, literal in rows],
        "bend": [
            source.offset_at(literal.end_lineno or 0, literal.end_col_offset or 0) for _, _, literal in rows
        ],
        "line": [literal.lineno for _, _, literal in rows],
    }


def _type_ignores(source: Source) -> Columns:
    ignores: list[Any] = []
    if TYPE_IGNORE.search(source.utf8):
        ignores = ast.parse(source.text, type_comments=True).type_ignores
    return {"tag": [ignore.tag for ignore in ignores], "line": [ignore.lineno for ignore in ignores]}


def _drop_wrong_spans(source: Source, nodes: Columns, values: NodesById) -> list[Problem]:
    """Set the spans of expressions in f-strings to None if CPython's positions are wrong."""
    parents, bstarts, bends, lines = (nodes[field] for field in ("parent_ast_id", *SPAN_FIELDS))
    problems: dict[tuple[int, int], Problem] = {}
    for i, value in values.items():
        # The expression is the first field of a FormattedValue, so it has the next id.
        string, first = parents[i], i + 1
        outer = bstarts[string], bends[string]
        if None in outer:
            # The string itself is in an expression that was dropped.
            continue
        count = _count_wrong(source.utf8, value.value, outer, (bstarts[first], bends[first]))
        if not count:
            continue
        for dropped in range(first, first + count):
            bstarts[dropped] = bends[dropped] = lines[dropped] = None
        line = lines[string]
        col = outer[0] - source.line_starts[line - 1]
        problems[outer] = Problem("info", "position", "misplaced", MISPLACED, col, *outer, line)
    return list(problems.values())


def _count_wrong(utf8: bytes, expression: ast.expr, outer: Any, inner: Any) -> int:
    """Count the nodes of an expression, in preorder, that have wrong spans: none, the first or all."""
    if None not in inner and outer[0] <= inner[0] <= inner[1] <= outer[1]:
        text = utf8[slice(*inner)]
        # CPython replaces the braces by parentheses, and takes these for those of a bare `{a, b}`.
        braced = isinstance(expression, ast.Tuple | ast.GeneratorExp) and text.startswith(b"{")
        if _parses_to(expression, b"(" + text[1:-1] + b")" if braced else text):
            return int(braced)
    return sum(1 for _ in ast.walk(expression))


def _parses_to(expression: ast.expr, text: bytes) -> bool:
    """Return whether parsing the text gives the same expression with every node at the same position."""
    if isinstance(expression, ast.Name) and text == expression.id.encode():
        return True
    try:
        parsed = ast.parse(f"(\n{text.decode()}\n)", mode="eval").body
        if ast.dump(parsed) != ast.dump(expression):
            return False
    except PARSE_ERRORS:
        return False
    lines, col = expression.lineno - 2, expression.col_offset
    return all(
        (node.lineno, node.col_offset) == (other.lineno + lines, other.col_offset + col * (other.lineno == 2))
        and (node.end_lineno, node.end_col_offset)
        == (other.end_lineno + lines, other.end_col_offset + col * (other.end_lineno == 2))
        for node, other in zip(_nodes_with_position(expression), _nodes_with_position(parsed), strict=True)
    )


def _nodes_with_position(tree: ast.expr) -> list[Any]:
    return [node for node in ast.walk(tree) if hasattr(node, "lineno")]
