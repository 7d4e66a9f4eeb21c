grid = [[1, 2], [3, 4]]
one = grid[0][1]
part = grid[1:]
step = grid[::2]
copy = grid[:]
table = {(1, 2): 3}
cell = table[1, 2]
grid[0][0:1] = []
