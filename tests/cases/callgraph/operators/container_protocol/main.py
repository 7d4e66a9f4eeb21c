class Grid:
    def __init__(self):
        self.cells = {}

    def __getitem__(self, key):
        return self.cells[key]

    def __setitem__(self, key, value):
        self.cells[key] = value

    def __delitem__(self, key):
        del self.cells[key]

    def __contains__(self, key):
        return key in self.cells

    def __len__(self):
        return len(self.cells)

    def __iter__(self):
        return iter(self.cells)


def play(grid):
    grid[0, 1] = "x"
    grid[1] = "y"
    grid[1] += "z"
    if (0, 1) in grid and len(grid):
        del grid[0, 1]
    (a,) = grid
    return [*grid], a


play(Grid())
