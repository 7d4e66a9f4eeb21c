"""Read the solved values: the objects of a node of a file, and the callees of a site.

    program_objects(state, file, node)        # objects of the node in its function and in all copies of it
    callees(state, (file, site))              # [(object, role), ...]: what is called there

Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.solver import Object, is_hint, prefer_strong
from codeanatomy.relate.values.state import DIRECT_ROLES, EXTERNAL_MEMBER, SiteKey, State

DEFINITION_KINDS = (ir.OBJ_FUNCTION, ir.OBJ_CLASS)


def program_objects(state: State, file: int, node: int) -> Sequence[Object]:
    """Return the objects of a file's node in its function and all copies of it.

    Hints count if there is nothing else, or only external objects while a hint names a class of the
    repository.
    """
    if node < 0:
        return ()
    shared = state.offsets[file] + node
    objects = state.points_to[shared] or {}
    copied = state.copies.by_node.get(shared)
    if copied is not None:
        objects = dict(objects)
        for each in copied:
            objects.update(state.points_to[each] or {})
    certain = [obj for obj in objects if not is_hint(obj)]
    if len(certain) == len(objects):
        return certain
    declared = [obj for obj in objects if is_hint(obj) and state.kind[obj] == ir.OBJ_INSTANCE]
    if declared and all(_is_external(state, obj) for obj in certain):
        return declared
    return certain or list(objects)


def _is_external(state: State, obj: Object) -> bool:
    """Whether an object is external, so that an annotated class of the repository is more precise."""
    kind, first, _, _ = state.objects[obj]
    return kind == ir.OBJ_EXTERNAL_MEMBER or (
        kind == ir.OBJ_EXTERNAL_INSTANCE and not first.startswith("builtins.")
    )


def truncated_nodes(state: State) -> list[set[int]]:
    """Return by file the nodes that had more objects than the limit, they or one of their copies."""
    originals = {copy: node for node, copies in state.copies.by_node.items() for copy in copies}
    truncated: list[set[int]] = [set() for _ in state.programs]
    for each in state.truncated:
        node = originals.get(each, each)
        file = bisect_right(state.offsets, node) - 1
        truncated[file].add(node - state.offsets[file])
    return truncated


def callees(state: State, where: SiteKey) -> list[tuple[Object, str]]:
    """Return the callees at a site with their roles."""
    return certain_callees(state, state.calls.callees.get(where, {}))


def certain_callees(state: State, roles: Mapping[Object, str]) -> list[tuple[Object, str]]:
    """Return those callees that count, with their roles.

    Hints count if there is nothing better. A member of an external object, of which only the name is
    known, is no better than a hint that names a function of the repository.
    """
    if not roles:
        return []
    certain = [obj for obj in roles if not is_hint(obj)]
    if len(certain) == len(roles) and EXTERNAL_MEMBER not in roles.values():
        return list(roles.items())
    hinted = [obj for obj in roles if is_hint(obj) and state.kind[obj] in DEFINITION_KINDS]
    known = [obj for obj in certain if roles[obj] != EXTERNAL_MEMBER]
    is_known = any(state.kind[obj] == ir.OBJ_FUNCTION and roles[obj] in DIRECT_ROLES for obj in known)
    best = hinted if hinted and not known else known if is_known else prefer_strong(roles)
    return [(obj, roles[obj]) for obj in best]
