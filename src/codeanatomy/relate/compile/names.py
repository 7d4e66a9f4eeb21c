"""Names, places and nodes while a file is walked.

    node, definitions = names.read("x")       # by the compiler's scopes, and the versions that stand here
    names.write("x", node, definition)

Constants share one node per type. Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from codeanatomy.relate.compile.scope_tree import Scope
from codeanatomy.relate.compile.syntax_tree import Tree
from codeanatomy.relate.compile.variables import Cell, Frame, Version, Versions
from codeanatomy.relate.program import NOTHING, VARIABLE, Definition, Node, Op, Place, Program, Site, Use

NO_PLACE: Place = (None, None, None)


class Names:
    """The program of a file in the making."""

    def __init__(self, program: Program, tree: Tree, scopes: Mapping[int, Scope]) -> None:
        self.program = program
        self.tree = tree
        self.scopes = scopes
        self.frame = Frame(scopes[0], -1, qualname="")
        # Calls so far: between two of them no other code can run.
        self.events = 0
        self.ops: list[Op] = program.ops
        self.cells: dict[tuple[Scope, str], Cell] = {}
        self.consts: dict[str, Node] = {}
        self.const_nodes: set[Node] = set()
        # Strings are told apart only where attributes are asked for by name.
        self.asks_by_name = "getattr" in tree.name
        self.words: dict[str, Node] = {}
        self.open_nodes: dict[str, Node] = {}
        # Names that some function declares global or nonlocal: its writes come at any time.
        self.declared: set[str] = set()
        self.identifiers: dict[tuple[int, int], tuple[int, int]] = {}
        self.uses: list[tuple[Place, str, Sequence[Iterable[int]]]] = []
        # Definitions of a stub that are overloads: no other takes their place.
        self.overloads: set[int] = set()
        self._phis: dict[tuple[Node, ...], Node] = {}

    def new(self) -> Node:
        """A fresh node."""
        self.program.nodes += 1
        return self.program.nodes - 1

    def site(self, node: int, role: str, inner: Place = NO_PLACE) -> int:
        """A place at which something happens."""
        self.program.sites.append(Site(node, role, self.place(node), self.frame.function, inner))
        return len(self.program.sites) - 1

    def place(self, node: int) -> Place:
        """Where a syntax node stands."""
        tree = self.tree
        return tree.bstart[node], tree.bend[node], tree.line[node]

    def container(self, kind: str, size: int = -1) -> Node:
        """A list, tuple, dict, set or generator, of so many elements if that is known."""
        made = self.new()
        self.program.containers.append((kind, size))
        self.ops.append(("o", made, "L", len(self.program.containers) - 1))
        return made

    def const(self, kind: str) -> Node:
        """Any constant of a builtin type."""
        if kind not in self.consts:
            made = self.consts[kind] = self.new()
            self.const_nodes.add(made)
            self.ops.append(("o", made, "K", kind))
        return self.consts[kind]

    def word(self, text: str) -> Node:
        """A string that may be the name of an attribute."""
        if text not in self.words:
            made = self.words[text] = self.new()
            self.const_nodes.add(made)
            self.ops.append(("o", made, "J", text))
        return self.words[text]

    def copy(self, src: Node, dst: Node) -> None:
        """What is in one node is in the other."""
        if NOTHING not in (src, dst) and src != dst:
            self.ops.append(("=", src, dst))

    def phi(self, nodes: Sequence[Node]) -> Node:
        """The node of all that is in any of these."""
        distinct = tuple(dict.fromkeys(node for node in nodes if node != NOTHING))
        if len(distinct) < 2:
            return distinct[0] if distinct else NOTHING
        if distinct not in self._phis:
            made = self._phis[distinct] = self.new()
            for node in distinct:
                self.copy(node, made)
        return self._phis[distinct]

    def forget_phis(self) -> None:
        """A node that joins others belongs to the function it was made in."""
        self._phis.clear()

    def define(self, kind: str, index: int, place: Place, name: str) -> int:
        """A definition's number."""
        self.program.definitions.append(Definition(kind, index, place, name))
        return len(self.program.definitions) - 1

    def cell(self, scope: Scope, name: str) -> Cell:
        """What code that runs at another time sees of a name."""
        if (scope, name) not in self.cells:
            self.cells[scope, name] = Cell()
        return self.cells[scope, name]

    def read(self, name: str) -> tuple[Node, Sequence[Iterable[int]]]:
        """The node of a name here, and the definitions it may come from."""
        found = self.frame.scope.find(name)
        home = found.home
        if home is None:
            return self.open(name), ()
        holder = self.frame.holder(home)
        if holder is None:
            return self._seen(home, found.name)
        versions = holder.env.get(found.name, ())
        if not versions and home.kind in ("module", "class"):
            # Not bound yet: a builtin, or what is outside of the class.
            outside = home.parent.find(name) if home.parent else None
            if outside is None or outside.home is None:
                if found.name not in self.declared:
                    return self.open(name), ()
            elif outside.home is not home:
                outer = self.frame.holder(outside.home)
                if outer is None:
                    return self._seen(outside.home, outside.name)
                versions = outer.env.get(outside.name, ())
        nodes = [version.node for version in versions]
        definitions = [version.definitions for version in versions]
        if found.name in self.declared:
            node, more = self._seen(home, found.name)
            return self.phi([*nodes, node]), [*definitions, *more]
        return self.phi(nodes), definitions

    def _seen(self, home: Scope, name: str) -> tuple[Node, Sequence[Iterable[int]]]:
        cell = self.cell(home, name)
        if cell.node == NOTHING:
            cell.node = self.new()
        return cell.node, [cell.definitions]

    def open(self, name: str) -> Node:
        """A name that nothing in the file binds."""
        if name not in self.open_nodes:
            made = self.open_nodes[name] = self.new()
            self.ops.append(("n", name, made))
        return self.open_nodes[name]

    def write(self, name: str, node: Node, definition: int, beside: AbstractSet[int] = frozenset()) -> None:
        """A name gets a value, and keeps those that come from some definitions."""
        found = self.frame.scope.find(name)
        home = found.home or self.frame.scope
        holder = self.frame.holder(home)
        if holder is None:
            self.cell(home, found.name).show(node, [definition])
            return
        made = Version(node, [definition], self.events)
        if beside:
            kept = [old for old in holder.env.get(found.name, ()) if set(old.definitions) <= beside]
            self.bind(holder, found.name, (*kept, made))
        else:
            self.bind(holder, found.name, (made,))

    def bind(self, holder: Frame, name: str, versions: Versions) -> None:
        """New versions take the place of the old ones."""
        for old in holder.env.get(name, ()):
            if old.born != self.events:
                self.cell(holder.scope, name).show(old.node, old.definitions)
        holder.env[name] = versions
        for caught in holder.caught:
            caught.setdefault(name, []).extend(versions)

    def unbind(self, name: str) -> None:
        """A name is deleted."""
        found = self.frame.scope.find(name)
        holder = self.frame.holder(found.home) if found.home else None
        if holder is not None:
            self.bind(holder, found.name, ())
            holder.env.pop(found.name, None)

    def mangled(self, name: str) -> str:
        """An attribute as the compiler spells it."""
        private = (self.frame.scope.private or "").lstrip("_")
        if not private or not name.startswith("__") or name.endswith("__"):
            return name
        return f"_{private}{name}"

    def finished_uses(self) -> list[Use]:
        """The names that mean more than a variable, once everything is known."""
        kinds = [definition.kind for definition in self.program.definitions]
        found = []
        for place, name, lists in self.uses:
            numbers = list(dict.fromkeys(number for each in lists for number in each))
            if any(kinds[number] != VARIABLE for number in numbers):
                found.append(Use(place, name, numbers))
        return found
