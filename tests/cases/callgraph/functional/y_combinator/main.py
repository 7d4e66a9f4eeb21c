fix = lambda f: (lambda x: x(x))(lambda x: f(lambda n: x(x)(n)))

fact = fix(lambda rec: lambda n: 1 if n == 0 else n * rec(n - 1))
fact(3)
