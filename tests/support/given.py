"""Make requests of builds in a caller's session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from codeanatomy.config import load_settings
from codeanatomy.lake.engine_facts import EngineFacts
from codeanatomy.plan.build_request import BuildRequest
from codeanatomy.plan.repositories import Repository


def make_request(lake: Path | str, sources: Mapping[str, Path | str], **changes: Any) -> BuildRequest:
    repositories = tuple(Repository(name, path) for name, path in sources.items())
    settings = load_settings((), env={}, start=None)
    facts = EngineFacts("spark", session_kind="given")
    return structs.replace(BuildRequest(str(lake), settings, repositories, session=facts), **changes)
