from shop.waste import loop_two


def round_one(n):
    return round_two(n - 1) if n else 0


def round_two(n):
    return round_three(n)


def round_three(n):
    return round_one(n) + round_three(n - 1)


STEP = loop_two
