values = [1, 2, 3]
del values[0]
temporary = values
del temporary


class Box:
    pass


box = Box()
box.lid = 1
del box.lid, values


def local():
    gone = 1
    del gone
    return gone
