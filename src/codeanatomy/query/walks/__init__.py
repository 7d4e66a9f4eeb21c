"""Walks over the graph that several verbs share."""
