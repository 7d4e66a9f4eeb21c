"""Construct instances of classes whose constructor is made of their fields: dataclasses and the like.

    @dataclass
    class Order:                             Order(apple, count=2): apple to `item`, 2 to `count`;
        item: Item                           calls `list` for `notes`, and `__post_init__`
        count: int = 1
        notes: list = field(default_factory=list)

A class is a record by its decorator (dataclasses, attrs) or by a base (NamedTuple, pydantic, msgspec), unless
it or a class before that in its MRO has an `__init__` of its own. Fields are those of its bases, too.

Tests: `tests/cases/callgraph/records`, `tests/unit/relate/test_emit.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from codeanatomy.relate import program as ir
from codeanatomy.relate.values.arguments import match_parameters
from codeanatomy.relate.values.dispatch import attribute_node, call_node
from codeanatomy.relate.values.external_names import KNOWN
from codeanatomy.relate.values.hierarchy import bases, class_field, defining_class, is_defined, mro
from codeanatomy.relate.values.rules.containers import instance_container, new_container, put
from codeanatomy.relate.values.rules.functions import pass_argument
from codeanatomy.relate.values.solver import Object
from codeanatomy.relate.values.state import Call, State, positional

# Role of the call of a field's default factory.
DEFAULT_FACTORY = "default_factory"
# Forms of records. Old attrs classes have the fields that are made by `attr.ib`.
# They are in `known_names.txt` by base, and in `models/models.txt` by decorator.
ATTRS, OLD_ATTRS, NAMED_TUPLE, MODEL = "attrs", "attr.s", "namedtuple", "pydantic"
RECORD_BASES = KNOWN["record"]
# What runs after the fields are set, by form.
POST_INIT = KNOWN["post_init"]
# Functions whose results describe fields, and those that make a field of a name without annotation.
SPECIFIERS = frozenset({"field", "Field", "PrivateAttr", "ib", "attrib"})
ATTRS_SPECIFIERS = frozenset({"field", "ib", "attrib"})


class RecordField(NamedTuple):
    """A field: the class whose body declares it, and its parameter in the constructor."""

    owner: Object
    declared: ir.Field
    parameter: ir.Parameter
    is_init: bool

    @property
    def is_init_var(self) -> bool:
        """Whether it is only passed to `__post_init__`."""
        return last_name(self.declared) == "InitVar"


class Record(NamedTuple):
    """How a class is constructed: its form and its fields, in the order of the parameters."""

    form: str
    fields: list[RecordField]


def last_name(declared: ir.Field) -> str:
    """Return the last part of the name in an annotation, quoted or not.

    >>> last_name(ir.Field("x", "typing.ClassVar[int]", True))
    'ClassVar'
    """
    return (declared.annotation or "").partition("[")[0].rpartition(".")[2]


def find_record(state: State, cls: Object) -> Record | None:
    """Return how a class is constructed of its fields; None if it is constructed otherwise."""
    if defining_class(state, cls, "__init__") == cls:
        return None
    order = mro(state, cls)
    classes = [each for each in order if state.kind[each] == ir.OBJ_CLASS]
    for at, each in enumerate(order):
        kind, first, second, _ = state.objects[each]
        if kind == ir.OBJ_EXTERNAL:
            form = RECORD_BASES.get(first)
            if form == NAMED_TUPLE:
                own = [other for other in classes if each in bases(state, other)]
                is_made = own and first == "collections.namedtuple"
                return Record(form, _made_fields(state, own[-1])) if is_made else _record(state, form, own)
            if form is not None:
                return _record(state, form, [other for other in classes if each in mro(state, other)])
            continue
        declared = state.programs[first].classes[second]
        if "__init__" in declared.attrs:
            return None
        form = state.classes.records.get(each)
        if form is not None and declared.options.get("init") != "False":
            return _record(state, form, [other for other in order[at:] if other in state.classes.records])
    return None


def _record(state: State, form: str, owners: Sequence[Object]) -> Record:
    fields: dict[str, RecordField] = {}
    for owner in reversed(owners):
        cls = state.cls(owner)[1]
        is_keyword_only = form == MODEL or cls.options.get("kw_only") == "True"
        for declared in cls.fields:
            if last_name(declared) == "KW_ONLY":
                is_keyword_only = True
            elif _is_field(form, cls, declared):
                if form in (ATTRS, OLD_ATTRS):
                    # The others keep the position of the field that they replace.
                    fields.pop(declared.name, None)
                fields[declared.name] = _field(form, owner, declared, is_keyword_only)
    return Record(form, sorted(fields.values(), key=lambda each: each.parameter.how == "keyword_only"))


def _made_fields(state: State, cls: Object) -> list[RecordField]:
    """Return the fields of a class whose base is made by `namedtuple`."""
    file, declared = state.cls(cls)
    made = [obj for node, _, _ in declared.bases for obj in state.objects_at(state.node(file, node))]
    names = next((state.objects[obj].second for obj in made if state.kind[obj] == ir.OBJ_NAMED_TUPLE), ())
    return _named_fields(cls, names)


def _named_fields(owner: Object, names: Sequence[str]) -> list[RecordField]:
    return [_field(NAMED_TUPLE, owner, ir.Field(name, None, has_value=False), False) for name in names]


def make_named_tuple(state: State, obj: Object, call: Call) -> None:
    """Call a class made by `namedtuple`: returns a tuple whose elements have names."""
    created = new_container(state, "tuple", call.where)
    fields = _named_fields(obj, state.objects[obj].second)
    for at, node in enumerate(_pass_arguments(state, fields, created, call)):
        put(state, created, str(at), node)
    state.add(call.dst, created)


def _is_field(form: str, cls: ir.Class, declared: ir.Field) -> bool:
    is_made = form in (ATTRS, OLD_ATTRS) and declared.called in ATTRS_SPECIFIERS
    if declared.annotation is None or (form == OLD_ATTRS and cls.options.get("auto_attribs") != "True"):
        return is_made
    is_public = form != MODEL or not declared.name.startswith(("_", "model_"))
    return last_name(declared) != "ClassVar" and (is_public or declared.called == "PrivateAttr")


def _field(form: str, owner: Object, declared: ir.Field, is_keyword_only: bool) -> RecordField:
    options = declared.options if declared.called in SPECIFIERS else {}
    name = declared.name.lstrip("_") if form in (ATTRS, OLD_ATTRS) else declared.name
    name = options.get("alias", "").strip("'\"") or name
    is_keyword_only = options.get("kw_only", str(is_keyword_only)) == "True"
    how = "keyword_only" if is_keyword_only else "positional"
    parameter = ir.Parameter(name, how, ir.NOTHING, ir.NOTHING, (None, None, None))
    is_init = options.get("init") != "False" and declared.called != "PrivateAttr"
    return RecordField(owner, declared, parameter, is_init)


def fill_record(state: State, record: Record, instance: Object, call: Call) -> None:
    """Let arguments flow into the fields, run the factories of those that get none, call `__post_init__`."""
    if not state.is_first("fill", instance, call, len(record.fields)):
        return
    state.calls.arguments.setdefault((call.where, state.objects[instance].first), (call.args, 0))
    nodes = _pass_arguments(state, record.fields, instance, call)
    if record.form == NAMED_TUPLE:
        elements = instance_container(state, instance, "tuple")
        for at, node in enumerate(nodes):
            put(state, elements, str(at), node)
    cls, name = state.objects[instance].first, POST_INIT.get(record.form)
    if name is not None and is_defined(state, cls, name):
        extra = [nodes[at] for at, each in enumerate(record.fields) if each.is_init_var]
        args = map(positional, [ir.NOTHING] if record.form == MODEL else extra)
        call_node(state, attribute_node(state, instance, name), call.with_args(list(args), -1))


def _pass_arguments(state: State, fields: Sequence[RecordField], instance: Object, call: Call) -> list[int]:
    """Let arguments and defaults flow into fields, and return the nodes of these."""
    nodes = [
        state.new_node() if each.is_init_var else state.field(instance, each.declared.name) for each in fields
    ]
    given = [at for at, each in enumerate(fields) if each.is_init]
    passed, unfilled = match_parameters([fields[at].parameter for at in given], call.args, 0)
    for each in passed:
        pass_argument(state, call.args[each.argument][2], "positional", nodes[given[each.parameter]], each)
    for at in sorted(set(range(len(fields))).difference(given) | {given[number] for number in unfilled}):
        owner, declared, _, _ = fields[at]
        if declared.has_value:
            state.subscribe(class_field(state, owner, declared.name), _fill_default, nodes[at], call)
    return nodes


def _fill_default(state: State, obj: Object, dst: int, call: Call) -> None:
    if state.kind[obj] == ir.OBJ_DATACLASS_FIELD:
        state.flow(state.field(obj, "default"), dst)
        factory_call = call.with_args([], dst, DEFAULT_FACTORY)
        call_node(state, state.field(obj, "default_factory"), factory_call)
    else:
        state.add(dst, obj)
