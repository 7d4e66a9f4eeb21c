def search(rows, wanted):
    for index, row in enumerate(rows):
        if row is wanted:
            break
        if not row:
            continue
        print(index)
    else:
        index = -1
    return index
