"""Start Spark sessions, and read metrics and plans from Spark's JVM.

    class_archive   build the JVM class-data archive, which shortens the start
    environment     pack the Python environment for executors
    executors       check the executors of a cluster, and size their memory
    jars            fetch, verify and cache the jars that Delta needs
    java            find and check the Java runtime
    jvm             errors, boxed numbers and SQL literals between Python and the JVM
    lazy_session    the session of a command that may need one
    metrics         metrics of jobs and operators
    plan_columns    table columns that a plan filters by and joins by
    plans           plans of a frame as reproducible text
    session         start, check, clone and stop sessions
    versions        refuse sessions whose internals were not tested

No module here knows the tables of a lake.
"""
