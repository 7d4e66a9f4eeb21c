from collections import OrderedDict


class Recent(OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.move_to_end(key)


def store(recent):
    recent["a"] = 1


store(Recent())
