"""Questions in SQL: looked at first, then answered by DuckDB or by Spark."""
