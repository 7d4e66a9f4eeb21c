"""Compare the tables of a lake with the setting `delta.readers`, and choose the features of new tables.

    stored = stored_features(root, pins, newest)           # {"cpg_nodes": ("deletionVectors",), ...}
    tables_for_lake(root, settings.tables, "all", stored)  # FeatureError: ... maintain --readers all

A commit never changes the features of a stored table, so a lake stays as it was born until it is changed by
`codeanatomy maintain --readers`. Without a setting, a new table gets what the others have, and the tables of
a new lake have no deletion vectors: every reader opens them. Rows and fingerprints do not depend on it.

Tests: `tests/unit/pipeline/test_readers.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from codeanatomy.catalog.readers import VECTORS, VECTORS_NAME, without_vectors
from codeanatomy.catalog.settings import Readers
from codeanatomy.catalog.spec import Table
from codeanatomy.delta.gate import gate_error, gate_problems
from codeanatomy.delta.read.light import table_facts
from codeanatomy.errors import FeatureError, StorageFailure
from codeanatomy.lake.manifest import OutputPin

# Tables that an error lists.
MAX_LISTED = 3


def stored_features(
    root: str, pins: Mapping[str, OutputPin], newest: Mapping[str, int]
) -> dict[str, tuple[str, ...]]:
    """Return the features of the tables of a lake: of the published version, or else of the newest."""
    published = {name: pin.features for name, pin in pins.items() if pin.min_reader_version is not None}
    others: dict[str, tuple[str, ...]] = {}
    for name, version in newest.items():
        if name not in pins:
            # A damaged table that no run has published is written anew.
            with suppress(StorageFailure):
                others[name] = table_facts(root, name, version).features
    return published | others


def check_gates(tables: Sequence[Table], pins: Mapping[str, OutputPin]) -> None:
    """Raise GateError if a published table fails its gate, by what the manifest has of its protocol."""
    for table in tables:
        pin = pins.get(table.name)
        if pin is None or pin.min_reader_version is None or pin.min_writer_version is None:
            continue
        problems = gate_problems(table.gate, pin.min_reader_version, pin.min_writer_version, pin.features)
        if problems:
            raise gate_error(table.name, pin.version, problems)


def tables_for_lake(
    root: str, tables: Sequence[Table], readers: Readers | None, stored: Mapping[str, Sequence[str]]
) -> tuple[Table, ...]:
    """Return the tables with the features that new ones get; raise FeatureError if stored ones differ."""
    with_vectors = [name for name, features in stored.items() if VECTORS_NAME in features]
    declared = {table.name for table in tables if VECTORS in table.write.enable_features}
    if readers == "all":
        _refuse(root, readers, with_vectors, "deletion vectors, which not every reader supports")
    if readers == "modern":
        lacking = [name for name in stored if name not in with_vectors and name in declared]
        _refuse(root, readers, lacking, "no deletion vectors")
    is_plain = readers == "all" or (readers is None and not with_vectors)
    return without_vectors(tables) if is_plain else tuple(tables)


def _refuse(root: str, readers: Readers, names: Sequence[str], have: str) -> None:
    if names:
        listed = ", ".join(names[:MAX_LISTED]) + (", ..." if len(names) > MAX_LISTED else "")
        raise FeatureError(
            f"delta.readers is {readers}, but {len(names)} tables of {root} have {have}: {listed}",
            f"codeanatomy maintain --readers {readers} --lake {root}",
        )
