"""Readers that run queries over a snapshot.

statements          queries as data: SQL over slices of tables
derived_columns     columns that are computed from stored ones
light               DuckDB, without a JVM
spark               the caller's Spark session
public_store        a lake in a session of which only the public interface is used: Spark Connect
spark_changes       changes of tables between two runs, in a Spark session
spark_change_pages  pages of them, equal to those that are read without a JVM
spark_lake          a lake in a Spark session: tables, graph, views and verbs as DataFrames
ibis                the views as Ibis tables, on DuckDB or Spark
views               the views of the catalogue as queries
"""
