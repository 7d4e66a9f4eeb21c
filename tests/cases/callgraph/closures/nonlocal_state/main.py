def make():
    def first():
        nonlocal current
        current = second
        return 1

    def second():
        return 2

    current = first

    def step():
        return current()

    return step


step = make()
step()
step()
