"""Graphs for other tools: a format is a module with one function, and all of them get the same rows.

    send = resolve(reader, "Session.send")
    export_graph(reader, "graphml", target=Path("send.graphml"), focus=send, hops=2)
    export_graph(reader, "parquet", target=Path("graph"), kinds=("CALL_GRAPH", "CONTAINS"))

`selection` says which nodes and edges, `rows` is what a format gets of them, batch by batch, `targets` writes
files that are whole or not there, `exporting` puts them together. `picture` and `page` draw a focus.

Tests: `tests/unit/query/test_export.py`, `tests/unit/query/test_picture.py`.
"""
