"""Describe a build, and compute the settings and versions that its rows depend on.

    request = BuildRequest("lake", settings, parse_repositories(("src",)), profile="full")
    build_inputs(request).witness_versions["ast_files_v1"]     # 'ast, python 3.11, rules 2'

Tests: `tests/unit/plan/test_steps.py`, `tests/unit/plan/test_repositories.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from codeanatomy.catalog.kinds import Profile
from codeanatomy.config import Settings
from codeanatomy.delta.store_policy import is_local
from codeanatomy.errors import UnknownName, UsageError
from codeanatomy.extract.extractors import EXTRACTORS
from codeanatomy.extract.scip.documents import VERSION as SCIP_VERSION
from codeanatomy.extract.scip_index import SCIP
from codeanatomy.extract.tools.external_tool import tool_version
from codeanatomy.extract.tools.pyrefly import find_pyrefly
from codeanatomy.extract.tools.scip_python import find_scip_python
from codeanatomy.extract.type_checker_files import RULES, TYPES
from codeanatomy.lake.engine_facts import EngineFacts, engine_facts
from codeanatomy.plan.repositories import NAMED, Repository
from codeanatomy.plan.steps import BuildInputs, result_settings
from codeanatomy.plan.stored_sources import is_stored
from codeanatomy.sources.listing import Listing

# auto: run the type checker if it is installed.
TypesChoice: TypeAlias = Literal["auto", "off"]
# Sources named in a message.
MAX_SHOWN = 3


class ScipChoice(Struct, frozen=True):
    """SCIP indexes of a build: create them with scip-python, or use existing ones by repository."""

    auto: bool = False
    given: dict[str, Path] = {}


def scip_choice(values: Sequence[str], repositories: Sequence[Repository]) -> ScipChoice:
    """Parse the values of --scip.

    --scip off                  no index; rows of older ones go away with this build
    --scip PATH                 an index of the one repository
    --scip NAME=PATH            ... of several, each named
    --scip auto                 scip-python makes one for each repository, where it is installed
    """
    names = [repository.repo_id for repository in repositories]
    given: dict[str, Path] = {}
    auto = False
    for value in values:
        named = NAMED.fullmatch(value)
        if value in ("auto", "off"):
            auto = value == "auto"
        elif named is not None and not Path(value).exists():
            if named[1] not in names:
                raise UnknownName("repository", named[1], names)
            given[named[1]] = Path(named[2])
        elif len(names) > 1:
            raise UsageError(f"--scip {value} does not name its repository", "write --scip NAME=PATH")
        else:
            given[names[0]] = Path(value)
    for path in given.values():
        if not path.is_file():
            raise UsageError(f"there is no SCIP index at {path}", "name a file, or write --scip auto")
    return ScipChoice(auto, given)


class BuildRequest(Struct, frozen=True):
    """Sources, target lake and options of a build."""

    lake: str
    settings: Settings
    repositories: tuple[Repository, ...]
    scip: ScipChoice = ScipChoice()
    types: TypesChoice = "off"
    # Node and edge kinds to emit.
    profile: Profile = "default"
    # Last step to run; None runs all.
    until: str | None = None
    # Wait for the lease if another run holds it.
    wait: bool = True
    # Rebuild all files of each repository instead of refreshing it.
    full: bool = False
    # Git commit: files that git reports unchanged since then are not read (see `GitBaseline`).
    since: str | None = None
    # Facts of a caller's Spark session; None: the settings choose the engine.
    session: EngineFacts | None = None

    @property
    def engine_facts(self) -> EngineFacts:
        """The engine of the build."""
        return engine_facts(self.settings.runtime, self.session)


def refuse_unshared_sources(request: BuildRequest) -> None:
    """Raise UsageError if executors on other hosts would have to read or write files of this machine."""
    master = request.engine_facts.master or ""
    if request.session is not None or request.engine_facts.engine != "spark":
        # `run.given_session` checks what the executors of a caller's session can read.
        return
    # Executors of `local-cluster` are on this machine, too.
    if master.startswith("local") or request.settings.runtime.shared_sources:
        return
    local = [str(each.path) for each in request.repositories if not is_stored(each.path)]
    local += [str(path) for path in request.scip.given.values()]
    if local:
        more = f" and {len(local) - MAX_SHOWN:,} more" if len(local) > MAX_SHOWN else ""
        raise UsageError(
            f"the executors of {master} cannot read {', '.join(local[:MAX_SHOWN])}{more}, which this"
            " machine has",
            "upload it to an object store and name its URI, such as NAME=s3a://bucket/folder or an archive;"
            " or use --engine local (runtime.engine=local); if all hosts have it at this path, set"
            " runtime.shared_sources=true",
        )
    if is_local(request.lake):
        raise UsageError(
            f"the executors of {master} cannot write the lake {request.lake}, which this machine has",
            "use a lake in an object store, such as --lake s3a://bucket/lake; or use --engine local"
            " (runtime.engine=local); if all hosts have it at this path, set runtime.shared_sources=true",
        )


def build_inputs(request: BuildRequest) -> BuildInputs:
    """Return the settings and versions that rows depend on, the same for all repositories."""
    versions = {witness.table: witness.version for witness in EXTRACTORS}
    pyrefly = find_pyrefly() if request.types == "auto" else None
    versions[SCIP] = SCIP_VERSION
    versions[TYPES] = RULES if pyrefly is None else f"{tool_version(pyrefly)}, {RULES}"
    return BuildInputs(result_settings(request.settings, request.profile), versions)


def source_inputs(
    request: BuildRequest, digests: Mapping[str, str], listings: Mapping[str, Listing]
) -> dict[str, dict[str, str]]:
    """Return the digest of the source, the SCIP index or tool, and the package of a root, by repository."""
    auto = "off"
    if request.scip.auto:
        tool = find_scip_python()
        auto = "auto, not installed" if tool is None else f"auto, {tool_version(tool)}"
    inputs: dict[str, dict[str, str]] = {}
    for repo_id, digest in digests.items():
        inputs[repo_id] = {"source": digest, "scip": auto}
        if given := request.scip.given.get(repo_id):
            # The extractor records why an index cannot be read as an error row.
            inputs[repo_id]["scip"] = "unreadable"
            with suppress(OSError), given.open("rb") as file:
                inputs[repo_id]["scip"] = hashlib.file_digest(file, "sha256").hexdigest()
        if listings[repo_id].package:
            inputs[repo_id]["package"] = listings[repo_id].package
    return inputs
