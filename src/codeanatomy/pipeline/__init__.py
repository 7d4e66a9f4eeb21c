"""Run the steps of a build: map the pure functions of the step packages over files and hand rows to `delta`.

context         the state of a run that every step reads and adds to
extract_step    extract on Spark
normalize_step  normalize on Spark
relate_step     relate on Spark: compile files, solve repositories
graph_step      graph on Spark
inputs          scans of pinned inputs, sessions and task counts of steps
input_frames    frames of the extract tables, reduced to what per-file functions read
bundles         rows of several tables about a file, brought together without a join
packed_rows     rows packed by table in one frame, and their commits
sorted_tables   tables sorted by executors as Arrow
small_tables    several small tables written by one task
caching         cache policies of the frames of steps
key_collisions  definitions that share a key, refused before rows are committed
scip_indexes    tasks of the SCIP indexer
tools           which repositories the type checker and the SCIP indexer run on
type_checker    tasks of the type checker
refresh         the same steps for small changes, on local processes
"""
