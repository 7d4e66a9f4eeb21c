"""Find what else an attribute may be whose receivers were cut.

    class Base:                       100 classes inherit from it, three of them have a `check` of their own
        def run(self): self.check()    `self` is one of 48: the solver keeps no more, and which ones is chance

The solver cuts objects, although they share few definitions. So at such a place the candidates are what the
kept receivers have, and what all other classes have that inherit from their nearest common base. Rows keep
the reason `too_many_candidates`: how receivers of other classes come there is not known.

Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from codeanatomy.relate import program as ir
from codeanatomy.relate.emit.references import FileRows
from codeanatomy.relate.program import Op
from codeanatomy.relate.values import results
from codeanatomy.relate.values.function_copies import original
from codeanatomy.relate.values.hierarchy import defining_class, mro
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.solver import MAX_OBJECTS, Object, is_hint, strong


def cut_targets(f: FileRows, load: Op) -> list[Target]:
    """Return what the attribute may be by other classes than those of the kept receivers."""
    return [
        target for cls in _defining_classes(f, load) for target in f.resolver.targets_in_class(cls, load[2])
    ]


def cut_functions(f: FileRows, load: Op) -> list[Object]:
    """Return the functions among them, as the bodies of the classes leave them."""
    values, functions = f.values, dict[Object, None]()
    for cls in _defining_classes(f, load):
        file, declared = values.cls(cls)
        for obj in results.program_objects(values, file, declared.attrs[load[2]][0]):
            if values.kind[obj] == ir.OBJ_FUNCTION and not is_hint(obj):
                functions[original(values, obj)] = None
    return list(functions)


def _defining_classes(f: FileRows, load: Op) -> Sequence[Object]:
    """Return the classes whose bodies define the attribute for classes below the base of the receivers."""
    values, name = f.values, load[2]
    if load[1] not in f.truncated:
        return []
    kept: dict[Object, None] = {}
    for obj in results.program_objects(values, f.file, load[1]):
        kind, first, _, _ = values.objects[obj]
        if kind == ir.OBJ_SUPER:
            # It begins its search behind a class of its own.
            return []
        if kind in (ir.OBJ_INSTANCE, ir.OBJ_CLASS):
            kept[first if kind == ir.OBJ_INSTANCE else strong(obj)] = None
    # The places where receivers are cut have few sets of them: without the cache a tenth of the emission.
    key = (name, *kept)
    known = f.resolver.cut_classes.get(key)
    if known is None:
        known = f.resolver.cut_classes[key] = _other_classes(f, list(kept), name)
    return known


def _other_classes(f: FileRows, kept: Sequence[Object], name: str) -> Sequence[Object]:
    """Return the classes that define an attribute for the classes below the common base of some."""
    values = f.values
    base = _common_base(f, kept)
    holders: dict[Object, None] = {}
    for cls in () if base is None else f.resolver.classes_below(base):
        holder = defining_class(values, cls, name)
        if values.is_repository_class(holder) and name in values.cls(holder)[1].attrs:
            holders[holder] = None
    known = {defining_class(values, cls, name) for cls in kept}
    return [cls for cls in holders if cls not in known][:MAX_OBJECTS]


def _common_base(f: FileRows, classes: Sequence[Object]) -> Object | None:
    """Return the first class of the repository in the MRO of all of these classes."""
    orders = [mro(f.values, cls) for cls in classes]
    for cls in orders[0] if orders else ():
        if f.values.is_repository_class(cls) and all(cls in order for order in orders):
            return cls
    return None
