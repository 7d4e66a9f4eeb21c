class Grid:
    def __getitem__(self, place):
        return 1

    def __setitem__(self, place, value):
        return None

    def __delitem__(self, place):
        return None


def use(grid):
    grid[1] = 2
    found = grid[1]
    del grid[1]
    return found


use(Grid())
