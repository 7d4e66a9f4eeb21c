"""Refresh: redo, file by file, what a change of the source reaches, on local processes and without a JVM.

The same functions as in the Spark steps make the rows; a change that is not small is built by Spark instead
(`plan.run_plan`).

    extract         extract the changed files; run whole-program tools again
    normalize       apply the rules to the files whose evidence changed
    relate          solve the repository again; find the files whose relations differ
    graph           make the graph rows of these files
    write           replace rows by owner: data files and one commit per table
    impact          why a file that was not edited is redone
    forecast        what a refresh would redo, for `codeanatomy plan`
    refresh_state   what changed in a repository and what is redone of it
    file_tables     rows of a table by file: from this run, otherwise from the lake
    row_streams     pack rows for another process, and compare them
    worker          the process that computes
    processes       fork work over several cores
"""
