"""Run external analysers on links to the sources.

external_tool  link the sources and run a tool for a limited time
pyrefly        run the type checker
scip_python    run the SCIP indexer
tool_tasks     run a tool as a task of the extract step
"""
