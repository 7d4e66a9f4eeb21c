double = lambda x: x * 2
default = lambda *args, key=None, **rest: (args, key, rest)
nested = lambda a: lambda b: a + b
print(double(1), nested(1)(2), sorted([3, 1], key=lambda n: -n))
