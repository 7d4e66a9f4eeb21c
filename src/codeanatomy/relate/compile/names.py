"""Compile reads and writes of names; allocate nodes, sites and definitions of a program.

    node, definitions = compiler.read("x")    # by the compiler's scopes and the current versions
    compiler.write("x", node, definition)

Constants share one node per type. Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.variables import Cell, Frame, Version, Versions
from codeanatomy.relate.program import (
    NOTHING,
    OBJ_CONSTANT,
    OBJ_CONTAINER,
    OBJ_STRING,
    OP_COPY,
    OP_MAKE,
    OP_UNBOUND_NAME,
    VARIABLE,
    Definition,
    Node,
    Op,
    Place,
    Program,
    Site,
    Use,
)
from codeanatomy.syntax_tree import Tree

NO_PLACE: Place = (None, None, None)


class NameCompiler:
    """Compiles names, and holds the state that all parts of the compiler share."""

    def __init__(self, program: Program, tree: Tree, scopes: Mapping[int, Scope]) -> None:
        self.program = program
        self.tree = tree
        self.scopes = scopes
        self.frame = Frame(scopes[0], -1, qualname="")
        # Number of calls so far: between two of them no other code can run.
        self.call_count = 0
        self.ops: list[Op] = program.ops
        self.cells: dict[tuple[Scope, str], Cell] = {}
        self.consts: dict[str, Node] = {}
        self.const_nodes: set[Node] = set()
        # Strings are distinguished only in files that look up attributes by name.
        self.uses_getattr = "getattr" in tree.name
        self.strings: dict[str, Node] = {}
        self.unbound_nodes: dict[str, Node] = {}
        # Names that a function declares global or nonlocal: it may write them at any time.
        self.declared: set[str] = set()
        self.identifiers: dict[tuple[int, int], tuple[int, int]] = {}
        self.uses: list[tuple[Place, str, Sequence[Iterable[int]]]] = []
        # Definitions of a stub that are overloads: they do not replace each other.
        self.overloads: set[int] = set()
        self._phis: dict[tuple[Node, ...], Node] = {}

    def new_node(self) -> Node:
        """Allocate a node."""
        self.program.nodes += 1
        return self.program.nodes - 1

    def site(self, node: int, role: str, inner: Place = NO_PLACE) -> int:
        """Add a site and return its number."""
        self.program.sites.append(Site(node, role, self.place(node), self.frame.function, inner))
        return len(self.program.sites) - 1

    def place(self, node: int) -> Place:
        """Return the place of a syntax node."""
        tree = self.tree
        return tree.bstart[node], tree.bend[node], tree.line[node]

    def container(self, kind: str, size: int = -1) -> Node:
        """Create a list, tuple, dict, set or generator; size is -1 if not known. Return its node."""
        result = self.new_node()
        self.program.containers.append((kind, size))
        self.ops.append((OP_MAKE, result, OBJ_CONTAINER, len(self.program.containers) - 1))
        return result

    def const(self, kind: str) -> Node:
        """Return the node of all constants of a builtin type."""
        if kind not in self.consts:
            result = self.consts[kind] = self.new_node()
            self.const_nodes.add(result)
            self.ops.append((OP_MAKE, result, OBJ_CONSTANT, kind))
        return self.consts[kind]

    def string(self, text: str) -> Node:
        """Return the node of a string that may be the name of an attribute."""
        if text not in self.strings:
            result = self.strings[text] = self.new_node()
            self.const_nodes.add(result)
            self.ops.append((OP_MAKE, result, OBJ_STRING, text))
        return self.strings[text]

    def copy(self, src: Node, dst: Node) -> None:
        """Let all objects of one node flow into another."""
        if NOTHING not in (src, dst) and src != dst:
            self.ops.append((OP_COPY, src, dst))

    def phi(self, nodes: Sequence[Node]) -> Node:
        """Return a node that holds the objects of all these nodes."""
        distinct = tuple(dict.fromkeys(node for node in nodes if node != NOTHING))
        if len(distinct) < 2:
            return distinct[0] if distinct else NOTHING
        if distinct not in self._phis:
            result = self._phis[distinct] = self.new_node()
            for node in distinct:
                self.copy(node, result)
        return self._phis[distinct]

    def forget_phis(self) -> None:
        """Forget joined nodes, which belong to the function that they were created in."""
        self._phis.clear()

    def define(self, kind: str, index: int, place: Place, name: str) -> int:
        """Add a definition and return its number."""
        self.program.definitions.append(Definition(kind, index, place, name))
        return len(self.program.definitions) - 1

    def cell(self, scope: Scope, name: str) -> Cell:
        """Return the cell of a name: its versions that code which runs at another time may see."""
        if (scope, name) not in self.cells:
            self.cells[scope, name] = Cell()
        return self.cells[scope, name]

    def read(self, name: str) -> tuple[Node, Sequence[Iterable[int]]]:
        """Return the node of a name here, and the definitions it may come from."""
        resolved = self.frame.scope.resolve(name)
        scope = resolved.binding_scope
        if scope is None:
            return self.unbound(name), ()
        frame = self.frame.frame_of(scope)
        if frame is None:
            return self._read_cell(scope, resolved.name)
        versions = frame.env.get(resolved.name, ())
        if not versions and scope.kind in ("module", "class"):
            # Not bound yet: a builtin, or a name from outside of the class.
            outer = scope.parent.resolve(name) if scope.parent else None
            if outer is None or outer.binding_scope is None:
                if resolved.name not in self.declared:
                    return self.unbound(name), ()
            elif outer.binding_scope is not scope:
                outer_frame = self.frame.frame_of(outer.binding_scope)
                if outer_frame is None:
                    return self._read_cell(outer.binding_scope, outer.name)
                versions = outer_frame.env.get(outer.name, ())
        nodes = [version.node for version in versions]
        definitions = [version.definitions for version in versions]
        if resolved.name in self.declared:
            node, more = self._read_cell(scope, resolved.name)
            return self.phi([*nodes, node]), [*definitions, *more]
        return self.phi(nodes), definitions

    def _read_cell(self, scope: Scope, name: str) -> tuple[Node, Sequence[Iterable[int]]]:
        cell = self.cell(scope, name)
        if cell.node == NOTHING:
            cell.node = self.new_node()
        return cell.node, [cell.definitions]

    def unbound(self, name: str) -> Node:
        """Return the node of a name that the file does not bind."""
        if name not in self.unbound_nodes:
            result = self.unbound_nodes[name] = self.new_node()
            self.ops.append((OP_UNBOUND_NAME, name, result))
        return self.unbound_nodes[name]

    def write(self, name: str, node: Node, definition: int, keep: AbstractSet[int] = frozenset()) -> None:
        """Assign a name; older versions remain only if all their definitions are among those to keep."""
        resolved = self.frame.scope.resolve(name)
        scope = resolved.binding_scope or self.frame.scope
        frame = self.frame.frame_of(scope)
        if frame is None:
            self.cell(scope, resolved.name).add(node, [definition])
            return
        version = Version(node, [definition], self.call_count)
        if keep:
            kept = [old for old in frame.env.get(resolved.name, ()) if set(old.definitions) <= keep]
            self.bind(frame, resolved.name, (*kept, version))
        else:
            self.bind(frame, resolved.name, (version,))

    def bind(self, frame: Frame, name: str, versions: Versions) -> None:
        """Replace the current versions of a name."""
        for old in frame.env.get(name, ()):
            if old.calls_before != self.call_count:
                self.cell(frame.scope, name).add(old.node, old.definitions)
        frame.env[name] = versions
        for caught in frame.caught:
            caught.setdefault(name, []).extend(versions)

    def unbind(self, name: str) -> None:
        """Delete a name."""
        resolved = self.frame.scope.resolve(name)
        frame = self.frame.frame_of(resolved.binding_scope) if resolved.binding_scope else None
        if frame is not None:
            self.bind(frame, resolved.name, ())
            frame.env.pop(resolved.name, None)

    def mangled(self, name: str) -> str:
        """Return an attribute's name as the compiler mangles it."""
        private = (self.frame.scope.private or "").lstrip("_")
        if not private or not name.startswith("__") or name.endswith("__"):
            return name
        return f"_{private}{name}"

    def complete_uses(self) -> list[Use]:
        """Return the reads of names that may be more than a variable; call it last, when all are known."""
        kinds = [definition.kind for definition in self.program.definitions]
        uses = []
        for place, name, lists in self.uses:
            numbers = list(dict.fromkeys(number for each in lists for number in each))
            if any(kinds[number] != VARIABLE for number in numbers):
                uses.append(Use(place, name, numbers))
        return uses
