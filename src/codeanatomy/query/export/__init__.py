"""Export graphs for other tools: a format is a module with one function, and all of them get the same rows.

    send = resolve(reader, "Session.send")
    export_graph(reader, "graphml", target=Path("send.graphml"), focus=send, hops=2)
    export_graph(reader, "parquet", target=Path("graph"), kinds=("CALL_GRAPH", "CONTAINS"))

Modules:

    write          choose the nodes and edges and write a format
    selection      select nodes and edges and read their rows in batches
    rows           the batches of rows that a format gets
    dot            DOT, for Graphviz
    graphml        GraphML
    jsonl          JSON Lines
    neo4j_csv      CSV files for the importer of Neo4j
    networkx_json  node-link JSON
    parquet        Parquet files
    svg            a picture of a focus
    html           a page with the picture
    neighbourhood  boxes and arrows of a picture
    escaping       text of sources, escaped and shortened

Tests: `tests/unit/query/test_export.py`, `tests/unit/query/test_picture.py`.
"""
