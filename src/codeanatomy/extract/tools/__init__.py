"""Run external analysers on links to the sources.

external_tool  link the sources and run a tool for a limited time
pyrefly        run the type checker
scip_python    run the SCIP indexer
"""
