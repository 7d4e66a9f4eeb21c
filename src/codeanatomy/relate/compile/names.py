"""Compile reads and writes of names by the compiler's scopes and the current versions of variables.

    node, definitions = read(b, "x")
    write(b, "x", node, definition)

Tests: `tests/unit/relate/test_statements.py`.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from codeanatomy.relate.compile.builder import Builder, Definitions
from codeanatomy.relate.compile.scope import Scope
from codeanatomy.relate.compile.variables import Frame, Version, Versions
from codeanatomy.relate.program import NOTHING, VARIABLE, Node, Use


def read(b: Builder, name: str) -> tuple[Node, Definitions]:
    """Return the node of a name here, and the definitions it may come from."""
    resolved = b.frame.scope.resolve(name)
    scope = resolved.binding_scope
    if scope is None:
        return b.unbound(name), ()
    frame = b.frame.frame_of(scope)
    if frame is None:
        return read_cell(b, scope, resolved.name)
    versions = frame.env.get(resolved.name, ())
    if len(versions) == 1 and resolved.name not in b.declared:
        return versions[0].node, [versions[0].definitions]
    if not versions and scope.kind in ("module", "class"):
        # Not bound yet: a builtin, or a name from outside of the class.
        outer = scope.parent.resolve(name) if scope.parent else None
        if outer is None or outer.binding_scope is None:
            if resolved.name not in b.declared:
                return b.unbound(name), ()
        elif outer.binding_scope is not scope:
            outer_frame = b.frame.frame_of(outer.binding_scope)
            if outer_frame is None:
                return read_cell(b, outer.binding_scope, outer.name)
            versions = outer_frame.env.get(outer.name, ())
    nodes = [version.node for version in versions]
    definitions = [version.definitions for version in versions]
    if resolved.name in b.declared:
        node, more = read_cell(b, scope, resolved.name)
        return b.phi([*nodes, node]), [*definitions, *more]
    return b.phi(nodes), definitions


def read_cell(b: Builder, scope: Scope, name: str) -> tuple[Node, Definitions]:
    """Return the node of a name whose scope does not run now, and its definitions."""
    cell = b.cell(scope, name)
    if cell.node == NOTHING:
        cell.node = b.new_node()
    return cell.node, [cell.definitions]


def write(b: Builder, name: str, node: Node, definition: int, keep: AbstractSet[int] = frozenset()) -> None:
    """Assign a name; older versions remain only if all their definitions are among those to keep."""
    resolved = b.frame.scope.resolve(name)
    scope = resolved.binding_scope or b.frame.scope
    frame = b.frame.frame_of(scope)
    if frame is None:
        b.cell(scope, resolved.name).add(node, [definition])
        return
    kept = [old for old in frame.env.get(resolved.name, ()) if set(old.definitions) <= keep] if keep else ()
    bind(b, frame, resolved.name, (*kept, Version(node, [definition], b.call_count)))


def write_variable(b: Builder, node: int, value: Node) -> None:
    """Assign the variable that a syntax node names, with a definition at its place; nothing if unnamed."""
    name = b.tree.name[node]
    if name is not None:
        write(b, name, value, b.define(VARIABLE, -1, b.place(node), name))


def bind(b: Builder, frame: Frame, name: str, versions: Versions) -> None:
    """Replace the current versions of a name."""
    for old in frame.env.get(name, ()):
        if old.calls_before != b.call_count:
            b.cell(frame.scope, name).add(old.node, old.definitions)
    frame.env[name] = versions
    for caught in frame.caught:
        caught.setdefault(name, []).extend(versions)


def unbind(b: Builder, name: str) -> None:
    resolved = b.frame.scope.resolve(name)
    frame = b.frame.frame_of(resolved.binding_scope) if resolved.binding_scope else None
    if frame is not None:
        bind(b, frame, resolved.name, ())
        frame.env.pop(resolved.name, None)


def join(b: Builder, versions: Versions) -> tuple[Node, list[int]]:
    """Return a node that holds the values of all these versions, and their definitions."""
    numbers = dict.fromkeys(number for version in versions for number in version.definitions)
    return b.phi([version.node for version in versions]), list(numbers)


def leave(b: Builder, frame: Frame) -> None:
    """Add the versions at the end of a frame to the cells, for code that runs later."""
    for name, versions in frame.env.items():
        for version in versions:
            b.cell(frame.scope, name).add(version.node, version.definitions)


def complete_names(b: Builder, module: Frame) -> None:
    """Fill cells, variables of the module and uses, once all bodies are compiled."""
    program, cells = b.program, []
    for (scope, _), cell in b.cells.items():
        if scope is module.scope and cell.node == NOTHING:
            cell.node = b.new_node()
        if scope in b.function_numbers and cell.node != NOTHING:
            cells.append((b.function_numbers[scope], cell.node, list(cell.nodes)))
        for node in cell.nodes:
            b.copy(node, cell.node)
    for (scope, name), cell in b.cells.items():
        if scope is not module.scope:
            continue
        last = module.env.get(name, ())
        nodes = [version.node for version in last]
        numbers = [number for version in last for number in version.definitions]
        if not last or name in b.declared:
            nodes, numbers = [*nodes, cell.node], [*numbers, *cell.definitions]
        program.variables[name] = (cell.node, b.phi(nodes), list(dict.fromkeys(numbers)))
    program.cells = cells
    outside = [cell.node for (scope, _), cell in b.cells.items() if scope not in b.function_numbers]
    program.shared = [*b.consts.values(), *b.unbound_nodes.values(), *outside]
    # Uses that may be more than a variable.
    kinds = [definition.kind for definition in program.definitions]
    for place, name, lists in b.uses:
        used = dict.fromkeys(number for each in lists for number in each)
        if any(kinds[number] != VARIABLE for number in used):
            program.uses.append(Use(place, name, list(used)))
    _complete_quoted_uses(b)


def _complete_quoted_uses(b: Builder) -> None:
    """Add the names in strings with their definitions: such a name is read when all is defined, if ever."""
    known = b.program.definitions
    for quoted, (scope, name) in b.quoted_uses.items():
        cell = None if scope is None else b.cells.get((scope, name))
        of_module = scope is None or scope.parent is None
        # Only variables of the module have a target.
        numbers = [
            number
            for number in (() if cell is None else cell.definitions)
            if of_module or known[number].kind != VARIABLE
        ]
        b.program.quoted_uses.append((*quoted, None if scope is None else numbers))
