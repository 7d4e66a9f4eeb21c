total = 1 + \
    2
called = print(
    total,
    [
        1,
        2,
    ],
); total = 3; text = ("a"
    "b")
