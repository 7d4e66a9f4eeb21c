"""Convert between Python and Spark's JVM: errors, boxed numbers, SQL literals.

    try: ...
    except ENGINE_ERRORS as problem: raise StorageFailure(cause_of(problem)) from problem

Tests: `tests/spark/test_commit.py`.
"""

from __future__ import annotations

from subprocess import TimeoutExpired
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException

# Errors of Spark, and of calls to a JVM that has ended.
ENGINE_ERRORS = (PySparkException, Py4JError)
# A killed JVM refuses connections some time before it has ended.
END_SECONDS = 5.0


def cause_of(problem: Exception) -> str:
    """Return the innermost cause of an error in one line."""
    if jvm_has_ended(problem):
        return "Spark's JVM has ended: it was killed, or crashed"
    if isinstance(problem, Py4JJavaError):
        deepest = problem.java_exception
        while deepest.getCause() is not None:
            deepest = deepest.getCause()
        lines = str(deepest.toString()).splitlines()
    else:
        lines = str(problem).splitlines()
    texts = [line.strip() for line in lines if line.strip()] or [type(problem).__name__]
    # A first line that ends in a colon introduces a traceback, whose last line is the error.
    return f"{texts[0]} {texts[-1]}" if texts[0].endswith(":") else texts[0]


def jvm_has_ended(problem: BaseException) -> bool:
    """Whether the JVM that this process started has ended; after an error of a connection, or is about to."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    is_cut = isinstance(problem, ConnectionError | EOFError | Py4JNetworkError)
    try:
        process.wait(END_SECONDS if is_cut else 0)
    except TimeoutExpired:
        return False
    return True


def some_long(jvm: Any, value: int) -> Any:
    """Return a Scala Option[Long]; py4j would box a small number as Integer."""
    return jvm.scala.jdk.javaapi.OptionConverters.toScala(jvm.java.util.OptionalLong.of(value))


def spark_literal(value: str) -> str:
    """Return a text as a literal of Spark SQL, with backslashes and quotes escaped."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
