import even


def is_odd(n):
    return False if n == 0 else even.is_even(n - 1)
