def choose(a, b, c):
    x = a and b or c
    return not x and (a or b)
