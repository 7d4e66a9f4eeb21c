"""Emit the relations of a file as a whole: its module, and attributes assigned outside of class bodies.

    class A:
        def m(self): self.x = 1      DECLARES_MODULE  file -> module;  SCOPE_BINDS  scope of A -> x

Tests: `tests/unit/relate/test_scope_relations.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from codeanatomy.node_ids import binding_id, module_id
from codeanatomy.relate.relation_rows import NOWHERE, RelationRows
from codeanatomy.relate.values.analysis import Values
from codeanatomy.relate.values.solver import Object


class InstanceAttribute(NamedTuple):
    """An attribute of instances: the scope of its class, its name, and its qualified name."""

    scope_id: str
    name: str
    qname: str


def unlisted_attributes(
    values: Values, attributes: Iterable[tuple[Object, str]]
) -> Mapping[int, list[InstanceAttribute]]:
    """Return the attributes (class, name) that no class body binds, grouped by the file of the class."""
    unlisted: defaultdict[int, list[InstanceAttribute]] = defaultdict(list)
    listed = [
        {key: frozenset(names) for key, names in program.scope_names.items()} for program in values.programs
    ]
    for cls, name in attributes:
        file, declared = values.cls(cls)
        key = declared.scope_id
        if name not in listed[file].get(key, ()):
            unlisted[file].append(InstanceAttribute(key, name, f"{values.qualified_name(cls)}.{name}"))
    return unlisted


def add_file_relations(
    rows: RelationRows, module_name: str, attributes: Iterable[InstanceAttribute] = ()
) -> None:
    """Add the relations of a file as a whole: the module it declares, and the attributes of its classes."""
    rows.add(
        "DECLARES_MODULE",
        "FILE",
        rows.file_id,
        "MODULE",
        module_id(rows.file_id),
        place=NOWHERE,
        origin="imports",
        rule="module",
        method="path",
        confidence=1.0,
        dst_qname=module_name,
        evidence=rows.file_id,
    )
    for scope, attribute, qname in attributes:
        rows.add(
            "SCOPE_BINDS",
            "SCOPE",
            scope,
            "BINDING",
            binding_id(scope, attribute),
            place=NOWHERE,
            origin="values",
            rule="attribute",
            method="scope",
            confidence=1.0,
            dst_qname=qname,
            role=attribute,
            evidence=scope,
        )
