"""Model functions outside of the repository: which arguments they call, and what they return.

    builtins             builtin functions and methods of strings
    container_methods    methods of lists, tuples, dicts, sets and generators
    library              functions of the standard library
    model_call           a call to model, with the verbs of models
    testing              marks, sets of parameters and expected exceptions of pytest

A model is a function of a `ModelCall`, found by qualified name in a table of its module. Functions without
one only have what their name suggests.
"""
