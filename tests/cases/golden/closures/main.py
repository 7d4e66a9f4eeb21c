def counter(start):
    count = start

    def step(by=1):
        nonlocal count
        count += by
        return count

    return step


tick = counter(10)
tick()
tick(5)
