"""Convert a module of a pyrefly report to cells: call targets, unresolved calls and types of expressions.

    h.base.run()     call_targets: call, pkg.base.Base.run, receiver_class pkg.base.Base, or an override
                     expression_types: `h` pkg.use.Holder, `h.base` pkg.base.Base
    Base(path)       call_targets: init, pkg.base.Base.__init__, receiver_class pkg.base.Base
    for x in h: ...  call_targets at `h`: iteration, pkg.use.Holder.__iter__
    unknown()        unresolved_calls: call, UnexpectedPyreflyTarget

The tool has a name for each kind of implicit call; `FORMS` maps them to fewer kinds. A name or attribute that
is a function, but not called, is a `reference` to the function. Left out are slices and formatted strings as
such, and `object.__new__`, which has no information. Only types with a class or a module are kept, because
only these are needed to resolve attributes, and long ones are cut.

Rows are sorted and unique; a position that is not in the file has a null span, and a warning counts these.

Tests: `tests/unit/extract/test_pyrefly_report.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from codeanatomy.extract.evidence import MESSAGE_CHARS, ExtractorResult, Problem
from codeanatomy.extract.pyrefly.names import NO_SPAN, ReportNames, Span, positions_in, span_of
from codeanatomy.extract.pyrefly.report import (
    Callees,
    CallTarget,
    FunctionRef,
    KnownType,
    ModuleCallGraphs,
    ModuleTypes,
    ReportedModule,
    read_report_file,
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
# Implicit calls that are left out, because they call no function of interest.
IGNORED_FORMS = frozenset({"slice"})
ARTIFICIAL_CALL = "artificial-call|"
OVERRIDES = "Overrides"
OBJECT_NEW = "builtins.object.__new__"
# Modifiers of a class in a type: with these, the value is still an instance of it, or the class itself.
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


def module_cells(names: ReportNames, modules: Sequence[ReportedModule], source: Source) -> ExtractorResult:
    """Return the cells of a file's row; a file is several modules if it can be imported by several names."""
    try:
        return _cells(names, modules, source)
    # Never raising is the contract of every extractor, and the report may contain anything.
    except Exception as error:  # noqa: BLE001
        message = f"{type(error).__name__}: {error}"
        return ExtractorResult({}, (Problem("error", "read", "corrupt_report", message[:MESSAGE_CHARS]),))


def _cells(names: ReportNames, modules: Sequence[ReportedModule], source: Source) -> ExtractorResult:
    if not modules:
        message = "the type checker does not report this file"
        return ExtractorResult({}, (Problem("error", "read", "missing_module", message),))
    if any(module.failed_to_load for module in modules):
        message = "the type checker cannot load the file: it reads UTF-8 only"
        return ExtractorResult({}, (Problem("error", "read", "undecodable", message),))
    collector = _RowCollector(names, source)
    for module in modules:
        graphs = read_report_file(names.report_file(module, "call_graphs"), ModuleCallGraphs)
        if isinstance(graphs, Problem):
            return ExtractorResult({}, (graphs,))
        types = read_report_file(names.report_file(module, "type_of_expressions"), ModuleTypes)
        if isinstance(types, Problem):
            return ExtractorResult({}, (types,))
        collector.add_calls(graphs)
        collector.add_types(types)
    return ExtractorResult(collector.cells(), collector.problems())


class _RowCollector:
    """Collect the rows of a file."""

    def __init__(self, names: ReportNames, source: Source) -> None:
        self.names = names
        self.positions = positions_in(source)
        self.targets: set[Row] = set()
        self.unresolved: set[Row] = set()
        self.types: set[Row] = set()
        # Modules whose definitions were used.
        self.module_ids: set[int] = set()
        # Names of functions with a location that is not in their file.
        self.misplaced: set[str] = set()

    def cells(self) -> dict[str, dict[str, list[Any]]]:
        return {
            "call_targets": _columns(TARGET_FIELDS, self.targets),
            "unresolved_calls": _columns(UNRESOLVED_FIELDS, self.unresolved),
            "expression_types": _columns(TYPE_FIELDS, self.types),
        }

    def problems(self) -> tuple[Problem, ...]:
        problems = [*self.positions.problems(), *self.names.problems(self.module_ids)]
        if self.misplaced:
            count, first = len(self.misplaced), min(self.misplaced)
            message = f"{count} targets cannot be placed in their files, the first: {first}"
            problems.append(Problem("warning", "convert", "span", message[:MESSAGE_CHARS]))
        return tuple(problems)

    def add_calls(self, graphs: ModuleCallGraphs) -> None:
        for locations in graphs.call_graphs.values():
            for key, kinds in locations.items():
                location, _, origin = key.partition("|")
                form = _form(origin)
                used = [] if form in IGNORED_FORMS else [each for each in kinds.values() if _has_rows(each)]
                span = span_of(self.positions, location) if used else NO_SPAN
                for callees in used:
                    self._add_callees(span, form, callees)

    def _add_callees(self, span: Span, form: str, callees: Callees) -> None:
        call_form = form or "call"
        self._add(span, call_form, (*callees.call_targets, *callees.targets))
        self._add(span, form or "init", callees.init_targets)
        self._add(span, form or "new", callees.new_targets)
        self._add(span, "property", (*callees.property_getters, *callees.property_setters))
        self._add_unresolved(span, call_form, callees)
        for argument in callees.higher_order_parameters.values():
            self._add(span, "argument", (*argument.call_targets, *argument.init_targets), argument.index)
            self._add_unresolved(span, "argument", argument)
        if callees.if_called is not None:
            referenced = callees.if_called
            self._add(span, "reference", (*referenced.call_targets, *referenced.init_targets))

    def _add(self, span: Span, form: str, targets: Iterable[CallTarget], index: int | None = None) -> None:
        for target in targets:
            for kind, ref in _functions(target):
                function = self.names.function(ref)
                self.module_ids.add(ref.module_id)
                if function.name == OBJECT_NEW:
                    continue
                if function.is_misplaced:
                    self.misplaced.add(function.name)
                columns = (function.module, function.name, function.path, *function.span)
                receiver = self._receiver_name(target)
                self.targets.add((*span, form, index, *columns, receiver, kind == OVERRIDES))

    def _receiver_name(self, target: CallTarget) -> str | None:
        if target.receiver_class is None:
            return None
        self.module_ids.add(target.receiver_class.module_id)
        return self.names.class_name(target.receiver_class)

    def _add_unresolved(self, span: Span, form: str, callees: Callees) -> None:
        if isinstance(callees.unresolved, dict):
            for reason in callees.unresolved.values():
                self.unresolved.add((*span, form, reason))

    def add_types(self, types: ModuleTypes) -> None:
        for table in types.functions.values():
            # Each type is converted once, though it may occur at many locations.
            rows = {number: self._type(known) for number, known in enumerate(table.type_table)}
            for location, number in table.locations.items():
                row = rows.get(number)
                if row is not None:
                    self.types.add((*span_of(self.positions, location), *row))

    def _type(self, known: KnownType) -> Row | None:
        text = known.string[:TYPE_CHARS]
        if known.class_names is None:
            return (text, (), (), False) if text.startswith(MODULE_TYPE) else None
        instances, objects, is_exhaustive = set(), set(), known.class_names.is_exhaustive
        for each in known.class_names.classes:
            self.module_ids.add(each.class_ref.module_id)
            modifiers = set(each.modifiers)
            if modifiers <= INSTANCE:
                instances.add(self.names.class_name(each.class_ref))
            elif modifiers - INSTANCE == {CLASS_OBJECT}:
                objects.add(self.names.class_name(each.class_ref))
            else:
                # Inside of another type, such as a coroutine.
                is_exhaustive = False
        return text, tuple(sorted(instances)), tuple(sorted(objects)), is_exhaustive


def _form(origin: str) -> str:
    """Return the form of an implicit call, given the end of its key; empty if it depends on the callees."""
    if origin == "format-string-stringify":
        return "format"
    if not origin.startswith(ARTIFICIAL_CALL):
        return ""
    # The assignment `a[i] = b[j] = x` is `chained-assign:1>subscript-set-item`.
    kind = origin[len(ARTIFICIAL_CALL) :].rpartition(">")[2]
    return kind if kind in IGNORED_FORMS else FORMS.get(kind, OTHER)


def _has_rows(callees: Callees) -> bool:
    """Return whether callees have any field that becomes a row."""
    return callees != Callees()


def _functions(target: CallTarget) -> Iterator[tuple[str, FunctionRef]]:
    if isinstance(target.target, dict):
        yield from target.target.items()


def _columns(fields: Sequence[str], rows: Iterable[Row]) -> dict[str, list[Any]]:
    ordered = sorted(rows, key=lambda row: [(cell is not None, cell) for cell in row])
    return {
        name: [list(row[index]) if isinstance(row[index], tuple) else row[index] for row in ordered]
        for index, name in enumerate(fields)
    }
