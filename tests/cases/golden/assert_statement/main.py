def half(n: int) -> int:
    assert n % 2 == 0
    assert n > 0, f"{n} is too small"
    return n // 2
