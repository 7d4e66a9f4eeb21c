class A:
    def m(self):
        return "a"


class B:
    def m(self):
        return "b"


x = A()
x = B()
x.m()
