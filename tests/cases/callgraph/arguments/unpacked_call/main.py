def one():
    return 1


def two():
    return 2


def run(first, second):
    first()
    second()


positional = [one]
named = {"second": two}
run(*positional, **named)
