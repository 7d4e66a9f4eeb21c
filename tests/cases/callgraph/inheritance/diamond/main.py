class Top:
    def work(self):
        return 0


class Left(Top):
    pass


class Right(Top):
    def work(self):
        return 1


class Bottom(Left, Right):
    pass


Bottom().work()
