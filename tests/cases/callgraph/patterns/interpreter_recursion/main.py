class Const:
    def __init__(self, value):
        self.value = value

    def eval(self, env):
        return self.value


class Var:
    def __init__(self, name):
        self.name = name

    def eval(self, env):
        return env.lookup(self.name)


class Add:
    def __init__(self, *terms):
        self.terms = terms

    def eval(self, env):
        return sum(term.eval(env) for term in self.terms)


class Env:
    def __init__(self, **values):
        self.values = values

    def lookup(self, name):
        return self.values[name]


Add(Const(1), Add(Var("x"), Const(2))).eval(Env(x=3))
