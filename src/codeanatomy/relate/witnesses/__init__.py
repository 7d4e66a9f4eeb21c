"""Compare the claims of other witnesses, SCIP and a type checker, with our own candidates.

lookup        claims about the names, attributes and calls of a file
claims        a claim, and the index of definitions by which witnesses name their targets
scip          claims of a SCIP index about identifiers
type_checker  claims of a type checker about calls and references
agreement     verdict: which candidates the claims confirm, contradict or add

Tests: `tests/unit/relate/test_witnesses.py`.
"""
