"""Start Spark sessions, and read metrics and plans from Spark's JVM.

    class_archive   build the JVM class-data archive, which shortens the start
    environment     pack the Python environment for executors
    executors       check the executors of a cluster
    gateway         start the JVM of a session beside everything else
    jars            fetch, verify and cache the jars that Delta needs
    java            find and check the Java runtime
    jvm             errors, boxed numbers and SQL literals between Python and the JVM
    lazy_session    the session of a command that may need one, started in the background
    metrics         metrics of jobs and operators
    plans           plans of a frame as reproducible text
    session         start, check, clone and stop sessions
    settings        the Spark settings of a profile, without Spark
    task_counter    tasks of a job that have ended, while it runs
    versions        refuse sessions whose internals were not tested
    worker_daemon   fork Python workers from a process that has imported the passes

No module here knows the tables of a lake.
"""
