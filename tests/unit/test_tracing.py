"""Spans: names, parents and attributes as a collector gets them, failures, and collectors that are gone."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry import trace as api
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SentSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from opentelemetry.sdk.trace import TracerProvider

from codeanatomy import __version__, tracing
from codeanatomy.catalog.settings import ObserveOptions
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.logs import open_logs
from codeanatomy.tracing import Span, Trace, open_trace

HUSH = "hush-hush"
OFF = ObserveOptions()
CONSOLE = ObserveOptions(trace="console")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No collector and no proxy of the machine."""
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


# A collector


class Collector(ThreadingHTTPServer):
    """Receives spans, or refuses them."""

    daemon_threads = False

    def __init__(self, status: int, pause: threading.Event | None) -> None:
        super().__init__(("127.0.0.1", 0), Receive)
        self.status = status
        self.pause = pause
        self.paths: list[str] = []
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def spans(self) -> dict[str, SentSpan]:
        return {
            span.name: span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }

    @property
    def resource(self) -> dict[str, Any]:
        (resource,) = self.requests[0].resource_spans
        return {pair.key: pair.value.string_value for pair in resource.resource.attributes}


class Receive(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        if self.server.pause is not None:
            self.server.pause.wait(20)
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        self.server.requests.append(request)
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@contextmanager
def collecting(status: int = 200, pause: threading.Event | None = None) -> Iterator[Collector]:
    collector = Collector(status, pause)
    thread = threading.Thread(target=collector.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield collector
    finally:
        if pause is not None:
            pause.set()
        collector.shutdown()
        thread.join()
        collector.server_close()


def otlp(url: str) -> ObserveOptions:
    return ObserveOptions(trace="otlp", endpoint=url)


def attributes(span: SentSpan) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes}


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def work(trace: Trace) -> None:
    """A run of two steps side by side; the first one commits."""

    def extract(whole: Span) -> None:
        with trace.span("step extract", {"step": "extract", "repositories": 2}, whole) as step:
            trace.event("commit ast_files_v1", 0.25, {"version": 3, "rows": 12}, parent=step)
            step.note({"rows": 12, "skipped": False, "skew": 1.5})

    def relate(whole: Span) -> None:
        with trace.span("step relate", parent=whole):
            pass

    with trace.span("run", {"run_id": "r-1"}) as whole, ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(step, whole) for step in (extract, relate)]:
            done.result()


def test_a_collector_gets_the_run_its_steps_and_commits() -> None:
    with collecting() as collector, open_trace(otlp(collector.url)) as trace:
        work(trace)
        assert not collector.requests
    assert trace.problem is None
    assert collector.paths == ["/v1/traces"]
    assert collector.headers[0]["content-type"] == "application/x-protobuf"
    spans = collector.spans
    assert set(spans) == {"run", "step extract", "step relate", "commit ast_files_v1"}
    run, extract, relate = spans["run"], spans["step extract"], spans["step relate"]
    commit = spans["commit ast_files_v1"]
    parents = [span.parent_span_id for span in (run, extract, relate, commit)]
    assert parents == [b"", run.span_id, run.span_id, extract.span_id]
    assert {span.trace_id.hex() for span in spans.values()} == {trace.trace_id}
    assert attributes(run) == {"run_id": "r-1"}
    expected = {"step": "extract", "repositories": 2, "rows": 12, "skipped": False, "skew": 1.5}
    assert attributes(extract) == expected
    assert attributes(commit) == {"version": 3, "rows": 12}
    assert commit.end_time_unix_nano - commit.start_time_unix_nano == 250_000_000
    assert run.start_time_unix_nano <= extract.start_time_unix_nano <= extract.end_time_unix_nano
    assert {span.status.code for span in spans.values()} == {Status.STATUS_CODE_UNSET}
    assert collector.resource["service.name"] == "codeanatomy"
    assert collector.resource["service.version"] == __version__


def test_each_trace_has_an_id_of_its_own_before_any_span() -> None:
    with open_trace(CONSOLE) as one, open_trace(CONSOLE) as other:
        for trace in (one, other):
            assert trace.trace_id is not None
            assert len(trace.trace_id) == 32
            assert int(trace.trace_id, 16) > 0
    assert one.trace_id != other.trace_id


@pytest.mark.parametrize("path", ["", "/", "/v1/traces", "/some/where", "/some/where/"])
def test_the_endpoint_is_the_base_or_the_whole_address(path: str) -> None:
    with collecting() as collector, open_trace(otlp(collector.url + path)) as trace, trace.span("run"):
        pass
    assert collector.paths == [path.removesuffix("/v1/traces").rstrip("/") + "/v1/traces"]


def test_without_an_endpoint_the_usual_variables_count(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=anatomy")
        with open_trace(otlp("")) as trace, trace.span("run"):
            pass
    assert collector.paths == ["/v1/traces"]
    assert collector.headers[0]["x-team"] == "anatomy"


def test_an_exception_is_recorded_where_it_happened_and_above() -> None:
    def fail(trace: Trace) -> None:
        with trace.span("run") as whole:
            with trace.span("step extract", parent=whole):
                pass
            with trace.span("step relate", parent=whole):
                raise EnvironmentProblem("no memory", "buy some")

    with (
        collecting() as collector,
        open_trace(otlp(collector.url)) as trace,
        pytest.raises(EnvironmentProblem),
    ):
        fail(trace)
    failed = {name for name, span in collector.spans.items() if span.status.code == Status.STATUS_CODE_ERROR}
    assert failed == {"run", "step relate"}
    relate = collector.spans["step relate"]
    assert relate.status.message == "[CA020] no memory\n  next: buy some"
    (event,) = relate.events
    told = {pair.key: pair.value.string_value for pair in event.attributes}
    assert event.name == "exception"
    assert told["exception.type"] == "codeanatomy.errors.EnvironmentProblem"
    assert told["exception.message"] == relate.status.message
    assert "raise EnvironmentProblem" in told["exception.stacktrace"]


def test_an_interrupt_is_a_failure_too() -> None:
    with (
        collecting() as collector,
        open_trace(otlp(collector.url)) as trace,
        pytest.raises(KeyboardInterrupt),
        trace.span("run"),
    ):
        raise KeyboardInterrupt
    assert collector.spans["run"].status.code == Status.STATUS_CODE_ERROR


class Untold(Exception):
    """As an error of a JVM that is gone."""

    def __str__(self) -> str:
        raise ConnectionError


def test_what_the_protocol_cannot_carry_does_not_cost_the_spans() -> None:
    hostile = {"path": "a\udc80\n\x00.py", "huge": 2**64, "low": -(2**63), "nan": float("nan"), "": "x"}
    with (
        collecting() as collector,
        open_trace(otlp(collector.url)) as trace,
        trace.span("run", hostile) as whole,
    ):
        whole.note({"later": "\ud800"})
        trace.event("commit t", -1.0, hostile, whole)
        for error in (ValueError("b\udc80d"), Untold()):
            with pytest.raises(type(error)), trace.span(f"step {type(error).__name__}", parent=whole):
                raise error
    assert trace.problem is None
    assert set(collector.spans) == {"run", "commit t", "step ValueError", "step Untold"}
    sent = attributes(collector.spans["run"])
    assert sent["path"] == "a\\udc80\n\x00.py"
    assert (sent["huge"], sent["low"], sent["later"]) == (str(2**64), -(2**63), "\\ud800")
    assert collector.spans["step ValueError"].status.message == "b\\udc80d"
    assert collector.spans["step Untold"].status.code == Status.STATUS_CODE_ERROR


# Collectors that are gone


def refused(options: ObserveOptions, capsys: pytest.CaptureFixture[str]) -> tuple[str, float]:
    """The one line on stderr, and how long the end took."""
    with open_logs(ObserveOptions(log_level="warning")):
        trace = open_trace(options)
        with trace.span("run"):
            pass
        began = time.monotonic()
        trace.close()
        took = time.monotonic() - began
        trace.close()
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert " warning spans not delivered (1): " in line
    assert trace.problem is not None
    assert trace.problem in line
    return line, took


def test_a_closed_port_is_one_warning_and_soon_over(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://me:{HUSH}@127.0.0.1:{closed_port()}/?key={HUSH}"
    line, took = refused(otlp(url), capsys)
    assert "Connection refused" in line
    assert HUSH not in line
    assert took < tracing.CLOSE_SECONDS + 1


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_a_collector_that_refuses_is_one_warning(status: int, capsys: pytest.CaptureFixture[str]) -> None:
    with collecting(status) as collector:
        line, _ = refused(otlp(collector.url), capsys)
    assert str(status) in line
    assert len(collector.requests) == 1


def test_a_collector_that_does_not_answer_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "CLOSE_SECONDS", 0.3)
    before = set(threading.enumerate())
    with collecting(pause=threading.Event()) as collector:
        _, took = refused(otlp(collector.url), capsys)
        assert took < 1.5
    for thread in set(threading.enumerate()) - before:
        thread.join(5)


def test_a_header_that_is_a_secret_is_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%0A{HUSH}")
    line, _ = refused(otlp(f"http://127.0.0.1:{closed_port()}"), capsys)
    assert HUSH not in line


def test_a_trace_without_spans_is_not_sent() -> None:
    with open_trace(otlp(f"http://127.0.0.1:{closed_port()}")) as trace:
        pass
    assert trace.problem is None


# The console


def test_the_console_gets_one_line_of_json_per_span(capsys: pytest.CaptureFixture[str]) -> None:
    with open_trace(CONSOLE) as trace:
        work(trace)
        path = {"path": "a\nb\x1b[2J\u2028"}
        with pytest.raises(ValueError, match="a\nb"), trace.span("publish", path):
            raise ValueError("a\nb")
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [json.loads(line) for line in captured.err.splitlines()]
    spans = {line["span"]: line for line in lines}
    assert [line["span"] for line in lines[-2:]] == ["run", "publish"]
    commit, step = spans["commit ast_files_v1"], spans["step extract"]
    assert commit["trace_id"] == trace.trace_id
    assert commit["parent_id"] == step["span_id"]
    assert spans["run"]["parent_id"] is None
    assert commit["seconds"] == 0.25
    assert commit["attributes"] == {"version": 3, "rows": 12}
    assert "exceptions" not in commit
    assert spans["publish"]["status"] == "error"
    assert spans["publish"]["attributes"] == path
    assert spans["publish"]["exceptions"][0]["exception.message"] == "a\nb"
    assert spans["publish"]["start"].endswith("Z")


# Beside others


def test_the_provider_and_the_open_span_of_an_application_are_left_alone() -> None:
    before = api.get_tracer_provider()
    host = TracerProvider(shutdown_on_exit=False).get_tracer("host")
    with (
        collecting() as collector,
        host.start_as_current_span("request") as open_span,
        open_trace(otlp(collector.url)) as trace,
        trace.span("run"),
    ):
        assert api.get_current_span() is open_span
    assert api.get_tracer_provider() is before
    assert collector.spans["run"].parent_span_id == b""
    assert trace.trace_id != f"{open_span.get_span_context().trace_id:032x}"


def test_the_exporters_logger_is_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger(tracing.EXPORTER_LOGGER)
    before = (logger.level, logger.propagate, logger.disabled, [*logger.filters], [*logger.handlers])
    with collecting(404) as collector:
        refused(otlp(collector.url), capsys)
    after = (logger.level, logger.propagate, logger.disabled, [*logger.filters], [*logger.handlers])
    assert after == before


def test_what_makes_opentelemetry_fail_is_told_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many")
    with pytest.raises(EnvironmentProblem, match="OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT") as problem:
        open_trace(CONSOLE)
    assert "observe.trace=off" in problem.value.hint


@pytest.mark.parametrize("options", [CONSOLE, otlp("http://127.0.0.1:1")])
def test_the_switch_of_opentelemetry_itself_counts(
    options: ObserveOptions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "True")
    with open_trace(options) as trace:
        work(trace)
    assert (trace.trace_id, trace.problem) == (None, None)
    assert capsys.readouterr().err == ""


# Off, and without the packages


def test_off_tells_nothing_and_raises_on(capsys: pytest.CaptureFixture[str]) -> None:
    with open_trace(OFF) as trace:
        work(trace)
        with pytest.raises(ValueError, match="x"), trace.span("run"):
            raise ValueError("x")
    assert (trace.trace_id, trace.problem) == (None, None)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def test_off_imports_nothing_of_opentelemetry() -> None:
    code = (
        "import sys; from codeanatomy.tracing import open_trace; from codeanatomy.catalog.settings import *\n"
        "with open_trace(ObserveOptions()) as t, t.span('run') as r: t.event('commit', 1.0, {}, r)\n"
        "print([n for n in sys.modules if n.split('.')[0] in ('opentelemetry', 'requests', 'google')])"
    )
    assert run_python(code) == "[]"


@pytest.mark.parametrize("kind", ["console", "otlp"])
@pytest.mark.parametrize("missing", ["opentelemetry.sdk", "opentelemetry.exporter.otlp"])
def test_without_the_packages_the_next_step_is_named(kind: str, missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from codeanatomy.tracing import open_trace; from codeanatomy.catalog.settings import *\n"
        "from codeanatomy.errors import EnvironmentProblem\n"
        f"try: open_trace(ObserveOptions(trace={kind!r})); print('ready')\n"
        "except EnvironmentProblem as problem: print(problem.hint)"
    )
    # The console needs no exporter.
    ready = kind == "console" and missing.endswith("otlp")
    expected = "ready" if ready else "pip install 'codeanatomy[trace]', or set observe.trace=off"
    assert run_python(code) == expected
