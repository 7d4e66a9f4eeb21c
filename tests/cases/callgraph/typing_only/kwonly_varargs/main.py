class Op:
    def run(self):
        return 1


def all_of(*ops: Op, **named: Op):
    for op in ops:
        op.run()
    for name, op in named.items():
        op.run()
    named["x"].run()


def kw(*, op: Op, other: Op | None = None):
    op.run()
    (other or op).run()
