numbers = 1, 0x1F, 1_000, 2.5, 1e-3, 3j, -7
texts = "a", 'b' "c", r"\d", b"bytes", """long
text"""
others = None, True, False, ..., Ellipsis
nested = [(), [1], {2}, {"k": {3: 4}}]
