class Timer:
    def start(self):
        def fire():
            return self.ring()

        return fire

    def ring(self):
        return 1


Timer().start()()
