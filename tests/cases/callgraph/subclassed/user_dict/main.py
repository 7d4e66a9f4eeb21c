from collections import UserDict


class Reg(UserDict):
    def call(self, key):
        return self.data[key]()


def f():
    return 1


reg = Reg()
reg["f"] = f
reg.call("f")
