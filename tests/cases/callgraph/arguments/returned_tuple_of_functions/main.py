def accessors(name):
    def getter(o):
        return getattr(o, name)

    def setter(o, value):
        setattr(o, name, value)

    return getter, setter


class Box:
    pass


get, put = accessors("size")
box = Box()
put(box, 3)
get(box)
