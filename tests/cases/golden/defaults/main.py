def fallback():
    return 0


class Config:
    size = 3

    def resize(self, to=size, how=fallback):
        return how()


def collect(item, into=[]):
    into.append(item)
    return into
