"""Runs: repositories into a lake, planned from the catalogue, recorded in the manifest."""
