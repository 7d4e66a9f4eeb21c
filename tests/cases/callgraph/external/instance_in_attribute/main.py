import logging
from collections import deque


class Worker:
    def __init__(self):
        self.queue = deque()
        self.log = logging.getLogger("worker")

    def push(self, item):
        self.queue.append(item)


Worker().push(1)
