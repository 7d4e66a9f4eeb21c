"""CodeAnatomy: a Code Property Graph lakehouse for Python, on Spark and Delta Lake.

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

Importing the package starts nothing and does not import Spark. docs/architecture.md describes how the
packages work together.
"""

from __future__ import annotations

__version__ = "0.1.0"
