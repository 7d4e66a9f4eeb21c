"""Read and write the Delta tables of a lake, and enforce what the catalogue declares about them.

    archive_workload  run every kind of read and write once, for the JVM's class archive
    commit_stamp      identify a commit: transaction and user metadata
    contract          project stored or incoming columns onto the declared columns
    events            declare the events of the storage layer
    feed              read the change data feed with Spark
    gate              check a table's protocol against its gate
    lake_tables       hold the context of reads and writes without Spark
    layout            translate a table's write policy to Delta and Parquet
    light_feed        read the change data feed without a JVM
    log               read and write Delta logs
    object_store      open the object store of a URI, and explain its errors
    read              read table versions, with Spark or without a JVM
    store             hold the context of reads and writes with Spark
    store_policy      configure access to the storage of a lake
    write             write tables

Rows are read with Spark by `read.scan`, and with DuckDB by `read.duck`, which starts in milliseconds and
needs no JVM. Both read one version of a table in the contract's columns.

Every commit is made by `write.commit`: transaction, retries, conflicts, gate, result and event are there.
Two kinds of writers make the versions:

Spark's Delta writer (`write.spark_rows`, with a transaction over py4j in `log.transaction`)
    Rows of a DataFrame, for every table feature.
Log entries in Python (`write.log_writer`, with `log.entries` and `log.deletion_vectors`)
    Data files that executors have written from Arrow (`write.file_commits`), the few rows of the manifest,
    the lease and the events (`write.small_rows`), restores (`write.restore`) and changes of features
    (`write.table_features`). For tables without features that need Spark: several times faster for nested
    rows, and milliseconds per commit.

Maintenance (`codeanatomy.maintain`) rewrites files with OPTIMIZE and deletes them with VACUUM, which change
no rows, and exports snapshots to new tables with `log.entries`.
"""
