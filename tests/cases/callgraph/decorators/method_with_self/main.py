from functools import wraps


def locked(method):
    @wraps(method)
    def inner(self, *args, **kwargs):
        self.acquire()
        try:
            return method(self, *args, **kwargs)
        finally:
            self.release()

    return inner


class Account:
    def __init__(self):
        self.balance = 0

    def acquire(self):
        pass

    def release(self):
        pass

    @locked
    def deposit(self, n):
        self.balance += n
        return self.check()

    def check(self):
        return self.balance >= 0


Account().deposit(3)
