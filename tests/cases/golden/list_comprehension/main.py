x = "outer"
squares = [x * x for x in range(3) if x]
print(x)


class Rows:
    width = 2
    cells = [0 for _ in range(width)]
