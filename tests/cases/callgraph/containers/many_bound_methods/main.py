class Machine:
    def __init__(self):
        self.state = self.s0

    def step(self):
        return self.state()

    def s0(self):
        self.state = self.s1

    def s1(self):
        self.state = self.s2

    def s2(self):
        self.state = self.s3

    def s3(self):
        self.state = self.s4

    def s4(self):
        self.state = self.s5

    def s5(self):
        self.state = self.s6

    def s6(self):
        self.state = self.s7

    def s7(self):
        self.state = self.s8

    def s8(self):
        self.state = self.s9

    def s9(self):
        self.state = self.s10

    def s10(self):
        self.state = self.s11

    def s11(self):
        self.state = self.s0


class A(Machine):
    pass


class B(Machine):
    pass


class C(Machine):
    pass


class D(Machine):
    pass


class E(Machine):
    pass


class F(Machine):
    pass


for cls in (A, B, C, D, E, F):
    machine = cls()
    for _ in range(13):
        machine.step()
