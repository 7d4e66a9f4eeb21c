"""Check a table's protocol version and features against its gate before it is read or written.

>>> from codeanatomy.catalog.spec import DeltaFeatureGate
>>> gate = DeltaFeatureGate(min_writer_version=4)
>>> gate_problems(gate, reader=1, writer=2, features=())
('writer version 2 < 4',)

Tests: `tests/unit/delta/test_policy.py`, `tests/spark/test_scan.py`.
"""

from __future__ import annotations

from collections.abc import Collection

from codeanatomy.catalog.spec import DeltaFeatureGate, Table
from codeanatomy.delta.events import GateChecked, Recorder
from codeanatomy.delta.log.jvm_log import SnapshotInfo
from codeanatomy.errors import GateError


def gate_problems(
    gate: DeltaFeatureGate, reader: int, writer: int, features: Collection[str]
) -> tuple[str, ...]:
    """Return the reasons why a protocol fails a gate; empty if it passes."""
    problems = []
    if gate.min_reader_version is not None and reader < gate.min_reader_version:
        problems.append(f"reader version {reader} < {gate.min_reader_version}")
    if gate.min_writer_version is not None and writer < gate.min_writer_version:
        problems.append(f"writer version {writer} < {gate.min_writer_version}")
    required = dict.fromkeys((*gate.required_reader_features, *gate.required_writer_features))
    problems += [f"feature {name} is not enabled" for name in required if name not in features]
    return tuple(problems)


def check_gate(table: Table, snapshot: SnapshotInfo, record: Recorder) -> None:
    """Record the check of a table's gate; raise GateError if the table fails it."""
    features = {*snapshot.reader_features, *snapshot.writer_features}
    problems = gate_problems(table.gate, snapshot.min_reader_version, snapshot.min_writer_version, features)
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
        raise GateError(
            f"{table.name} version {snapshot.version} fails its gate: {'; '.join(problems)}",
            "add the feature to enable_features of the table's policy and rewrite it, or relax the gate",
        )
