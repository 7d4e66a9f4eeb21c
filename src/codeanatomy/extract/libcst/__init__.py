"""Read spans, facts and names from a LibCST tree.

facts            collect references, definitions, imports, calls and types
light_tree       parse with cheap objects for the most frequent nodes
node_layout      the tokens and children of each node class, in source order
qualified_names  scopes, bindings and candidates for a dotted name
spans            compute the byte span of each node
texts            docstrings and type comments
"""
