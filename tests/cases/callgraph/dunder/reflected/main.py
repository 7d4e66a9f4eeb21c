class Meter:
    def __rmul__(self, number):
        return Meter()

    def length(self):
        return 1


(3 * Meter()).length()
