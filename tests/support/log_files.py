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
