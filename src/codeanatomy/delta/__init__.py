"""The only package that speaks Spark sessions and Delta.

Two boundaries: `scan` is the only way rows are read, the verbs of `commit` are the only way they are
written. Both take a `Store` and enforce what the catalogue declares about the table.

| module | what it holds |
|---|---|
| session, java, jars, archive | a session from a RuntimeProfile, and what it needs to start |
| store | the context of every call: session, root, tables, recorder |
| scan, commit, feed | the boundaries |
| contract, checks, gate, evolve, layout | what they enforce, in the order they do |
| transaction | how tables are born and appended to |
| light | reads without a JVM |
| deltalog | Delta's log over py4j |
| functions | column_range functions in SQL and as columns |
| events | what the recorder is told |
"""
