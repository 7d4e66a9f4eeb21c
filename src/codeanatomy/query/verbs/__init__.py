"""The verbs: a question is a function of a reader and symbols that returns a query, in a module of its name.

    found = callers(reader, resolve(reader, "Session.send"), depth=2)
    found.columns       # ("symbol", "kind", "subkind", "path", "line", ...), declared in `answers.COLUMNS`
    found.query         # not run yet: the light lane reads some rows of it, Spark makes a DataFrame of it

The command line, `Lake` and any server call the same functions. Tests: one `tests/test_verb_*.py` each.
"""
