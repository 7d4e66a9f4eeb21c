"""Run the passes of a build: on Spark, or on local processes where there is no Java.

executor        what a build needs of its engine
spark_executor  the engine on Spark
spark_tables    all tables of a pass written by Spark's executors, in one job
sorted_tables   tables put in their order as Arrow, in ranges that fit into a task
local_executor  the engine on local processes
local_process   the process that local builds run in
processes       work forked over several cores
"""
