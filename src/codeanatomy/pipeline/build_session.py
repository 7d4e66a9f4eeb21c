"""Declare what a build needs of a Spark session: to start it early, to use it late, and to know whose it is.

    session.start()           # as soon as there is work: a JVM starts, or a caller's session is checked
    session()                 # the session itself, waited for
    session.facts             # of a caller's session: its kind, versions and tasks; None for one of ours

`spark.lazy_session` opens a session of the build's own, `run.given_session` uses one of the caller's. Tests:
`tests/unit/cli/test_build_command.py`, `tests/spark/test_given_session.py`.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct
from pyspark.sql import SparkSession

from codeanatomy.lake.engine_facts import EngineFacts, SessionKind


class SessionFacts(Struct, frozen=True):
    """What a build needs to know about a caller's session."""

    # given: a classic session; connect: one of Spark Connect.
    kind: SessionKind
    spark_version: str
    delta_version: str
    # None where the session has no such setting.
    master: str | None
    # Tasks that it runs at a time.
    parallelism: int

    @property
    def engine(self) -> EngineFacts:
        """What is recorded of it."""
        return EngineFacts("spark", self.master, self.kind, self.spark_version, self.delta_version)


class BuildSession(Protocol):
    """A Spark session that a build starts or checks when it has work, and gets when it needs it."""

    def start(self) -> object:
        """Begin to open the session; of a caller's, raise EnvironmentProblem if it lacks something."""

    def __call__(self) -> SparkSession:
        """Return the session."""

    @property
    def facts(self) -> SessionFacts | None:
        """Facts of a caller's session; None for a build's own, which the settings describe."""
