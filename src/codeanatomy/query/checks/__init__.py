"""Check and compare whole graphs, without a JVM.

    callgraph       call graphs by qualified names
    compare         row-by-row comparison of two lakes
    key_rules       the rule of each foreign key
    verify          runs the integrity rules over a lake
    verify_rules    integrity rules as SQL

Tests: `tests/unit/query/test_verify.py`, `tests/unit/run/test_clean_build.py`.
"""
