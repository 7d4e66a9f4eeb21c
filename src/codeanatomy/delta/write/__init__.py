"""Write tables. `codeanatomy.delta` explains which way of writing is used for what.

    adopt           commit data files that executors have written as Arrow, without Spark
    checks          check rows before Spark commits them: semantic types, NOT NULL, constraints
    commit          commit rows of a Spark DataFrame: append, replace_by_owner
    data_files      write Arrow batches as Parquet data files with statistics
    evolve          update the schema, properties and features of a table to its catalogue entry
    owner_rows      find the rows of some owners in a local table
    restore         restore a table to an earlier version
    rewrite         write data files again without some rows, and the change files of such a commit
    row_checks      check the catalogue's rules on Arrow batches
    small           commit a few rows with delta-rs
    staging         stage DataFrames as Delta tables in the lake, for reuse by later runs
    table_features  give a local table deletion vectors, or take them away

Tests: `tests/unit/delta`, `tests/spark`.
"""
