"""Emit rows of names, imports, classes and decorators, resolved by scope and import rules.

    from .models import User as U    IMPORTS_MODULE alias -> pkg.models, IMPORTS_NAME alias -> class User
    class Admin(U):                  REFERS_TO U -> class User, INHERITS Admin -> User
        def save(self): ...          OVERRIDES Admin.save -> User.save

Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from codeanatomy.node_ids import key_of, module_id, scope_id
from codeanatomy.relate.emit.references import (
    AMBIGUOUS,
    BY_RULE,
    CERTAIN,
    HINTED,
    Candidate,
    ReferenceRows,
)
from codeanatomy.relate.program import FUNCTION, OBJ_CLASS, OBJ_EXTERNAL, Place, Use
from codeanatomy.relate.relation_rows import RelationDiagnostic
from codeanatomy.relate.values.attributes import MODULE_STRINGS, is_exported
from codeanatomy.relate.values.external_names import BUILTINS
from codeanatomy.relate.values.modules import INITS, distribution
from codeanatomy.relate.values.name_resolution import Target
from codeanatomy.relate.values.solver import Object

# Kinds of nodes that a module can re-export.
RE_EXPORTED = frozenset({"FUNCTION", "CLASS", "BINDING", "MODULE"})


class NameRows(ReferenceRows):
    """Rows of names, imports and decorators, which need no values, and of classes."""

    def _add_names(self) -> None:
        values, program = self.values, self.program
        # Names are read more often than defined: resolve each (name, definitions) once.
        resolved: dict[tuple[object, ...], tuple[Sequence[Target], Sequence[Candidate]]] = {}
        for use in program.uses:
            key = (use.name, *use.definitions)
            if key not in resolved:
                resolved[key] = self._resolve(use)
            meanings, candidates = resolved[key]
            self.add_candidates(
                "REFERS_TO",
                "NAME_REF",
                self.node_at("NAME_REF", use.place),
                use.place,
                candidates,
                rule="name",
                origin="scopes",
                reason="import_not_found",
                claims=self.claims.name(use.place),
                alternatives=meanings,
            )
        for place, name in program.unbound_uses:
            src = self.node_at("NAME_REF", place)
            targets = self.resolver.targets_of_unbound(self.file, name)
            if targets:
                candidates = [Candidate(each, "star_import", _by_rule(targets)) for each in targets]
            elif name in BUILTINS or name in MODULE_STRINGS:
                candidates = [Candidate(self.resolver.external(f"builtins.{name}"), "builtin", BY_RULE)]
            else:
                stars = [star for star in values.star_imports(self.file) if not values.modules.has(star)]
                candidates = [
                    Candidate(self.resolver.external(f"{star}.{name}"), "star_import", HINTED)
                    for star in stars
                ]
            self.add_candidates(
                "REFERS_TO",
                "NAME_REF",
                src,
                place,
                candidates,
                rule="open_name",
                origin="scopes",
                reason="unbound",
                claims=self.claims.name(place),
            )

    def _resolve(self, use: Use) -> tuple[Sequence[Target], Sequence[Candidate]]:
        """Return all meanings of a name, and its candidates: variables only if there is nothing else."""
        meanings = self.resolver.targets_of_definitions(self.file, use.definitions, use.name)
        targets = [each for each in meanings if each.kind != "BINDING"] or meanings
        method = "import" if self._is_imported(use.definitions) else "scope"
        return meanings, [Candidate(each, method, _by_rule(targets)) for each in targets]

    def _add_imports(self) -> None:
        values, program = self.values, self.program
        for number, each in enumerate(program.imports):
            src = self.node_at("IMPORT_ALIAS", each.place)
            name = values.modules.absolute(program.path, each.module, each.level)
            if name is None:
                self.add_candidates(
                    "IMPORTS_MODULE",
                    "IMPORT_ALIAS",
                    src,
                    each.place,
                    [],
                    rule="import",
                    origin="imports",
                    reason="above_all_packages",
                )
                continue
            module = self.resolver.module(name)
            role = distribution(name) if module.kind == "EXTERNAL_MODULE" else None
            self.add_candidates(
                "IMPORTS_MODULE",
                "IMPORT_ALIAS",
                src,
                each.place,
                [Candidate(module, "import", BY_RULE)],
                rule="import",
                origin="imports",
                role=role or None,
            )
            if each.name is None or each.bound is None:
                continue
            targets = self.resolver.targets_of_import(self.file, number)
            candidates = [Candidate(target, "import", _by_rule(targets)) for target in targets]
            self.add_candidates(
                "IMPORTS_NAME",
                "IMPORT_ALIAS",
                src,
                each.place,
                candidates,
                rule="import",
                origin="imports",
                reason="name_not_found",
                claims=self.claims.name(each.place),
            )
            if each.scope_id == scope_id(key_of(self.program.file_id)) and self._is_exported(each.bound):
                self._add_re_exports(each.bound, each.place, candidates)

    def _is_exported(self, name: str) -> bool:
        """Whether an imported name is exported again: by `__all__`, without one only in a package."""
        exported = self.program.exported
        is_package = self.program.path.rpartition("/")[2] in INITS
        return is_exported(name, exported) and (exported is not None or is_package)

    def _add_re_exports(self, name: str, place: Place, candidates: Sequence[Candidate]) -> None:
        module = Target("MODULE", module_id(self.program.file_id), self.values.names[self.file])
        for candidate in candidates:
            if candidate.target.kind in RE_EXPORTED and candidate.target != module:
                self.add_candidates(
                    "RE_EXPORTS",
                    "MODULE",
                    module.node,
                    place,
                    [candidate],
                    rule="re_export",
                    origin="imports",
                    role=name,
                )

    def _add_classes(self) -> None:
        values, program = self.values, self.program
        for number, cls in enumerate(program.classes):
            obj = values.object(OBJ_CLASS, self.file, number)
            src = self.resolver.cls(self.file, number).node
            if obj in values.inconsistent:
                message = f"the bases of {cls.qualname} have no consistent order (MRO)"
                self.rows.diagnostics.append(
                    RelationDiagnostic("relate", "inconsistent_mro", message, cls.place, "error")
                )
            for node, place, ordinal in cls.bases:
                bases = values.program_objects(self.file, node) if node >= 0 else ()
                targets = [target for base in bases for target in self._class_targets(base)]
                candidates = [
                    self._rate_builtin(each, place) for each in self._candidates(targets, bases, place)
                ]
                self.add_candidates(
                    "INHERITS",
                    "CLASS",
                    src,
                    place,
                    candidates,
                    rule="base",
                    ordinal=ordinal,
                    reason="unknown_base",
                )
            for name, (_, numbers) in cls.attrs.items():
                holder = values.defining_class(obj, name, after=obj)
                if not values.is_repository_class(holder):
                    continue
                overridden = [
                    target
                    for target in self.resolver.targets_in_class(holder, name)
                    if target.kind == "FUNCTION"
                ]
                for definition in numbers:
                    if program.definitions[definition].kind == FUNCTION and overridden:
                        method = self.resolver.function(self.file, program.definitions[definition].index)
                        self.add_candidates(
                            "OVERRIDES",
                            "FUNCTION",
                            method.node,
                            program.definitions[definition].place,
                            [Candidate(target, "mro", _by_rule(overridden)) for target in overridden],
                            rule="override",
                            origin="classes",
                        )

    def _rate_builtin(self, candidate: Candidate, place: Place) -> Candidate:
        """Raise the confidence if the candidate is the builtin that the name at this place refers to."""
        target = candidate.target
        is_builtin = target.kind == "QUALIFIED_NAME" and (target.qname or "").startswith("builtins.")
        if not is_builtin or self._builtin_names.get((place[0], place[1])) != target.qname:
            return candidate
        return Candidate(target, "builtin", BY_RULE)

    @cached_property
    def _builtin_names(self) -> dict[tuple[int | None, int | None], str]:
        """Qualified names of builtins, by the places of the names that nothing in the file binds."""
        return {(place[0], place[1]): f"builtins.{name}" for place, name in self.program.unbound_uses}

    def _class_targets(self, obj: Object) -> list[Target]:
        kind, first, second, _ = self.values.objects[obj >> 1]
        if kind == OBJ_CLASS:
            return [self.resolver.cls(first, second)]
        return [self.resolver.external(first)] if kind == OBJ_EXTERNAL else []

    def _add_decorators(self) -> None:
        for place, kind, number, _ in self.program.decorators:
            target = (
                self.resolver.function(self.file, number)
                if kind == FUNCTION
                else self.resolver.cls(self.file, number)
            )
            self.add_candidates(
                "DECORATES",
                "DECORATOR",
                self.node_at("DECORATOR", place),
                place,
                [Candidate(target, "syntax", CERTAIN)],
                rule="decorator",
                origin="syntax",
            )


def _by_rule(targets: Sequence[Target]) -> float:
    """Return the confidence of targets that scope and import rules give."""
    return BY_RULE if len(targets) == 1 else AMBIGUOUS
