"""Read and write the Delta tables of a lake, and enforce what the catalogue declares about them.

    archive_workload  run every kind of read and write once, for the JVM's class archive
    commit_stamp      identify a commit: transaction and user metadata
    contract          project stored or incoming columns onto the declared columns
    events            declare the events of the storage layer
    feed              read the change data feed with Spark
    gate              check a table's protocol against its gate
    layout            translate a table's write policy to Delta and Parquet
    light_feed        read the change data feed without a JVM
    log               read and write Delta logs
    read              read table versions, with Spark or without a JVM
    store             hold the context of every read and write
    store_policy      configure access to the storage of a lake
    write             write tables

Rows are read with Spark by `read.scan`, with delta-rs and Arrow by `read.light`, and with DuckDB by
`read.duck`; the last two start in milliseconds and need no JVM. All of them read one version of a table in
the contract's columns.

Rows are written in six ways. Each exists because the others are slower or impossible in its case:

DataFrame writer (`write.commit`: replace_by_owner)
    Spark's Delta writer; works for every store and every table feature.
Transaction over py4j (`log.transaction`, used by `write.commit`)
    Appends, and the first rows of a new table with NOT NULL and properties in a single commit, which the
    DataFrame writer cannot do; it also saves the job in which the writer reads the table's state.
Adopted Arrow files (`write.data_files`, then `write.adopt` with `log.entries` and `log.deletion_vectors`)
    Executors write Parquet files from Arrow, and Python writes the log entry, with deletion vectors for
    replaced rows. For local lakes and tables without features that need Spark: several times faster for
    nested rows, and milliseconds per commit.
Small commits with delta-rs (`write.small`)
    The manifest, the lease and the events of a run: a few rows without a JVM, as a compare-and-set on the
    table's version.
Restore (`write.restore`)
    A commit that makes an earlier version current again, without rewriting rows; with delta-rs, or with
    Spark for tables whose features delta-rs does not support.
Staging (`write.staging`)
    Intermediate DataFrames in tables of their own below `staging/`, which no reader of the lake opens;
    without contract and checks.

The first three check contract, constraints and gate, make each transaction at most once, retry conflicts, and
record an event; small commits do the same except for the gate and the event. Maintenance
(`codeanatomy.maintain`) rewrites files with OPTIMIZE and deletes them with VACUUM, which change no rows, and
exports snapshots to new tables with `log.entries`.
"""
