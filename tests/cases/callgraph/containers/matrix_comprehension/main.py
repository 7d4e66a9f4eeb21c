class Cell:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def alive(self):
        return bool(self.x)


def grid(n):
    return [[Cell(x, y) for x in range(n)] for y in range(n)]


def count(cells):
    return sum(cell.alive() for row in cells for cell in row)


def neighbours(cells, x, y):
    return cells[y][x].alive()


cells = grid(2)
count(cells)
neighbours(cells, 0, 1)
flat = {(c.x, c.y): c for row in cells for c in row}
flat[0, 0].alive()
