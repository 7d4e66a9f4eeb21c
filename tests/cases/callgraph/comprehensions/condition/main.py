def wanted(n):
    return n > 1


def change(n):
    return -n


def select(numbers):
    return {change(n) for n in numbers if wanted(n)}


select([1, 2])
