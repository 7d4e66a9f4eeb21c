class Flag:
    def __bool__(self):
        return True


class Basket:
    def __len__(self):
        return 1


def check(flag):
    if flag:
        return 1
    return 0


def negate(basket):
    return not basket


check(Flag())
negate(Basket())
