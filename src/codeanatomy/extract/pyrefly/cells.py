"""A module of a pyrefly report as cells: what runs at each place of a file, and of which class a thing is.

    h.base.run()     call_targets: call, pkg.base.Base.run, receiver_class pkg.base.Base, an override may run
                     expression_types: `h` pkg.use.Holder, `h.base` pkg.base.Base
    Base(path)       call_targets: init, pkg.base.Base.__init__, receiver_class pkg.base.Base
    for x in h: ...  call_targets at `h`: iteration, pkg.use.Holder.__iter__
    unknown()        unresolved_calls: call, UnexpectedPyreflyTarget

The tool has a word for each way in which a function runs without a call; `FORMS` makes fewer of them. A name
or attribute that is a function, but not called, is a `reference` to what would run. Left out are slices and
formatted strings as such, and `object.__new__`, which says nothing. Of types only those with a class or a
module are kept, because only these decide what an attribute is, and long ones are cut.

Rows are sorted and unique; a position that is not in the file has a null span, and a warning counts them.

Tests: `tests/unit/extract/test_pyrefly_report.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from codeanatomy.extract.evidence import MESSAGE_CHARS, ExtractorResult, Problem
from codeanatomy.extract.pyrefly.names import NO_SPAN, Names, Span, placed, places_of
from codeanatomy.extract.pyrefly.report import (
    Callees,
    CallGraphs,
    FunctionRef,
    KnownType,
    Module,
    Target,
    Types,
    read_part,
)
from codeanatomy.sources.source_file import Source

FORMS = {
    "comparison": "operator",
    "binary": "operator",
    "augmented-assign-dunder-call": "operator",
    "subscript-get-item": "subscript",
    "subscript-set-item": "subscript",
    "for-iter": "iteration",
    "for-next": "iteration",
    "generator-iter": "iteration",
    "generator-next": "iteration",
    "with-enter": "with",
    "for-decorated-target": "decorator",
    "repr-call": "dunder",
    "abs-call": "dunder",
    "iter-call": "dunder",
    "next-call": "dunder",
    "str-call-to-dunder-method": "dunder",
}
OTHER = "other"
# Not told: they run nothing that a reader would call a function.
SILENT = frozenset({"slice"})
ARTIFICIAL_CALL = "artificial-call|"
OVERRIDES = "Overrides"
NOT_NEW = "builtins.object.__new__"
# How a class may occur in a type: these leave a thing an instance of it, or the class itself.
INSTANCE = frozenset({"Optional", "TypeVariableBound", "TypeVariableConstraint"})
CLASS_OBJECT = "Type"
MODULE_TYPE = "Module["
TYPE_CHARS = 256

TARGET_FIELDS = (
    *("call_bstart", "call_bend", "call_form", "argument_index", "target_module", "target_name"),
    *("target_path", "target_bstart", "target_bend", "receiver_class", "is_override_candidate"),
)
UNRESOLVED_FIELDS = ("call_bstart", "call_bend", "call_form", "reason")
TYPE_FIELDS = ("bstart", "bend", "type_repr", "class_names", "class_object_names", "is_exhaustive")

Row: TypeAlias = tuple[Any, ...]


def module_cells(names: Names, modules: Sequence[Module], source: Source) -> ExtractorResult:
    """The cells of a file's row; it may be several modules, if it can be imported by several names."""
    try:
        return _cells(names, modules, source)
    # Never raising is the contract of every witness, and the report may say anything.
    except Exception as problem:  # noqa: BLE001
        said = f"{type(problem).__name__}: {problem}"
        return ExtractorResult({}, (Problem("error", "read", "corrupt_report", said[:MESSAGE_CHARS]),))


def _cells(names: Names, modules: Sequence[Module], source: Source) -> ExtractorResult:
    if not modules:
        said = "the type checker does not report this file"
        return ExtractorResult({}, (Problem("error", "read", "missing_module", said),))
    if any(module.failed_to_load for module in modules):
        said = "the type checker cannot load the file: it reads UTF-8 only"
        return ExtractorResult({}, (Problem("error", "read", "undecodable", said),))
    collected = _Collected(names, source)
    for module in modules:
        graphs = read_part(names.part(module, "call_graphs"), CallGraphs)
        if isinstance(graphs, Problem):
            return ExtractorResult({}, (graphs,))
        types = read_part(names.part(module, "type_of_expressions"), Types)
        if isinstance(types, Problem):
            return ExtractorResult({}, (types,))
        collected.add_calls(graphs)
        collected.add_types(types)
    return ExtractorResult(collected.cells(), collected.problems())


class _Collected:
    """The rows of a file, as they are found."""

    def __init__(self, names: Names, source: Source) -> None:
        self.names = names
        self.places = places_of(source)
        self.targets: set[Row] = set()
        self.unresolved: set[Row] = set()
        self.types: set[Row] = set()
        # Modules whose definitions were asked for.
        self.met: set[int] = set()
        self.lost: set[str] = set()

    def cells(self) -> dict[str, dict[str, list[Any]]]:
        return {
            "call_targets": _columns(TARGET_FIELDS, self.targets),
            "unresolved_calls": _columns(UNRESOLVED_FIELDS, self.unresolved),
            "expression_types": _columns(TYPE_FIELDS, self.types),
        }

    def problems(self) -> tuple[Problem, ...]:
        found = [*self.places.problems(), *self.names.problems(self.met)]
        if self.lost:
            said = f"{len(self.lost)} targets cannot be placed in their files, the first: {min(self.lost)}"
            found.append(Problem("warning", "convert", "span", said[:MESSAGE_CHARS]))
        return tuple(found)

    def add_calls(self, graphs: CallGraphs) -> None:
        for places in graphs.call_graphs.values():
            for key, kinds in places.items():
                location, _, how = key.partition("|")
                form = _form(how)
                told = [] if form in SILENT else [each for each in kinds.values() if _tells(each)]
                span = placed(self.places, location) if told else NO_SPAN
                for callees in told:
                    self._add_callees(span, form, callees)

    def _add_callees(self, span: Span, form: str, callees: Callees) -> None:
        implicit = form or "call"
        self._add(span, implicit, (*callees.call_targets, *callees.targets))
        self._add(span, form or "init", callees.init_targets)
        self._add(span, form or "new", callees.new_targets)
        self._add(span, "property", (*callees.property_getters, *callees.property_setters))
        self._add_unresolved(span, implicit, callees)
        for argument in callees.higher_order_parameters.values():
            self._add(span, "argument", (*argument.call_targets, *argument.init_targets), argument.index)
            self._add_unresolved(span, "argument", argument)
        if callees.if_called is not None:
            named = callees.if_called
            self._add(span, "reference", (*named.call_targets, *named.init_targets))

    def _add(self, span: Span, form: str, targets: Iterable[Target], index: int | None = None) -> None:
        for target in targets:
            for kind, ref in _functions(target):
                function = self.names.function(ref)
                self.met.add(ref.module_id)
                if function.name == NOT_NEW:
                    continue
                if function.is_lost:
                    self.lost.add(function.name)
                where = (function.module, function.name, function.path, *function.span)
                receiver = self._class_name(target)
                self.targets.add((*span, form, index, *where, receiver, kind == OVERRIDES))

    def _class_name(self, target: Target) -> str | None:
        if target.receiver_class is None:
            return None
        self.met.add(target.receiver_class.module_id)
        return self.names.class_name(target.receiver_class)

    def _add_unresolved(self, span: Span, form: str, callees: Callees) -> None:
        if isinstance(callees.unresolved, dict):
            for reason in callees.unresolved.values():
                self.unresolved.add((*span, form, reason))

    def add_types(self, types: Types) -> None:
        for table in types.functions.values():
            # Each type is looked at once, though it may stand at many places.
            told = {number: self._type(known) for number, known in enumerate(table.type_table)}
            for location, number in table.locations.items():
                row = told.get(number)
                if row is not None:
                    self.types.add((*placed(self.places, location), *row))

    def _type(self, known: KnownType) -> Row | None:
        text = known.string[:TYPE_CHARS]
        if known.class_names is None:
            return (text, (), (), False) if text.startswith(MODULE_TYPE) else None
        instances, objects, whole = set(), set(), known.class_names.is_exhaustive
        for each in known.class_names.classes:
            self.met.add(each.class_ref.module_id)
            modifiers = set(each.modifiers)
            if modifiers <= INSTANCE:
                instances.add(self.names.class_name(each.class_ref))
            elif modifiers - INSTANCE == {CLASS_OBJECT}:
                objects.add(self.names.class_name(each.class_ref))
            else:
                # Behind something else, such as a coroutine.
                whole = False
        return text, tuple(sorted(instances)), tuple(sorted(objects)), whole


def _form(how: str) -> str:
    """The form of what is at a place, by the end of its key; empty where the callees tell it."""
    if how == "format-string-stringify":
        return "format"
    if not how.startswith(ARTIFICIAL_CALL):
        return ""
    # The assignment `a[i] = b[j] = x` is `chained-assign:1>subscript-set-item`.
    kind = how[len(ARTIFICIAL_CALL) :].rpartition(">")[2]
    return kind if kind in SILENT else FORMS.get(kind, OTHER)


def _tells(callees: Callees) -> bool:
    """Whether there is anything in it that becomes a row."""
    return callees != Callees()


def _functions(target: Target) -> Iterator[tuple[str, FunctionRef]]:
    if isinstance(target.target, dict):
        yield from target.target.items()


def _columns(fields: Sequence[str], rows: Iterable[Row]) -> dict[str, list[Any]]:
    ordered = sorted(rows, key=lambda row: [(cell is not None, cell) for cell in row])
    return {
        name: [list(row[place]) if isinstance(row[place], tuple) else row[place] for row in ordered]
        for place, name in enumerate(fields)
    }
