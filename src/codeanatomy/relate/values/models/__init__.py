"""Model functions outside of the repository: which arguments they call, and what they return.

    models.txt           which model each function has, by qualified name
    builtins             builtin functions, methods of strings and containers
    library              functions of the standard library and pytest
    model_call           a call to model, with the verbs of models
    table                read `models.txt`

A model is a function of a `ModelCall`. Functions without one only have what their name suggests.
"""
