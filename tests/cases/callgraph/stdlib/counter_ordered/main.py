from collections import Counter, OrderedDict, deque


def count(words):
    counter = Counter(words)
    counter.update(["x"])
    return counter.most_common(1)


def recent():
    queue = deque(maxlen=3)
    queue.appendleft(1)
    table = OrderedDict()
    table.move_to_end
    return queue.pop()


count("aab")
recent()
