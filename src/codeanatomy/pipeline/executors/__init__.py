"""Run the passes of a build: on Spark, which does everything, or on local processes, for small builds.

executor        what a build needs of its engine
spark_executor  the engine on Spark
spark_files     tables written by Spark's executors, from frames of pieces
sorted_tables   tables put in their order as Arrow, in ranges that fit into a task
caching         cache policies of the frames of steps
local_executor  the engine on local processes
local_process   the process that local builds run in
processes       work forked over several cores
"""
