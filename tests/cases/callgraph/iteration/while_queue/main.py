from collections import deque


class Leaf:
    def run(self, queue):
        return None


class Split:
    def run(self, queue):
        queue.append(Leaf())
        queue.extend([Leaf()])


def work():
    queue = deque([Split()])
    while queue:
        task = queue.popleft()
        task.run(queue)


work()
