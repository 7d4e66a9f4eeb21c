"""Delta's protocol as far as we use it: versions, table features, and what they require of a writer.

>>> FEATURES["deletion_vectors"].property
'delta.enableDeletionVectors'

Tests: `tests/unit/delta/test_policy.py`, `tests/spark/test_features.py`.
"""

from __future__ import annotations

from msgspec import Struct

from codeanatomy.catalog.spec import FeatureName
from codeanatomy.delta.log.replay import VECTORS_FEATURE
from codeanatomy.delta.log.snapshot_info import SnapshotInfo

# Policy features that require nothing of a writer that only adds and removes files.
SIMPLE_FEATURES = frozenset({"change_data_feed", "deletion_vectors"})
# Legacy protocol versions up to the change data feed.
READER, WRITERS = 1, (2, 3, 4)
# Features implied by each legacy writer version, by their names in newer protocols.
IMPLIED = {
    2: ("appendOnly", "invariants"),
    3: ("appendOnly", "invariants", "checkConstraints"),
    4: ("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
}
# Reader and writer version of tables that list their features.
FEATURE_PROTOCOL = (3, 7)
VECTORS_ENABLED = "delta.enableDeletionVectors"
FEED_ENABLED, FEED_FEATURE = "delta.enableChangeDataFeed", "changeDataFeed"
# Prefixes of table properties that constrain a writer.
WRITER_PROPERTIES = ("delta.constraints.", "delta.appendOnly")
# Reader features that affect neither the rows of a data file nor the names of its columns.
HARMLESS = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})


class Feature(Struct, frozen=True):
    """How a table feature is enabled in Delta."""

    delta_name: str
    property: str
    value: str
    # Protocol (reader, writer) that includes the feature without table features; None: it needs them.
    legacy: tuple[int, int] | None = None


FEATURES: dict[FeatureName, Feature] = {
    "change_data_feed": Feature("changeDataFeed", "delta.enableChangeDataFeed", "true", (1, 4)),
    "deletion_vectors": Feature("deletionVectors", "delta.enableDeletionVectors", "true"),
    "row_tracking": Feature("rowTracking", "delta.enableRowTracking", "true"),
    "in_commit_timestamps": Feature("inCommitTimestamp", "delta.enableInCommitTimestamps", "true"),
    "column_mapping": Feature("columnMapping", "delta.columnMapping.mode", "name", (2, 5)),
    "v2_checkpoints": Feature("v2Checkpoint", "delta.checkpointPolicy", "v2"),
}


FEATURE_PROPERTIES = tuple(feature.property for feature in FEATURES.values())


def has_simple_protocol(info: SnapshotInfo) -> bool:
    """Return whether the table only requires a writer to add and remove files and deletion vectors."""
    legacy = info.min_reader_version == READER and info.min_writer_version in WRITERS
    with_features = (
        info.min_reader_version in (READER, FEATURE_PROTOCOL[0])
        and info.min_writer_version == FEATURE_PROTOCOL[1]
        and set(info.reader_features) <= {VECTORS_FEATURE}
        and set(info.writer_features) <= {VECTORS_FEATURE, *IMPLIED[WRITERS[-1]]}
    )
    return (
        (legacy or with_features)
        and not any(key.startswith(WRITER_PROPERTIES) for key in info.properties)
        # Generated columns, invariants and the like.
        and '"delta.' not in info.schema_json
    )


def writes_vectors(info: SnapshotInfo) -> bool:
    """Return whether rows leave a stored table by deletion vectors; else their data files are rewritten."""
    return VECTORS_FEATURE in info.reader_features and info.properties.get(VECTORS_ENABLED) == "true"
