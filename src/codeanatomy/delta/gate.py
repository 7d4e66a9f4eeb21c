"""Check a table's protocol version and features against its gate before it is read, planned or written.

>>> from codeanatomy.catalog.spec import DeltaFeatureGate
>>> gate = DeltaFeatureGate(min_writer_version=4)
>>> gate_problems(gate, reader=1, writer=2, features=())
('writer version 2 < 4',)

The gate in a table's literal has what the table must have, such as the change feed that a step reads. What it
may have follows from the policies: a reader feature that none of them can enable is refused, because
another program has changed the table. The setting `delta.readers` changes neither.

Tests: `tests/unit/delta/test_policy.py`, `tests/unit/pipeline/test_readers.py`, `tests/spark/test_scan.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import structs

from codeanatomy.catalog.spec import DeltaFeatureGate, Table
from codeanatomy.delta.events import GateChecked, Recorder
from codeanatomy.delta.log.protocol import FEATURE_PROTOCOL, FEATURES, HARMLESS, IMPLIED
from codeanatomy.delta.log.snapshot_info import SnapshotInfo
from codeanatomy.errors import GateError

# Reader features that a table may have.
ALLOWED = HARMLESS.union(feature.delta_name for feature in FEATURES.values())


def gate_problems(
    gate: DeltaFeatureGate,
    reader: int,
    writer: int,
    features: Collection[str],
    reader_features: Iterable[str] = (),
) -> tuple[str, ...]:
    """Return the reasons why a protocol fails a gate; empty if it passes."""
    problems = []
    if gate.min_reader_version is not None and reader < gate.min_reader_version:
        problems.append(f"reader version {reader} < {gate.min_reader_version}")
    if gate.min_writer_version is not None and writer < gate.min_writer_version:
        problems.append(f"writer version {writer} < {gate.min_writer_version}")
    newest = max(reader - FEATURE_PROTOCOL[0], writer - FEATURE_PROTOCOL[1])
    problems += [f"protocol ({reader}, {writer}) is newer than this program knows"] if newest > 0 else []
    required = dict.fromkeys((*gate.required_reader_features, *gate.required_writer_features))
    known = {*features, *_implied_features(writer)}
    problems += [f"feature {name} is not enabled" for name in required if name not in known]
    problems += [f"reader feature {name} is not allowed" for name in reader_features if name not in ALLOWED]
    return tuple(problems)


def _implied_features(writer: int) -> tuple[str, ...]:
    """Return the features that a writer version has without listing them."""
    return () if writer >= FEATURE_PROTOCOL[1] else IMPLIED.get(min(writer, max(IMPLIED)), ())


def check_gate(table: Table, snapshot: SnapshotInfo, record: Recorder, *, reading: bool = False) -> None:
    """Record the check of a table's gate; raise GateError if the table fails it.

    What a writer must find does not concern a reader: a table whose feed was switched off can be read.
    """
    features = {*snapshot.reader_features, *snapshot.writer_features}
    of_readers = structs.replace(table.gate, min_writer_version=None, required_writer_features=())
    problems = gate_problems(
        of_readers if reading else table.gate,
        snapshot.min_reader_version,
        snapshot.min_writer_version,
        features,
        snapshot.reader_features,
    )
    record(
        GateChecked(
            table=table.name,
            version=snapshot.version,
            passed=not problems,
            problems=problems,
            snapshot=snapshot,
        )
    )
    if problems:
        raise gate_error(table.name, snapshot.version, problems)


def gate_error(name: str, version: int, problems: Iterable[str]) -> GateError:
    """Return the error for a table version that fails its gate."""
    return GateError(
        f"{name} version {version} fails its gate: {'; '.join(problems)}",
        f"enable what is missing with `codeanatomy features {name} --enable`, or relax tables.{name}.gate",
    )
