"""A JVM that is killed is one clear error, without a traceback of PySpark."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from socketserver import BaseRequestHandler, TCPServer
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from codeanatomy.errors import StepFailed
from codeanatomy.run import build
from codeanatomy.spark.jvm import cause_of, jvm_has_ended
from codeanatomy.spark.session import _is_no_cut_call, ignore_cut_connections

ENDED = "Spark's JVM has ended: it was killed, or crashed"


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for the JVM of this one, and ends half a second after its input."""
    code = "import sys, time; sys.stdin.read(); time.sleep(0.5)"
    process = subprocess.Popen([sys.executable, "-S", "-c", code], stdin=subprocess.PIPE)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    yield process
    process.kill()
    process.communicate()


def test_a_connection_is_refused_before_the_jvm_has_ended(jvm: subprocess.Popen[bytes]) -> None:
    assert not jvm_has_ended(ValueError("another error"))
    assert jvm.stdin is not None
    jvm.stdin.close()
    assert cause_of(ConnectionRefusedError(111, "Connection refused")) == ENDED
    assert jvm_has_ended(ValueError("another error"))


def test_any_error_of_a_step_after_the_end_of_the_jvm_is_its_end(jvm: subprocess.Popen[bytes]) -> None:
    jvm.kill()
    jvm.wait()
    with pytest.raises(StepFailed) as failed, build._name_step_in_errors("relate"):
        raise EOFError
    assert failed.value.message == f"step relate failed: {ENDED}"
    assert "goes on after the steps in the journal" in failed.value.hint


def test_a_bug_stays_a_bug_while_the_jvm_lives(jvm: subprocess.Popen[bytes]) -> None:
    with pytest.raises(KeyError), build._name_step_in_errors("relate"):
        raise KeyError("a bug")


@pytest.mark.parametrize("problem", [EOFError, ConnectionResetError, ValueError])
def test_only_other_errors_of_the_accumulators_are_printed(
    problem: type[Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            raise problem

    with TCPServer(("localhost", 0), Handler) as server:
        ignore_cut_connections(server)
        with suppress(OSError), socket.create_connection(("localhost", server.server_address[1])):
            server.handle_request()
    assert ("Traceback" in capsys.readouterr().err) == (problem is ValueError)
    ignore_cut_connections(None)


def test_py4j_does_not_print_a_call_that_was_cut() -> None:
    texts = ("Exception while sending command.", "another")
    records = [logging.LogRecord("root", 40, "py4j/java_gateway.py", 1, text, None, None) for text in texts]
    assert [_is_no_cut_call(record) for record in records] == [False, True]
