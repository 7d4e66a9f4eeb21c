"""Sessions of builds in tests: the one that all tests share, and one that must not be used."""

from __future__ import annotations

from pyspark.sql import SparkSession


class SharedSession:
    """A session that is open already, and stays so."""

    facts = None

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def start(self) -> None:
        """Start nothing: it is open."""

    def __call__(self) -> SparkSession:
        return self._spark


class UnusedSession:
    """A session that fails when it is used."""

    facts = None

    def start(self) -> None:
        raise AssertionError("a session was started")

    def __call__(self) -> SparkSession:
        raise AssertionError("a session was requested")


no_session = UnusedSession()
