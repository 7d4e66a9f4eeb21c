"""Talk to Spark's JVM over py4j: its errors, boxed numbers, SQL literals.

try: ...
except ENGINE_ERRORS as problem: raise StorageFailure(cause_of(problem)) from problem
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

# Spark's own, and what is raised for a call to a JVM that is gone.
ENGINE_ERRORS = (PySparkException, Py4JError)


def cause_of(problem: Exception) -> str:
    """What the engine says went wrong, in one line: the innermost cause."""
    if _is_gone():
        return "Spark's JVM has ended: it was killed, or crashed"
    if isinstance(problem, Py4JJavaError):
        deepest = problem.java_exception
        while deepest.getCause() is not None:
            deepest = deepest.getCause()
        lines = str(deepest.toString()).splitlines()
    else:
        lines = str(problem).splitlines()
    said = [line.strip() for line in lines if line.strip()] or [type(problem).__name__]
    # A headline that ends in a colon introduces a traceback; its last line says what happened.
    return f"{said[0]} {said[-1]}" if said[0].endswith(":") else said[0]


def _is_gone() -> bool:
    """Whether the JVM that this process has started is not there any more."""
    machine = getattr(SparkContext._gateway, "proc", None)
    return machine is not None and machine.poll() is not None


def some_long(jvm: Any, value: int) -> Any:
    """An Option[Long]; py4j would box a small number as Integer."""
    return jvm.scala.jdk.javaapi.OptionConverters.toScala(jvm.java.util.OptionalLong.of(value))


def sql_text(value: str) -> str:
    """A text as a SQL literal; backslashes and quotes in it are escaped."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
