from collections import deque


class Loop:
    def __init__(self):
        self.ready = deque()

    def spawn(self, generator, *args):
        self.ready.append(generator(*args))

    def run(self):
        while self.ready:
            task = self.ready.popleft()
            try:
                effect = next(task)
            except StopIteration:
                continue
            effect(self)
            self.ready.append(task)


def log(loop):
    return 1


def worker(n):
    for _ in range(n):
        yield log
    yield lambda loop: loop.spawn(child)


def child():
    return_value()
    yield log


def return_value():
    return 1


loop = Loop()
loop.spawn(worker, 2)
loop.run()
