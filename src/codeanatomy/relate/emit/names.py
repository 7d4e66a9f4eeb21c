"""Rows of names, imports, classes and decorators: what scope and import rules say.

    from .models import User as U    IMPORTS_MODULE alias -> pkg.models, IMPORTS_NAME alias -> class User
    class Admin(U):                  REFERS_TO U -> class User, INHERITS Admin -> User
        def save(self): ...          OVERRIDES Admin.save -> User.save

Tests: `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from codeanatomy.node_ids import module_id
from codeanatomy.relate.emit.references import HINTED, SCOPED, SEVERAL, SURE, Answer, Answers
from codeanatomy.relate.program import FUNCTION, Place, Use
from codeanatomy.relate.relation_rows import Complaint
from codeanatomy.relate.values.attributes import MODULE_STRINGS, is_exported
from codeanatomy.relate.values.external_names import BUILTINS
from codeanatomy.relate.values.modules import INITS, distribution
from codeanatomy.relate.values.name_resolution import MODULE_KEY, Target
from codeanatomy.relate.values.solver import Object

# What a module can hand on that is of the repository.
RE_EXPORTED = frozenset({"FUNCTION", "CLASS", "BINDING", "MODULE"})


class NameRows(Answers):
    """The rows that need no values, and those of classes."""

    def _names(self) -> None:
        values, program = self.values, self.program
        # A name is read more often than it is given a meaning.
        found: dict[tuple[object, ...], tuple[Sequence[Target], Sequence[Answer]]] = {}
        for use in program.uses:
            meaning = (use.name, *use.definitions)
            if meaning not in found:
                found[meaning] = self._meaning(use)
            known, answers = found[meaning]
            self.answer(
                "REFERS_TO",
                "NAME_REF",
                self.at("NAME_REF", use.place),
                use.place,
                answers,
                rule="name",
                origin="scopes",
                reason="import_not_found",
                claims=self.claims.name(use.place),
                known=known,
            )
        for place, name in program.open_uses:
            src = self.at("NAME_REF", place)
            targets = self.definitions.targets_of_unbound(self.file, name)
            if targets:
                answers = [
                    Answer(each, "star_import", SCOPED if len(targets) == 1 else SEVERAL) for each in targets
                ]
            elif name in BUILTINS or name in MODULE_STRINGS:
                answers = [Answer(self.definitions.external(f"builtins.{name}"), "builtin", SCOPED)]
            else:
                stars = [star for star in values.star_imports(self.file) if not values.modules.has(star)]
                answers = [
                    Answer(self.definitions.external(f"{star}.{name}"), "star_import", HINTED)
                    for star in stars
                ]
            self.answer(
                "REFERS_TO",
                "NAME_REF",
                src,
                place,
                answers,
                rule="open_name",
                origin="scopes",
                reason="unbound",
                claims=self.claims.name(place),
            )

    def _meaning(self, use: Use) -> tuple[Sequence[Target], Sequence[Answer]]:
        """All that a name may mean, and what of that we answer: no variables, if there is anything else."""
        known = self.definitions.targets_of_definitions(self.file, use.definitions, use.name)
        targets = [each for each in known if each.kind != "BINDING"] or known
        method = "import" if self._is_imported(use.definitions) else "scope"
        return known, [Answer(each, method, SCOPED if len(targets) == 1 else SEVERAL) for each in targets]

    def _imports(self) -> None:
        values, program = self.values, self.program
        for number, each in enumerate(program.imports):
            src = self.at("IMPORT_ALIAS", each.place)
            name = values.modules.absolute(program.path, each.module, each.level)
            if name is None:
                self.answer(
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
            module = self.definitions.module(name)
            role = distribution(name) if module.kind == "EXTERNAL_MODULE" else None
            self.answer(
                "IMPORTS_MODULE",
                "IMPORT_ALIAS",
                src,
                each.place,
                [Answer(module, "import", SCOPED)],
                rule="import",
                origin="imports",
                role=role or None,
            )
            if each.name is None or each.bound is None:
                continue
            targets = self.definitions.targets_of_import(self.file, number)
            answers = [Answer(one, "import", SCOPED if len(targets) == 1 else SEVERAL) for one in targets]
            self.answer(
                "IMPORTS_NAME",
                "IMPORT_ALIAS",
                src,
                each.place,
                answers,
                rule="import",
                origin="imports",
                reason="name_not_found",
                claims=self.claims.name(each.place),
            )
            if each.scope_key == MODULE_KEY and self._is_exported(each.bound):
                self._re_exports(each.bound, each.place, answers)

    def _is_exported(self, name: str) -> bool:
        """Whether a name that a module imports is meant for others: by `__all__`, else in a package."""
        exported = self.program.exported
        is_package = self.program.path.rpartition("/")[2] in INITS
        return is_exported(name, exported) and (exported is not None or is_package)

    def _re_exports(self, name: str, place: Place, answers: Sequence[Answer]) -> None:
        mine = Target("MODULE", module_id(self.program.file_id), self.values.names[self.file])
        for one in answers:
            if one.target.kind in RE_EXPORTED and one.target != mine:
                self.answer(
                    "RE_EXPORTS",
                    "MODULE",
                    mine.node,
                    place,
                    [one],
                    rule="re_export",
                    origin="imports",
                    role=name,
                )

    def _classes(self) -> None:
        values, program = self.values, self.program
        for number, cls in enumerate(program.classes):
            thing = values.object("C", self.file, number)
            src = self.at("CLASS", cls.place)
            if thing in values.inconsistent:
                said = f"the bases of {cls.qualname} have no consistent order (MRO)"
                self.rows.complaints.append(Complaint("relate", "inconsistent_mro", said, cls.place, "error"))
            for node, place, ordinal in cls.bases:
                things = values.program_objects(self.file, node) if node >= 0 else ()
                targets = [one for each in things for one in self._class_target(each)]
                answers = [self._builtin(one, place) for one in self._trusted(targets, things, place)]
                self.answer(
                    "INHERITS",
                    "CLASS",
                    src,
                    place,
                    answers,
                    rule="base",
                    ordinal=ordinal,
                    reason="unknown_base",
                )
            for name, (_, numbers) in cls.attrs.items():
                holder = values.defining_class(thing, name, after=thing)
                if not values.is_repository_class(holder):
                    continue
                over = [one for one in self.definitions.targets_in_class(holder, name) if one.kind == "FUNCTION"]
                for definition in numbers:
                    if program.definitions[definition].kind == FUNCTION and over:
                        mine = self.definitions.function(self.file, program.definitions[definition].index)
                        place = program.definitions[definition].place
                        answers = [Answer(one, "mro", SCOPED if len(over) == 1 else SEVERAL) for one in over]
                        self.answer(
                            "OVERRIDES",
                            "FUNCTION",
                            mine.node,
                            place,
                            answers,
                            rule="override",
                            origin="classes",
                        )

    def _builtin(self, answer: Answer, place: Place) -> Answer:
        """Surer, if it is the builtin that a name at this place means."""
        target = answer.target
        is_outside = target.kind == "QUALIFIED_NAME" and (target.qname or "").startswith("builtins.")
        if not is_outside or self._open_names.get((place[0], place[1])) != target.qname:
            return answer
        return Answer(target, "builtin", SCOPED)

    @cached_property
    def _open_names(self) -> dict[tuple[int | None, int | None], str]:
        """Builtins by the places of the names that nothing in the file binds."""
        return {(place[0], place[1]): f"builtins.{name}" for place, name in self.program.open_uses}

    def _class_target(self, thing: Object) -> list[Target]:
        kind, one, two, _ = self.values.objects[thing >> 1]
        if kind == "C":
            return [self.definitions.cls(one, two)]
        return [self.definitions.external(one)] if kind == "X" else []

    def _decorators(self) -> None:
        for place, kind, number, _ in self.program.decorators:
            is_function = kind == FUNCTION
            target = (
                self.definitions.function(self.file, number)
                if is_function
                else self.definitions.cls(self.file, number)
            )
            self.answer(
                "DECORATES",
                "DECORATOR",
                self.at("DECORATOR", place),
                place,
                [Answer(target, "syntax", SURE)],
                rule="decorator",
                origin="syntax",
            )
