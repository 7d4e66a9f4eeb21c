"""What tasks of a build do, on executors or in local processes: pure functions of pieces.

file_stage      extract, normalize and compile a file where it is read, and make its graph rows
solve_stage     solve repositories and emit the relations of their files
graph_stage     rows of the graph that relations decide, and rows that belong to no single file
graph_rows      rows of the graph: to data files where they are made, or as pieces
pieces          what goes from one stage to the next, in pieces of a few megabytes
chunks          files that are worked on together, by their ids; rows by file
sinks           rows of a task, written to data files
stored_rows     rows of pinned tables by file, read with DuckDB
tool_rows       rows of tools, compared with the stored ones
impact          why a file that was not edited is redone
"""
