def as_method(self):
    return self.name()


def plain():
    return 1


class Holder:
    method = as_method
    free = staticmethod(plain)

    def name(self):
        return "h"


h = Holder()
h.method()
h.free()
Holder.free()
