"""Export OpenTelemetry spans of a run, its steps and its commits; off by default.

    with open_trace(settings.observe) as trace, trace.span("run", {"run_id": run_id}) as whole:
        with trace.span("step extract", {"step": "extract"}, parent=whole) as step:
            ...
            trace.event("commit ast_files_v1", done.seconds, {"version": 3, "rows": 1204}, parent=step)
            step.note({"rows": 1204})
    trace.trace_id      # for the manifest: 32 hexadecimal digits, none if tracing is off

All spans of a Trace have its trace id. Parents are passed explicitly, because steps run in threads; a commit
is reported after it has happened, so `event` creates a finished span. While tracing is off, OpenTelemetry is
not imported.

>>> with open_trace(ObserveOptions()) as trace, trace.span("run") as run:
...     run.note({"rows": 3})
>>> trace.trace_id is None
True

A collector receives all spans in one request at the end, within CLOSE_SECONDS: a build has some hundred
spans, and the thread of OpenTelemetry's batch processor would be running when PySpark forks to start Java. If
the collector cannot be reached, the build succeeds with one warning. The tracer provider of an application
that embeds CodeAnatomy is neither used nor set.

Tests: `tests/unit/test_tracing.py`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from codeanatomy import __version__
from codeanatomy.catalog.settings import ObserveOptions
from codeanatomy.errors import EnvironmentProblem
from codeanatomy.logs import LOGGER

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span as OpenSpan
    from opentelemetry.trace import Tracer

Value: TypeAlias = str | int | float | bool
Attributes: TypeAlias = Mapping[str, Value]

# Time limit for the delivery of spans at the end of a run.
CLOSE_SECONDS = 2.0
TRACES_PATH = "/v1/traces"
# Logger of the exporter, which logs the reason of a failure and does not return it.
EXPORTER_LOGGER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
MAX_REASON_CHARS = 300
# User, query and header values in HTTP error messages, which may be credentials.
SECRETS = re.compile(r"[^\s/@'\"]*@|\?\S*|(?<=header value: ).*", re.DOTALL)


class Span:
    """An open span; does nothing while tracing is off."""

    def __init__(self, recorded: OpenSpan | None = None) -> None:
        self.recorded = recorded

    def note(self, attributes: Attributes) -> None:
        """Add attributes to the span."""
        if self.recorded is not None:
            self.recorded.set_attributes(_clean(attributes))


class Trace(AbstractContextManager["Trace"]):
    """Create spans of one trace; thread-safe. Use `open_trace` to get one."""

    def __init__(
        self,
        tracer: Tracer | None = None,
        trace_id: str | None = None,
        send: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.trace_id = trace_id
        # Why spans were not delivered; set by `close`.
        self.problem: str | None = None
        self._tracer = tracer
        self._send = send
        self._open = True

    @contextmanager
    def span(
        self, name: str, attributes: Attributes | None = None, parent: Span | None = None
    ) -> Iterator[Span]:
        """Open a span for the `with` block; record an exception and re-raise it."""
        if self._tracer is None:
            yield Span()
            return
        recorded = self._tracer.start_span(name, _parent_context(parent), attributes=_clean(attributes or {}))
        try:
            yield Span(recorded)
        except BaseException as error:
            _record_failure(recorded, error)
            raise
        finally:
            recorded.end()

    def event(
        self, name: str, seconds: float, attributes: Attributes | None = None, parent: Span | None = None
    ) -> None:
        """Add a span that has just ended and lasted `seconds`."""
        if self._tracer is None:
            return
        end = time.time_ns()
        start = end - int(seconds * 1e9)
        recorded = self._tracer.start_span(
            name, _parent_context(parent), attributes=_clean(attributes or {}), start_time=start
        )
        recorded.end(end)

    def close(self) -> None:
        """Deliver the spans within CLOSE_SECONDS; log one warning on failure."""
        if not self._open:
            return
        self._open = False
        self.problem = self._send()
        if self.problem:
            LOGGER.warning("%s", self.problem)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


# Tracing is off.
NO_TRACE = Trace()


def open_trace(options: ObserveOptions) -> Trace:
    """Open a trace as configured."""
    # OpenTelemetry's own switch; its spans would have no ids.
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if options.trace == "off" or disabled:
        return Trace()
    try:
        return _console() if options.trace == "console" else _otlp(options.endpoint)
    except ImportError as problem:
        raise EnvironmentProblem(
            f"tracing needs OpenTelemetry, which is not installed: {problem}",
            "pip install 'codeanatomy[trace]', or set observe.trace=off",
        ) from problem
    except (ValueError, RuntimeError) as problem:
        raise EnvironmentProblem(
            f"tracing cannot be set up: {_redact(str(problem))}",
            "correct observe.endpoint or the OTEL_ variables, or set observe.trace=off",
        ) from problem


def _console() -> Trace:
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter

    return Trace(*_tracer(ConsoleSpanExporter(out=sys.stderr, formatter=_line)))


def _otlp(endpoint: str) -> Trace:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = OTLPSpanExporter(endpoint=_traces_url(endpoint), timeout=CLOSE_SECONDS)
    buffer = InMemorySpanExporter()
    return Trace(*_tracer(buffer), lambda: _deliver(exporter, buffer.get_finished_spans()))


def _tracer(exporter: SpanExporter) -> tuple[Tracer, str]:
    """Create a tracer that exports each span as it ends, and the id of its only trace."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    number = 0
    while not number:  # zero is not a valid trace id
        number = secrets.randbits(128)

    class OneTrace(RandomIdGenerator):
        def generate_trace_id(self) -> int:
            return number

    provider = TracerProvider(
        sampler=ALWAYS_ON,
        resource=Resource.create({"service.name": "codeanatomy", "service.version": __version__}),
        shutdown_on_exit=False,
        id_generator=OneTrace(),
    )
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("codeanatomy", __version__), f"{number:032x}"


def _traces_url(endpoint: str) -> str | None:
    """Return the URL for spans; None leaves it to OpenTelemetry's environment variables.

    >>> _traces_url("http://collector:4318/")
    'http://collector:4318/v1/traces'
    """
    if not endpoint or urlsplit(endpoint).path.endswith(TRACES_PATH):
        return endpoint or None
    parts = urlsplit(endpoint)
    return parts._replace(path=parts.path.rstrip("/") + TRACES_PATH).geturl()


def _deliver(exporter: SpanExporter, spans: Sequence[ReadableSpan]) -> str | None:
    """Send the spans; return why they were not delivered, or None.

    Runs in a thread, because the lookup of a host name has no timeout.
    """
    if not spans:
        return None
    failure = ["no answer in time"]
    thread = threading.Thread(target=_export, args=(exporter, spans, failure), daemon=True)
    thread.start()
    thread.join(CLOSE_SECONDS)
    # Also interrupts the exporter's wait before a retry.
    exporter.shutdown()
    return f"spans not delivered ({len(spans):,}): {failure[0]}" if failure else None


def _export(exporter: SpanExporter, spans: Sequence[ReadableSpan], failure: list[str]) -> None:
    """Send the spans; clear `failure` on success, else replace it by the reason."""
    from opentelemetry.sdk.trace.export import SpanExportResult

    reasons: list[str] = []

    class CaptureReasons(logging.Filter):
        """Capture what the exporter logs in this thread; pass on records of other threads."""

        def filter(self, record: logging.LogRecord) -> bool:
            if record.thread == threading.get_ident():
                reasons.append(record.getMessage())
                return False
            return True

    capture, logger = CaptureReasons(), logging.getLogger(EXPORTER_LOGGER)
    logger.addFilter(capture)
    try:
        done = exporter.export(spans) is SpanExportResult.SUCCESS
    # A failed delivery must not fail a finished build.
    except Exception as error:  # noqa: BLE001
        done, reasons = False, [f"{type(error).__name__}: {error}"]
    finally:
        logger.removeFilter(capture)
    # The first reason is the cause; the others are about retries.
    failure[:] = [] if done else [_redact((*reasons, "unknown")[0])]


def _redact(reason: str) -> str:
    """Remove possible credentials from a message, and truncate it.

    >>> _redact("no host in http://me:hush@nowhere/v1/traces?key=hush")
    'no host in http://nowhere/v1/traces'
    """
    return SECRETS.sub("", reason)[:MAX_REASON_CHARS]


def _parent_context(parent: Span | None) -> Context:
    """Return the context of the parent; open spans of an embedding application are never parents."""
    from opentelemetry.context import Context
    from opentelemetry.trace import set_span_in_context

    if parent is None or parent.recorded is None:
        return Context()
    return set_span_in_context(parent.recorded, Context())


def _record_failure(recorded: OpenSpan, error: BaseException) -> None:
    from opentelemetry.trace import StatusCode

    # str() of a JVM error calls the JVM, which may have exited; TracebackException handles that.
    formatted = traceback.TracebackException.from_exception(error)
    kind = type(error)
    attributes = {
        "exception.type": f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
        "exception.message": str(formatted),
        "exception.stacktrace": "".join(formatted.format()),
    }
    recorded.add_event("exception", _clean(attributes))
    recorded.set_status(StatusCode.ERROR, _clean_text(str(formatted)))


def _clean(attributes: Attributes) -> dict[str, Value]:
    """Convert attributes to values that OTLP can encode; one bad value would lose the whole request."""
    return {name: _clean_value(value) for name, value in attributes.items()}


def _clean_value(value: Value) -> Value:
    if isinstance(value, str):
        return _clean_text(value)
    return str(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def _clean_text(text: str) -> str:
    """Escape characters that are not valid in UTF-8, as in names of files."""
    return text.encode("utf-8", "backslashreplace").decode()


def _line(span: ReadableSpan) -> str:
    """Format a span as one line of JSON."""
    start, end = span.start_time or 0, span.end_time or 0
    began = datetime.fromtimestamp(start / 1e9, UTC).isoformat(timespec="milliseconds")
    context = span.get_span_context()
    facts: dict[str, object] = {
        "span": span.name,
        "trace_id": f"{context.trace_id:032x}" if context else None,
        "span_id": f"{context.span_id:016x}" if context else None,
        "parent_id": f"{span.parent.span_id:016x}" if span.parent else None,
        "start": began.replace("+00:00", "Z"),
        "seconds": round((end - start) / 1e9, 3),
        "status": span.status.status_code.name.lower(),
        "attributes": dict(span.attributes or {}),
    }
    failures = [dict(event.attributes or {}) for event in span.events]
    return json.dumps({**facts, "exceptions": failures} if failures else facts) + "\n"
