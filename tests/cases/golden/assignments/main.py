a = 1
b = c = a
(d) = b, c
first, second = d


class Box:
    size = 0


box = Box()
box.size = first
items = [0, 0]
items[0] = second
