"""SQL over the views: check one read-only statement, then run it on DuckDB or Spark.

check          parse and check a statement
allowed        the parts, functions and types that are allowed
parts          check the parts of a statement
names          resolve views and columns
types          check the types of values
diagnostics    problems of a statement, with place and suggestion
duck_rewrites  rewrite Spark functions for DuckDB
columns        columns that a statement filters by, joins by and returns
pruning        conditions that select data files
light          run a statement on DuckDB
spark          run a statement on Spark
answer         the frame of an answer
"""
