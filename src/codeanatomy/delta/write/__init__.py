"""Write tables. `codeanatomy.delta` explains which way of writing is used for what.

    checks          check rows before Spark commits them: semantic types, NOT NULL, constraints
    commit          make a commit: what is the same for all writers
    data_files      write Arrow batches as Parquet data files with statistics
    evolve          update the schema, properties and features of a table to its catalogue entry
    file_commits    commit data files that executors have written as Arrow, without Spark
    log_writer      make a version by a log entry of our own
    owner_rows      find the rows of some owners in a table
    restore         restore a table to an earlier version
    rewrite         write data files again without some rows, and the change files of such a commit
    row_checks      check the catalogue's rules on Arrow batches
    small_rows      commit a few rows without a JVM
    spark_rows      commit rows of a Spark DataFrame: append, replace_by_owner
    table_features  give a table deletion vectors, or take them away

Tests: `tests/unit/delta`, `tests/spark`.
"""
