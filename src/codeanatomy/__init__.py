"""CodeAnatomy: a Code Property Graph lakehouse for Python, on Spark and Delta Lake.

    import codeanatomy

    codeanatomy.plan_build("src", "lake").steps                   # what a build would do
    report = codeanatomy.build("src", "lake")                     # on Spark, in a session of its own
    report = codeanatomy.build("src", "lake", spark=session)      # in yours, which stays as it is
    lake = codeanatomy.Lake.open("lake")                          # the newest published run
    lake.callers("requests.api.get").rows
    codeanatomy.errors.CodeAnatomyError                           # base class of what these raise

The public names are those of `__all__`, imported when they are used. The packages below them:

    catalog        declare tables, kinds, views, semantic types and settings as data
    sources        find, read and decode the files of a source
    extract        extract evidence rows from the bytes of files
    normalize      normalize evidence into flat facts
    relate         resolve names, imports, classes, values and calls into relations
    graph          build nodes, edges and properties from facts and relations
    delta          read and write Delta tables
    spark          start Spark sessions, and read metrics and plans
    lake           lease, manifest, snapshots and recorded events of a lake
    plan           decide what each step of a run does for each repository
    pipeline       run the steps of a build, on Spark or in local processes
    run            execute a plan, publish the result and record the run
    maintain       compact, vacuum, restore and copy the tables of a lake
    query          query a published snapshot: commands, SQL, exports, comparisons
    cli            commands of `codeanatomy`
    arrow          convert Python values to Arrow arrays
    atomic_output  write files and folders atomically
    config         load the settings
    definitions    list the definitions of a file, with their qualified paths
    errors         exceptions and exit codes
    file_ids       make the ids of the nodes of one file
    ids            make ids of hashed keys
    logs           write log records to stderr
    node_ids       make ids of definition keys, names and numbers
    progress       print the progress of a command
    spans          convert columns of other tools to byte offsets
    sql_functions  declare the functions of our own in SQL
    syntax_tree    read CPython's syntax tree back from its table
    tracing        export OpenTelemetry spans

Importing the package starts nothing and imports neither Spark nor another package. docs/architecture.md
describes how the packages work together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codeanatomy import errors
    from codeanatomy.query.lake import Lake
    from codeanatomy.run.entry import build, plan_build
    from codeanatomy.run.report import BuildReport

__all__ = ("BuildReport", "Lake", "__version__", "build", "errors", "plan_build")
__version__ = "0.1.0"

# Modules of the public names, imported by name: no layer may import those above it by importing its package.
HOMES = {
    "BuildReport": "codeanatomy.run.report",
    "Lake": "codeanatomy.query.lake",
    "build": "codeanatomy.run.entry",
    "plan_build": "codeanatomy.run.entry",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("codeanatomy.errors")
    if name not in HOMES:
        raise AttributeError(f"module 'codeanatomy' has no attribute {name!r}")
    try:
        return getattr(import_module(HOMES[name]), name)
    except ModuleNotFoundError as problem:
        # Such as where only the code of codeanatomy was sent to a driver.
        from codeanatomy.errors import EnvironmentProblem

        raise EnvironmentProblem(
            f"this Python cannot import {problem.name}, which codeanatomy needs",
            f"install codeanatomy=={__version__} with the packages that it requires",
        ) from problem


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
