"""Run the steps of a build: map the pure functions of the step packages over files and hand rows to `delta`.

passes          drives a build: pass one over files, the solve of repositories, pass two, their commits
first_pass      pass one: extract, normalize and compile a file where it is read
solve           solves repositories and emits the relations of their files
second_pass     pass two: graph rows, and rows that belong to no single file
pieces          what goes from one pass to the next, in pieces of a few megabytes
chunks          files that are worked on together, by their ids; rows by file
sinks           rows of a task, written to data files
commits         commits of tables: of whole repositories, or of files
build_session   what a build needs of a Spark session, its own or a caller's
context         the state of a run, and of its refreshes, that every pass reads and adds to
stored_rows     rows of pinned tables by file, read with DuckDB
tool_rows       rows of tools, compared with the stored ones
tools           which repositories the type checker and the SCIP indexer run on
refreshes       what a refresh redoes beside the files that were edited
impact          why a file that was not edited is redone
key_collisions  definitions that share a key, refused before rows are committed
executors       the engines that run the passes: Spark, and local processes
"""
