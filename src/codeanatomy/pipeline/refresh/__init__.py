"""A refresh: what a change of the source reaches is redone, file by file, and nothing else.

It runs where the command runs, in as many processes as there are cores (`worker`) and without a JVM: a change
is small, or all of the repository is built anew by Spark (`run.plan`). The same functions make the rows.

    changes      which paths differ from what is published (`run.changes`), and what the change feed says
    inputs       what the tables say of a file: what this run has made of it, else what is published
    extracting, normalizing, relating, graphing      the four steps
    writing      rows of owner files in the place of those that are there, in one commit per table
    impact       why a file that nobody has edited is redone
"""
