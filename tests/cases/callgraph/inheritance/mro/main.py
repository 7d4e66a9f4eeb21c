class A:
    def who(self):
        return "a"


class B:
    def who(self):
        return "b"


class C(A, B):
    pass


class D(B, A):
    pass


def first():
    return C().who()


def second():
    return D().who()


first()
second()
