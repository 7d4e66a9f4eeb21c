"""Serve a lake to people and programs: read only, no JVM.

explorer    the graph in a browser (`codeanatomy explore`)
"""
