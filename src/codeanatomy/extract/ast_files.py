r"""CPython's syntax tree of a file: every node with its place, and the definitions, calls and imports in it.

>>> from codeanatomy.catalog.settings import ExtractOptions
>>> from codeanatomy.sources.source_file import Source
>>> text = "é = f(1)\n"
>>> said = ast_files_v1(Source("a.py", text.encode(), text, "utf-8", False), ExtractOptions())
>>> nodes = said.cells["nodes"]
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

The text is parsed as text, so a cookie means nothing any more and columns count bytes of UTF-8, as our spans
do. `nodes` are those of `ast.walk(ast.parse(text))`, in preorder. Which fields of a node hold nodes, which
an identifier and which a constant is read from the grammar that CPython keeps in the docstring of each class
(`Name(identifier id, expr_context ctx)`): a newer Python brings its new nodes along.

- `name` is the node's first field of identifiers; several are joined: `global a, b` has the name `a, b`.
- `value` is a constant as Python spells it; of a FormattedValue, the letter after `!`.
- A qualname has a part for every definition whose *body* the node is in, `<lambda>` for a lambda. There is
  no `<locals>` and no part for a comprehension, and a `global` statement changes nothing.
- What does not apply is null: parameters of a class, bases of a function.
- The module is the whole file; nodes without a place (Load, Add, arguments, ...) have no span.
- Before Python 3.12 the pieces of an f-string have the span of the string, or of the literals up to their
  own. The expressions in it were parsed apart, and some places are wrong (a bare `{a, b}`, a string over
  several lines): each is parsed again from the text under its span, and where that gives something else the
  spans of the expression are null and a problem points at the string.
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
from codeanatomy.extract.evidence import ExtractorResult, Problem, problem_from
from codeanatomy.sources.source_file import Source

VERSION = f"ast, python {sys.version_info.major}.{sys.version_info.minor}, rules 2"

Columns: TypeAlias = dict[str, list[Any]]
# Nodes by number, in preorder.
Noted: TypeAlias = dict[int, Any]
# Kind, fields that hold nodes (last first), field of the identifier, field of the constant, has a place,
# list it is noted for. A plain tuple: this is unpacked for every node.
Shape: TypeAlias = tuple[str, tuple[str, ...], str | None, str | None, bool, str | None]

# What CPython raises for a file that it does not like, or that is too deep for it.
UNPARSED = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, SystemError)
FIELD = re.compile(r"(\w+)[*?]* (\w+)")
SCALARS = frozenset({"identifier", "constant", "string", "int"})
TYPE_IGNORE = re.compile(rb"#[ \t]*type:[ \t]*ignore")
FSTRINGS_ARE_PARSED_APART = sys.version_info < (3, 12)

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Nodes that become rows of another list too.
NOTED: dict[type[ast.AST], str] = {
    **dict.fromkeys((*FUNCTIONS, ast.ClassDef), "defs"),
    **dict.fromkeys((ast.Import, ast.ImportFrom), "imports"),
    ast.Call: "calls",
    ast.FormattedValue: "values",
}
# The order in which `_flatten` writes a row.
NODE_FIELDS = ("parent_ast_id", "slot", "idx", "kind", "name", "value", "bstart", "bend", "line")
PLACE_FIELDS = ("bstart", "bend", "line")
MISPLACED = "Python before 3.12 misplaces an expression in this f-string; its spans are left out"


def ast_files_v1(source: Source, options: ExtractOptions) -> ExtractorResult:
    """The tree of a file; nothing but a problem where CPython cannot parse it."""
    with warnings.catch_warnings():
        # The bytecode witness records them.
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source.text)
        except UNPARSED as error:
            return ExtractorResult({}, (problem_from(source, "parse", error),))
        nodes, noted = _flatten(tree, source, options.max_value_chars)
        for i, value in noted["values"].items():
            nodes["value"][i] = chr(value.conversion) if value.conversion >= 0 else None
        problems = _drop_wrong_places(source, nodes, noted["values"]) if FSTRINGS_ARE_PARSED_APART else []
        cells = {
            "nodes": nodes,
            "defs": _defs(nodes, noted["defs"]),
            "calls": _calls(nodes, noted["calls"]),
            "imports": _imports(nodes, noted["imports"]),
            "docstrings": _docstrings(source, {0: tree, **noted["defs"]}),
        }
        try:
            cells["type_ignores"] = _type_ignores(source)
        except UNPARSED as error:
            problems.append(problem_from(source, "type_comments", error, "info"))
    return ExtractorResult(cells, tuple(problems))


class _Shapes(dict[type[ast.AST], Shape]):
    """The shape of a class, worked out when a node of it is first met."""

    def __missing__(self, cls: type[ast.AST]) -> Shape:
        fields = FIELD.findall(cls.__doc__ or "")
        if tuple(field for _, field in fields) != cls._fields:
            raise TypeError(f"the docstring of ast.{cls.__name__} does not tell its fields: {cls.__doc__}")
        shape = self[cls] = (
            cls.__name__,
            tuple(field for kind, field in reversed(fields) if kind not in SCALARS),
            next((field for kind, field in fields if kind == "identifier"), None),
            next((field for kind, field in fields if kind == "constant"), None),
            "lineno" in cls._attributes,
            NOTED.get(cls),
        )
        return shape


_SHAPES = _Shapes()


# A call for each of some million nodes would cost more than the branches.
def _flatten(tree: ast.AST, source: Source, max_chars: int) -> tuple[Columns, dict[str, Noted]]:  # noqa: C901, PLR0912
    """Columns of all nodes in preorder, and the noted ones by list.

    Rows are laid one after the other into one list and cut into columns at the end, which is cheaper than
    nine appends. A Name writes the row of its context along with its own.
    """
    cells: list[Any] = []
    noted: dict[str, Noted] = {group: {} for group in NOTED.values()}
    stack: list[tuple[Any, int | None, str | None, int | None]] = [(tree, None, None, None)]
    pop, push, shapes = stack.pop, stack.append, _SHAPES
    # By line from 1; the entry after a line's is where it ends.
    starts = [0, *source.line_starts, len(source.utf8)]
    ast_id = -1
    while stack:
        node, parent, slot, idx = pop()
        ast_id += 1
        kind, children, named, constant, placed, group = shapes[type(node)]
        fields = node.__dict__
        if placed:
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
            name = fields[named] if named else None
            if type(name) is list:
                name = ", ".join(name) or None
            value = _spelled(fields[constant], max_chars) if constant else None
            cells += (parent, slot, idx, kind, name, value, bstart, bend, line)
        else:
            cells += (parent, slot, idx, kind, None, None, None, None, None)
        if group:
            noted[group][ast_id] = node
        for field in children:
            child = fields[field]
            if type(child) is list:
                place = len(child)
                for item in reversed(child):
                    place -= 1
                    # The keys of `{**a}` and the defaults of keyword-only parameters have gaps.
                    if item is not None:
                        push((item, ast_id, field, place))
            elif child is not None:
                push((child, ast_id, field, None))
    columns: Columns = {"ast_id": list(range(ast_id + 1))}
    columns |= {field: cells[at :: len(NODE_FIELDS)] for at, field in enumerate(NODE_FIELDS)}
    columns["bstart"][0], columns["bend"][0], columns["line"][0] = 0, len(source.utf8), 1
    return columns, noted


def _spelled(value: Any, max_chars: int) -> str:
    try:
        return repr(value)[:max_chars]
    except ValueError:
        # Python does not write very long integers in decimal; such a one was not decimal in the file either.
        return hex(value)[:max_chars]


def _places(nodes: Columns, ids: Collection[int]) -> Columns:
    return {field: [nodes[field][i] for i in ids] for field in PLACE_FIELDS}


def _defs(nodes: Columns, defs: Noted) -> Columns:
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
        **_places(nodes, defs),
    }


def _qualnames(nodes: Columns, defs: Noted) -> list[str]:
    """Of each definition; what is a decorator, default, annotation or base of another is not inside of it."""
    parents, slots, names = nodes["parent_ast_id"], nodes["slot"], nodes["name"]
    found: dict[int, str] = {}
    for i in defs:
        child, parent = i, parents[i]
        while parent is not None and not (parent in found and slots[child] == "body"):
            child, parent = parent, parents[parent]
        own = names[i] or "<lambda>"
        found[i] = own if parent is None else f"{found[parent]}.{own}"
    return list(found.values())


def _calls(nodes: Columns, calls: Noted) -> Columns:
    # The called expression is the first field of a call, so it has the next number.
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
        **_places(nodes, calls),
    }


def _imports(nodes: Columns, statements: Noted) -> Columns:
    rows = [(i, node, k, alias) for i, node in statements.items() for k, alias in enumerate(node.names)]
    # Aliases are all the children of an import, and have none.
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
        **_places(nodes, ids),
    }


def _docstrings(source: Source, owners: Noted) -> Columns:
    """As `ast.get_docstring` finds them, uncleaned."""
    rows = [
        (i, node, node.body[0].value)
        for i, node in owners.items()
        # The body of a lambda is no list.
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
        "bend": [source.offset_at(literal.end_lineno or 0, literal.end_col_offset or 0) for _, _, literal in rows],
        "line": [literal.lineno for _, _, literal in rows],
    }


def _type_ignores(source: Source) -> Columns:
    ignores: list[Any] = []
    if TYPE_IGNORE.search(source.utf8):
        ignores = ast.parse(source.text, type_comments=True).type_ignores
    return {"tag": [ignore.tag for ignore in ignores], "line": [ignore.lineno for ignore in ignores]}


def _drop_wrong_places(source: Source, nodes: Columns, values: Noted) -> list[Problem]:
    """Null the spans of expressions in f-strings that do not stand where CPython says."""
    parents, bstarts, bends, lines = (nodes[field] for field in ("parent_ast_id", *PLACE_FIELDS))
    problems: dict[tuple[int, int], Problem] = {}
    for i, value in values.items():
        # The expression is the first field of a FormattedValue, so it has the next number.
        string, first = parents[i], i + 1
        outer = bstarts[string], bends[string]
        if None in outer:
            # The string itself is in an expression that was dropped.
            continue
        wrong = _wrong_nodes(source.utf8, value.value, outer, (bstarts[first], bends[first]))
        if not wrong:
            continue
        for dropped in range(first, first + wrong):
            bstarts[dropped] = bends[dropped] = lines[dropped] = None
        line = lines[string]
        col = outer[0] - source.line_starts[line - 1]
        problems[outer] = Problem("info", "position", "misplaced", MISPLACED, col, *outer, line)
    return list(problems.values())


def _wrong_nodes(utf8: bytes, expression: ast.expr, outer: Any, inner: Any) -> int:
    """How many nodes of an expression, in preorder, are not at their places: none, the first or all."""
    if None not in inner and outer[0] <= inner[0] <= inner[1] <= outer[1]:
        text = utf8[slice(*inner)]
        # CPython puts parentheses for the braces, and takes them for those of a bare `{a, b}`.
        braced = isinstance(expression, ast.Tuple | ast.GeneratorExp) and text.startswith(b"{")
        if _reads_back(expression, b"(" + text[1:-1] + b")" if braced else text):
            return int(braced)
    return sum(1 for _ in ast.walk(expression))


def _reads_back(expression: ast.expr, text: bytes) -> bool:
    """Whether the text gives the same expression with every node at the same place."""
    if isinstance(expression, ast.Name) and text == expression.id.encode():
        return True
    try:
        again = ast.parse(f"(\n{text.decode()}\n)", mode="eval").body
        if ast.dump(again) != ast.dump(expression):
            return False
    except UNPARSED:
        return False
    lines, col = expression.lineno - 2, expression.col_offset
    return all(
        (node.lineno, node.col_offset) == (there.lineno + lines, there.col_offset + col * (there.lineno == 2))
        and (node.end_lineno, node.end_col_offset)
        == (there.end_lineno + lines, there.end_col_offset + col * (there.end_lineno == 2))
        for node, there in zip(_placed(expression), _placed(again), strict=True)
    )


def _placed(tree: ast.expr) -> list[Any]:
    return [node for node in ast.walk(tree) if hasattr(node, "lineno")]
