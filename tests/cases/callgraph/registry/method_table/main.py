class Machine:
    def __init__(self):
        self.acc = 0

    def push(self, n):
        self.acc += n

    def halt(self, n):
        self.acc = 0

    OPS = {"push": push, "halt": halt}

    def step(self, op, n):
        self.OPS[op](self, n)


machine = Machine()
machine.step("push", 2)
machine.step("halt", 0)
