def scale(values, factor):
    # type: (list[int], int) -> list[int]
    total = 0  # type: int
    for value in values:  # type: int
        total += value * factor
    return [total]
