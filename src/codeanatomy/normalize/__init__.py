"""Normalize: from what witnesses said to flat facts, one function per table, named after it."""
