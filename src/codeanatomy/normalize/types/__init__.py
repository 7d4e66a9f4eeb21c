"""Read annotations and type comments, and resolve and normalize the types in them.

    tables    the two type tables of a file
    text      parse the text of a type into a tree with normal forms
    names     resolve the names in a type by the scopes and imports of the file

Tests: `tests/unit/normalize`.
"""
