"""Describe the engine of a build: local processes, or Spark with its master, kind of session and versions.

>>> facts = EngineFacts("spark", "local[*]", "own", "4.2.0", "4.4.0")
>>> engine_text(facts)
'spark on local[*], Spark 4.2.0, Delta 4.4.0'
>>> engine_text(EngineFacts("local"))
'local processes'

The facts of a session that a build starts itself follow from the settings and the installed packages, so
that they are known before a JVM runs: a plan has them, too. The session of a caller brings its own. They are
columns of the manifest; credentials in a master are masked.

Tests: `tests/unit/lake/test_engine_facts.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct, structs

from codeanatomy.config import Engine, mask_secret

if TYPE_CHECKING:
    from codeanatomy.config import RuntimeProfile

# own: started by the build; given: a classic session of the caller's; connect: one of Spark Connect.
SessionKind: TypeAlias = Literal["own", "given", "connect"]

SESSION_TEXTS: dict[SessionKind | None, str] = {"given": " (a given session)", "connect": " (Spark Connect)"}


class EngineFacts(Struct, frozen=True):
    """The engine of a build; None in the other fields: local processes, or unknown."""

    engine: Engine
    master: str | None = None
    session_kind: SessionKind | None = None
    spark_version: str | None = None
    delta_version: str | None = None


def engine_facts(runtime: RuntimeProfile, given: EngineFacts | None = None) -> EngineFacts:
    """Return the facts of the engine that settings choose, or those of a caller's session, secrets masked."""
    if given is not None:
        return structs.replace(given, master=_without_secrets(given.master))
    if runtime.engine == "local":
        return EngineFacts("local")
    return EngineFacts(
        "spark",
        _without_secrets(runtime.session_master),
        "own",
        _installed_version("pyspark"),
        _installed_version("delta-spark"),
    )


def engine_text(facts: EngineFacts) -> str:
    """Format the facts in one line."""
    if facts.engine == "local":
        return "local processes"
    versions = (("Spark", facts.spark_version), ("Delta", facts.delta_version))
    parts = [f"spark on {facts.master or 'an unknown master'}{SESSION_TEXTS.get(facts.session_kind, '')}"]
    return ", ".join((*parts, *(f"{name} {version}" for name, version in versions if version)))


def _without_secrets(master: str | None) -> str | None:
    return None if master is None else str(mask_secret("runtime.master", master))


def _installed_version(distribution: str) -> str | None:
    # Imported here: readers of the manifest do not need it.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
