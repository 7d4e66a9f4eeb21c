def between(low, x, high):
    inside = low < x <= high != 3
    same = x is low or x is not high
    member = x in (low, high) and x not in [1]
    return inside == same, member >= inside, x > low
