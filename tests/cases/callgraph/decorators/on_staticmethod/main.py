def audit(function):
    def call(*args):
        return function(*args)

    return call


class Math:
    @staticmethod
    @audit
    def double(n):
        return n * 2

    @classmethod
    @audit
    def make(cls):
        return cls()


Math.double(2)
Math.make().double(3)
