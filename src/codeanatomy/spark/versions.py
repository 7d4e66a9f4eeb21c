"""Refuse sessions whose internals were not tested: other versions of Spark or Delta, and Spark Connect.

Writers call classes of Delta and Spark that are not part of their public interface, over py4j. A release may
change them without notice, and what a commit writes with them must be right, so only versions that the tests
run with are accepted:

    require_internals(spark)      # EnvironmentProblem: Spark 4.1.0 with Delta 4.4.0 was not tested ...
    has_internals(spark)          # False: read with the public interface only

Reads of published tables need no internals (`query.engines.public_store`): they work in other versions, too.
To use the internals of another version at your own risk, set `spark.codeanatomy.allowUntestedVersions=true`
in the session.

Tests: `tests/unit/spark/test_versions.py`, `tests/spark/test_connect.py`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from msgspec import Struct
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from codeanatomy.errors import EnvironmentProblem, UsageError

# Setting of a session whose owner accepts the risk.
ALLOW_UNTESTED = "spark.codeanatomy.allowUntestedVersions"
CONNECT_MODULE = "pyspark.sql.connect."


class Versions(Struct, frozen=True):
    """Versions of Spark and Delta; Delta's is None if it is not on the class path."""

    spark: str
    delta: str | None

    def __str__(self) -> str:
        return f"Spark {self.spark} {'without Delta' if self.delta is None else f'with Delta {self.delta}'}"


# The versions that the tests run with.
TESTED = (Versions("4.2.0", "4.4.0"),)


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is one of Spark Connect: a client without a JVM."""
    return type(spark).__module__.startswith(CONNECT_MODULE)


def require_session(spark: SparkSession) -> None:
    """Raise UsageError if a caller's session is something else; EnvironmentProblem if it was stopped."""
    if is_connect(spark):
        stopped = bool(getattr(spark, "is_stopped", False))
    elif isinstance(spark, SparkSession):
        stopped = spark.sparkContext._jsc is None
    else:
        raise UsageError(
            f"spark is a {type(spark).__name__}, not a Spark session",
            "pass SparkSession.builder...getOrCreate(), or leave it out: the build starts its own",
        )
    if stopped:
        raise EnvironmentProblem(
            "the given Spark session was stopped", "start another one: SparkSession.builder...getOrCreate()"
        )


def has_internals(spark: SparkSession) -> bool:
    """Return whether internals of Spark and Delta can be used in a session: classic, of tested versions."""
    return _is_classic(spark) and (session_versions(spark) in TESTED or _is_allowed(spark))


def require_internals(spark: SparkSession) -> None:
    """Raise EnvironmentProblem if internals of Spark and Delta cannot be used in a session."""
    if has_internals(spark):
        return
    if not _is_classic(spark):
        raise EnvironmentProblem(
            "this needs a classic Spark session, and the given one is of Spark Connect",
            "pass a session of SparkSession.builder.master(...), or none and one is started; "
            "with Spark Connect a lake can be built and read: codeanatomy.build(sources, uri, spark=session) "
            "and Lake.open(uri, spark=session)",
        )
    newest = TESTED[-1]
    raise EnvironmentProblem(
        f"{session_versions(spark)} was not tested, and this uses internals of both",
        f"pip install pyspark=={newest.spark} delta-spark=={newest.delta} (tested: "
        f"{'; '.join(map(str, TESTED))}), or set {ALLOW_UNTESTED}=true at your own risk",
    )


def session_versions(spark: SparkSession) -> Versions:
    """Return the versions of Spark and Delta in the JVM of a classic session."""
    return _versions(spark.sparkContext._gateway)


@cache
def _versions(gateway: Any) -> Versions:
    # A process has one JVM; looking up the class takes 10 ms.
    jvm = gateway.jvm
    try:
        delta = str(jvm.io.delta.package.VERSION())
    except (Py4JError, TypeError):
        # py4j takes the name of a missing class for that of a package, which cannot be called.
        delta = None
    return Versions(str(jvm.org.apache.spark.package.SPARK_VERSION()), delta)


def _is_classic(spark: object) -> bool:
    # Sessions of Spark Connect are of a class of their own.
    return isinstance(spark, SparkSession)


def _is_allowed(spark: SparkSession) -> bool:
    return str(spark.conf.get(ALLOW_UNTESTED, "false")).lower() == "true"
