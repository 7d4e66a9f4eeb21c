"""What a user asks of a build, and what the steps are therefore made with.

    order = Order("lake", settings, named_sources(("src",)), profile="full")
    asked_of(order).witness_versions["ast_files_v1"]     # 'ast, python 3.11, rules 2'

Tests: `tests/unit/plan/test_steps.py`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from codeanatomy.catalog.kinds import Profile
from codeanatomy.config import Settings
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.scip.documents import VERSION as SCIP_VERSION
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.extract.tools.external_tool import tool_version
from codeanatomy.extract.tools.pyrefly import find_pyrefly
from codeanatomy.extract.tools.scip_python import find_scip_python
from codeanatomy.extract.type_checker_files import RULES, TYPES
from codeanatomy.plan.repositories import Repository
from codeanatomy.plan.steps import Asked, result_settings

# Whether a type checker is asked, where it is installed.
TypesChoice: TypeAlias = Literal["auto", "off"]


class ScipChoice(Struct, frozen=True):
    """Whether SCIP indexes are made, and those that are given, by repository."""

    auto: bool = False
    given: dict[str, Path] = {}


class Order(Struct, frozen=True):
    """A build as it was asked for."""

    lake: str
    settings: Settings
    repositories: tuple[Repository, ...]
    scip: ScipChoice = ScipChoice()
    types: TypesChoice = "off"
    # Which kinds of nodes and edges are made.
    profile: Profile = "default"
    # The last step; none means all.
    until: str | None = None
    # Wait for another run that writes to the lake.
    wait: bool = True
    # Build all of each repository, also where a refresh would do.
    full: bool = False
    # A commit of git: paths that are the same there as in the work tree are taken to be as in the lake.
    since: str | None = None


def asked_of(order: Order) -> Asked:
    """Settings and versions that the rows of all repositories follow from."""
    versions = {witness.table: witness.version for witness in EXTRACTORS}
    pyrefly = find_pyrefly() if order.types == "auto" else None
    versions[SCIP] = SCIP_VERSION
    versions[TYPES] = RULES if pyrefly is None else f"{tool_version(pyrefly)}, {RULES}"
    return Asked(result_settings(order.settings, order.profile), versions)


def made_from(order: Order, digests: dict[str, str]) -> dict[str, dict[str, str]]:
    """By repository, what its rows are extracted from besides what was asked for."""
    auto = _scip_tool() if order.scip.auto else "off"
    return {
        repo_id: {"source": digest, "scip": _index(order.scip.given.get(repo_id), auto)}
        for repo_id, digest in digests.items()
    }


def _scip_tool() -> str:
    tool = find_scip_python()
    return "auto, not installed" if tool is None else f"auto, {tool_version(tool)}"


def _index(given: Path | None, otherwise: str) -> str:
    if given is None:
        return otherwise
    try:
        with given.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        # Its reader will say why, in a row.
        return "unreadable"
