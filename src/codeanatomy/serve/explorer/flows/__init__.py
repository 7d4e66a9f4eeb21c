"""Arrange the flow of a value for a page.

    excerpts      lines around spans of several files
    flow_steps    steps of a value with their arrows and ends

Tests: `tests/unit/serve/test_flow_pages.py`.
"""
