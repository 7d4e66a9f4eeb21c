r"""Write log records of the logger `codeanatomy` to stderr, as text or JSON; off by default.

    with open_logs(settings.observe):
        log = Log(run_id=run.run_id, step="extract")
        log.info("committed %s", "ast_files_v1", extra={"rows": 1204})

    2026-05-04T10:00:00.250Z info committed ast_files_v1 run_id=20260504T095958Z-1f step=extract rows=1204

Importing this module configures nothing: the logger has no handlers, so that an application that embeds
CodeAnatomy decides what happens to its records. Loggers of other libraries are neither shown nor changed.
A record is always one line, because file names and parser messages come from the analysed code.

>>> print(one_line("a\nb\x1b[2J"))
a\nb\x1b[2J

Tests: `tests/unit/test_logs.py`.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import traceback
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from codeanatomy.catalog.settings import ObserveOptions

LOGGER = logging.getLogger("codeanatomy")
LEVELS = {
    "off": logging.CRITICAL + 1,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}
# Attributes of every record; other attributes were passed by the caller as `extra`.
STANDARD_ATTRIBUTES = frozenset((*vars(logging.makeLogRecord({})), "message", "asctime"))


class Log(logging.LoggerAdapter[logging.Logger]):
    """Logger adapter that adds fields to every record, such as run_id and step."""

    def __init__(self, **fields: object) -> None:
        super().__init__(LOGGER, fields)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the fields; those of the call take precedence."""
        return msg, {**kwargs, "extra": {**(self.extra or {}), **(kwargs.get("extra") or {})}}


@contextmanager
def open_logs(options: ObserveOptions) -> Iterator[None]:
    """Write records to stderr as configured, until the end of the `with` block."""
    level, propagate = LOGGER.level, LOGGER.propagate
    handler: logging.Handler = logging.NullHandler()
    if options.log_level != "off":
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLine() if options.log_format == "json" else TextLine())
    LOGGER.addHandler(handler)
    LOGGER.setLevel(LEVELS[options.log_level])
    # A handler of the root logger would print every record a second time.
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.propagate = propagate
        LOGGER.setLevel(level)
        LOGGER.removeHandler(handler)
        handler.close()


class TextLine(logging.Formatter):
    """Format a record as time, level, message and `field=value` pairs."""

    def format(self, record: logging.LogRecord) -> str:
        facts = _facts(record)
        head = (one_line(str(facts.pop(name))) for name in ("time", "level", "message"))
        return " ".join((*head, *(f"{name}={_quote(str(value))}" for name, value in facts.items())))


class JsonLine(logging.Formatter):
    """Format a record as one JSON object in ASCII, so that no character can end the line."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_facts(record))


def one_line(text: str) -> str:
    """Escape all characters that are not printable."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _quote(text: str) -> str:
    """Quote a value unless it is plain, so that it cannot look like further fields."""
    return text if text.isprintable() and text and not set(text) & set(" ='\"") else ascii(text)


def _facts(record: logging.LogRecord) -> dict[str, object]:
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    facts: dict[str, object] = {
        "time": moment.replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "message": record.getMessage(),
    }
    extra = {name: value for name, value in vars(record).items() if name not in STANDARD_ATTRIBUTES}
    facts.update({name: _plain(value) for name, value in extra.items() if name not in facts})
    if record.exc_info and record.exc_info[1]:
        facts["exception"] = "".join(traceback.format_exception(record.exc_info[1]))
    return facts


def _plain(value: object) -> object:
    """Convert a value to one that JSON can represent; it has no infinities."""
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)
