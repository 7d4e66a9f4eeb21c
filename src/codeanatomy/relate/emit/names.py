"""Emit rows of names, imports, classes and decorators, resolved by scope and import rules.

    from .models import User as U    IMPORTS_MODULE alias -> pkg.models, IMPORTS_NAME alias -> class User
    class Admin(U):                  REFERS_TO U -> class User, INHERITS Admin -> User
    x: "list[U]"                     REFERS_TO string -> class User at the span of U, with the role U
        def save(self): ...          OVERRIDES Admin.save -> User.save

Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from codeanatomy.node_ids import key_of, scope_id
from codeanatomy.relate.emit import references as refs
from codeanatomy.relate.emit.references import Candidate, FileRows, Reference
from codeanatomy.relate.program import FUNCTION, OBJ_CLASS, OBJ_EXTERNAL, Class, Place
from codeanatomy.relate.relation_rows import RelationDiagnostic
from codeanatomy.relate.values.external_names import BUILTINS
from codeanatomy.relate.values.hierarchy import defining_class
from codeanatomy.relate.values.modules import INITS, distribution
from codeanatomy.relate.values.name_resolution import Target, split_text
from codeanatomy.relate.values.results import program_objects
from codeanatomy.relate.values.rules.imports import MODULE_STRINGS, is_exported, star_imports
from codeanatomy.relate.values.solver import Object, strong

# Groups of packaging that are programs; others are plugins.
PROGRAM_GROUPS = frozenset({"console_scripts", "gui_scripts"})
# Kinds of nodes that a module can re-export.
RE_EXPORTED = frozenset({"FUNCTION", "CLASS", "BINDING", "MODULE"})
# Classes above one class, itself and its bases included: of generated hierarchies those that are nearest.
MAX_ANCESTORS = 64


def add_names(f: FileRows) -> None:
    # Names are read more often than defined: resolve each (name, definitions) once.
    resolved: dict[tuple[object, ...], tuple[Sequence[Target], Sequence[Candidate]]] = {}
    for use in f.program.uses:
        key = (use.name, *use.definitions)
        if key not in resolved:
            resolved[key] = _resolve(f, use.name, use.definitions)
        meanings, candidates = resolved[key]
        ref = f.reference("REFERS_TO", "NAME_REF", use.place, "name", "scopes")
        refs.add_candidates(f, ref, candidates, "import_not_found", f.claims.name(use.place), meanings)
    for place, name in f.program.unbound_uses:
        ref = f.reference("REFERS_TO", "NAME_REF", place, "open_name", "scopes")
        refs.add_candidates(f, ref, _resolve_unbound(f, name), "unbound", f.claims.name(place))


def add_quoted_names(f: FileRows) -> None:
    """Add rows of the names in quoted annotations that lead to something: not every string is a type."""
    for place, string, dotted, definitions in f.program.quoted_uses:
        first, *rest = dotted.split(".")
        candidates: Sequence[Candidate] = (
            _resolve_unbound(f, first) if definitions is None else _resolve(f, first, definitions)[1]
        )
        method = candidates[0].method if candidates else ""
        for name in rest:
            members = (f.resolver.members(each.target, name) for each in candidates)
            candidates = refs.rate_alternatives(list(dict.fromkeys(chain.from_iterable(members))), method)
        if candidates:
            src = ("AST_NODE", f.ids.ast(string))
            ref = Reference("REFERS_TO", src, place, "quoted_name", "scopes", dotted)
            refs.add_candidates(f, ref, candidates)


def _resolve(
    f: FileRows, name: str, definitions: Sequence[int]
) -> tuple[Sequence[Target], Sequence[Candidate]]:
    """Return all meanings of a name, and its candidates: variables only if there is nothing else."""
    meanings = f.resolver.targets_of_definitions(f.file, definitions, name)
    targets = [each for each in meanings if each.kind != "BINDING"] or meanings
    return meanings, refs.rate_alternatives(targets, "import" if f.is_imported(definitions) else "scope")


def _resolve_unbound(f: FileRows, name: str) -> list[Candidate]:
    """Return the candidates of a name that the file does not bind."""
    targets = f.resolver.targets_of_unbound(f.file, name)
    if targets:
        return refs.rate_alternatives(targets, "star_import")
    if name in BUILTINS or name in MODULE_STRINGS:
        return [Candidate(f.resolver.external(f"builtins.{name}"), "builtin", refs.BY_RULE)]
    stars = [star for star in star_imports(f.values, f.file) if not f.values.modules.has(star)]
    return [Candidate(f.resolver.external(f"{star}.{name}"), "star_import", refs.HINTED) for star in stars]


def add_imports(f: FileRows) -> None:
    """Add rows of the modules and names that are imported, and of those that the module exports again."""
    program = f.program
    for number, each in enumerate(program.imports):
        name = f.values.modules.absolute(program.path, each.module, each.level)
        module = [] if name is None else [f.resolver.module(name)]
        is_external = bool(module) and module[0].kind == "EXTERNAL_MODULE"
        role = (distribution(name) or None) if name is not None and is_external else None
        ref = f.reference("IMPORTS_MODULE", "IMPORT_ALIAS", each.place, "import", "imports", role)
        refs.add_candidates(f, ref, refs.rate_alternatives(module, "import"), "above_all_packages")
        if name is None or each.name is None or each.bound is None:
            continue
        candidates = refs.rate_alternatives(f.resolver.search(("import", f.file, number)), "import")
        ref = Reference("IMPORTS_NAME", ref.src, each.place, "import", "imports")
        refs.add_candidates(f, ref, candidates, "name_not_found", f.claims.name(each.place))
        is_of_module = each.scope_id == scope_id(key_of(program.file_id))
        # By `__all__`; without one only a package exports what it imports.
        may_export = program.exported is not None or program.path.rpartition("/")[2] in INITS
        if is_of_module and may_export and is_exported(each.bound, program.exported):
            ref = Reference("RE_EXPORTS", f.module[:2], each.place, "re_export", "imports", each.bound)
            for candidate in candidates:
                if candidate.target.kind in RE_EXPORTED and candidate.target != f.module:
                    refs.add_candidates(f, ref, [candidate])


def add_classes(f: FileRows) -> None:
    """Add rows of the bases of classes and of the methods that override others."""
    # Builtins by the places of the names that nothing in the file binds.
    builtins = {place[:2]: f"builtins.{name}" for place, name in f.program.unbound_uses}
    for number, cls in enumerate(f.program.classes):
        obj = f.values.object(OBJ_CLASS, f.file, number)
        target = f.resolver.cls(f.file, number)
        if obj in f.values.classes.inconsistent:
            message = f"the bases of {cls.qualname} have no consistent order (MRO)"
            f.rows.diagnostics.append(
                RelationDiagnostic("relate", "inconsistent_mro", message, cls.place, "error")
            )
        for node, place, ordinal in cls.bases:
            bases = program_objects(f.values, f.file, node)
            targets = [each for base in bases for each in _class_targets(f, base)]
            # If it is the builtin that the name at this place refers to.
            builtin = ("QUALIFIED_NAME", builtins.get(place[:2]))
            candidates = [
                Candidate(each.target, "builtin", refs.BY_RULE)
                if (each.target.kind, each.target.qname) == builtin
                else each
                for each in refs.rate_targets(f, targets, bases, place)
            ]
            ref = Reference("INHERITS", target[:2], place, "base", ordinal=ordinal)
            refs.add_candidates(f, ref, candidates, "unknown_base")
        _add_ancestors(f, obj, cls.place)
        _add_overrides(f, obj, cls)


def _add_ancestors(f: FileRows, cls: Object, place: Place) -> None:
    """Add a row per class above the direct bases, nearest first."""
    reached = list(dict.fromkeys((cls, *_direct_bases(f, cls))))
    first = len(reached)
    for each in reached:
        if len(reached) >= MAX_ANCESTORS:
            break
        # The loop goes on with these.
        reached += [base for base in _direct_bases(f, each) if base not in reached]
    [target] = _class_targets(f, cls)
    for number, base in enumerate(reached[first:MAX_ANCESTORS]):
        ref = Reference("HAS_ANCESTOR", target[:2], place, "ancestor", "classes", ordinal=number)
        if candidates := refs.rate_alternatives(_class_targets(f, base), "mro"):
            refs.add_candidates(f, ref, candidates)


def _direct_bases(f: FileRows, cls: Object) -> dict[Object, None]:
    """Return all candidates of the bases of a class."""
    if f.values.kind[cls] != OBJ_CLASS:
        return {}
    file, declared = f.values.cls(cls)
    bases = (base for node, _, _ in declared.bases for base in program_objects(f.values, file, node))
    return dict.fromkeys(map(strong, bases))


def _add_overrides(f: FileRows, obj: Object, cls: Class) -> None:
    for name, (_, numbers) in cls.attrs.items():
        holder = defining_class(f.values, obj, name, after=obj)
        if not f.values.is_repository_class(holder):
            continue
        members = f.resolver.targets_in_class(holder, name)
        overridden = [target for target in members if target.kind == "FUNCTION"]
        for definition in map(f.program.definitions.__getitem__, numbers):
            if definition.kind == FUNCTION and overridden:
                src = f.resolver.function(f.file, definition.index)[:2]
                ref = Reference("OVERRIDES", src, definition.place, "override", "classes")
                refs.add_candidates(f, ref, refs.rate_alternatives(overridden, "mro"))


def _class_targets(f: FileRows, obj: Object) -> list[Target]:
    kind, first, second, _ = f.values.objects[obj]
    if kind == OBJ_CLASS:
        return [f.resolver.cls(first, second)]
    return [f.resolver.external(first)] if kind == OBJ_EXTERNAL else []


def add_texts(f: FileRows) -> None:
    """Add rows of definitions that are named in strings: entry points, as the catalogue calls them."""
    reached: set[tuple[str, str, str]] = set()
    for place, ast_id, text, group in f.program.dotted_texts:
        label, qname = split_text(text)
        # In packaging, `web = shop.web:run` declares a program or a plugin of this name, in a group.
        role, framework = ("plugin", group or "setuptools") if label else ("text", "python")
        role = "command" if framework in PROGRAM_GROUPS else role
        if (label, framework, qname) in reached:
            continue
        reached.add((label, framework, qname))
        for target in f.resolver.named_in_texts.get(qname, ()):
            ref = Reference(
                "ENTRY_POINT", ("AST_NODE", f.ids.ast(ast_id)), place, framework, "entry_points", role
            )
            is_declared = label and group
            refs.add_candidates(
                f, ref, [Candidate(target, "text", refs.BY_RULE if is_declared else refs.AMBIGUOUS)]
            )


def add_decorators(f: FileRows) -> None:
    for place, kind, number, _ in f.program.decorators:
        find = f.resolver.function if kind == FUNCTION else f.resolver.cls
        candidates = [Candidate(find(f.file, number), "syntax", refs.CERTAIN)]
        refs.add_candidates(
            f, f.reference("DECORATES", "DECORATOR", place, "decorator", "syntax"), candidates
        )
