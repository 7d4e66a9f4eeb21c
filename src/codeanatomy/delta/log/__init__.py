"""Read and write Delta logs: directly in Python, and through Delta's classes in the JVM.

    deletion_vectors  read and write deletion vectors, which mark the deleted rows of a data file
    entries           write log entries in Python
    folder            the files of a table, in a local folder or in an object store
    jvm_log           read chosen data files through Delta's classes in the JVM
    protocol          Delta's protocol: versions, features, what they require of a writer
    remote_folder     the folder of a table in an object store, with a cache of its files
    replay            replay the log of a table in Python
    snapshot_info     describe one version of a table: protocol, properties, schema, partitioning
    transaction       create tables and append rows in one Delta transaction over py4j
    versions          open versions of a table by its log

Tests: `tests/unit/delta`, `tests/spark`.
"""
