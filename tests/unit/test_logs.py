"""Log lines: off by default, one line each whatever is in them, and ours alone."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeanatomy.catalog.settings import ObserveOptions
from codeanatomy.logs import LOGGER, JsonLine, Log, TextLine, one_line, open_logs

JSON = ObserveOptions(log_level="debug", log_format="json")
TEXT = ObserveOptions(log_level="debug")
LEVELS = ("debug", "info", "warning", "error")


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def objects(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(capsys)]


def record(message: str, **fields: object) -> logging.LogRecord:
    return LOGGER.makeRecord("codeanatomy", logging.INFO, "f.py", 1, message, (), None, extra=fields)


def test_a_line_of_json_has_time_level_message_and_fields(capsys: pytest.CaptureFixture[str]) -> None:
    with open_logs(JSON):
        log = Log(run_id="r-1", step="extract")
        log.info("committed %s", "ast_files_v1", extra={"rows": 12, "share": 0.5, "new": True, "why": None})
        log.warning("slow", extra={"step": "relate"})
    first, second = objects(capsys)
    moment = datetime.fromisoformat(first.pop("time"))
    assert moment.utcoffset() is not None
    assert abs((datetime.now(UTC) - moment).total_seconds()) < 60
    assert first == {
        "level": "info",
        "message": "committed ast_files_v1",
        "run_id": "r-1",
        "step": "extract",
        "rows": 12,
        "share": 0.5,
        "new": True,
        "why": None,
    }
    # What a call says of itself wins.
    assert (second["level"], second["run_id"], second["step"]) == ("warning", "r-1", "relate")


def test_a_line_of_text_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    with open_logs(TEXT):
        Log(run_id="r-1").error(
            "lost %d", 3, extra={"table": "ast_files_v1", "why": "no such file", "k": "a=b"}
        )
    (line,) = lines(capsys)
    time, _, rest = line.partition(" ")
    assert time.endswith("Z")
    assert datetime.fromisoformat(time).tzinfo is UTC
    assert rest == "error lost 3 run_id=r-1 table=ast_files_v1 why='no such file' k='a=b'"


@pytest.mark.parametrize(
    ("level", "shown"), [("off", 0), ("error", 1), ("warning", 2), ("info", 3), ("debug", 4)]
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_the_level_is_the_least_that_is_shown(
    level: Any, shown: int, form: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_logs(ObserveOptions(log_level=level, log_format=form)):
        for name in LEVELS:
            LOGGER.log(logging.getLevelNamesMapping()[name.upper()], "said")
        logging.getLogger("codeanatomy.below").error("said below")
    said = lines(capsys)
    assert len([line for line in said if "below" not in line]) == shown
    assert len([line for line in said if "below" in line]) == (level != "off")


@given(st.text(), st.text())
def test_no_text_makes_a_second_line(message: str, value: str) -> None:
    hostile = record(message, path=value)
    text = TextLine().format(hostile)
    assert text.isprintable()
    assert len(text.splitlines()) == 1
    as_json = JsonLine().format(hostile)
    assert as_json.isascii()
    assert as_json.isprintable()
    told = json.loads(as_json)
    assert (told["message"], told["path"]) == (message, value)


@pytest.mark.parametrize("char", ["\n", "\r", "\x1b", "\x00", "\x85", "\u2028", "\u202e", "\udc80"])
def test_what_moves_a_cursor_is_shown_instead(char: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = f"c{char}d"
    with open_logs(TEXT):
        LOGGER.info("a%sb", char, extra={"path": path})
    (line,) = lines(capsys)
    shown = char.encode("unicode_escape").decode()
    assert line.endswith(f"info a{shown}b path={path!a}")
    assert one_line("plain: ä 漢字") == "plain: ä 漢字"


def test_values_that_json_has_not_are_told_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    with open_logs(JSON):
        LOGGER.info("odd", extra={"x": float("inf"), "y": {1: object}, "z": datetime(2026, 1, 2, tzinfo=UTC)})
        LOGGER.info("mine", extra={"level": "a", "time": "b"})
    odd, mine = objects(capsys)
    assert (odd["x"], odd["y"], odd["z"]) == ("inf", "{1: <class 'object'>}", "2026-01-02 00:00:00+00:00")
    assert mine["level"] == "info"
    assert mine["time"] != "b"


@pytest.mark.parametrize("options", [TEXT, JSON])
def test_an_exception_stays_in_the_line(options: ObserveOptions, capsys: pytest.CaptureFixture[str]) -> None:
    with open_logs(options):
        try:
            int("a\nb")
        except ValueError:
            LOGGER.exception("failed")
        LOGGER.error("nothing was raised", exc_info=True)
    first, second = lines(capsys)
    assert "Traceback" in first
    assert "ValueError: invalid literal" in first
    assert "exception" not in second


# Beside others


def state(name: str | None) -> tuple[object, ...]:
    logger = logging.getLogger(name)
    return logger.level, logger.propagate, logger.disabled, [*logger.handlers], [*logger.filters]


@pytest.mark.parametrize("options", [TEXT, JSON, ObserveOptions()])
def test_other_loggers_are_neither_shown_nor_changed(
    options: ObserveOptions, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    others = (None, "py4j", "pyspark", "opentelemetry")
    before = [state(name) for name in others]
    with open_logs(options):
        assert [state(name) for name in others] == before
        logging.getLogger("py4j").error("theirs")
        LOGGER.error("ours")
    assert [state(name) for name in others] == before
    assert [line for line in lines(capsys) if "theirs" in line] == []
    # Nor is a record of ours shown a second time by a handler of the root.
    assert caplog.messages == ["theirs"]


def test_afterwards_the_logger_is_as_before(caplog: pytest.LogCaptureFixture) -> None:
    before = state("codeanatomy")
    with open_logs(JSON):
        assert len(LOGGER.handlers) == 1
    with pytest.raises(KeyboardInterrupt), open_logs(JSON):
        raise KeyboardInterrupt
    assert state("codeanatomy") == before
    LOGGER.warning("to whom it may concern")
    assert caplog.messages == ["to whom it may concern"]


def test_importing_puts_no_handler_anywhere() -> None:
    code = (
        "import logging, codeanatomy.logs, codeanatomy.tracing\n"
        "log = logging.getLogger('codeanatomy')\n"
        "print(log.handlers, log.level, log.propagate, logging.root.handlers)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout.strip(), done.stderr) == ("[] 0 True []", "")
