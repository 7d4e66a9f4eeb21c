"""Checks and exports of a graph as a whole."""
