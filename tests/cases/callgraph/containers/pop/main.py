def task():
    return 1


queue = [task]
while queue:
    queue.pop()()
