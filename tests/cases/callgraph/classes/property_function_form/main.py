class Temp:
    def _get(self):
        return self._c

    def _set(self, value):
        self._c = self.clamp(value)

    def clamp(self, value):
        return max(value, 0)

    celsius = property(_get, _set)


t = Temp()
t.celsius = 3
t.celsius
