import functools


def logged(function):
    @functools.wraps(function)
    def wrapper(self, *args):
        self.log(function.__name__)
        return function(self, *args)

    return wrapper


class Base:
    def log(self, text):
        return text


class Service(Base):
    run = None

    @logged
    def start(self, n):
        return self.stop()

    @logged
    def stop(self):
        return 0

    run = start


Service().run(1)
