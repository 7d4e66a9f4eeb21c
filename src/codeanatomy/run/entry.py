"""Build and plan from Python: the functions `codeanatomy.build` and `codeanatomy.plan_build`.

    report = build({"shop": "src/shop"}, "lake", types="off")       # in a session of its own
    report = build("s3a://bucket/requests", "s3a://bucket/lake", spark=spark)      # in the caller's
    report.status, report.run_id                                    # ("succeeded", "20261118T...")

Sources are paths or URIs, as those of the command: one, several, or by name. Without `settings`, those of the
command are used (settings file, environment); a mapping is added to them, as `--set` does. Nothing is
printed, unless `progress` is set. All errors are of `codeanatomy.errors`: `EnvironmentProblem` for a session
that lacks something.

Tests: `tests/unit/run/test_entry.py`, `tests/spark/test_given_session.py`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, get_args, get_type_hints

from msgspec import ValidationError, convert, structs

from codeanatomy.catalog.kinds import Profile
from codeanatomy.config import MASTERS, Engine, Settings, check_master, load_settings
from codeanatomy.errors import UsageError
from codeanatomy.lake.engine_facts import EngineFacts
from codeanatomy.plan.build_request import BuildRequest, TypesChoice, scip_choice
from codeanatomy.plan.repositories import NAMED, parse_repositories
from codeanatomy.plan.run_plan import Plan
from codeanatomy.progress import Progress
from codeanatomy.run.build import build as run_build
from codeanatomy.run.build import plan as run_plan
from codeanatomy.run.given_session import GivenSession, describe_unchecked
from codeanatomy.run.report import BuildReport
from codeanatomy.spark.lazy_session import session_for
from codeanatomy.spark.settings import BUILD_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Source: TypeAlias = str | os.PathLike[str]
Sources: TypeAlias = Source | Iterable[Source] | Mapping[str, Source]


class BuildOptions(TypedDict, total=False):
    """The options of a build that are fields of its request, with its defaults but for `types`: auto."""

    types: TypesChoice
    profile: Profile
    until: str | None
    since: str | None
    full: bool
    wait: bool


def build(
    sources: Sources,
    lake: Source,
    *,
    spark: SparkSession | None = None,
    settings: Settings | Mapping[str, object] | None = None,
    scip: str | Iterable[str] = (),
    engine: Engine | None = None,
    progress: bool = False,
    **options: Unpack[BuildOptions],
) -> BuildReport:
    """Build repositories into a lake, in a caller's session or in one of its own.

    A session is checked first: `EnvironmentProblem` names what it lacks. It is neither stopped nor
    reconfigured. The other options are those of `codeanatomy build`.
    """
    if spark is not None and engine == "local":
        raise UsageError(
            "a build with a Spark session runs on Spark, not on the engine local", "leave out one of them"
        )
    facts = None if spark is None else describe_unchecked(spark)
    request = _request(sources, lake, settings, engine, scip, facts, options)
    with Progress(sys.stderr if progress else io.StringIO()) as shown:
        if spark is not None:
            with closing(GivenSession(spark, request)) as given:
                return run_build(request, shown, given)
        with session_for(request.settings, shown, BUILD_OPTIONS) as session:
            return run_build(request, shown, session)


def plan_build(
    sources: Sources,
    lake: Source,
    *,
    settings: Settings | Mapping[str, object] | None = None,
    scip: str | Iterable[str] = (),
    engine: Engine | None = None,
    impact: bool = False,
    **options: Unpack[BuildOptions],
) -> Plan:
    """Plan a build without doing it; with `impact`, also which files a refresh would redo, and why."""
    request = _request(sources, lake, settings, engine, scip, None, options)
    with Progress(io.StringIO()) as progress:
        return run_plan(request, progress, impact=impact)


def _request(
    sources: Sources,
    lake: Source,
    settings: Settings | Mapping[str, object] | None,
    engine: Engine | None,
    scip: str | Iterable[str],
    session: EngineFacts | None,
    options: BuildOptions,
) -> BuildRequest:
    """Return the request of a build."""
    known: dict[str, Any] = {**get_type_hints(BuildOptions), "engine": Engine}
    for name, value in {**options, **({} if engine is None else {"engine": engine})}.items():
        if name not in known:
            raise TypeError(f"unexpected option {name!r}, known: {', '.join(known)}")
        _check(name, value, known[name])
    if isinstance(settings, Settings):
        effective = settings
        if engine is not None:
            effective = structs.replace(settings, runtime=structs.replace(settings.runtime, engine=engine))
    elif settings is None or isinstance(settings, Mapping):
        named = {} if engine is None else {"runtime.engine": engine}
        # As values of `--set`, in which true is written in lower case.
        values = {**(settings or {}), **named}.items()
        effective = load_settings(
            [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in values]
        )
    else:
        raise UsageError(
            f"settings={settings!r}: Expected Settings or a mapping", 'write {"extract.partitions": 64}'
        )
    if session is None:
        check_master(effective)
    else:
        _refuse_ignored(effective)
    indexes = (scip,) if isinstance(scip, str) or not isinstance(scip, Iterable) else tuple(scip)
    if not all(isinstance(each, str) for each in indexes):
        raise UsageError(f"scip={scip!r}: Expected `str`, or several", "name an index, several, or auto")
    repositories = tuple(parse_repositories(_arguments(sources)))
    choice = scip_choice(indexes, repositories)
    fields: BuildOptions = {"types": "auto", **options}
    return BuildRequest(_path(lake, "lake"), effective, repositories, choice, session=session, **fields)


def _refuse_ignored(settings: Settings) -> None:
    """Raise UsageError if a call names an engine or a master beside a session; a file may."""
    named = [] if settings.runtime.engine == "spark" else ["runtime.engine"]
    for key in (*named, *MASTERS):
        if settings.source(key) == "flag":
            raise UsageError(
                f"a build with a Spark session runs on it, not on what {key} names", "leave out one of them"
            )


def _check(name: str, value: object, expected: Any) -> None:
    """Raise UsageError if an option has a value of another type, or none of those that are known."""
    try:
        convert(value, expected)
    except ValidationError as problem:
        known = ", ".join(map(str, get_args(expected))) if isinstance(value, str) else ""
        hint = f"known: {known}" if known else "give it a value of that type"
        raise UsageError(f"{name}={value!r}: {problem}", hint) from problem


def _arguments(sources: Sources) -> list[str]:
    """Return sources as arguments of the command."""
    if isinstance(sources, Mapping):
        arguments = {name: f"{name}={_path(source, 'source')}" for name, source in sources.items()}
        for name, argument in arguments.items():
            if not NAMED.fullmatch(argument):
                raise UsageError(
                    f"{name!r} is no name of a repository", "use letters, digits and _ . @ + - /"
                )
        return [*arguments.values()]
    if isinstance(sources, str | os.PathLike) or not isinstance(sources, Iterable):
        return [_path(sources, "source")]
    return [_path(source, "source") for source in sources]


def _path(path: object, what: str) -> str:
    """Return a path or URI as text. Raise UsageError for another object."""
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"{path!r} is no path or URI of a {what}", "give a text or a path")
    return os.fspath(path)
