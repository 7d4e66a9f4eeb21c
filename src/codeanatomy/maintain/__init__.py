"""Maintain a lake: keep tables small and ordered, delete what no reader needs, restore and copy states.

    table_state      state of one table: files, log, dead files
    choose           operations that a table needs by its policy
    retention        files and log entries that readers still need
    removal          find and delete the others
    inspection       state of a lake and the operations it needs
    maintenance      do them, publish and record
    optimize         compaction, sorting and Z-order with Spark
    features         show and enable protocol features
    readers          bring a lake to all readers, or to those of deletion vectors
    maintenance_run  a run that holds the lease and is no build
    republish        publish an earlier state with new versions
    rollback         bring tables back to earlier versions
    restore          restore a run or one table
    table_copies     copy one version of a table
    snapshot_export  copy a published run to a folder

Tests: `tests/unit/maintain`, `tests/spark/test_optimize.py`.
"""
