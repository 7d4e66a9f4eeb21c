"""Names, imports, classes, values and calls of a repository: what refers to what, and how we know."""
