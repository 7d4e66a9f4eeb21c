def target(first, *others, key=None, **rest): ...


values, options = [1, 2], {"key": 3}
target(*values)
target(0, *values, **options)
target(*[1], *values, key=4, **options, extra=5)
print(*values, sep="")
