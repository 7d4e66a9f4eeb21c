class A:
    def f(self):
        return "a"


class B(A):
    def f(self):
        return "b"


class C(B):
    def f(self):
        return super(B, self).f()


C().f()
