def flatten(matrix, limit):
    flat = [cell for row in matrix if row for cell in row if cell < limit]
    deep = [[cell + limit for cell in row] for row in matrix]
    return flat, deep
