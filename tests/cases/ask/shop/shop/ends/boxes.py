class Parcel:
    def __init__(self, paper):
        self.paper = paper

    def tie(self, ribbon):
        return ribbon


class Tube(Parcel):
    pass


def choose(flag):
    kind = Parcel if flag else Tube
    return kind(flag)


def chosen():
    return choose(True)
