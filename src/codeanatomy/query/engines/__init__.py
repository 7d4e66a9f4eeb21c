"""Who runs queries over a snapshot: DuckDB, Spark, Ibis."""
