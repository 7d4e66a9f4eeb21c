"""Paths of the files of a local table, for tests that damage them."""

from __future__ import annotations

from pathlib import Path

from codeanatomy.delta.log import replay
from codeanatomy.delta.log.deletion_vectors import DeletionVector, vector_path


def entry_path(location: str, version: int) -> Path:
    """Return the path of the log entry of a version."""
    return Path(location, replay.entry_path(version))


def vector_file(location: str, vector: DeletionVector) -> Path:
    """Return the file that contains a vector."""
    return Path(location, vector_path(vector) or "")


def replay_vectors(location: str, version: int) -> dict[str, DeletionVector]:
    """Return the deletion vectors of a version by data file, spelled as in the log."""
    adds = replay.replay_log(location, version).adds.values()
    return {add.path: add.deletion_vector for add in adds if add.deletion_vector is not None}
