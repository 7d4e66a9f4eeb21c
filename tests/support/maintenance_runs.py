"""Run maintenance on a lake and count the rows of its tables."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from codeanatomy import catalog
from codeanatomy.config import load_settings
from codeanatomy.delta.read.light import light_table
from codeanatomy.maintain.inspection import MaintenanceRequest
from codeanatomy.maintain.maintenance import MaintenanceReport, maintain
from codeanatomy.progress import Progress
from support.sessions import no_session

SETTINGS = load_settings(env={}, start=None)


def run_maintenance(
    lake: Path, session: Callable[[], SparkSession] = no_session, *tables: str, **options: Any
) -> MaintenanceReport:
    """Run maintenance, by default without a session."""
    wanted = MaintenanceRequest(str(lake), options.pop("settings", SETTINGS), tables, **options)
    return maintain(wanted, Progress(io.StringIO()), session)


def counted(lake: Path, name: str, version: int | None = None) -> int:
    return len(light_table(str(lake), name, [catalog.table(name).primary_key[0]], version=version))
