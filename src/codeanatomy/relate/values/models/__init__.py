"""Model functions outside of the repository: which arguments they call, and what they return.

    builtins             builtin functions and methods of strings
    container_methods    methods of lists, tuples, dicts, sets and generators
    library              functions of the standard library

A model is found by qualified name; functions without one only have what their name suggests.
"""
