def total(rows, factor):
    return sum(row * factor for row in rows)


lazy = (n for n in total([1], 2))
