class Tool:
    def cut(self):
        return 1


def use():
    Tool.__dict__["cut"](Tool())


use()
