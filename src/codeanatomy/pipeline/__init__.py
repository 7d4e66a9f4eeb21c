"""Run the steps of a build: map the pure functions of the step packages over files and hand rows to `delta`.

stages          the stages of a build, as data, and the loop that runs them
group_build     what the stages of a group of repositories share
drive_files     runs the stages over files
drive_solve     runs the solve of repositories
drive_graph     runs the stages of the graph
frontier        what a change reaches: changed, dependent and removed files, and why
tasks           what tasks of the stages do on executors
executors       the engines that run the stages: Spark, and local processes
context         the state of a run
commits         commits of tables: of whole repositories, or of files
build_session   what a build needs of a Spark session, its own or a caller's
tools           which repositories the type checker and the SCIP indexer run on
key_collisions  definitions that share a key, refused before rows are committed
"""
