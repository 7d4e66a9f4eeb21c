"""Read table versions, with Spark (`scan`) or without a JVM, and prune data files by their statistics.

    column_ranges   compute the range of values that a column of a data file may contain
    duck            read tables with DuckDB
    file_index      index the data files of a table version, and prune them by a predicate
    light           read table versions without a JVM: rows as Arrow, data files, facts from the log
    open_table      open a version of a table: what is the same for all readers
    predicate       represent a condition over the columns of one table
    predicate_text  parse a SQL WHERE condition into a predicate
    readable        check whether a table version can still be read
    scan            scan a table version with Spark

Tests: `tests/unit/delta`, `tests/spark`.
"""
