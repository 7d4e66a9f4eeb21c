"""Spans of a run, its steps and its commits, for OpenTelemetry; off by default.

    with open_trace(settings.observe) as trace, trace.span("run", {"run_id": run_id}) as whole:
        with trace.span("step extract", {"step": "extract"}, parent=whole) as step:
            ...
            trace.event("commit ast_files_v1", done.seconds, {"version": 3, "rows": 1204}, parent=step)
            step.note({"rows": 1204})
    trace.trace_id      # for the manifest: 32 hexadecimal digits, none if tracing is off

All spans of a Trace have its trace id. Parents are named, since steps run in threads; a commit is told after
it has happened, so `event` makes a span that is over. While tracing is off, nothing of OpenTelemetry is
imported.

>>> with open_trace(ObserveOptions()) as trace, trace.span("run") as run:
...     run.note({"rows": 3})
>>> trace.trace_id is None
True

A collector gets everything in one request at the end, within CLOSE_SECONDS: a build has some hundred spans,
and the thread of OpenTelemetry's own batches would be there when PySpark forks to start Java. A collector
that cannot be reached costs one warning, never the build. The tracer provider of an application that embeds
us is neither used nor set.

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

# How long the end of a run may wait for the collector.
CLOSE_SECONDS = 2.0
TRACES_PATH = "/v1/traces"
# Where the exporter tells why it failed; it returns only that it did.
EXPORTER_LOGGER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
MAX_REASON_CHARS = 300
# User, query and header, as errors of HTTP repeat them: they may be credentials.
SECRETS = re.compile(r"[^\s/@'\"]*@|\?\S*|(?<=header value: ).*", re.DOTALL)


class Span:
    """Work under way, or nothing while tracing is off."""

    def __init__(self, recorded: OpenSpan | None = None) -> None:
        self.recorded = recorded

    def note(self, attributes: Attributes) -> None:
        """Add what has become known."""
        if self.recorded is not None:
            self.recorded.set_attributes(_clean(attributes))


class Trace(AbstractContextManager["Trace"]):
    """Makes spans of one trace; made by `open_trace`. May be used by many threads."""

    def __init__(
        self,
        tracer: Tracer | None = None,
        trace_id: str | None = None,
        send: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.trace_id = trace_id
        # Why spans were not delivered; known after `close`.
        self.problem: str | None = None
        self._tracer = tracer
        self._send = send
        self._open = True

    @contextmanager
    def span(
        self, name: str, attributes: Attributes | None = None, parent: Span | None = None
    ) -> Iterator[Span]:
        """A span around the block; an exception is recorded, and raised on."""
        if self._tracer is None:
            yield Span()
            return
        recorded = self._tracer.start_span(name, _below(parent), attributes=_clean(attributes or {}))
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
        """A span that has just ended, after so many seconds."""
        if self._tracer is None:
            return
        end = time.time_ns()
        start = end - int(seconds * 1e9)
        recorded = self._tracer.start_span(
            name, _below(parent), attributes=_clean(attributes or {}), start_time=start
        )
        recorded.end(end)

    def close(self) -> None:
        """Deliver what is left, in bounded time; a failure is one warning."""
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


# Tells nobody.
NO_TRACE = Trace()


def open_trace(options: ObserveOptions) -> Trace:
    """The trace that the settings ask for."""
    # OpenTelemetry's own switch, which would make spans that are none.
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
            f"tracing cannot be set up: {_shown(str(problem))}",
            "mend observe.endpoint or the OTEL_ variables, or set observe.trace=off",
        ) from problem


def _console() -> Trace:
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter

    return Trace(*_tracer(ConsoleSpanExporter(out=sys.stderr, formatter=_line)))


def _otlp(endpoint: str) -> Trace:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = OTLPSpanExporter(endpoint=_traces_url(endpoint), timeout=CLOSE_SECONDS)
    kept = InMemorySpanExporter()
    return Trace(*_tracer(kept), lambda: _delivered(exporter, kept.get_finished_spans()))


def _tracer(exporter: SpanExporter) -> tuple[Tracer, str]:
    """A tracer of our own that hands over each span as it ends, and the id of the one trace it makes."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    number = 0
    while not number:  # zero means no trace
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
    """The address that gets spans; none is left to OpenTelemetry's variables.

    >>> _traces_url("http://collector:4318/")
    'http://collector:4318/v1/traces'
    """
    if not endpoint or urlsplit(endpoint).path.endswith(TRACES_PATH):
        return endpoint or None
    parts = urlsplit(endpoint)
    return parts._replace(path=parts.path.rstrip("/") + TRACES_PATH).geturl()


def _delivered(exporter: SpanExporter, spans: Sequence[ReadableSpan]) -> str | None:
    """Send the spans; says why if they did not arrive.

    In a thread, since looking up a host's name knows no limit of time.
    """
    if not spans:
        return None
    said = ["no answer in time"]
    thread = threading.Thread(target=_export, args=(exporter, spans, said), daemon=True)
    thread.start()
    thread.join(CLOSE_SECONDS)
    # Also ends the exporter's waiting for a next try.
    exporter.shutdown()
    return f"spans not delivered ({len(spans):,}): {said[0]}" if said else None


def _export(exporter: SpanExporter, spans: Sequence[ReadableSpan], said: list[str]) -> None:
    from opentelemetry.sdk.trace.export import SpanExportResult

    reasons: list[str] = []

    class Listen(logging.Filter):
        """Keeps to us what the exporter logs in this thread; others may use one like it."""

        def filter(self, record: logging.LogRecord) -> bool:
            if record.thread == threading.get_ident():
                reasons.append(record.getMessage())
                return False
            return True

    listen, logger = Listen(), logging.getLogger(EXPORTER_LOGGER)
    logger.addFilter(listen)
    try:
        done = exporter.export(spans) is SpanExportResult.SUCCESS
    # A trace that cannot be sent must not end a build that has been made.
    except Exception as error:  # noqa: BLE001
        done, reasons = False, [f"{type(error).__name__}: {error}"]
    finally:
        logger.removeFilter(listen)
    # The first reason is the cause; what follows is that trying again was no use.
    said[:] = [] if done else [_shown((*reasons, "unknown")[0])]


def _shown(reason: str) -> str:
    """A reason as it may be shown.

    >>> _shown("no host in http://me:hush@nowhere/v1/traces?key=hush")
    'no host in http://nowhere/v1/traces'
    """
    return SECRETS.sub("", reason)[:MAX_REASON_CHARS]


def _below(parent: Span | None) -> Context:
    """A context of our own: whatever span an application has open is no parent of ours."""
    from opentelemetry.context import Context
    from opentelemetry.trace import set_span_in_context

    if parent is None or parent.recorded is None:
        return Context()
    return set_span_in_context(parent.recorded, Context())


def _record_failure(recorded: OpenSpan, error: BaseException) -> None:
    from opentelemetry.trace import StatusCode

    # Errors of the JVM ask it for their text, and it may be gone; this knows how to go without.
    told = traceback.TracebackException.from_exception(error)
    kind = type(error)
    attributes = {
        "exception.type": f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
        "exception.message": str(told),
        "exception.stacktrace": "".join(told.format()),
    }
    recorded.add_event("exception", _clean(attributes))
    recorded.set_status(StatusCode.ERROR, _clean_text(str(told)))


def _clean(attributes: Attributes) -> dict[str, Value]:
    """Values that the protocol can carry: one that it cannot would lose all spans of the request."""
    return {name: _clean_value(value) for name, value in attributes.items()}


def _clean_value(value: Value) -> Value:
    if isinstance(value, str):
        return _clean_text(value)
    return str(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def _clean_text(text: str) -> str:
    """Names of files may hold bytes that are no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def _line(span: ReadableSpan) -> str:
    """A span as one line of JSON."""
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
