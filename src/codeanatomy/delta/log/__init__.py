"""Read and write Delta logs: directly in Python, and through Delta's classes in the JVM.

    deletion_vectors  read and write deletion vectors, which mark the deleted rows of a data file
    entries           open versions of a table, and write log entries, in Python
    folder            the files of a table, in a local folder or in an object store
    jvm_log           read the log of a table through Delta's classes in the JVM
    remote_folder     the folder of a table in an object store, with a cache of its files
    replay            replay the log of a table in Python
    snapshot_info     describe one version of a table: protocol, properties, schema, partitioning
    transaction       create tables and append rows in one Delta transaction over py4j

Tests: `tests/unit/delta`, `tests/spark`.
"""
