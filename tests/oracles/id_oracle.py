"""Make the ids of a file's nodes a second time, by a walk over `ast`, and compare those of a graph with them.

    id_problems("shop", "main.py", "f(lambda: 0)", nodes)      # [] if all ids are as the recipe says

Definitions are the module, classes, functions, lambdas and comprehensions. A node belongs to the nearest one
above it in the tree: a default or decorator to the function that has it, and the node of a definition to
itself, except where it is counted by its span, as calls and names are.

- Kinds that have a definition key only: the keys are those of the definitions in the tree.
- Parameters and bindings: key and name.
- Syntax nodes: key and number in preorder.
- Calls, imports and literals: key and number in source order, all of them if both witnesses see all.
- Names: the key. LibCST has further names, so that their numbers have gaps.

CPython before 3.12 does not know where things in f-strings are: what is in one is compared by key only.
Tests: `tests/unit/graph/test_graph_checks.py`.
"""

from __future__ import annotations

import ast
import re
from base64 import urlsafe_b64encode
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias

Row: TypeAlias = dict[str, Any]
Span: TypeAlias = tuple[int, int]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
COMPREHENSIONS = {
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>",
}
DEFINITIONS = (*FUNCTIONS, ast.ClassDef, *COMPREHENSIONS)
# Kinds of nodes by the class in the syntax tree that has the same spans.
COUNTED = {"CALLSITE": ast.Call, "IMPORT_ALIAS": ast.alias, "LITERAL": ast.Constant}
OWNED = {**COUNTED, "NAME_REF": ast.Name}


class Definition(NamedTuple):
    """A definition, and the definition key that its ids have."""

    node: ast.AST
    name: str
    path: str
    key: str
    # None in an f-string, and of the module.
    span: Span | None

    def parameters(self) -> set[str]:
        """The names of its parameters."""
        if not isinstance(self.node, FUNCTIONS):
            return set()
        given = self.node.args
        listed = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
        return {each.arg for each in listed if each is not None}


class Visited(NamedTuple):
    """A node of the syntax tree with its definition; the node of a definition has that one itself."""

    node: ast.AST
    definition: Definition
    # The definition around it.
    around: Definition
    # None in an f-string.
    span: Span | None
    in_f_string: bool


def key_of_path(repo_id: str, path: str, qualified: str) -> str:
    """Return a definition key: 96 bits of SHA-256 of the parts, each with its length, in base64url."""
    framed = b"".join(b"%d:%b" % (len(raw), raw) for raw in (p.encode() for p in (repo_id, path, qualified)))
    return urlsafe_b64encode(sha256(framed).digest()[:12]).decode()


class Walk:
    """The definitions and nodes of a file."""

    def __init__(self, repo_id: str, path: str, text: str) -> None:
        self._place = repo_id, path
        raw = text.encode()
        self._lines = [0, *(found.end() for found in re.finditer(rb"\r\n|\r|\n", raw))]
        tree = ast.parse(text)
        module = Definition(tree, "", "", key_of_path(repo_id, path, ""), None)
        self.definitions = [module]
        self._repeats: Counter[tuple[str, str]] = Counter()
        self.visited = [Visited(tree, module, module, None, in_f_string=False)]
        # Not recursive: generated expressions are thousands of levels deep.
        pending = [(each, module, False) for each in ast.iter_child_nodes(tree)][::-1]
        while pending:
            node, around, in_f_string = pending.pop()
            definition = self._definition(node, around, in_f_string)
            span = None if in_f_string else self._span(node)
            self.visited.append(Visited(node, definition, around, span, in_f_string))
            inside = in_f_string or isinstance(node, ast.JoinedStr)
            pending += [(each, definition, inside) for each in ast.iter_child_nodes(node)][::-1]

    def _span(self, node: ast.AST) -> Span | None:
        if not isinstance(node, (ast.expr, ast.stmt, ast.alias)):
            return None
        if node.end_lineno is None or node.end_col_offset is None:
            return None
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[node.end_lineno - 1] + node.end_col_offset

    def _definition(self, node: ast.AST, around: Definition, in_f_string: bool) -> Definition:
        if not isinstance(node, DEFINITIONS):
            return around
        if isinstance(node, NAMED):
            name = node.name
        else:
            name = "<lambda>" if isinstance(node, ast.Lambda) else COMPREHENSIONS[type(node)]
        number = self._repeats[around.path, name]
        self._repeats[around.path, name] += 1
        own = name if number == 0 and isinstance(node, NAMED) else f"{name}#{number}"
        path = f"{around.path}.{own}" if around.path else own
        span = None if in_f_string else self._span(node)
        made = Definition(node, name, path, key_of_path(*self._place, path), span)
        self.definitions.append(made)
        return made

    def syntax_ids(self) -> dict[str, Visited]:
        """Return the nodes of the tree by id."""
        counts: Counter[str] = Counter()
        made: dict[str, Visited] = {}
        for each in self.visited:
            key = each.definition.key
            made[f"ast:{key}.{counts[key]:06}"] = each
            counts[key] += 1
        return made

    def numbered(self, kind: type[ast.AST]) -> dict[Span, str]:
        """Return the key and number of each node of a class, by its span."""
        places = {}
        for each in self.visited:
            if isinstance(each.node, kind) and each.span is not None:
                places[each.span] = each.around.key
        counts: Counter[str] = Counter()
        ids = {}
        for start, end in sorted(places, key=lambda span: (span[0], -span[1])):
            key = places[start, end]
            ids[start, end] = f"{key}.{counts[key]:06}"
            counts[key] += 1
        return ids

    @property
    def has_f_strings(self) -> bool:
        """Whether there are f-strings."""
        return any(isinstance(each.node, ast.JoinedStr) for each in self.visited)


def id_problems(repo_id: str, path: str, text: str, rows: Iterable[Row]) -> list[str]:
    """Return how ids of a file's nodes differ from the recipe; nothing for a file that Python refuses."""
    try:
        walk = Walk(repo_id, path, text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    by_kind: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_kind[row["node_kind"]].append(row)
    checks = (_of_definitions, _of_scopes, _of_parts, _of_syntax, _of_numbers)
    return [problem for check in checks for problem in check(walk, by_kind)]


def _key(row: Row) -> str:
    """Return the id of a row without its prefix."""
    return str(row["node_id"]).partition(":")[2]


def _of_definitions(walk: Walk, by_kind: dict[str, list[Row]]) -> Iterator[str]:
    expected = {each.key: each for each in walk.definitions}
    for kind, classes in (("FUNCTION", FUNCTIONS), ("CLASS", ast.ClassDef)):
        listed = {each.key for each in walk.definitions if isinstance(each.node, classes)}
        found = {_key(row): row for row in by_kind[kind]}
        placed = {key for key in listed if expected[key].span}
        for key in (found.keys() - listed) | (placed - found.keys()):
            yield f"{kind}: not those of the tree: {key} {expected.get(key)}"
        for key in found.keys() & placed:
            row, each = found[key], expected[key]
            name = row["name"] if isinstance(each.node, NAMED) else each.name
            if (row["bstart"], row["bend"]) != each.span or name != each.name:
                yield f"{kind}: {each.path} is at {each.span}, not {row['bstart']}"
    documented = {
        each.key
        for each in walk.definitions
        if isinstance(each.node, (ast.Module, *NAMED)) and ast.get_docstring(each.node) is not None
    }
    if set(map(_key, by_kind["DOCSTRING"])) != documented:
        yield f"DOCSTRING: not those of the tree: {documented}"


def _of_scopes(walk: Walk, by_kind: dict[str, list[Row]]) -> Iterator[str]:
    """Compare scopes and code objects: one for each definition. There are others, as of type parameters."""
    expected = {each.key: each for each in walk.definitions}
    module = walk.definitions[0].key
    for kind in ("FILE", "MODULE", "SCOPE", "CODE_UNIT"):
        if by_kind[kind] and module not in map(_key, by_kind[kind]):
            yield f"{kind}: not the key of the module"
    missing = expected.keys() - set(map(_key, by_kind["SCOPE"]))
    if by_kind["SCOPE"] and missing:
        yield f"SCOPE: missing {[expected[key].path for key in missing]}"
    for row in (*by_kind["SCOPE"], *by_kind["CODE_UNIT"]):
        each = expected.get(_key(row))
        if each is not None and each.path and row["name"] not in (each.name, each.name.strip("<>")):
            yield f"{row['node_kind']}: {each.path} has the name {row['name']}"


def _of_parts(walk: Walk, by_kind: dict[str, list[Row]]) -> Iterator[str]:
    declared = {f"parameter:{each.key}.{name}" for each in walk.definitions for name in each.parameters()}
    placed = {
        f"parameter:{each.key}.{name}"
        for each in walk.definitions
        if each.span is not None
        for name in each.parameters()
    }
    found = {row["node_id"] for row in by_kind["PARAMETER"]}
    # Of functions in f-strings; LibCST has their places.
    elsewhere = {name for each in walk.definitions if each.span is None for name in each.parameters()}
    for wrong in (found - declared) | (placed - found):
        name = wrong.partition(".")[2].partition("#")[0]
        # The second of a name, in a function that does not compile.
        is_repeated = wrong.rpartition("#")[0] in declared
        if wrong in placed or not (is_repeated or name in {*elsewhere, "unplaced"}):
            yield f"PARAMETER: not those of the tree: {wrong}"
    keys = set(map(_key, by_kind["SCOPE"]))
    for row in by_kind["BINDING"]:
        key, _, name = _key(row).partition(".")
        if key not in keys or name != row["name"]:
            yield f"BINDING: not a name of a scope: {row['node_id']} {row['name']}"


def _of_syntax(walk: Walk, by_kind: dict[str, list[Row]]) -> Iterator[str]:
    nodes = {row["node_id"]: row for row in by_kind["AST_NODE"]}
    made_nodes = walk.syntax_ids()
    if nodes and nodes.keys() != made_nodes.keys():
        yield f"AST_NODE: not those of the tree: {sorted(nodes.keys() ^ made_nodes.keys())[:5]}"
    for node_id in nodes.keys() & made_nodes.keys():
        row, visited = nodes[node_id], made_nodes[node_id]
        span = row["bstart"], row["bend"]
        if row["subkind"] != type(visited.node).__name__ or visited.span not in (None, span):
            yield f"AST_NODE: {node_id} is a {row['subkind']} at {row['bstart']}"


def _of_numbers(walk: Walk, by_kind: dict[str, list[Row]]) -> Iterator[str]:
    for kind, each in OWNED.items():
        expected = walk.numbered(each)
        for row in by_kind[kind]:
            made = expected.get((row["bstart"], row["bend"]))
            if made is None:
                continue
            own = _key(row)
            # Witnesses differ in f-strings, and only one has each of the names.
            if walk.has_f_strings or kind not in COUNTED:
                made, own = made.partition(".")[0], own.partition(".")[0]
            if own != made:
                yield f"{kind}: {row['node_id']} at {row['bstart']} is not {made}"
