class TooBig(Exception):
    def code(self):
        return 1


class TooSmall(Exception):
    def code(self):
        return 2


def check(n):
    if n > 5:
        raise TooBig
    raise TooSmall


def run(n):
    try:
        check(n)
    except (TooBig, TooSmall) as problem:
        return problem.code()


run(9)
run(1)
