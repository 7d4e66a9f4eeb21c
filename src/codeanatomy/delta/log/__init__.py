"""Read and write Delta logs: through Delta's classes in the JVM, and directly in Python for local tables.

    deletion_vectors  read and write deletion vectors, which mark the deleted rows of a data file
    entries           write log entries of a local table in Python
    jvm_log           read the log of a table through Delta's classes in the JVM
    replay            replay the log of a local table in Python
    snapshot_info     describe one version of a table: protocol, properties, schema, partitioning
    transaction       create tables and append rows in one Delta transaction over py4j

Tests: `tests/unit/delta`, `tests/spark`.
"""
