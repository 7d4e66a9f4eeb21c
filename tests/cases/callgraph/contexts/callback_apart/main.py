def each(items, callback):
    return [callback(item) for item in items]


class Row:
    def show(self):
        return 1


class Cell:
    def paint(self):
        return 2


def show(row):
    return row.show()


def paint(cell):
    return cell.paint()


def rows():
    return each([Row()], show)


def cells():
    return each([Cell()], paint)


rows()
cells()
