"""Methods that are found by names which nobody knows before."""


class Format:
    def write(self, letters):
        return [getattr(self, letter)() for letter in letters]

    def zz(self):
        """0.3: its class computes names of its own attributes."""


WRITTEN = Format().write(input())
